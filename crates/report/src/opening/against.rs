//! Each engine compared with the baseline, in sentences.

use std::cmp::Ordering;

use rumba_results::comparability::{Unequal, why_not_ranked};
use rumba_results::comparison::{Figure, Part, Row, Summary};
use rumba_results::ratio::{Change, HEADLINE_RUN, Ratio, discoveries, more_repeats};
use rumba_results::starts::Scope;
use rumba_results::{distinct, entry};

use super::words::{capital, listed, operation, predicate, quantity};
use crate::format::{RESOLUTION, counted, percent};
use crate::tables::comparison::is_decided;
use crate::verdict::repeats_from;

/// Replaces `sure` when the repeats are starts of one load.
const FOR_THIS_LOAD: &str = "for this load only, because the repeats are starts of one load";
/// The most engines in sentences; the tables have all of them.
const MOST_ENGINES: usize = 4;

/// The engines compared with the baseline, at one number of clients.
pub struct Against<'a> {
    summary: &'a Summary,
    baseline: &'a str,
    clients: u32,
    /// All headlines with a figure on one side.
    headlines: Vec<Headline<'a>>,
    /// Those with figures on both sides that are large enough to measure.
    judged: Vec<Judged<'a>>,
    /// The reason why some engines are not ranked: they did not have the same memory.
    not_ranked: Option<String>,
    suite: bool,
}

/// One engine compared with the baseline in one metric that carries a verdict.
#[derive(Clone, Copy)]
struct Headline<'a> {
    row: &'a Row,
    base: &'a Row,
    ratio: &'a Ratio,
    /// Whether the figures of both may be judged.
    is_sound: bool,
}

/// A headline with a ratio.
#[derive(Clone, Copy)]
struct Judged<'a> {
    row: &'a Row,
    base: &'a Row,
    ratio: &'a Ratio,
    value: f64,
    /// Conditions that differ; if there are none, the difference comes from the engines alone.
    unequal: &'a [Unequal],
}

impl<'a> Judged<'a> {
    /// The differing condition that its metric depends on.
    fn unequal_in(self) -> Option<&'a Unequal> {
        self.unequal.iter().find(|unequal| unequal.is_said_of(&self.ratio.metric))
    }

    /// Whether it is about whole operations rather than a percentile of one type.
    fn is_whole(&self) -> bool {
        operation(&self.ratio.metric).is_none()
    }

    /// Orders findings by strength: whole operations and equal conditions first, then the largest factor.
    fn strength(&self, other: &Self) -> Ordering {
        let rank = |judged: &Self| (judged.is_whole(), judged.unequal.is_empty());
        let factor = |judged: &Self| judged.value.ln().abs();
        rank(self).cmp(&rank(other)).then(factor(self).total_cmp(&factor(other)))
    }
}

/// The finding for one engine, and a second one in another metric.
#[derive(Clone, Copy)]
struct Finding<'a> {
    first: Judged<'a>,
    second: Option<Judged<'a>>,
}

impl<'a> Finding<'a> {
    /// The larger of both.
    fn strongest(&self) -> Judged<'a> {
        self.second.filter(|second| second.strength(&self.first).is_gt()).unwrap_or(self.first)
    }
}

impl<'a> Against<'a> {
    /// `None` without two engines to compare.
    pub fn of(summary: &'a Summary) -> Option<Self> {
        let baseline = summary.default_baseline()?;
        let clients = clients_that_most_finished(summary)?;
        let (mut headlines, mut judged, mut not_ranked) = (Vec::new(), Vec::new(), None);
        for against in summary.relative_to(baseline).iter().filter(|row| row.clients == clients) {
            let Some(row) = summary.row(&against.engine, clients).filter(|row| !row.keeps_nothing()) else { continue };
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
                judged.extend(headline.measured().map(|value| Judged {
                    row,
                    base,
                    ratio: headline.ratio,
                    value,
                    unequal,
                }));
            }
        }
        let suite =
            judged.iter().any(|judged: &Judged| judged.row.test.is_some() && judged.ratio.metric == "ops_per_s");
        let is_something = !judged.is_empty() || not_ranked.is_some();
        is_something.then_some(Self { summary, baseline, clients, headlines, judged, not_ranked, suite })
    }

    /// The findings, for each engine.
    pub fn found(&self) -> String {
        if let Some(why) = self.not_ranked.as_ref().filter(|_| self.judged.is_empty()) {
            return format!("{why}. Leave cache out under limits.memory: then both have the same memory.");
        }
        if self.suite {
            return self.found_in_suite();
        }
        let engines = self.engines();
        let (void, compared): (Vec<&str>, Vec<&str>) = engines
            .iter()
            .copied()
            .partition(|engine| self.of_engine(engine).all(|judged| judged.ratio.change == Change::Void));
        let mut findings: Vec<Finding> = compared.iter().filter_map(|engine| self.finding(engine)).collect();
        findings.sort_by(|a, b| {
            let certain = certainty(b.first.ratio.change).cmp(&certainty(a.first.ratio.change));
            certain.then_with(|| b.strongest().strength(&a.strongest()))
        });
        let mut sentences: Vec<String> = Vec::new();
        for (place, finding) in findings.iter().take(MOST_ENGINES).enumerate() {
            if finding.first.ratio.change == Change::SingleRun && place == 0 {
                sentences.push("A single repeat decides nothing.".to_owned());
            }
            sentences.push(self.sentence(finding, place == 0));
        }
        match findings.len().saturating_sub(MOST_ENGINES) {
            0 => {}
            1 => sentences.push("The tables have 1 more engine.".to_owned()),
            more => sentences.push(format!("The tables have {more} more engines.")),
        }
        let is_found = |engine: &&&str| findings.iter().any(|finding| finding.first.row.engine_alone() == **engine);
        let without: Vec<&str> = compared.iter().filter(|engine| !is_found(engine)).copied().collect();
        if !without.is_empty() {
            sentences.push(self.nothing_found(&without, findings.is_empty()));
        }
        if !void.is_empty() {
            sentences.push(format!(
                "{} {} the same engine and settings as {}, so there is no comparison.",
                listed(&void),
                if void.len() == 1 { "has" } else { "have" },
                self.baseline
            ));
        }
        sentences.join(" ")
    }

    fn nothing_found(&self, engines: &[&str], is_all: bool) -> String {
        if !is_all {
            return format!("No headline is decided for {}.", listed(engines));
        }
        let decided = self.headlines.iter().any(Headline::is_decided);
        format!(
            "{} is decided between {} and {}, with {} ({}).",
            if decided { "No difference of a measurable size" } else { "No headline" },
            self.baseline,
            listed(engines),
            self.with_clients(),
            self.repeats()
        )
    }

    fn of_engine<'b>(&'b self, engine: &'b str) -> impl Iterator<Item = &'b Judged<'a>> {
        self.judged.iter().filter(move |judged| judged.row.engine_alone() == engine)
    }

    /// Selects throughput first if it is decided, else the largest difference; then the largest difference in another
    /// metric. Percentiles are used only if there is no other finding, and single repeats only if nothing is decided.
    fn finding(&self, engine: &str) -> Option<Finding<'a>> {
        let of = |changes: &[Change]| -> Vec<Judged<'a>> {
            self.of_engine(engine).filter(|judged| changes.contains(&judged.ratio.change)).copied().collect()
        };
        let strongest = |among: &[Judged<'a>]| among.iter().max_by(|a, b| a.strength(b)).copied();
        for (changes, is_decided) in [(&[Change::Better, Change::Worse][..], true), (&[Change::SingleRun], false)] {
            let among = of(changes);
            let Some(farthest) = strongest(&among) else { continue };
            let rate = among.iter().find(|judged| judged.ratio.metric == "ops_per_s" && is_decided).copied();
            let first = rate.unwrap_or(farthest);
            let is_other = |judged: &Judged| judged.ratio.metric != first.ratio.metric && judged.is_whole();
            let others: Vec<Judged<'a>> = among.iter().copied().filter(is_other).collect();
            return Some(Finding { first, second: strongest(&others) });
        }
        // Whole operations take precedence over a percentile.
        let same = of(&[Change::Same]).into_iter().min_by_key(|judged| !judged.is_whole())?;
        Some(Finding { first: same, second: None })
    }

    fn sentence(&self, finding: &Finding<'a>, is_first: bool) -> String {
        let Finding { first, second, .. } = *finding;
        let change = first.ratio.change;
        let mut text = match change {
            Change::Same => format!(
                "{} and {} are the same within 1% in {}",
                first.row.engine,
                self.baseline,
                quantity(&first.ratio.metric)
            ),
            _ => format!("{} {}", first.row.engine, predicate(&first.ratio.metric, first.value, self.baseline)),
        };
        let unequal = [Some(first), second].map(|judged| judged.and_then(Judged::unequal_in));
        // A condition that affects both is named once, after both.
        text += &unequal[0].filter(|_| unequal[0] != unequal[1]).map(against).unwrap_or_default();
        if let Some(second) = second {
            text += &format!(" and {}", predicate(&second.ratio.metric, second.value, "it"));
        }
        text += &unequal[1].map(against).unwrap_or_default();
        if is_first {
            text += &format!(", with {}", self.with_clients());
        }
        if change == Change::SingleRun {
            return text + ".";
        }
        if is_first {
            text += &format!(" ({})", self.repeats());
        }
        format!("{text}: {}.", self.how_sure(first, second))
    }

    /// A finding is selected for being extreme among all verdicts at this number of clients. It is certain if it
    /// remains significant when all of them are tested together.
    fn how_sure(&self, first: Judged<'_>, second: Option<Judged<'_>>) -> String {
        let both = || [Some(first), second].into_iter().flatten();
        if both().any(|judged| judged.ratio.scope == Scope::ThisLoad) {
            return FOR_THIS_LOAD.to_owned();
        }
        if first.ratio.change == Change::Same {
            return "sure".to_owned();
        }
        let sound = || self.headlines.iter().filter(|headline| headline.is_sound);
        let verdicts = || sound().filter_map(|headline| headline.ratio.p);
        let bound = discoveries(verdicts());
        if both().all(|judged| judged.ratio.p.is_some_and(|p| p <= bound)) {
            return "sure".to_owned();
        }
        format!("sure alone, but not among {} together", counted(verdicts().count(), "verdict"))
    }

    /// For a suite, the number of tests that are faster or slower, because a single test would be selected for being
    /// extreme. Engines with the same numbers share a sentence.
    fn found_in_suite(&self) -> String {
        let rates: Vec<&Judged> = self.judged.iter().filter(|judged| judged.ratio.metric == "ops_per_s").collect();
        let mut groups: Vec<(TestCounts, Vec<&str>)> = Vec::new();
        for engine in self.engines() {
            let own = rates.iter().filter(|judged| judged.row.engine_alone() == engine);
            let counts = TestCounts::of(own.map(|judged| judged.ratio.change));
            entry(&mut groups, counts).push(engine);
        }
        let sentences: Vec<String> =
            groups.iter().map(|(counts, engines)| counts.sentence(engines, self.baseline)).collect();
        let is_of_one_load = rates.iter().any(|judged| judged.ratio.scope == Scope::ThisLoad);
        let scope = if is_of_one_load { format!(", {FOR_THIS_LOAD}") } else { String::new() };
        format!("With {}{scope}, {}.", self.with_clients(), sentences.join(". "))
    }

    /// The undecided findings, and the repeats that would decide them.
    pub fn undecided(&self) -> String {
        if self.judged.is_empty() && self.not_ranked.is_some() {
            return "Engines that did not have the same memory cannot be compared.".to_owned();
        }
        let is_open = |headline: &&Headline| headline.ratio.change == Change::Undecided;
        let open: Vec<&Headline> = self.headlines.iter().filter(is_open).collect();
        let Some(first) = open.iter().copied().min_by_key(|headline| headline.place()) else { return self.decided() };
        let rest = match open.len() - 1 {
            0 => String::new(),
            1 => " 1 other headline is undecided.".to_owned(),
            rest => format!(" {rest} other headlines are undecided."),
        };
        format!("{}.{rest}", first.why_open())
    }

    /// Without an undecided headline.
    fn decided(&self) -> String {
        let is = |change: Change| self.headlines.iter().any(|headline| headline.ratio.change == change);
        if is(Change::SingleRun) {
            return "A second repeat would show how much the figures vary; set repeats = 4 for a verdict.".to_owned();
        }
        if self.headlines.iter().all(|headline| headline.ratio.change == Change::Void) {
            return "There is no second engine to compare with.".to_owned();
        }
        let with = match self.summary.clients().len() {
            1 => String::new(),
            _ => format!(" with {}", self.with_clients()),
        };
        let baseline = self.baseline;
        if self.headlines.iter().any(|headline| headline.ratio.scope == Scope::ThisLoad) {
            return format!("Every headline is decided against {baseline}{with}, {FOR_THIS_LOAD}.");
        }
        format!("Every headline is decided against {baseline}{with}; each verdict is wrong in at most 5 of 100 cases.")
    }

    fn engines(&self) -> Vec<&'a str> {
        distinct(self.judged.iter().map(|judged| judged.row.engine_alone()))
    }

    fn repeats(&self) -> String {
        let counts = || self.judged.iter().flat_map(|judged| [judged.row, judged.base]).filter_map(repeats_of);
        let (fewest, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let number = if fewest == most { counted(most, "repeat") } else { format!("{fewest} to {most} repeats") };
        format!("{number}{}", repeats_from(self.summary))
    }

    fn with_clients(&self) -> String {
        self.summary.clients_in_words(self.clients)
    }
}

/// The largest number of clients that every engine finished, or else the one that the most engines finished.
fn clients_that_most_finished(summary: &Summary) -> Option<u32> {
    let is_finished = |row: &&Row| row.run.is_some() && !row.is_partial(Part::Run) && !row.keeps_nothing();
    let finished = |clients: u32| summary.rows.iter().filter(|row| row.clients == clients).filter(is_finished).count();
    summary.clients().into_iter().max_by_key(|clients| (finished(*clients), *clients))
}

/// Orders verdicts: decided first, then single runs, then `same`.
fn certainty(change: Change) -> u8 {
    match change {
        Change::Better | Change::Worse => 2,
        Change::SingleRun => 1,
        _ => 0,
    }
}

fn against(unequal: &Unequal) -> String {
    format!(" (with {})", unequal.against())
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
        is_decided(self.ratio.change)
    }

    /// The ratio, if both figures are large enough to measure.
    fn measured(&self) -> Option<f64> {
        let is_measurable = |median: &Option<f64>| median.is_some_and(|median| median >= RESOLUTION);
        self.ratio.ratio.value().filter(|value| *value > 0.0 && self.medians().iter().all(is_measurable))
    }

    /// The reason why there is no verdict: some or all repeats lack the figure.
    fn lacking(&self) -> Option<&'a str> {
        let ratio: &'a Ratio = self.ratio;
        let absent = || self.figures().into_iter().flatten().find_map(|figure| figure.median.reason());
        ratio.lacking.as_deref().or_else(absent)
    }

    /// `Operations per second: not decided between a and b (repeats of a differ by 12%); 2 more repeats …`.
    fn why_open(&self) -> String {
        let (row, base) = (&self.row.engine, &self.base.engine);
        let what = capital(&quantity(&self.ratio.metric));
        if let Some(why) = self.lacking() {
            return format!("{what}: not decided between {row} and {base}, because {why}");
        }
        let range = |figure: Option<&Figure>| figure.and_then(|figure| figure.spread).map(|spread| spread.range);
        let [of_row, of_base] = self.figures().map(range);
        let noise = match (of_row, of_base) {
            (None, None) => String::new(),
            (of_row, of_base) if of_row >= of_base => noise(row, of_row),
            _ => noise(base, of_base),
        };
        match more_repeats(self.ratio.more_repeats) {
            Some(more) => format!("{what}: not decided between {row} and {base}{noise}; {more}"),
            None => format!("{what}: too noisy to decide here between {row} and {base}{noise}"),
        }
    }

    /// Orders undecided headlines: measurable ones first, and percentiles last.
    fn place(&self) -> (bool, usize) {
        let place = HEADLINE_RUN.iter().position(|metric| *metric == self.ratio.metric);
        (self.measured().is_none(), place.unwrap_or(HEADLINE_RUN.len()))
    }
}

/// The tests of a suite by their verdict on the rate.
#[derive(Clone, Copy, Default, PartialEq)]
struct TestCounts {
    more: usize,
    fewer: usize,
    same: usize,
    open: usize,
}

impl TestCounts {
    fn of(changes: impl Iterator<Item = Change>) -> Self {
        let mut counts = Self::default();
        for change in changes {
            *match change {
                Change::Better => &mut counts.more,
                Change::Worse => &mut counts.fewer,
                Change::Same => &mut counts.same,
                Change::Differs | Change::Undecided | Change::SingleRun | Change::Void => &mut counts.open,
            } += 1;
        }
        counts
    }

    /// `a and b do more operations per second than base in 1 of 3 tests, fewer in 1; 1 is not decided`.
    fn sentence(self, engines: &[&str], baseline: &str) -> String {
        let Self { more, fewer, same, open } = self;
        let tests = counted(more + fewer + same + open, "test");
        let verb = if engines.len() == 1 { "does" } else { "do" };
        let engines = listed(engines);
        let parts = [
            (more, "more operations per second than", "more"),
            (fewer, "fewer operations per second than", "fewer"),
            (same, "within 1% as many operations per second as", "the same within 1%"),
        ];
        let mut parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let Some((count, first, _)) = parts.next() else {
            return format!(
                "{tests} cannot decide whether {engines} {verb} more operations per second than {baseline}"
            );
        };
        let mut text = format!("{engines} {verb} {first} {baseline} in {count} of {tests}");
        text.extend(parts.map(|(count, _, further)| format!(", {further} in {count}")));
        match open {
            0 => text,
            1 => text + "; 1 is not decided",
            _ => format!("{text}; {open} are not decided"),
        }
    }
}

fn noise(engine: &str, range: Option<f64>) -> String {
    range.map(|range| format!(" (repeats of {engine} differ by {})", percent(range))).unwrap_or_default()
}

/// A headline figure of the loops.
fn figure<'a>(row: &'a Row, metric: &str) -> Option<&'a Figure> {
    let run = row.run.as_ref()?;
    match operation(metric) {
        Some(op) => run.op_types.get(op)?.response.get("p99_ms"),
        None => run.metrics.get(metric),
    }
}

/// The number of repeats behind the figures of a row.
pub fn repeats_of(row: &Row) -> Option<usize> {
    row.run.as_ref().map(|run| run.repeats.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_of_equal_counts_share_a_sentence_without_zeros() {
        let sentence =
            |changes: &[Change], engines: &[&str]| TestCounts::of(changes.iter().copied()).sentence(engines, "base");
        let open = [Change::Undecided, Change::SingleRun, Change::Void];
        let expected = "3 tests cannot decide whether a, b and c do more operations per second than base";
        assert_eq!(sentence(&open, &["a", "b", "c"]), expected);
        let expected = "a and b do fewer operations per second than base in 2 of 3 tests, the same within 1% in 1";
        assert_eq!(sentence(&[Change::Worse, Change::Same, Change::Worse], &["a", "b"]), expected);
        let expected = "a does within 1% as many operations per second as base in 1 of 3 tests; 2 are not decided";
        assert_eq!(sentence(&[Change::Same, Change::Void, Change::Undecided], &["a"]), expected);
    }
}
