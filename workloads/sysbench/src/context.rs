//! One client of a run: what its script's calls count, draw, wait for, and when its events are due.

use std::cell::{Cell, Ref, RefCell, UnsafeCell};
use std::ptr::{NonNull, null};
use std::sync::Arc;
use std::task::{Context, Poll};

use rumba_engine_api::conflict::tried_again;
use rumba_engine_api::error::{EngineError, ErrorCode, Result};
use rumba_engine_api::sql::Answer;
use rumba_engine_api::worker::{Op, OpKind, Pace};

use crate::counters::{Counter, Counters, counts_since};
use crate::fiber::{Waits, wait_alone};
use crate::gaps::found_no_row;
use crate::host::Host;
use crate::random::Random;
use crate::setup::{Events, Setup};

/// The operation type of a statement of a load, and of an event that its script has not named.
const EVENT: OpKind = 0;

/// The program's side of a client.
pub(crate) struct ClientContext {
    setup: RefCell<Arc<Setup>>,
    events: Events,
    pub(crate) number: u32,
    counters: Arc<Counters>,
    random: UnsafeCell<Random>,
    waits: Cell<*const Waits>,
    pace: Cell<Option<NonNull<dyn Pace>>>,
    /// How often the current event was restarted.
    restarts: Cell<u32>,
    /// The type of the event under way.
    event: Cell<Option<OpKind>>,
    /// The statement counts when the last event ended.
    before_event: Cell<[u64; 3]>,
    /// Statements are operations of a load.
    is_load: Cell<bool>,
}

impl ClientContext {
    pub(crate) fn new(setup: &Arc<Setup>, number: u32, counters: Arc<Counters>) -> Self {
        Self {
            setup: RefCell::new(setup.clone()),
            events: setup.events.clone(),
            number,
            counters,
            random: UnsafeCell::new(Random::new(setup.seed, number, setup.shapes)),
            waits: Cell::new(null()),
            pace: Cell::new(None),
            restarts: Cell::new(0),
            event: Cell::new(None),
            before_event: Cell::default(),
            is_load: Cell::new(false),
        }
    }

    /// Adopts the final values of all options.
    pub(crate) fn adopt(&self, setup: &Arc<Setup>) {
        self.setup.replace(setup.clone());
    }

    /// Begins the client's work, which waits on a fiber and takes its times from this pace.
    pub(crate) fn begin(&self, waits: *const Waits, pace: NonNull<dyn Pace>, is_load: bool) {
        self.waits.set(waits);
        self.pace.set(Some(pace));
        self.is_load.set(is_load);
        self.before_event.set(self.counters.statements());
    }

    /// The pace of the client's work, while that lasts.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    fn pace(&self) -> Option<&mut dyn Pace> {
        // SAFETY: the pace lives as long as the work, and only this client uses it, one call at a time.
        self.pace.get().map(|mut pace| unsafe { pace.as_mut() } as &mut dyn Pace)
    }

    /// Leaves an event unfinished, if one is under way.
    pub(crate) fn give_event_up(&self) {
        if let Some(pace) = self.pace()
            && self.event.take().is_some()
        {
            pace.given_up();
        }
    }

    /// Ends the work. Returns whether it was in the middle: its fiber is gone then.
    pub(crate) fn end(&self) -> bool {
        self.is_load.set(false);
        self.pace.set(None);
        !self.waits.replace(null()).is_null()
    }

    pub(crate) fn host(&self) -> Arc<dyn Host> {
        self.setup.borrow().host.clone()
    }

    #[inline]
    pub(crate) fn count(&self, counter: Counter) {
        self.counters.count(counter);
    }

    pub(crate) fn count_by(&self, counter: Counter, number: u64) {
        self.counters.count_by(counter, number);
    }

    pub(crate) fn setup(&self) -> Ref<'_, Arc<Setup>> {
        self.setup.borrow()
    }

    /// The client's random numbers.
    ///
    /// # Safety
    /// No other reference to them exists; only the interpreter's functions use them, one at a time.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn random(&self) -> &mut Random {
        // SAFETY: as above.
        unsafe { &mut *self.random.get() }
    }

    /// Waits for an answer: on a fiber, other clients continue; otherwise the whole thread waits.
    #[inline]
    pub(crate) fn wait<T>(&self, poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        // SAFETY: it is set for as long as the fiber's work lasts, and this is a part of it.
        match unsafe { self.waits.get().as_ref() } {
            Some(waits) => waits.wait(poll),
            None => wait_alone(poll),
        }
    }

    /// The end of the stack that the script runs on, if it is a fiber's.
    pub(crate) fn stack_end(&self) -> Option<usize> {
        // SAFETY: as above.
        unsafe { self.waits.get().as_ref() }.map(Waits::stack_end)
    }

    /// Notes an error for the report.
    #[cold]
    pub(crate) fn failed(&self, error: &EngineError) {
        self.restarts.set(self.restarts.get() + 1);
        tried_again(error);
        let code = match error {
            EngineError::CutOff(_) | EngineError::Lost(_) => "connection lost".to_owned(),
            other if other.code() == ErrorCode::NONE => "without a code".to_owned(),
            other => other.code().to_string(),
        };
        self.counters.error(code);
    }

    /// Waits for the next event's turn; false if there are no more events.
    pub(crate) fn more_events(&self) -> bool {
        let Some(pace) = self.pace() else { return false };
        if !self.events.take() {
            return false;
        }
        self.wait(|context| pace.poll_turn(context))
    }

    /// In a load, begins a statement as an operation.
    ///
    /// # Errors
    /// The load must end.
    #[inline]
    pub(crate) fn statement_begins(&self) -> Result<()> {
        if self.is_load.get() { self.load_begins() } else { Ok(()) }
    }

    fn load_begins(&self) -> Result<()> {
        let Some(pace) = self.pace() else { return Ok(()) };
        if !self.wait(|context| pace.poll_turn(context)) {
            return Err(EngineError::failed("prepare", "the load was ended before the script had done"));
        }
        self.event.set(Some(EVENT));
        self.before_event.set(self.counters.statements());
        pace.start(EVENT);
        Ok(())
    }

    /// Counts a statement that looked for rows and found none. In a load, ends the operation.
    #[inline]
    pub(crate) fn statement_answered(&self, answer: &Answer, sql: &[u8], is_counted: bool) {
        if found_no_row(answer, sql) {
            self.counters.count_not_found();
        }
        self.statement_done(answer.affected, is_counted);
    }

    /// In a load, ends the operation: the statement wrote this many rows, and their bytes were counted or not.
    #[inline]
    pub(crate) fn statement_done(&self, rows: u64, is_counted: bool) {
        if self.is_load.get() {
            if rows > 0 && !is_counted {
                self.counters.note_uncounted();
            }
            self.load_done(rows);
        }
    }

    fn load_done(&self, rows: u64) {
        let Some(pace) = self.pace() else { return };
        if self.event.take().is_some() {
            pace.statements(EVENT, counts_since(self.counters.statements(), self.before_event.get()));
            pace.done(EVENT, Op { rows, ..Op::default() });
        }
    }

    /// In a load, counts the bytes to be written.
    #[inline]
    pub(crate) fn loaded(&self, bytes: u64) {
        if self.is_load.get() {
            self.counters.count_by(Counter::BytesWritten, bytes);
        }
    }

    /// Whether statements are operations of a load.
    #[inline]
    pub(crate) fn is_load(&self) -> bool {
        self.is_load.get()
    }

    /// Whether an event is under way.
    pub(crate) fn is_in_event(&self) -> bool {
        self.event.get().is_some()
    }

    pub(crate) fn event_start(&self) {
        let Some(pace) = self.pace() else { return };
        self.restarts.set(0);
        self.event.set(Some(EVENT));
        pace.start(EVENT);
    }

    /// The number of an operation that the script declares, from 1; 0 if its operations are not measured.
    pub(crate) fn operation(&self, name: &[u8]) -> u32 {
        number(&self.setup.borrow().measures.operations, name)
    }

    /// The number of a counter that the script declares, from 1; 0 if it is not measured.
    pub(crate) fn counter(&self, name: &[u8]) -> u32 {
        number(&self.setup.borrow().measures.counters, name)
    }

    /// The event under way is an operation of this number; without an event, nothing happens.
    pub(crate) fn name_event(&self, operation: u32) {
        let Some(pace) = self.pace().filter(|_| !self.is_load.get() && self.is_in_event()) else { return };
        let kind = EVENT + operation as OpKind;
        self.event.set(Some(kind));
        pace.set_kind(kind);
    }

    pub(crate) fn add_to_counter(&self, counter: u32, number: u64) {
        self.counters.count_own(counter as usize, number);
    }

    /// The script has written this many bytes of keys and payloads, or has removed them.
    pub(crate) fn add_logical_bytes(&self, bytes: i64) {
        self.counters.declare_bytes(bytes);
    }

    pub(crate) fn event_stop(&self) {
        let Some(pace) = self.pace() else { return };
        if let Some(kind) = self.event.take() {
            let op = Op { rows: 0, retries: self.restarts.get(), failed: false };
            let counts = self.counters.statements();
            let statements = counts_since(counts, self.before_event.replace(counts));
            pace.statements(kind, statements);
            self.counters.event(pace.done(kind, op));
        }
    }
}

/// The position of a name, from 1; 0 if it is none of them.
fn number(names: &[String], name: &[u8]) -> u32 {
    names.iter().position(|known| known.as_bytes() == name).map_or(0, |place| place as u32 + 1)
}
