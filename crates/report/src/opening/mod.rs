//! The first sentences of a report: the findings and their certainty, the undecided ones, and points to check. They
//! follow from the verdicts and never claim more.

mod against;
mod words;

use rumba_engine_api::limits::show_latency;
use rumba_engine_api::units::show_bytes;
use rumba_results::comparison::{Part, Row, Summary};
use rumba_results::entry;
use rumba_results::metric::Metric;
use rumba_results::record::{Status, TrialPart, TrialPlan};
use rumba_results::results::{Results, Trial};
use rumba_results::search::{Search, Searched};
use rumba_results::warning::{Rank, Warning};
use serde::Serialize;

use crate::format::{counted, percent, significant};
use crate::verdict::repeats_from;
use against::{Against, repeats_of};
use words::listed;

/// The most characters of a warning's text, and fewer for failed data; the full text follows below.
const LONGEST: usize = 240;
const LONGEST_OF_DATA: usize = 120;

/// Three sentences and a line of conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Opening {
    /// The findings, and how certain they are.
    pub found: String,
    /// The undecided findings, and the repeats that would decide them.
    pub undecided: String,
    /// The warning that affects the figures most.
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

/// The summary of the results at the largest number of clients that all engines finished.
pub fn opening(results: &Results, summary: &Summary) -> Opening {
    let against = Against::of(summary);
    let compared = against.as_ref().map_or_else(|| alone(summary), Against::found);
    Opening {
        found: searched(summary).map_or_else(|| compared.clone(), |searched| format!("{searched} {compared}")),
        undecided: against.as_ref().map_or_else(|| spread_alone(summary), Against::undecided),
        careful: careful(results, summary),
        conditions: conditions(results),
    }
}

/// `With 16 clients, the highest rate that keeps p99 below 10 ms is 5230/s for innodb and 8120/s for myrocks.` One
/// sentence for each number of clients and limit; `None` without a search.
fn searched(summary: &Summary) -> Option<String> {
    type OfEngines<'a> = Vec<(&'a str, Vec<&'a Searched>)>;
    let mut groups: Vec<((u32, Search), OfEngines<'_>)> = Vec::new();
    for found in &summary.searches {
        let of_engines = entry(&mut groups, (found.clients, found.search));
        entry(of_engines, found.engine.as_str()).push(found);
    }
    let sentence = |((clients, search), of_engines): ((u32, Search), OfEngines<'_>)| {
        let rates: Vec<String> = of_engines.iter().map(|(engine, found)| rate_of(engine, found)).collect();
        format!(
            "With {}, the highest rate that keeps {} below {} ms is {}.",
            counted(clients as usize, "client"),
            search.percentile.name(),
            search.limit_ms,
            listed(&rates.iter().map(String::as_str).collect::<Vec<_>>())
        )
    };
    let sentences: Vec<String> = groups.into_iter().map(sentence).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// `5230/s for innodb`: the median of its searches, with the range if they found different rates.
fn rate_of(engine: &str, searches: &[&Searched]) -> String {
    let mut rates: Vec<f64> = searches.iter().filter_map(|search| search.highest.value()).collect();
    rates.sort_unstable_by(f64::total_cmp);
    let (Some(lowest), Some(highest)) = (rates.first(), rates.last()) else {
        return format!("unknown for {engine} (no search found one)");
    };
    let median = (rates[(rates.len() - 1) / 2] + rates[rates.len() / 2]) / 2.0;
    let range = match rates.len() {
        1 => String::new(),
        count => format!(" ({count} searches, {} to {}/s)", significant(*lowest), significant(*highest)),
    };
    let open = searches.iter().any(|search| !search.ended || !search.confirmed);
    format!("{}/s for {engine}{range}{}", significant(median), if open { " (not confirmed)" } else { "" })
}

/// The result of the one engine if there is no comparison.
fn alone(summary: &Summary) -> String {
    let best = summary.rows.iter().rev().find_map(|row| Some((row, row.run.as_ref()?.median("ops_per_s").value()?)));
    match best {
        Some((row, rate)) => format!(
            "{} did {rate:.0} operations per second with {}{}, the median of {}{}.",
            row.engine,
            row.clients_in_words(),
            if row.is_partial(Part::Run) { " as far as it came" } else { "" },
            counted(repeats_of(row).unwrap_or(0), "repeat"),
            repeats_from(summary)
        ),
        None => "No engine finished a loop, so there is no result.".to_owned(),
    }
}

fn spread_alone(summary: &Summary) -> String {
    let spread = |row: &Row| row.run.as_ref()?.metrics.get("ops_per_s")?.spread.map(|spread| spread.range);
    match summary.rows.iter().rev().find_map(spread) {
        Some(range) => format!("Its repeats differ by {}; there is no other engine to compare with.", percent(range)),
        None => "There is no engine to compare it with.".to_owned(),
    }
}

/// The failures, or else the worst warning.
fn careful(results: &Results, summary: &Summary) -> String {
    let unsound = summary.rows.iter().find_map(Row::why_unsound);
    let failed = results.trials.iter().filter(|trial| matches!(trial.record.status, Status::Failed { .. })).count();
    let mut reported = Vec::new();
    if let Some(unsound) = unsound {
        reported.push(format!("{}; it is in no figure", shortened(&unsound, LONGEST_OF_DATA)));
    }
    if let Some(row) = summary.rows.iter().find(|row| row.is_partial(Part::Run)) {
        reported.push(format!("no repeat of {} finished, so its figures decide nothing", row.engine));
    }
    let stood_still = |row: &&Row| row.run.as_ref().is_some_and(|run| run.median("ops_per_s") == Metric::Value(0.0));
    if let Some(row) = summary.rows.iter().find(stood_still) {
        reported.push(format!("{} completed no operation with {}", row.engine, row.clients_in_words()));
    }
    if failed > 0 {
        reported
            .push(format!("{failed} of {} failed; their figures are missing", counted(results.trials.len(), "trial")));
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
            reported.push(format!("{engine}{}{more}", shortened(&warning.message, LONGEST)));
        }
        None if reported.is_empty() => return "No warning changes the meaning of a figure.".to_owned(),
        None => {}
    }
    format!("Be careful: {}.", reported.join("; "))
}

/// The worst warning that affects the meaning of a figure, its engine, and the number of kinds of warnings.
fn warnings<'a>(results: &'a Results, summary: &'a Summary) -> (Option<(&'a Warning, Option<&'a str>)>, usize) {
    let named = summary.remarks.iter().map(|remark| (&remark.warning, Some(remark.about.engine.as_str())));
    let all = results.warnings.iter().map(|warning| (warning, None)).chain(named);
    let mut worth: Vec<_> = all.filter(|(warning, _)| warning.rank() < Rank::Note).collect();
    worth.sort_by_key(|(warning, _)| warning.order());
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

/// `memory 371.0 MiB · storage fast-ssd · cache 160.0 MiB · durability sync`; values that differ between engines are
/// listed side by side.
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
        Some(limit) => {
            let kind = match (&limit.tier, limit.iops.or(limit.read_iops)) {
                (Some(tier), _) => tier.clone(),
                (None, Some(iops)) => format!("{iops} operations/s"),
                (None, None) => "a volume, not throttled".to_owned(),
            };
            match limit.latency_us {
                Some(us) => format!("{kind}, {} per request", show_latency(us)),
                None => kind,
            }
        }
    });
    let cpus = match loops_of(results).any(|trial| has_cpus(&trial.record.plan)) {
        true => format!(" · CPUs {}", distinct(results, cpus_of)),
        false => String::new(),
    };
    let cache = distinct(results, TrialPlan::given_cache);
    let durability = distinct(results, TrialPlan::given_durability);
    format!("memory {memory}{cpus} · storage {storage} · cache {cache} · durability {durability}")
}

fn has_cpus(plan: &TrialPlan) -> bool {
    plan.engine.limits.cpus.is_some() || plan.engine.limits.client_cpus.is_some()
}

/// `0 (clients 1)`.
fn cpus_of(plan: &TrialPlan) -> String {
    let limits = &plan.engine.limits;
    let own = limits.cpus.as_ref().map_or("the host's".to_owned(), ToString::to_string);
    match &limits.client_cpus {
        Some(clients) => format!("{own} (clients {clients})"),
        None => own,
    }
}

fn distinct<T: PartialEq + ToString>(results: &Results, of: impl Fn(&TrialPlan) -> T) -> String {
    let values = rumba_results::distinct(loops_of(results).map(|trial| of(&trial.record.plan)));
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(" / ")
}

/// The trials that run the mix; one that only loads may run without the limits.
fn loops_of(results: &Results) -> impl Iterator<Item = &Trial> {
    results.trials.iter().filter(|trial| trial.record.plan.part != TrialPart::Load)
}
