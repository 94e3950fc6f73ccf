//! What an engine says of itself at the end of a phase.
//!
//! A server that stands still does not answer. Whoever waited for it between two loops would miss the seconds that
//! follow, and the second loop would last as long as the server stood still. So between phases through which clients
//! run on it is asked by a thread of its own, and the phase is told when the answer has come, or without it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rumba_core::engine::Gauge;
use rumba_core::event::Event;
use rumba_core::record::PhaseRecord;

use super::span::Span;
use super::{Shared, Trial, sync};
use crate::meter::{CpuRoll, Role};

/// How long an answer is waited for before the next phase begins: most take milliseconds, and phases are then told in order.
const AT_ONCE: Duration = Duration::from_millis(100);
/// How long it is taken for one about the phase's end; and how long that of an engine whose phase was cut off is waited
/// for, which may be gone, or stand still.
const LAST: Duration = Duration::from_secs(1);

/// What an engine says of itself.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) debt: Vec<Gauge>,
    pub(super) counters: Vec<Gauge>,
}

impl Answer {
    /// Asks, and waits as long as it takes.
    pub(super) fn of(instance: &Shared) -> Self {
        Self { debt: debt(instance), counters: instance.counters() }
    }
}

/// The engine's debt, and what waits in the page cache of the whole host.
pub(super) fn debt(instance: &Shared) -> Vec<Gauge> {
    let mut debt = instance.debt();
    debt.extend(sync::host_dirty());
    debt
}

/// A question that is out.
struct Question {
    asked: Instant,
    answer: Receiver<Answer>,
    thread: JoinHandle<()>,
}

impl Question {
    /// Asks; `None` where the host gives no thread for it.
    fn ask(instance: &Shared, roll: &Arc<CpuRoll>) -> Option<Self> {
        let (tell, answer) = channel();
        let (instance, roll) = (instance.clone(), roll.clone());
        let body = move || {
            let _present = roll.enter(Role::Harness);
            // Nobody may wait for it any more.
            let _ = tell.send(Answer::of(&instance));
        };
        let thread = std::thread::Builder::new().name("asks".to_owned()).spawn(body).ok()?;
        Some(Self { asked: Instant::now(), answer, thread })
    }

    fn wait(&self, most: Duration) -> Option<Answer> {
        self.answer.recv_timeout(most).ok()
    }

    /// Waits until nothing of it holds the instance any more.
    fn end(self) {
        // A panic was the engine's; it has no answer then.
        let _ = self.thread.join();
    }
}

/// A question that is out, and the phase that waits for its answer.
#[derive(Default)]
pub(super) struct PendingStats {
    question: Option<Question>,
    untold: Option<PhaseRecord>,
}

impl Trial<'_> {
    /// What the engine says at the end of a span that nothing follows without a pause.
    pub(super) fn answer(&self, span: &Span, complete: bool) -> Answer {
        if !span.asks_engine {
            return Answer::default();
        }
        if complete {
            return Answer::of(&self.instance);
        }
        let question = Question::ask(&self.instance, &self.roll);
        question.and_then(|question| question.wait(LAST)).unwrap_or_default()
    }

    /// Tells a phase that clients run on after as soon as the engine has said of itself what belongs to it, and gives
    /// the debt with which the next one begins, if that is known now.
    pub(super) fn tell_when_answered(&mut self, record: PhaseRecord) -> Vec<Gauge> {
        self.tell_unanswered();
        self.pending.untold = Some(record);
        if self.pending.question.is_none() {
            self.pending.question = Question::ask(&self.instance, &self.roll);
            return self.hear(AT_ONCE).unwrap_or_default();
        }
        // The answer to come is that of an earlier phase.
        self.tell_unanswered();
        Vec::new()
    }

    /// Takes an answer that comes within this time, and tells the phase that waited for it; gives its debt. What comes
    /// much later is no figure of that phase's end any more.
    pub(super) fn hear(&mut self, most: Duration) -> Option<Vec<Gauge>> {
        let question = self.pending.question.as_ref()?;
        let Some(Answer { debt, counters }) = question.wait(most) else {
            if question.asked.elapsed() > LAST {
                self.tell_unanswered();
            }
            return None;
        };
        self.pending.question.take().into_iter().for_each(Question::end);
        let mut record = self.pending.untold.take()?;
        (record.debt_end, record.counters) = (debt.clone(), counters);
        self.emit(Event::PhaseEnded(Box::new(record)));
        Some(debt)
    }

    /// Tells a phase that has had no answer in time, without it.
    pub(super) fn tell_unanswered(&mut self) {
        if let Some(record) = self.pending.untold.take() {
            self.emit(Event::PhaseEnded(Box::new(record)));
        }
    }

    /// Waits for the end of a question that is still out: the instance is to be closed.
    pub(super) fn end_asking(&mut self) {
        self.pending.question.take().into_iter().for_each(Question::end);
    }
}
