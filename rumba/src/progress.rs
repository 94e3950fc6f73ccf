//! Progress: bars on a terminal, a line per phase elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rumba_engine_api::acid::{Outcome, Recovery};
use rumba_engine_api::printable::printable;
use rumba_engine_api::units::{show_bytes, show_duration};
use rumba_lab::conduct::{Forecast, Watch};
use rumba_results::event::Event;
use rumba_results::pair::with_side;
use rumba_results::record::{PhaseKind, PhaseRecord, Record, Status, TrialPart, TrialPlan};

/// Shows how an experiment goes, on standard error.
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
    phase: Option<PhaseKind>,
    rows: u64,
    expected_rows: u64,
    seconds: f64,
    passed_s: f64,
    forecast: Forecast,
}

impl Progress {
    /// Bars if standard error is a terminal, lines otherwise, nothing if quiet.
    pub fn new(quiet: bool, forecast: Forecast) -> Self {
        let on_terminal = std::io::stderr().is_terminal() && !quiet;
        let bar = ProgressBar::new(1000);
        bar.set_draw_target(if on_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() });
        if let Ok(style) = ProgressStyle::with_template("  {prefix:<10} {bar:28} {msg}") {
            bar.set_style(style);
        }
        if on_terminal {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar, quiet, phase: None, rows: 0, expected_rows: 0, seconds: 0.0, passed_s: 0.0, forecast }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        if self.bar.is_hidden() { notify(text) } else { self.bar.println(printable(text)) }
    }

    /// The expected end of the run, appended to other words; empty while unknown.
    fn left(&self) -> String {
        let words = self.forecast.left(Instant::now()).words(&jiff::Zoned::now());
        if words.is_empty() { words } else { format!("; {words}") }
    }

    fn phase_started(&mut self, phase: PhaseKind, seconds: Option<f64>, rows: Option<u64>) {
        self.phase = Some(phase);
        (self.rows, self.passed_s) = (0, 0.0);
        self.expected_rows = rows.unwrap_or(0);
        self.seconds = seconds.unwrap_or(0.0);
        self.bar.set_prefix(phase.to_string());
        self.bar.set_position(0);
        self.bar.set_message("");
    }

    fn interval(&mut self, ops: u64, seconds: f64, p99_ms: Option<f64>) {
        self.rows += ops;
        self.passed_s += seconds;
        let share = if self.expected_rows > 0 {
            self.rows as f64 / self.expected_rows as f64
        } else if self.seconds > 0.0 {
            self.passed_s / self.seconds
        } else {
            0.0
        };
        self.bar.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
        let rate = ops as f64 / seconds.max(1e-9);
        let message = match (self.phase, p99_ms) {
            (Some(PhaseKind::Load), _) => format!("{:.0} rows/s, {} rows", rate, self.rows),
            (_, Some(p99_ms)) => format!("{rate:.0} ops/s, p99 {:.1} µs", p99_ms * 1e3),
            _ => format!("{:.0} s", self.passed_s),
        };
        self.bar.set_message(format!("{message}{}", self.left()));
    }
}

/// Prints a line on standard error. If standard error is closed, the run continues without it.
pub fn notify(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}

fn phase_line(phase: &PhaseRecord) -> String {
    let took = show_duration(Duration::from_secs_f64(phase.seconds));
    let metrics = &phase.metrics;
    let written = metrics.wkb_per_op.value().map(|kb| format!(", {kb:.2} KB written each")).unwrap_or_default();
    let size = metrics.size_bytes.value().map(show_bytes).unwrap_or_default();
    match (phase.phase, metrics.ops_per_s.value()) {
        (PhaseKind::Load, Some(rate)) => {
            format!("{} rows in {took}: {rate:.0} rows/s{written}, {size} on disk", phase.ops)
        }
        (PhaseKind::Isolation, _) if phase.promises.is_empty() => {
            "the workload has no transactions that could meet".to_owned()
        }
        (PhaseKind::Isolation, _) => {
            let of = |outcome| phase.promises.iter().filter(|promise| promise.outcome == outcome).count();
            let (kept, anomalies, broken) = (of(Outcome::Kept), of(Outcome::Anomaly), of(Outcome::Broken));
            format!("{kept} guarantees kept, {anomalies} with an anomaly, {broken} broken, in {took}")
        }
        (PhaseKind::Recovery, _) => match &phase.recovery {
            Some(Recovery { acknowledged, lost, open_s, damage, .. }) => {
                let wrong = damage.len() + phase.checks.iter().filter(|check| check.wrong > 0).count();
                let wrong = if wrong > 0 { format!(", {wrong} checks of the data do not hold") } else { String::new() };
                format!("{lost} of {acknowledged} acknowledged transactions lost{wrong}; opened again in {open_s:.2} s")
            }
            None => format!("not verified, after {took}"),
        },
        (PhaseKind::Crash, _) => format!("killed after {} operations in {took}", phase.ops),
        (_, Some(rate)) => format!("{rate:.0} ops/s over {took}{}{written}", usual_p99(phase)),
        (PhaseKind::VerifyLoad | PhaseKind::Verify, None) => {
            let examined: u64 = phase.checks.iter().map(|check| check.examined).sum();
            let wrong: u64 = phase.checks.iter().map(|check| check.wrong).sum();
            format!("{examined} checks, {wrong} failed, in {took}")
        }
        _ => {
            let bytes = phase.spent.device_write_bytes.value().map(show_bytes);
            format!("{took}{}", bytes.map(|bytes| format!(", {bytes} written")).unwrap_or_default())
        }
    }
}

/// The p99 of the most frequent type of operation.
fn usual_p99(phase: &PhaseRecord) -> String {
    let usual = phase.op_types.iter().max_by_key(|(_, stats)| stats.count);
    let p99_ms = usual.and_then(|(name, stats)| Some((name, stats.response.p99_ms.value()?)));
    p99_ms.map(|(name, ms)| format!(", p99 of {name} {ms:.3} ms")).unwrap_or_default()
}

impl Watch for Progress {
    fn begins(&mut self, trial: &TrialPlan, of: usize) {
        let clients = trial.clients_in_words();
        let start = if trial.run.starts > 1 { format!(", start {}", trial.start) } else { String::new() };
        let repeat = format!("repeat {}{start}", trial.repeat);
        let what = match (trial.part, trial.loaded_by) {
            (TrialPart::Load, _) => "load, kept for the trials that start from it".to_owned(),
            (_, None) => format!("{clients}, {repeat}"),
            (_, Some(load)) => format!("{clients}, {repeat}, from the data of trial {load}"),
        };
        let what = match (trial.probe, trial.run.rate) {
            (Some(probe), Some(rate)) => format!("{what}, probe {probe} at {rate:.0}/s"),
            (Some(probe), None) => format!("{what}, probe {probe} as fast as possible"),
            (None, _) => what,
        };
        self.forecast.begins(trial, Instant::now());
        // A search makes more trials than planned, so their number is unknown.
        let number = match trial.probe {
            Some(_) => format!("[{}]", trial.number),
            None => format!("[{}/{of}]", trial.number),
        };
        self.line(&format!("{number} {}, {what}{}", with_side(&trial.engine.name), self.left()));
    }

    fn copies(&mut self, trial: &TrialPlan, bytes: u64) {
        let what = if trial.part == TrialPart::Load { "kept" } else { "copy of" };
        self.line(&format!("  {:<10} {}", what, show_bytes(bytes as f64)));
    }

    fn event(&mut self, _trial: &TrialPlan, event: &Event) {
        self.forecast.event(event, Instant::now());
        match event {
            Event::PhaseStarted { phase, seconds, rows } => self.phase_started(*phase, *seconds, *rows),
            Event::Interval(interval) => self.interval(interval.ops, interval.seconds, interval.p99_ms.value()),
            Event::PhaseEnded(phase) => self.line(&format!("  {:<10} {}", phase.phase.to_string(), phase_line(phase))),
            Event::Warning(warning) => self.line(&format!("  warning: {} ({})", warning.message, warning.remedy)),
            _ => {}
        }
    }

    fn ended(&mut self, record: &Record) {
        self.forecast.ended(record, Instant::now());
        self.bar.set_prefix("");
        self.bar.set_message("");
        match &record.status {
            Status::Failed { phase, cause } => self.line(&format!("  FAILED in {phase}: {cause}")),
            Status::Suspended { phase, cause } => {
                self.line(&format!("  SUSPENDED in {phase}: {cause}; it is in no figure, verdict or claim"));
            }
            Status::Interrupted => self.line("  interrupted; all measurements so far are kept"),
            Status::Done | Status::Running => {}
        }
    }
}
