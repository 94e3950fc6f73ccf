//! What a reader is told first: what was found and how sure that is, what was not decided, and what to be careful of.
//! It is made of the verdicts, and never says more than they do.

use rumba_core::comparability::{Unequal, why_not_ranked};
use rumba_core::comparison::{Figure, Part, Row, Summary};
use rumba_core::metric::Metric;
use rumba_core::ratio::{Change, HEADLINE_RUN, Ratio, discoveries};
use rumba_core::record::{Status, TrialPart, TrialPlan};
use rumba_core::results::{Results, Trial};
use rumba_core::starts::Scope;
use rumba_core::units::show_bytes;
use rumba_core::warning::{Rank, WARNINGS, Warning};
use serde::Serialize;

use crate::format::{RESOLUTION, counted, percent, ratio};
use crate::tables::repeats_from;
use crate::verdict::{default_baseline, keeps_nothing};

/// What is said instead of `sure` where the repeats are starts of one load.
const FOR_THIS_LOAD: &str = "for this load only, because the repeats are starts of one load";
/// A warning's text is cut behind so many characters, and of failed data sooner: the whole stands below.
const LONGEST: usize = 240;
const LONGEST_OF_DATA: usize = 120;

/// Three sentences and a line of conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opening {
    /// What was found, and how sure that is.
    pub found: String,
    /// What was not decided, and what would decide it.
    pub undecided: String,
    /// What changes most how the figures are to be read.
    pub careful: String,
    /// Memory, storage and cache.
    pub conditions: String,
}

impl Opening {
    /// The sentences in their order.
    pub fn sentences(&self) -> [&str; 3] {
        [&self.found, &self.undecided, &self.careful]
    }
}

/// What the results say at their largest number of clients, which is what the page shows first.
pub fn opening(results: &Results, summary: &Summary) -> Opening {
    let against = Against::of(summary);
    Opening {
        found: against.as_ref().map_or_else(|| alone(summary), Against::found),
        undecided: against.as_ref().map_or_else(|| spread_alone(summary), Against::undecided),
        careful: careful(results, summary),
        conditions: conditions(results),
    }
}

/// The engines over the baseline, at the largest number of clients.
struct Against<'a> {
    summary: &'a Summary,
    baseline: &'a str,
    clients: u32,
    /// Every headline that one of both has a figure of.
    headlines: Vec<Headline<'a>>,
    /// Those of them that can be told in a sentence.
    judged: Vec<Judged<'a>>,
    /// Why some engines are not ranked: they did not have the same memory.
    not_ranked: Option<String>,
    suite: bool,
}

/// One engine over the baseline in one metric that carries a verdict.
#[derive(Clone, Copy)]
struct Headline<'a> {
    row: &'a Row,
    base: &'a Row,
    ratio: &'a Ratio,
    /// Whether the figures of both may be judged.
    is_sound: bool,
}

/// One that is told.
#[derive(Clone, Copy)]
struct Judged<'a> {
    row: &'a Row,
    base: &'a Row,
    ratio: &'a Ratio,
    value: f64,
    /// What both did not have alike; where it is nothing, what is found is the engines' own.
    unequal: &'a [Unequal],
}

impl<'a> Against<'a> {
    /// Nothing where there are no two engines to compare.
    fn of(summary: &'a Summary) -> Option<Self> {
        let clients = summary.clients().last().copied()?;
        let baseline = default_baseline(summary)?;
        let relative = summary.relative.iter().find(|relative| relative.baseline == baseline)?;
        let (mut headlines, mut judged, mut not_ranked) = (Vec::new(), Vec::new(), None);
        for against in relative.rows.iter().filter(|row| row.clients == clients) {
            let Some(row) = summary.row(&against.engine, clients).filter(|row| !keeps_nothing(row)) else { continue };
            let Some(base) = summary.row_of_baseline(baseline, row) else { continue };
            let is_sound = against.unsound.is_none();
            let unequal = &*against.comparability;
            let of_engine = against.metrics.iter().filter(|ratio| ratio.headline);
            let of_engine =
                of_engine.map(|ratio| Headline { row, base, ratio, is_sound }).filter(Headline::has_a_figure);
            for headline in of_engine {
                if let Some(why) = why_not_ranked(unequal, &headline.ratio.metric) {
                    not_ranked
                        .get_or_insert_with(|| format!("{} and {} are not ranked: {why}", row.engine, base.engine));
                    continue;
                }
                headlines.push(headline);
                judged.extend(headline.told().map(|value| Judged { row, base, ratio: headline.ratio, value, unequal }));
            }
        }
        let suite =
            judged.iter().any(|judged: &Judged| judged.row.test.is_some() && judged.ratio.metric == "ops_per_s");
        let says = !judged.is_empty() || not_ranked.is_some();
        says.then_some(Self { summary, baseline, clients, headlines, judged, not_ranked, suite })
    }

    fn found(&self) -> String {
        let of = |changes: &[Change]| self.strongest(changes);
        let repeats = self.repeats();
        if let Some(why) = self.not_ranked.as_ref().filter(|_| self.judged.is_empty()) {
            return format!("{why}. Leave cache out under limits.memory: then both have the same memory.");
        }
        if self.suite {
            return self.found_in_suite();
        }
        if let Some((first, second)) = of(&[Change::Better, Change::Worse]) {
            return format!("{} ({repeats}): {}.", self.sentence(first, second), self.how_sure(first, second));
        }
        if let Some((first, second)) = of(&[Change::SeenOnce]) {
            return format!("Seen once, which decides nothing: {}.", self.sentence(first, second));
        }
        let same = self.judged.iter().filter(|judged| judged.ratio.change == Change::Same);
        match same.min_by_key(|judged| operation(&judged.ratio.metric).is_some()) {
            Some(same) => format!(
                "{} and {} are the same within 1% in {}, with {} ({repeats}): {}.",
                same.row.engine,
                self.baseline,
                quantity(&same.ratio.metric),
                self.with_clients(),
                if same.ratio.scope == Scope::ThisLoad { FOR_THIS_LOAD } else { "sure" }
            ),
            None => format!(
                "{} is decided between {} and {}, with {} ({repeats}).",
                if self.headlines.iter().any(Headline::is_decided) {
                    "Nothing of a size to tell of"
                } else {
                    "Nothing"
                },
                self.baseline,
                listed(self.engines()),
                self.with_clients()
            ),
        }
    }

    /// What is told is chosen for being extreme among all verdicts of this number of clients: it is sure if it is one of
    /// those that stand when all are tested together.
    fn how_sure(&self, first: Judged<'_>, second: Option<Judged<'_>>) -> String {
        if [Some(first), second].into_iter().flatten().any(|judged| judged.ratio.scope == Scope::ThisLoad) {
            return FOR_THIS_LOAD.to_owned();
        }
        let sound = || self.headlines.iter().filter(|headline| headline.is_sound);
        let verdicts = || sound().filter_map(|headline| headline.ratio.p);
        let bound = discoveries(verdicts());
        let stands = |judged: Judged<'_>| judged.ratio.p.is_some_and(|p| p <= bound);
        if stands(first) && second.is_none_or(stands) {
            return "sure".to_owned();
        }
        format!("sure by itself, and not among {} together", counted(verdicts().count(), "verdict"))
    }

    /// The finding that lies farthest from one, of engines that had the same where there are such, and another of the
    /// same engine in a different metric. Percentiles are told where nothing else is found.
    fn strongest(&self, changes: &[Change]) -> Option<(Judged<'a>, Option<Judged<'a>>)> {
        let far = |judged: &&Judged<'a>| judged.value.ln().abs();
        let among = || self.judged.iter().filter(|judged| changes.contains(&judged.ratio.change));
        let is_whole = |judged: &Judged<'_>| operation(&judged.ratio.metric).is_none();
        let rank = |judged: &Judged<'_>| (is_whole(judged), judged.unequal.is_empty());
        let farthest = |a: &&Judged<'a>, b: &&Judged<'a>| rank(a).cmp(&rank(b)).then(far(a).total_cmp(&far(b)));
        let first = *among().max_by(farthest)?;
        let is_other =
            |judged: &Judged<'_>| judged.ratio.metric != first.ratio.metric && is_whole(judged) == is_whole(&first);
        let others = || among().filter(|judged| is_other(judged));
        let rate = others().find(|judged| judged.row.engine == first.row.engine && judged.ratio.metric == "ops_per_s");
        let second = rate.or_else(|| others().filter(|judged| judged.row.engine == first.row.engine).max_by(farthest));
        Some((first, second.copied()))
    }

    fn sentence(&self, first: Judged<'_>, second: Option<Judged<'_>>) -> String {
        let engine = &first.row.engine;
        let told = |judged: Judged<'_>, baseline: &str| {
            let metric = &judged.ratio.metric;
            let said = judged.unequal.iter().find(|unequal| unequal.is_said_of(metric));
            let said = said.map(|unequal| format!(" (with {})", unequal.against())).unwrap_or_default();
            predicate(metric, judged.value, baseline) + &said
        };
        let mut text = format!("{engine} {}", told(first, self.baseline));
        if let Some(second) = second {
            text += &format!(" and {}", told(second, "it"));
        }
        format!("{text}, with {}", self.with_clients())
    }

    /// Of a suite how many tests are faster or slower: one of them alone would be chosen for being extreme.
    fn found_in_suite(&self) -> String {
        let rates: Vec<&Judged> = self.judged.iter().filter(|judged| judged.ratio.metric == "ops_per_s").collect();
        let sentences = self.engines().into_iter().map(|engine| {
            let own = || rates.iter().filter(|judged| judged.row.engine_alone() == engine);
            let count = |changes: &[Change]| own().filter(|judged| changes.contains(&judged.ratio.change)).count();
            let not_told = count(&[Change::Undecided, Change::SeenOnce, Change::Void]);
            format!(
                "{engine} does more operations per second than {} in {} of {}, fewer in {}, the same within 1% in {}; {} \
                 not decided",
                self.baseline,
                count(&[Change::Better]),
                counted(own().count(), "test"),
                count(&[Change::Worse]),
                count(&[Change::Same]),
                if not_told == 1 { "1 is".to_owned() } else { format!("{not_told} are") },
            )
        });
        let is_of_one_load = rates.iter().any(|judged| judged.ratio.scope == Scope::ThisLoad);
        let scope = if is_of_one_load { format!(", {FOR_THIS_LOAD}") } else { String::new() };
        format!("With {}{scope}: {}.", self.with_clients(), sentences.collect::<Vec<_>>().join("; "))
    }

    fn undecided(&self) -> String {
        if self.judged.is_empty() && self.not_ranked.is_some() {
            return "Nothing can be decided between engines that did not have the same memory.".to_owned();
        }
        let is_open = |headline: &&Headline| matches!(headline.ratio.change, Change::Undecided | Change::Void);
        let open: Vec<&Headline> = self.headlines.iter().filter(is_open).collect();
        let Some(first) = open.iter().copied().min_by_key(|headline| headline.place()) else { return self.decided() };
        let metric = &first.ratio.metric;
        let among = open.iter().filter(|headline| headline.ratio.metric == *metric);
        let (range, engine) = among
            .flat_map(|headline| [headline.row, headline.base])
            .filter_map(|row| Some((figure(row, metric)?.spread?.range, row.engine.as_str())))
            .fold((0.0, ""), |widest, one| if one.0 > widest.0 { one } else { widest });
        let what = capital(&quantity(metric));
        let moved = if let Some(why) = first.lacking() {
            format!("{what}: not decided, because {why}")
        } else if engine.is_empty() {
            format!("{what}: not decided")
        } else {
            format!("{what} moved by {} between repeats of {engine}: not decided", percent(range))
        };
        let between = format!(" between {} and {}", first.row.engine, first.base.engine);
        let more = match first.ratio.more_repeats {
            Some(more) => format!("; {} of each would probably decide", counted(more as usize, "more repeat")),
            None => String::new(),
        };
        let rest = match open.len() - 1 {
            0 => String::new(),
            1 => " (1 other headline is not decided either)".to_owned(),
            rest => format!(" ({rest} other headlines are not decided either)"),
        };
        format!("{moved}{between}{more}{rest}.")
    }

    /// Where no headline is undecided.
    fn decided(&self) -> String {
        if self.headlines.iter().any(|headline| headline.ratio.change == Change::SeenOnce) {
            return "How far the next repeat would lie from what was seen is not known.".to_owned();
        }
        let with = match self.summary.clients().len() {
            1 => String::new(),
            _ => format!(" with {}", self.with_clients()),
        };
        let baseline = self.baseline;
        if self.headlines.iter().any(|headline| headline.ratio.scope == Scope::ThisLoad) {
            return format!("Every headline is decided against {baseline}{with}, {FOR_THIS_LOAD}.");
        }
        format!(
            "Every headline is decided against {baseline}{with}; each such verdict is wrong in at most 5 of 100 cases."
        )
    }

    fn engines(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for judged in &self.judged {
            if !names.contains(&judged.row.engine_alone()) {
                names.push(judged.row.engine_alone());
            }
        }
        names
    }

    fn repeats(&self) -> String {
        let counts = || self.judged.iter().flat_map(|judged| [judged.row, judged.base]).filter_map(repeats_of);
        let (fewest, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let number = if fewest == most { counted(most, "repeat") } else { format!("{fewest} to {most} repeats") };
        format!("{number}{}", repeats_from(self.summary))
    }

    fn with_clients(&self) -> String {
        counted(self.clients as usize, "client")
    }
}

impl<'a> Headline<'a> {
    fn figures(&self) -> [Option<&'a Figure>; 2] {
        [self.row, self.base].map(|row| figure(row, &self.ratio.metric))
    }

    fn medians(&self) -> [Option<f64>; 2] {
        self.figures().map(|figure| figure.and_then(|figure| figure.median.value()))
    }

    fn has_a_figure(&self) -> bool {
        self.medians().iter().any(Option::is_some)
    }

    fn is_decided(&self) -> bool {
        matches!(self.ratio.change, Change::Better | Change::Worse | Change::Differs | Change::Same)
    }

    /// The ratio, where both figures can be measured.
    fn told(&self) -> Option<f64> {
        let is_measurable = |median: &Option<f64>| median.is_some_and(|median| median >= RESOLUTION);
        self.ratio.ratio.value().filter(|value| *value > 0.0 && self.medians().iter().all(is_measurable))
    }

    /// Why nothing can be decided: repeats lack the figure, or all do.
    fn lacking(&self) -> Option<&'a str> {
        let ratio: &'a Ratio = self.ratio;
        let absent = || self.figures().into_iter().flatten().find_map(|figure| figure.median.reason());
        ratio.lacking.as_deref().or_else(absent)
    }

    /// Which is told first of those that are undecided: what can be measured, and percentiles behind the others.
    fn place(&self) -> (bool, usize) {
        let place = HEADLINE_RUN.iter().position(|metric| *metric == self.ratio.metric);
        (self.told().is_none(), place.unwrap_or(HEADLINE_RUN.len()))
    }
}

/// A headline figure of the loops.
fn figure<'a>(row: &'a Row, metric: &str) -> Option<&'a Figure> {
    let run = row.run.as_ref()?;
    match operation(metric) {
        Some(op) => run.op_types.get(op)?.response.get("p99_ms"),
        None => run.metrics.get(metric),
    }
}

/// The type of operation whose 99th percentile a metric is.
fn operation(metric: &str) -> Option<&str> {
    metric.strip_suffix(".p99_ms")
}

/// The trials that run the mix: one that only loads may be spared the limits.
fn loops_of(results: &Results) -> impl Iterator<Item = &Trial> {
    results.trials.iter().filter(|trial| trial.record.plan.part != TrialPart::Load)
}

fn repeats_of(row: &Row) -> Option<usize> {
    row.run.as_ref().map(|run| run.repeats.len())
}

/// What is compared, as the subject of a sentence.
fn quantity(metric: &str) -> String {
    if let Some(op) = operation(metric) {
        return format!("the 99th percentile of {op}");
    }
    match metric {
        "ops_per_s" => "operations per second",
        "wkb_per_op_with_drain" => "KB written per operation",
        "reads_per_op" => "reads per operation",
        "host_cpu_us_per_op_with_drain" => "CPU of the host per operation",
        "cpu_us_per_op_with_drain" => "CPU of clients and engine per operation",
        _ => "size on disk",
    }
    .to_owned()
}

/// `writes 33 times less per operation than innodb`.
fn predicate(metric: &str, over: f64, baseline: &str) -> String {
    let (verb, much, less, what) = match metric {
        "ops_per_s" => ("does", "many", "fewer", " operations per second".to_owned()),
        "wkb_per_op_with_drain" => ("writes", "much", "less", " per operation".to_owned()),
        "reads_per_op" => ("makes", "many", "fewer", " reads per operation".to_owned()),
        "host_cpu_us_per_op_with_drain" => ("uses", "much", "less", " CPU of the host per operation".to_owned()),
        "cpu_us_per_op_with_drain" => ("uses", "much", "less", " CPU per operation".to_owned()),
        _ => match operation(metric) {
            Some(op) => ("takes", "much", "less", format!(" time for 99 of 100 {op}")),
            None => ("takes", "much", "less", " room on disk".to_owned()),
        },
    };
    let (amount, than) = match over {
        over if over >= 2.0 => (format!("{} times as {much}", ratio(over)), "as"),
        over if over > 1.0 => (format!("{} more", percent(over - 1.0)), "than"),
        over if over > 0.5 => (format!("{} {less}", percent(1.0 - over)), "than"),
        over => (format!("{} times {less}", ratio(1.0 / over)), "than"),
    };
    format!("{verb} {amount}{what} {than} {baseline}")
}

/// Where nothing can be compared: what the one engine did.
fn alone(summary: &Summary) -> String {
    let best = summary.rows.iter().rev().find_map(|row| Some((row, row.run.as_ref()?.median("ops_per_s").value()?)));
    match best {
        Some((row, rate)) => format!(
            "{} did {rate:.0} operations per second with {}{}, the median of {}{}.",
            row.engine,
            counted(row.clients as usize, "client"),
            if row.is_partial(Part::Run) { " as far as it came" } else { "" },
            counted(repeats_of(row).unwrap_or(0), "repeat"),
            repeats_from(summary)
        ),
        None => "No engine ended a loop: there is nothing to tell.".to_owned(),
    }
}

fn spread_alone(summary: &Summary) -> String {
    let spread = |row: &Row| row.run.as_ref()?.metrics.get("ops_per_s")?.spread.map(|spread| spread.range);
    match summary.rows.iter().rev().find_map(spread) {
        Some(range) => format!("Its repeats lie {} apart; there is no other engine to compare with.", percent(range)),
        None => "There is nothing to compare it with.".to_owned(),
    }
}

/// What failed, else the worst warning.
fn careful(results: &Results, summary: &Summary) -> String {
    let unsound = summary.rows.iter().find_map(Row::why_unsound);
    let failed = results.trials.iter().filter(|trial| matches!(trial.record.status, Status::Failed { .. })).count();
    let mut told = Vec::new();
    if let Some(unsound) = unsound {
        told.push(format!("{}; it is in no figure", shortened(&unsound, LONGEST_OF_DATA)));
    }
    if let Some(row) = summary.rows.iter().find(|row| row.is_partial(Part::Run)) {
        told.push(format!("no repeat of {} came to its end; what is shown of it decides nothing", row.engine));
    }
    let stood_still = |row: &&Row| row.run.as_ref().is_some_and(|run| run.median("ops_per_s") == Metric::Value(0.0));
    if let Some(row) = summary.rows.iter().find(stood_still) {
        told.push(format!("{} did nothing at all with {}", row.engine, counted(row.clients as usize, "client")));
    }
    if failed > 0 {
        told.push(format!(
            "{failed} of {} failed; nothing stands in their place",
            counted(results.trials.len(), "trial")
        ));
    }
    let (worst, kinds) = warnings(results, summary);
    match worst {
        Some((warning, engine)) => {
            let engine = engine.map_or(String::new(), |engine| format!("{engine}: "));
            let more = match kinds - 1 {
                0 => String::new(),
                1 => " (1 other kind of warning below)".to_owned(),
                more => format!(" ({more} other kinds of warnings below)"),
            };
            told.push(format!("{engine}{}{more}", shortened(&warning.message, LONGEST)));
        }
        None if told.is_empty() => return "No warning changes what a figure means.".to_owned(),
        None => {}
    }
    format!("Be careful: {}.", told.join("; "))
}

/// The worst warning that changes what a figure means, whom it is about, and how many kinds there are.
fn warnings<'a>(results: &'a Results, summary: &'a Summary) -> (Option<(&'a Warning, Option<&'a str>)>, usize) {
    let named = summary.remarks.iter().map(|remark| (&remark.warning, Some(remark.about.engine.as_str())));
    let all = results.warnings.iter().map(|warning| (warning, None)).chain(named);
    let place = |code: &str| WARNINGS.iter().position(|kind| kind.code == code).unwrap_or(WARNINGS.len());
    let mut worth: Vec<_> = all.filter(|(warning, _)| warning.rank() < Rank::Note).collect();
    worth.sort_by_key(|(warning, _)| (warning.rank(), place(&warning.code)));
    let worst = worth.first().copied();
    worth.dedup_by(|a, b| a.0.code == b.0.code);
    (worst, worth.len())
}

fn shortened(text: &str, longest: usize) -> String {
    let text = text.trim_end_matches('.');
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => {
            let kept = text[..end].rsplit_once(' ').map_or(&text[..end], |(kept, _)| kept);
            format!("{} …", kept.trim_end_matches([';', ',', ':']))
        }
    }
}

/// `memory 371.0 MiB · storage fast-ssd · cache 160.0 MiB · durability sync`; what differs between engines stands side by side.
fn conditions(results: &Results) -> String {
    if results.trials.is_empty() {
        return String::new();
    }
    let host = |name: &str| results.conditions.get(name).map_or(String::new(), |value| format!(" ({value})"));
    let memory = distinct(results, |plan| {
        let limit = plan.engine.limits.memory_bytes.map(|bytes| show_bytes(bytes as f64));
        limit.unwrap_or_else(|| format!("the host's{}", host("memory")))
    });
    let storage = distinct(results, |plan| match &plan.engine.limits.storage {
        None => format!("the host's{}", host("filesystem")),
        Some(limit) => match (&limit.tier, limit.iops.or(limit.read_iops)) {
            (Some(tier), _) => tier.clone(),
            (None, Some(iops)) => format!("{iops} operations/s"),
            (None, None) => "a volume, not throttled".to_owned(),
        },
    });
    let cache = distinct(results, TrialPlan::given_cache);
    let durability = distinct(results, TrialPlan::given_durability);
    format!("memory {memory} · storage {storage} · cache {cache} · durability {durability}")
}

/// What the trials' plans have, each once.
fn distinct<T: PartialEq + ToString>(results: &Results, of: impl Fn(&TrialPlan) -> T) -> String {
    let mut values: Vec<T> = Vec::new();
    for trial in loops_of(results) {
        let value = of(&trial.record.plan);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" / ")
}

fn listed(names: Vec<&str>) -> String {
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
