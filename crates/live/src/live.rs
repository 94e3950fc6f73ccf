//! A run in progress: its events are kept for pages that connect late, and sent to those that are connected.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rumba_lab::conduct::{Forecast, Outcome, TimeLeft, Watch};
use rumba_lab::store::ReadError;
use rumba_report::LivePage;
use rumba_results::event::Event;
use rumba_results::record::{Interval, PhaseRecord, Record, TrialPlan};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::event_log::{EventLog, LiveEvent};
use crate::metrics::{Gauges, ending};
use crate::view::{Data, View};

/// The addresses that its page uses.
pub const PAGE: LivePage<'static> =
    LivePage { data: "live/data", events: Some("live/events"), stop: Some("live/stop"), library: "./" };

/// A run in progress.
pub struct Live {
    directory: PathBuf,
    state: Mutex<State>,
    view: Mutex<View>,
    /// The last event's id.
    news: watch::Sender<u64>,
}

struct State {
    events: EventLog,
    gauges: Gauges,
    forecast: Forecast,
    has_ended: bool,
}

impl Live {
    /// The live view of a run whose results go to this directory. `forecast` knows its trials, and those that have
    /// ended before.
    ///
    /// # Errors
    /// The results have not been started.
    pub fn new(directory: &Path, planned: usize, forecast: Forecast) -> Result<Self, ReadError> {
        let view = View::open(directory)?;
        let state =
            State { events: EventLog::default(), gauges: Gauges::new(directory, planned), forecast, has_ended: false };
        let (news, _) = watch::channel(0);
        Ok(Self { directory: directory.to_owned(), state: Mutex::new(state), view: Mutex::new(view), news })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete on its own, so a poisoned lock is safe to use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn page(&self) -> String {
        self.view().page(&PAGE)
    }

    /// The current data of its page.
    pub(crate) fn data(&self) -> Result<Data, ReadError> {
        let has_ended = self.has_ended();
        self.view().data(&PAGE, has_ended)
    }

    /// The text for a scraper.
    pub(crate) fn metrics(&self) -> String {
        let state = self.state();
        state.gauges.text(state.forecast.left(Instant::now()))
    }

    /// The first event after this one; `Err(true)` if none will come because the run has ended.
    pub(crate) fn after(&self, id: u64) -> Result<LiveEvent, bool> {
        let state = self.state();
        state.events.after(id).cloned().ok_or(state.has_ended)
    }

    /// The id of the last event, with a notification for each new one.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    /// Whether the run is over.
    pub(crate) fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    /// Reports that a stop of the run was requested.
    pub(crate) fn stopping(&self) {
        self.step("stopping", &json!({}));
    }

    /// Ends the events: the result as the page shows it, then how the run ended. The page then needs no further
    /// request, which an exiting server might not answer.
    pub fn end(&self, outcome: Result<&Outcome, String>) {
        let result = self.view().data(&PAGE, true);
        let mut how = match outcome {
            Ok(outcome) => json!({
                "done": outcome.done, "failed": outcome.failed, "suspended": outcome.suspended,
                "not_begun": outcome.not_begun, "interrupted": outcome.interrupted,
            }),
            Err(error) => json!({ "error": error }),
        };
        let mut state = self.state();
        match result {
            Ok(data) => drop(state.events.step_json("result", data.json)),
            Err(error) => how["unreadable"] = error.to_string().into(),
        }
        let id = state.events.step("end", &how);
        state.has_ended = true;
        drop(state);
        self.news.send_replace(id);
    }

    fn step(&self, kind: &'static str, what: &Value) {
        let id = self.state().events.step(kind, what);
        self.news.send_replace(id);
    }
}

impl Watch for &Live {
    fn begins(&mut self, trial: &TrialPlan, of: usize) {
        let mut state = self.state();
        state.forecast.begins(trial, Instant::now());
        state.gauges.begins(trial);
        let left = left(state.forecast.left(Instant::now()));
        drop(state);
        let part = serde_json::to_value(trial.part).unwrap_or_default();
        self.step(
            "trial",
            &json!({
                "number": trial.number, "of": of, "engine": trial.engine.name, "clients": trial.clients,
                "with": trial.clients_in_words(), "repeat": trial.repeat, "part": part, "left": left,
            }),
        );
    }

    fn copies(&mut self, trial: &TrialPlan, bytes: u64) {
        self.step("copy", &json!({ "trial": trial.number, "bytes": bytes }));
    }

    fn event(&mut self, trial: &TrialPlan, event: &Event) {
        let mut state = self.state();
        state.forecast.event(event, Instant::now());
        state.gauges.event(event);
        let left = left(state.forecast.left(Instant::now()));
        let id = match event {
            Event::PhaseStarted { phase, seconds, rows } => state.events.step(
                "phase",
                &json!({ "trial": trial.number, "phase": phase, "seconds": seconds, "rows": rows, "left": left }),
            ),
            Event::Interval(interval) => state.events.second(&of_interval(trial, interval, &left)),
            Event::PhaseEnded(phase) => state.events.step("phase-ended", &of_phase(trial, phase)),
            Event::Warning(warning) => state.events.step(
                "warning",
                &json!({ "trial": trial.number, "code": warning.code, "message": warning.message, "remedy": warning.remedy }),
            ),
            _ => return,
        };
        drop(state);
        self.news.send_replace(id);
    }

    fn ended(&mut self, record: &Record) {
        let mut state = self.state();
        state.forecast.ended(record, Instant::now());
        state.gauges.ended(&record.status);
        let left = left(state.forecast.left(Instant::now()));
        drop(state);
        let (status, cause) = ending(&record.status);
        self.step(
            "trial-ended",
            &json!({ "trial": record.plan.number, "status": status, "cause": cause, "left": left }),
        );
    }
}

fn left(left: TimeLeft) -> Value {
    json!({ "seconds": left.seconds.round(), "is_whole": left.is_whole, "words": left.words(&jiff::Zoned::now()) })
}

fn of_interval(trial: &TrialPlan, interval: &Interval, left: &Value) -> Value {
    json!({
        "trial": trial.number, "phase": interval.phase, "start_s": interval.start_s, "seconds": interval.seconds,
        "ops": interval.ops, "errors": interval.errors, "p50_ms": interval.p50_ms.value(),
        "p99_ms": interval.p99_ms.value(), "left": left,
    })
}

fn of_phase(trial: &TrialPlan, phase: &PhaseRecord) -> Value {
    json!({
        "trial": trial.number, "phase": phase.phase, "seconds": phase.seconds, "complete": phase.complete,
        "ops": phase.ops, "ops_per_s": phase.metrics.ops_per_s.value(),
    })
}
