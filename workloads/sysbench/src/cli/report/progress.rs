//! The output before events run, and between them.

use std::time::Duration;

use super::Snapshot;
use crate::cli::histogram;
use crate::cli::settings::Settings;

/// Before threads are made.
pub const INITIALIZING: &str = "Initializing worker threads...\n\n";
/// When all are ready.
pub const THREADS_STARTED: &str = "Threads started!\n\n";

/// The options of the run. A built-in test's own text follows.
pub fn running_with(settings: &Settings) -> String {
    let mut text = "Running the test with following options:\n".to_owned();
    text += &format!("Number of threads: {}\n", settings.threads);
    if !settings.warmup.is_zero() {
        text += &format!("Warmup time: {}s\n", settings.warmup.as_secs());
    }
    if let Some(rate_per_s) = settings.rate_per_s {
        text += &format!("Target transaction rate: {rate_per_s}/sec\n");
    }
    if let Some(interval) = settings.report_interval {
        text += &format!("Report intermediate results every {} second(s)\n", interval.as_secs());
    }
    if !settings.checkpoints.is_empty() {
        let all: Vec<String> = settings.checkpoints.iter().map(|at| at.as_secs().to_string()).collect();
        text += &format!("Report checkpoint(s) at {} seconds\n", all.join(", "));
    }
    if settings.debug {
        text += "Debug mode enabled.\n\n";
    }
    if settings.validate {
        text += "Validation checks: on.\n\n";
    }
    text += &match settings.random.seed {
        Some(seed) => format!("Initializing random number generator from seed ({seed}).\n\n"),
        None => "Initializing random number generator from current time\n\n".to_owned(),
    };
    if let Some(grace) = settings.forced_shutdown {
        let at = settings.warmup + settings.time.unwrap_or_default() + grace;
        text += &format!("Forcing shutdown in {} seconds\n", at.as_secs());
    }
    text + "\n"
}

/// When events run that are not counted.
pub fn warming_up(warmup: Duration) -> String {
    format!("Warming up for {} seconds...\n\n", warmup.as_secs())
}

/// The line before a checkpoint's report, at this many seconds after the start. As in sysbench, the time includes the
/// warmup.
pub fn checkpoint(since_start_s: f64) -> String {
    format!("[ {since_start_s:.0}s ] Checkpoint report:\n")
}

/// The text before the closing report, if requested.
pub fn histogram(snapshot: &Snapshot) -> String {
    format!("Latency histogram (values are in milliseconds)\n{} \n", histogram::text(&snapshot.histogram))
}

/// First in the closing report of a run that was ended by force.
pub(super) fn unfinished(events: u32) -> String {
    if events == 0 {
        return String::new();
    }
    format!("\nNumber of unfinished transactions on forced shutdown: {events}\n")
}
