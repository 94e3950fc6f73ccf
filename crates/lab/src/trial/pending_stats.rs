//! The engine's counters and deferred work at the end of a phase.
//!
//! A stalled server does not answer. Waiting for it between two loops would miss the seconds that follow, and the
//! second loop would last as long as the stall. Between phases with running clients, a separate thread therefore
//! requests the statistics. The phase is emitted when the answer has come, or later without it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::Gauge;
use rumba_results::event::Event;
use rumba_results::record::PhaseRecord;

use super::span::Span;
use super::{Shared, Trial, sync};
use crate::meter::{Role, ThreadCpuRegistry};

/// The wait for an answer before the next phase begins: most take milliseconds, and phases are then emitted in order.
const AT_ONCE: Duration = Duration::from_millis(100);
/// The longest time after a phase's end at which an answer still counts for it. It is also the wait for an engine whose
/// phase was cut off, because that engine may be gone or stalled.
const LAST: Duration = Duration::from_secs(1);

/// The engine's statistics.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) debt: Vec<Gauge>,
    pub(super) counters: Vec<Gauge>,
}

impl Answer {
    /// Requests the statistics, and waits without a limit.
    pub(super) fn of(instance: &Shared) -> Self {
        Self { debt: debt(instance), counters: instance.counters() }
    }
}

/// The engine's deferred work, and the dirty bytes in the page cache of the whole host.
pub(super) fn debt(instance: &Shared) -> Vec<Gauge> {
    let mut debt = instance.debt();
    debt.extend(sync::host_dirty());
    debt
}

/// A pending request.
struct Question {
    requested: Instant,
    answer: Receiver<Answer>,
    thread: JoinHandle<()>,
}

impl Question {
    /// Requests the statistics; `None` if the host provides no thread for it.
    fn fetch(instance: &Shared, roll: &Arc<ThreadCpuRegistry>) -> Option<Self> {
        let (notify, answer) = channel();
        let (instance, roll) = (instance.clone(), roll.clone());
        let body = move || {
            let _present = roll.enter(Role::Harness);
            // The receiver may be gone.
            let _ = notify.send(Answer::of(&instance));
        };
        let thread = std::thread::Builder::new().name("asks".to_owned()).spawn(body).ok()?;
        Some(Self { requested: Instant::now(), answer, thread })
    }

    fn wait(&self, most: Duration) -> Option<Answer> {
        self.answer.recv_timeout(most).ok()
    }

    /// Waits until its thread has released the instance.
    fn end(self) {
        // A panic came from the engine; there is no answer then.
        let _ = self.thread.join();
    }
}

/// A pending request, and the phase that waits for its answer.
#[derive(Default)]
pub(super) struct PendingStats {
    question: Option<Question>,
    unreported: Option<PhaseRecord>,
}

impl Trial<'_> {
    /// The statistics at the end of a span that no other span follows directly.
    pub(super) fn answer(&self, span: &Span, complete: bool) -> Answer {
        if !span.requests_engine {
            return Answer::default();
        }
        if complete {
            return Answer::of(&self.instance);
        }
        let question = Question::fetch(&self.instance, &self.roll);
        question.and_then(|question| question.wait(LAST)).unwrap_or_default()
    }

    /// Emits a phase during which clients run on, as soon as its statistics are known. Returns the deferred work at the
    /// start of the next phase, if it is known by then.
    pub(super) fn report_when_answered(&mut self, record: PhaseRecord) -> Vec<Gauge> {
        self.report_unanswered();
        self.pending.unreported = Some(record);
        if self.pending.question.is_none() {
            self.pending.question = Question::fetch(&self.instance, &self.roll);
            return self.receive(AT_ONCE).unwrap_or_default();
        }
        // The pending answer belongs to an earlier phase.
        self.report_unanswered();
        Vec::new()
    }

    /// Takes an answer within this time, and emits the phase that waited for it. Returns its deferred work. A much
    /// later answer no longer describes the phase's end.
    pub(super) fn receive(&mut self, most: Duration) -> Option<Vec<Gauge>> {
        let question = self.pending.question.as_ref()?;
        let Some(Answer { debt, counters }) = question.wait(most) else {
            if question.requested.elapsed() > LAST {
                self.report_unanswered();
            }
            return None;
        };
        self.pending.question.take().into_iter().for_each(Question::end);
        let mut record = self.pending.unreported.take()?;
        (record.debt_end, record.counters) = (debt.clone(), counters);
        self.emit(Event::PhaseEnded(Box::new(record)));
        Some(debt)
    }

    /// Emits a phase without statistics if no answer came in time.
    pub(super) fn report_unanswered(&mut self) {
        if let Some(record) = self.pending.unreported.take() {
            self.emit(Event::PhaseEnded(Box::new(record)));
        }
    }

    /// Waits for the end of a pending request, because the instance is about to be closed.
    pub(super) fn end_requesting(&mut self) {
        self.pending.question.take().into_iter().for_each(Question::end);
    }
}
