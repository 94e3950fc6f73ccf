//! The document of `--report-json`: the content of the text reports, and additional figures. Names include their units.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::number::rank;
use super::{Fairness, Latency, Percentile, Snapshot};
use crate::cli::histogram::Bucket;
use crate::cli::options::{Kind, OptionSet, OptionValue};
use crate::cli::version::SYSBENCH;

/// Incremented when a name changes its meaning or is removed; new names do not change it.
const FORMAT: u32 = 1;

/// A run, to be written as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    /// The form of this document.
    pub format: u32,
    /// The version of sysbench that the options and figures follow.
    pub sysbench_version: String,
    /// The version of rumba.
    pub rumba_version: String,
    /// As it was named.
    pub test: String,
    /// All options except passwords: flags, numbers, texts, and lists of them.
    pub options: BTreeMap<String, Value>,
    /// From one `--report-interval` to the next.
    pub intervals: Vec<Moment>,
    /// From one of `--report-checkpoints` to the next.
    pub checkpoints: Vec<Total>,
    /// The whole run, or the part after the last checkpoint; `None` if the run failed before it measured anything.
    pub total: Option<Total>,
    /// The errors, in the printed words. A run that was measured to its end may have some, too, from the end of its
    /// script.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// The printed warnings: points to check before you use the figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The figures of a period.
#[derive(Clone, Debug, Serialize)]
pub struct Moment {
    /// Since the start, without the warm-up.
    pub elapsed_s: f64,
    /// How long the while was.
    pub interval_s: f64,
    /// Threads that had not ended.
    pub threads: u32,
    /// That ended.
    pub events: u64,
    /// The same in a second.
    pub events_per_s: f64,
    /// By kind.
    pub queries: Queries,
    /// The errors after which an event was restarted.
    pub ignored_errors: Errors,
    /// Reconnects.
    pub reconnects: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
    /// The latencies of events.
    pub latency_ms: Latencies,
    /// With `--rate`: events that had arrived and were waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_length: Option<u64>,
    /// With `--rate`: events in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u64>,
}

/// The totals, and the fairness between threads.
#[derive(Clone, Debug, Serialize)]
pub struct Total {
    /// As in an interval.
    #[serde(flatten)]
    pub moment: Moment,
    /// Between threads.
    pub fairness: Fairness,
    /// Events in progress when the run was ended by force.
    pub unfinished_events: u32,
    /// The distribution of latencies: the ranges that occurred, lowest first.
    pub histogram: Vec<Bucket>,
}

/// Queries by kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Queries {
    /// That gave rows.
    pub read: u64,
    /// That changed rows.
    pub write: u64,
    /// That did neither.
    pub other: u64,
    /// All.
    pub total: u64,
    /// All, in a second.
    pub per_s: f64,
    /// That looked for rows and found none.
    pub not_found: u64,
}

/// Errors by the code that the database gives them.
#[derive(Clone, Debug, Serialize)]
pub struct Errors {
    /// All.
    pub total: u64,
    /// How often each.
    pub by_code: BTreeMap<String, u64>,
}

/// How long events took, in milliseconds. Percentiles are `p95`, `p99.9` and so on.
#[derive(Clone, Debug, Serialize)]
pub struct Latencies {
    /// Figures that only closing reports have.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub of_all: Option<Latency>,
    /// The requested percentiles.
    #[serde(flatten)]
    pub percentiles: BTreeMap<String, f64>,
}

impl Document {
    /// For a run that is about to begin.
    pub fn new(test: &str, options: &OptionSet) -> Self {
        Self {
            format: FORMAT,
            sysbench_version: SYSBENCH.to_owned(),
            rumba_version: env!("CARGO_PKG_VERSION").to_owned(),
            test: test.to_owned(),
            options: shown(options),
            intervals: Vec::new(),
            checkpoints: Vec::new(),
            total: None,
            failures: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds an intermediate report.
    pub fn add_interval(&mut self, snapshot: &Snapshot) {
        self.intervals.push(Moment::of(snapshot, None));
    }

    /// Adds a checkpoint.
    pub fn add_checkpoint(&mut self, snapshot: &Snapshot) {
        self.checkpoints.push(Total::of(snapshot));
    }

    /// Adds the closing report.
    pub fn finish(&mut self, snapshot: &Snapshot) {
        self.total = Some(Total::of(snapshot));
    }

    /// Adds an error.
    pub fn add_failure(&mut self, words: &str) {
        self.failures.push(words.to_owned());
    }

    /// Adds a warning about the figures.
    pub fn add_warning(&mut self, words: &str) {
        self.warnings.push(words.to_owned());
    }

    /// The text of the document, with a line end.
    ///
    /// # Errors
    /// A value has no JSON form, which no part of this document lacks.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// The options as scripts see them, with all percentiles. Passwords are left out.
fn shown(options: &OptionSet) -> BTreeMap<String, Value> {
    let is_shown = |key: &String| !key.contains("password");
    let value = |key: String| {
        let is_several = options.info(&key)?.kind == Kind::Numbers;
        let value =
            if is_several { Value::from(options.numbers(&key).ok()?) } else { json_of(options.value(&key).ok()?) };
        Some((key, value))
    };
    options.iter().map(|(key, _)| key).filter(is_shown).filter_map(value).collect()
}

fn json_of(value: OptionValue) -> Value {
    match value {
        OptionValue::Flag(is_on) => Value::from(is_on),
        // 8 and not 8.0: most are whole.
        OptionValue::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => Value::from(number as i64),
        OptionValue::Number(number) => Value::from(number),
        OptionValue::Text(text) => Value::from(text),
        OptionValue::List(texts) => Value::from(texts),
        OptionValue::Nothing => Value::Null,
    }
}

impl Moment {
    fn of(snapshot: &Snapshot, latency: Option<&Latency>) -> Self {
        let counts = &snapshot.counts;
        Self {
            elapsed_s: snapshot.elapsed_s,
            interval_s: snapshot.interval_s,
            threads: snapshot.threads_running,
            events: counts.events,
            events_per_s: snapshot.events_per_s(),
            queries: Queries {
                read: counts.reads,
                write: counts.writes,
                other: counts.others,
                total: counts.queries(),
                per_s: snapshot.per_s(counts.queries()),
                not_found: counts.not_found,
            },
            ignored_errors: Errors { total: counts.ignored_errors, by_code: snapshot.errors_by_code.clone() },
            reconnects: counts.reconnects,
            bytes_read: counts.bytes_read,
            bytes_written: counts.bytes_written,
            latency_ms: Latencies::of(&snapshot.percentiles, latency),
            queue_length: snapshot.queue.map(|queue| queue.length),
            concurrency: snapshot.queue.map(|queue| queue.concurrency),
        }
    }
}

impl Total {
    fn of(snapshot: &Snapshot) -> Self {
        Self {
            moment: Moment::of(snapshot, Some(&snapshot.latency)),
            fairness: snapshot.fairness(),
            unfinished_events: snapshot.unfinished_events,
            histogram: snapshot.histogram.clone(),
        }
    }
}

impl Latencies {
    fn of(percentiles: &[Percentile], latency: Option<&Latency>) -> Self {
        let named = percentiles.iter().map(|of| (format!("p{}", rank(of.percent)), of.latency_ms));
        Self { of_all: latency.copied(), percentiles: named.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::run;
    use super::*;
    use crate::cli::options::Source;

    #[test]
    fn document_reports_every_value_with_its_unit() {
        let mut options = OptionSet::default();
        for info in crate::cli::options::LOG_OPERATIONS.iter().chain(crate::cli::options::MYSQL) {
            options.declare(info.clone()).unwrap();
        }
        options.set("percentile", Some("50,99.9"), Source::CommandLine).unwrap();
        options.set("mysql-password", Some("secret"), Source::CommandLine).unwrap();
        let mut document = Document::new("oltp_read_only", &options);
        document.rumba_version = "X".to_owned();
        let interval = Snapshot { latency: Latency::default(), histogram: vec![], ..run() };
        document.add_interval(&interval);
        document.finish(&run());
        let text = document.json().unwrap();
        assert!(!text.contains("secret"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn failed_run_reports_the_cause_and_the_partial_results() {
        let value = |document: &Document| -> Value { serde_json::from_str(&document.json().unwrap()).unwrap() };
        let mut document = Document::new("cpu", &OptionSet::general());
        assert!(value(&document).get("failures").is_none());
        document.add_failure("gone");
        let failed = value(&document);
        assert_eq!((&failed["total"], &failed["failures"]), (&Value::Null, &Value::from(vec!["gone"])));
        document.finish(&run());
        let value = value(&document);
        assert_eq!((&value["total"]["events"], &value["failures"][0]), (&Value::from(10), &Value::from("gone")));
        assert_eq!(value["format"], 1);
        assert_eq!(value["options"]["threads"], 1);
        assert_eq!(value["options"]["rand_pareto_h"], 0.2);
        assert_eq!(value["options"]["report_checkpoints"], Value::Array(vec![]));
    }
}
