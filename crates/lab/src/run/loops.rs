//! The driver `loops`: many clients on one thread. The loop waits for readable connections, and polls their clients in
//! the reported order.
//!
//! A client's wait is registered when its poll has ended. For a connection that was waited for before, an operation
//! costs no system call except its share of `epoll_wait`, and no allocation.

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::io;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rumba_engine_api::error::{EngineError, of_panic};
use rumba_engine_api::wait::{Driver, Wait, drive_with};
use rumba_engine_api::worker::Client;

use super::lateness::Lateness;
use super::pace::{ClientPace, NAP, Turns};
use super::poller::{Events, Interest, Poller, Ready, until};
use super::stop::{SignalState, Stop};
use super::timers::Timers;
use super::woken::{self, Woken};

/// A client's whole run, with everything that it owns.
type Run = Pin<Box<dyn Future<Output = Result<(), EngineError>>>>;

pub type Paced = (Box<dyn Client>, ClientPace);

/// The event that a client waits for between polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    AtConnection(RawFd),
    ForTime,
    /// Until its waker is called.
    ToBeWoken,
}

/// A client of the loop.
struct Slot {
    /// `None` once it has ended.
    run: Option<Run>,
    waker: Waker,
    waits: Waits,
    /// The number of its polls.
    turn: u64,
}

/// The thread's driver, as clients see it.
struct LoopDriver {
    poller: Poller,
    wait: Cell<Option<Wait>>,
}

impl Driver for LoopDriver {
    fn wait(&self, wait: Wait) -> bool {
        self.wait.set(Some(wait));
        true
    }

    fn forget(&self, fd: RawFd) {
        self.poller.forget(fd);
    }
}

/// The system resources of a loop, acquired before its clients start.
pub struct Loop {
    driver: Rc<LoopDriver>,
    woken: Arc<Woken>,
    stop: Arc<Stop>,
    turns: Arc<Turns>,
}

impl Loop {
    /// A loop without clients; `turns` counts polls for their paces.
    pub fn new(stop: Arc<Stop>, turns: Arc<Turns>) -> io::Result<Self> {
        let (poller, woken) = (Poller::new()?, Arc::new(Woken::new()?));
        poller.watch(woken.fd(), Interest::Read, woken::CLIENT)?;
        Ok(Self { driver: Rc::new(LoopDriver { poller, wait: Cell::default() }), woken, stop, turns })
    }

    /// Runs the clients on the current thread, until all have ended; `notify` is called with each end.
    pub fn run(self, clients: Vec<Paced>, lateness: Lateness, notify: impl FnMut(Result<(), EngineError>)) {
        let _driven = drive_with(self.driver.clone());
        let slots: Vec<_> = clients.into_iter().enumerate().map(|(client, paced)| self.slot(client, paced)).collect();
        let timers = Timers::with_capacity(slots.len());
        // The waker of any client works: after each wake-up the loop checks the signals.
        self.stop.wakes(self.woken.waker(0));
        let reported = self.stop.reported();
        Turning { alive: slots.len(), slots, timers, lateness, notify, reported, of: &self }.run();
    }

    fn slot(&self, client: usize, (mut client_itself, mut pace): Paced) -> Slot {
        let run: Run = Box::pin(async move { client_itself.run(&mut pace).await });
        Slot { run: Some(run), waker: self.woken.waker(client), waits: Waits::ToBeWoken, turn: 0 }
    }
}

/// A running loop.
struct Turning<'a, T> {
    of: &'a Loop,
    slots: Vec<Slot>,
    timers: Timers,
    lateness: Lateness,
    /// Clients that have not ended.
    alive: usize,
    /// The signals that waiting clients have last seen.
    reported: SignalState,
    notify: T,
}

impl<T: FnMut(Result<(), EngineError>)> Turning<'_, T> {
    fn run(mut self) {
        let mut events = Events::new();
        for client in 0..self.slots.len() {
            self.poll(client);
        }
        while self.alive > 0 {
            let from_ns = self.lateness.now_ns();
            if let Err(error) = self.wait(&mut events) {
                return self.end_all(&error);
            }
            self.lateness.looked(from_ns, events.len());
            for number in 0..events.len() {
                self.take(events.get(number), number);
            }
            self.take_due();
            self.look_for_news();
        }
    }

    fn wait(&self, events: &mut Events) -> io::Result<()> {
        // Clients that wait for their servers see the stop flag at the next answer. A client that waits for its arrival
        // does not, so the loop checks the flag.
        let most = self.timers.first().map(|first| until(first).min(NAP));
        self.of.driver.poller.wait(events, most)
    }

    fn take(&mut self, Ready { client, fd }: Ready, number: usize) {
        if client == woken::CLIENT {
            let mut woken = self.of.woken.take();
            for client in woken.drain(..) {
                self.poll(client);
            }
            self.of.woken.recycle(woken);
            return;
        }
        let waits_there = |slot: &Slot| slot.run.is_some() && slot.waits == Waits::AtConnection(fd);
        if self.slots.get(client as usize).is_some_and(waits_there) {
            self.lateness.taken(number);
            self.poll(client as usize);
        } else {
            // A ready connection without a waiting client (its end, mostly) would be reported again and again. It is
            // registered again at the next wait.
            self.of.driver.poller.forget(fd);
        }
    }

    fn take_due(&mut self) {
        let due = self.timers.take_due(std::time::Instant::now);
        for timer in &due {
            if self.slots[timer.client].turn == timer.turn {
                self.poll(timer.client);
            }
        }
        self.timers.recycle(due);
    }

    /// When the signals change, clients that wait for a time are polled at once.
    fn look_for_news(&mut self) {
        let reported = self.of.stop.reported();
        if self.reported == reported {
            return;
        }
        self.reported = reported;
        for client in 0..self.slots.len() {
            if self.slots[client].waits == Waits::ForTime {
                self.poll(client);
            }
        }
    }

    /// Polls a client, and registers its next wait.
    fn poll(&mut self, client: usize) {
        let slot = &mut self.slots[client];
        let Some(run) = &mut slot.run else { return };
        slot.turn += 1;
        self.of.turns.next();
        self.of.driver.wait.set(None);
        let mut context = Context::from_waker(&slot.waker);
        let polled = catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(&mut context)));
        let end = match polled {
            Ok(Poll::Pending) => match self.register(client) {
                Ok(()) => return,
                Err(error) => Err(EngineError::failed("epoll_ctl", error.to_string())),
            },
            Ok(Poll::Ready(end)) => end,
            Err(panic) => Err(panicked(panic.as_ref())),
        };
        self.end(client, end);
    }

    fn register(&mut self, client: usize) -> io::Result<()> {
        let slot = &mut self.slots[client];
        let (fd, interest) = match self.of.driver.wait.get() {
            Some(Wait::Readable(fd)) => (fd, Interest::Read),
            Some(Wait::Writable(fd)) => (fd, Interest::Write),
            Some(Wait::Until(time)) => {
                slot.waits = Waits::ForTime;
                self.timers.add(time, client, slot.turn);
                return Ok(());
            }
            None => {
                slot.waits = Waits::ToBeWoken;
                return Ok(());
            }
        };
        slot.waits = Waits::AtConnection(fd);
        self.of.driver.poller.watch(fd, interest, client as u32)
    }

    fn end(&mut self, client: usize, end: Result<(), EngineError>) {
        let run = self.slots[client].run.take();
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(run)));
        self.alive -= 1;
        (self.notify)(end.and(dropped.map_err(|panic| panicked(panic.as_ref()))));
    }

    /// Ends all clients, because the loop cannot wait any more.
    fn end_all(mut self, error: &io::Error) {
        for client in 0..self.slots.len() {
            if self.slots[client].run.is_some() {
                self.end(client, Err(EngineError::failed("epoll_wait", error.to_string())));
            }
        }
    }
}

/// Turns a panic into its client's failure.
pub fn panicked(panic: &(dyn Any + Send)) -> EngineError {
    EngineError::failed("client", format!("panicked: {}", of_panic(panic)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;
    use crate::run::cells::Cells;
    use crate::run::stop::RunClock;
    use crate::run::testing::never;

    #[test]
    fn unawaited_connection_does_not_keep_the_loop_awake() {
        let of = Loop::new(Arc::default(), Arc::default()).unwrap();
        let (mine, mut theirs) = UnixStream::pair().unwrap();
        of.driver.poller.watch(mine.as_raw_fd(), Interest::Read, 0).unwrap();
        let slot = Slot { run: Some(never()), waker: of.woken.waker(0), waits: Waits::ForTime, turn: 0 };
        let (slots, reported) = (vec![slot], of.stop.reported());
        let lateness = Lateness::new(Arc::new(Cells::new(1)), RunClock::start());
        let timers = Timers::default();
        let mut turning = Turning { of: &of, slots, timers, lateness, alive: 1, reported, notify: drop };
        let mut events = Events::new();
        let wait = |events: &mut Events| of.driver.poller.wait(events, Some(Duration::ZERO)).unwrap();
        theirs.write_all(b"?").unwrap();
        wait(&mut events);
        assert_eq!(events.len(), 1);
        turning.take(events.get(0), 0);
        assert_eq!(turning.slots[0].turn, 0, "the client waits for something else");
        wait(&mut events);
        assert_eq!(events.len(), 0, "the event is not reported again");
        of.driver.poller.watch(mine.as_raw_fd(), Interest::Read, 0).unwrap();
        wait(&mut events);
        assert_eq!(events.len(), 1, "what is waited for now was there before");
    }
}
