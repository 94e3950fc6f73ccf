//! A worker: one client's stream of operations, and the loop that runs it.
//!
//! A worker draws an operation (chooses ids, generates payloads; no I/O), then performs it. The loop around it belongs
//! to core, so that every workload is timed in the same way. [`Pace`] decides when the next operation is due and
//! records the times.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use crate::error::Result;
use crate::wait::without_driver;

/// The index of an operation's type in [`crate::workload::Bound::ops`] or
/// [`crate::workload::LoadStage::ops`].
pub type OpKind = usize;

/// The result of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Op {
    /// Rows read, or rows written by a load.
    pub rows: u64,
    /// Times it was rolled back and tried again.
    pub retries: u32,
    /// Whether it was given up: after its retries, without any effect; or because its connection was lost, and then its
    /// effect is unknown.
    pub failed: bool,
}

/// Statements by kind. For keys and values, each call of a session counts as one, and each entry of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementCounts {
    /// Those that read: they ask for rows.
    pub reads: u32,
    /// Those that write: they insert, change, delete or load rows.
    pub writes: u32,
    /// All others: they begin and end transactions.
    pub others: u32,
}

impl StatementCounts {
    /// No statements, for an operation that was given up before its first one.
    pub const NONE: Self = Self { reads: 0, writes: 0, others: 0 };
}

/// Schedules operations and records their times. The lab implements it.
pub trait Pace: Send {
    /// Waits for the intended start of the next operation; false when there are no more.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<bool>;

    /// Sets the time after which the next operation of a closed loop is due, counted from when the client is free.
    /// Called before the client waits for its turn. Open-loop arrivals do not depend on it.
    fn pause(&mut self, _pause: Duration) {}

    /// The operation of this type has been drawn and is about to be performed.
    fn start(&mut self, kind: OpKind);

    /// The operation in progress turns out to be of this type. Its end has to name the same one.
    fn set_kind(&mut self, _kind: OpKind) {}

    /// The statements of the operation that is about to end, including those of its retries.
    fn statements(&mut self, _kind: OpKind, _statements: StatementCounts) {}

    /// Ends the operation and returns its response time in nanoseconds, counted from when it was due.
    fn done(&mut self, kind: OpKind, op: Op) -> u64;

    /// Discards the current operation; it does not count.
    fn given_up(&mut self) {}
}

/// One client's stream of operations. It lives on the thread that made it, and need not be `Send`.
pub trait Worker {
    /// Draws the next operation and keeps it; `None` when the stream has ended.
    /// No I/O, no allocation: it is outside the service time but on the load path.
    fn draw(&mut self) -> Option<OpKind>;

    /// The simulated user's think time and keying time before the drawn operation.
    fn pause(&self) -> Duration {
        Duration::ZERO
    }

    /// Performs the drawn operation. Conflicts are retried here and counted.
    ///
    /// Errors are those that end the trial.
    fn perform(&mut self) -> impl Future<Output = Result<Op>>;

    /// The statements since the last call, which follows each operation; none if the worker does not count them.
    fn statements(&mut self) -> StatementCounts {
        StatementCounts::NONE
    }
}

/// A worker behind a pointer. Its whole run is one future, so that no operation allocates.
pub trait Client {
    /// Runs operations until the pace or the worker has no more.
    fn run<'a>(&'a mut self, pace: &'a mut dyn Pace) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>>;
}

impl<W: Worker> Client for W {
    fn run<'a>(&'a mut self, pace: &'a mut dyn Pace) -> Pin<Box<dyn Future<Output = Result<()>> + 'a>> {
        Box::pin(async move {
            while let Some(kind) = self.draw() {
                let pause = self.pause();
                if !pause.is_zero() {
                    pace.pause(pause);
                }
                if !poll_fn(|context| pace.poll_turn(context)).await {
                    break;
                }
                pace.start(kind);
                let op = self.perform().await?;
                let statements = self.statements();
                if statements != StatementCounts::NONE {
                    pace.statements(kind, statements);
                }
                pace.done(kind, op);
            }
            Ok(())
        })
    }
}

/// The address of a client. Every measurement carries it and can be merged, so that clients can be spread over threads
/// and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress {
    /// Its host, from 0; clients of several hosts have different seeds and ids.
    pub host: u32,
    /// The driver thread of that host.
    pub driver: u32,
    /// The client among all clients of the phase, from 0.
    pub client: u32,
    /// The phase's number of clients.
    pub clients: u32,
}

/// One host's share of numbered things, such as clients or chunks of a load: every `hosts`-th, from number `host` on.
/// The first ones are therefore spread evenly over the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostShare {
    /// The host, from 0.
    pub host: u32,
    /// The number of hosts.
    pub hosts: u32,
}

impl HostShare {
    /// The share of a single host, which has everything.
    pub const ALL: Self = Self { host: 0, hosts: 1 };

    /// How many of these clients the host has.
    pub fn count(self, clients: u32) -> u32 {
        clients.saturating_sub(self.host).div_ceil(self.hosts)
    }

    /// The number among all clients of the host's client with this number.
    pub fn client(self, own: u32) -> u32 {
        self.host + self.hosts * own
    }

    /// The number on the host of one of its clients.
    pub fn own(self, client: u32) -> u32 {
        client / self.hosts
    }

    /// The number among all things of the host's thing with this number.
    pub fn nth(self, own: u64) -> u64 {
        u64::from(self.host) + u64::from(self.hosts) * own
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A waker that ends [`std::thread::park`] of the current thread.
pub fn unparker() -> Waker {
    Waker::from(Arc::new(Unpark(std::thread::current())))
}

/// Runs a future to its end on this thread. With an embedded engine it never waits; over a wire its sessions block,
/// even on a driver's thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let _alone = without_driver();
    let waker = unparker();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
