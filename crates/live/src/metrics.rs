//! The run's metrics for a scraper, in the text format of Prometheus, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use rumba_lab::conduct::TimeLeft;
use rumba_results::event::Event;
use rumba_results::metric::Metric;
use rumba_results::record::{Interval, PhaseKind, Status, TrialPlan};

/// The content type of the text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The present state of a run.
pub struct Gauges {
    directory: String,
    planned: usize,
    ended: BTreeMap<&'static str, u64>,
    trial: Option<Trial>,
}

#[derive(Default)]
struct Trial {
    number: u32,
    engine: String,
    clients: u32,
    repeat: u32,
    phase: PhaseKind,
    ops: u64,
    errors: u64,
    written_bytes: Total,
    read_bytes: Total,
    cpu_s: Total,
    last: Option<Last>,
}

/// The total spent so far; `None` before the first interval reported it.
#[derive(Default)]
struct Total(Option<Metric>);

impl Total {
    fn add(&mut self, interval: &Interval, spent: &Metric) {
        // A suspended second has no reading of its meters. No value is lost, because the next reading contains its
        // share.
        if interval.suspended_s > 0.0 && spent.value().is_none() {
            return;
        }
        self.0 = Some(self.0.take().map_or_else(|| spent.clone(), |sum| sum.plus(spent)));
    }

    fn value(&self) -> Option<f64> {
        self.0.as_ref()?.value()
    }
}

struct Last {
    ops_per_s: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

impl Gauges {
    /// The state of a run with this number of trials.
    pub fn new(directory: &Path, planned: usize) -> Self {
        Self { directory: directory.display().to_string(), planned, ended: BTreeMap::new(), trial: None }
    }

    /// A trial begins.
    pub fn begins(&mut self, plan: &TrialPlan) {
        self.trial = Some(Trial::of(plan));
    }

    /// Processes an event of the trial.
    pub fn event(&mut self, event: &Event) {
        let Some(trial) = &mut self.trial else { return };
        match event {
            // Counters restart with each phase, because rows of a load and operations of a loop do not add up.
            Event::PhaseStarted { phase, .. } => {
                (trial.phase, trial.ops, trial.errors, trial.last) = (*phase, 0, 0, None);
            }
            Event::Interval(interval) => trial.passes(interval),
            _ => {}
        }
    }

    /// The trial has ended.
    pub fn ended(&mut self, status: &Status) {
        *self.ended.entry(ending(status).0).or_default() += 1;
        self.trial = None;
    }

    /// The whole text.
    pub fn text(&self, left: TimeLeft) -> String {
        let mut text = Text::default();
        text.family("rumba_info", "gauge", "The version of rumba.");
        text.line("rumba_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
        text.family("rumba_run_info", "gauge", "The run under way: where its results go.");
        text.line("rumba_run_info", &[("results", &self.directory)], 1.0);
        text.one("rumba_trials_planned", "gauge", "Trials of the run.", self.planned as f64);
        text.family("rumba_trials_ended_total", "counter", "Trials of this process that have ended, by how they did.");
        for status in ["done", "failed", "interrupted", "suspended"] {
            let ended = self.ended.get(status).copied().unwrap_or(0);
            text.line("rumba_trials_ended_total", &[("status", status)], ended as f64);
        }
        text.one("rumba_time_left_seconds", "gauge", "Time that the run will take yet, as far as known.", left.seconds);
        let is_whole = f64::from(u8::from(left.is_whole));
        let help = "1 when only known work adds to rumba_time_left_seconds.";
        text.one("rumba_time_left_is_whole", "gauge", help, is_whole);
        if let Some(trial) = &self.trial {
            trial.write(&mut text);
        }
        text.0
    }
}

impl Trial {
    fn of(plan: &TrialPlan) -> Self {
        Self {
            number: plan.number,
            engine: plan.engine.name.clone(),
            clients: plan.clients,
            repeat: plan.repeat,
            ..Self::default()
        }
    }

    fn passes(&mut self, interval: &Interval) {
        let spent = &interval.spent;
        self.ops += interval.ops;
        self.errors += interval.errors;
        self.written_bytes.add(interval, &spent.device_write_bytes);
        self.read_bytes.add(interval, &spent.device_read_bytes);
        self.cpu_s.add(interval, &spent.cpu_s);
        self.last = Some(Last {
            ops_per_s: interval.ops as f64 / interval.seconds.max(f64::MIN_POSITIVE),
            p50_ms: interval.p50_ms.value(),
            p99_ms: interval.p99_ms.value(),
        });
    }

    fn write(&self, text: &mut Text) {
        let (number, clients) = (self.number.to_string(), self.clients.to_string());
        let (repeat, phase) = (self.repeat.to_string(), self.phase.to_string());
        let trial = [("trial", number.as_str()), ("engine", &self.engine), ("clients", &clients), ("repeat", &repeat)];
        let in_phase: Vec<(&str, &str)> = trial.into_iter().chain([("phase", phase.as_str())]).collect();
        let totals = [
            ("rumba_written_bytes_total", "Bytes that the device has written during the trial.", &self.written_bytes),
            ("rumba_read_bytes_total", "Bytes that the device has read during the trial.", &self.read_bytes),
            ("rumba_cpu_seconds_total", "CPU of clients and engine during the trial.", &self.cpu_s),
        ];
        for (name, help, total) in totals {
            // A metric that was not measured has no line.
            let Some(value) = total.value() else { continue };
            text.family(name, "counter", help);
            text.line(name, &trial, value);
        }
        let of_phase = [
            ("rumba_ops_total", "Operations of the phase under way; rows of a load.", self.ops as f64),
            ("rumba_errors_total", "Operations given up in the phase under way.", self.errors as f64),
        ];
        for (name, help, value) in of_phase {
            text.family(name, "counter", help);
            text.line(name, &in_phase, value);
        }
        let Some(last) = &self.last else { return };
        text.family("rumba_ops_per_second", "gauge", "Operations per second of the last interval.");
        text.line("rumba_ops_per_second", &in_phase, last.ops_per_s);
        let quantiles = [("0.5", last.p50_ms), ("0.99", last.p99_ms)];
        if quantiles.iter().any(|(_, ms)| ms.is_some()) {
            text.family("rumba_response_seconds", "gauge", "Response times of the last interval, all types together.");
        }
        for (quantile, ms) in quantiles {
            let labels: Vec<(&str, &str)> = in_phase.iter().copied().chain([("quantile", quantile)]).collect();
            // A percentile with too few operations has no line either.
            ms.iter().for_each(|ms| text.line("rumba_response_seconds", &labels, ms / 1e3));
        }
    }
}

/// The text of a server without a run.
pub fn of_library(results: usize, running: usize) -> String {
    let mut text = Text::default();
    text.family("rumba_info", "gauge", "The version of rumba.");
    text.line("rumba_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    text.one("rumba_results", "gauge", "Results in the library.", results as f64);
    text.one("rumba_results_running", "gauge", "Runs that are in progress.", running as f64);
    text.0
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.family(name, kind, help);
        self.line(name, &[], value);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// How a trial ended: one word, with its cause.
pub fn ending(status: &Status) -> (&'static str, Option<&str>) {
    match status {
        Status::Running => ("running", None),
        Status::Done => ("done", None),
        Status::Failed { cause, .. } => ("failed", Some(cause)),
        Status::Interrupted => ("interrupted", None),
        Status::Suspended { cause, .. } => ("suspended", Some(cause)),
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::engine::EngineConfig;
    use rumba_results::record::Spent;
    use rumba_results::samples;

    use super::*;

    #[test]
    fn a_name_can_neither_end_its_label_nor_its_line() {
        let mut text = Text::default();
        text.line("m", &[("engine", "a\"} 1\n\\")], 2.0);
        assert_eq!(text.0, "m{engine=\"a\\\"} 1\\n\\\\\"} 2\n");
    }

    #[test]
    fn unknown_metrics_have_no_line() {
        let gauges = Gauges::new(Path::new("results/x"), 3);
        let text = gauges.text(TimeLeft { seconds: 12.0, is_whole: false });
        assert!(text.contains("rumba_trials_planned 3\n") && text.contains("rumba_time_left_is_whole 0\n"), "{text}");
        assert!(!text.contains("rumba_ops") && !text.contains("NaN"), "{text}");
    }

    fn trial() -> Trial {
        Trial::of(&TrialPlan { engine: EngineConfig::new("a"), clients: 8, ..samples::trial_plan() })
    }

    /// A second with this many bytes written, on a device without a meter of reads.
    fn second(device_write_bytes: Metric, suspended_s: f64) -> Interval {
        let spent = Spent { device_write_bytes, ..Spent::default() };
        Interval { ops: 10, suspended_s, spent, ..samples::interval(PhaseKind::Loop(1), 0.0) }
    }

    fn reported(trial: &Trial) -> String {
        let mut text = Text::default();
        trial.write(&mut text);
        text.0
    }

    /// On a file system without a device, and with a server on another host, the endpoint reported that nothing was
    /// written.
    #[test]
    fn unmeasured_total_has_no_line_and_is_not_zero() {
        let mut trial = trial();
        assert!(!reported(&trial).contains("rumba_written_bytes_total"), "no sample has come yet");
        for written in [Metric::Value(0.0), Metric::Value(4096.0)] {
            trial.passes(&second(written, 0.0));
        }
        let line = "rumba_written_bytes_total{trial=\"1\",engine=\"a\",clients=\"8\",repeat=\"1\"} 4096\n";
        assert!(reported(&trial).contains(line), "{}", reported(&trial));
        assert!(!reported(&trial).contains("rumba_read_bytes_total"), "{}", reported(&trial));
        trial.passes(&second(Metric::absent("no sample"), 1.0));
        assert!(reported(&trial).contains(line), "a second that was suspended hides nothing: {}", reported(&trial));
        trial.passes(&second(Metric::absent("sda has gone"), 0.0));
        assert!(!reported(&trial).contains("rumba_written_bytes_total"), "later writes are missing");
    }
}
