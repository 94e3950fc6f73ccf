//! Whose CPU time it was: rumba's threads enter a roll with their role, and
//! what the process used beyond theirs is the engine's background threads'.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Known;
use super::clock::{self, ThreadClock};

/// What a thread of rumba's works at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It runs clients, and embedded engines in their calls.
    Client,
    /// It measures, prints, waits: work that would not be there without rumba.
    Harness,
}

/// The roll of the process's threads. It is locked when a thread enters or
/// leaves and when it is read, never on the load path.
#[derive(Debug, Default)]
pub struct CpuRoll {
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    live: Vec<Row>,
    gone: RoleTimes,
    /// What clients that have left waited for a CPU.
    gone_delay_ns: u64,
    next_id: u64,
}

#[derive(Debug)]
struct Row {
    id: u64,
    role: Role,
    /// Its clock, and what the clock showed when the thread entered.
    clock: Option<ThreadClock>,
    entered_ns: u64,
    /// What the clock showed at the last reading.
    seen_ns: u64,
    thread: rustix::thread::Pid,
    /// What a client had waited for a CPU when it entered, and at the last reading.
    entered_delay_ns: u64,
    seen_delay_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct RoleTimes {
    client_ns: u64,
    harness_ns: u64,
}

impl RoleTimes {
    fn add(&mut self, role: Role, ns: u64) {
        match role {
            Role::Client => self.client_ns += ns,
            Role::Harness => self.harness_ns += ns,
        }
    }
}

/// Cumulative CPU time of the process, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    /// Threads while they were in the roll as clients.
    pub client_ns: u64,
    /// Threads while they were in the roll as harness.
    pub harness_ns: u64,
    /// Everything else: the engine's own threads, and threads before they entered.
    pub background_ns: u64,
}

impl CpuRoll {
    /// An empty roll.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Enters the calling thread; it leaves when the guard is dropped. Its CPU
    /// time in between is its role's. A thread is in the roll once at a time.
    #[must_use = "the thread leaves the roll when this is dropped"]
    pub fn enter(self: &Arc<Self>, role: Role) -> Entered {
        let entered_ns = clock::this_thread_ns();
        let mut rows = self.rows();
        let id = rows.next_id;
        rows.next_id += 1;
        let clock = ThreadClock::of_this_thread().ok();
        let thread = rustix::thread::gettid();
        let entered_delay_ns = clock::run_delay_ns(thread).unwrap_or_default();
        let seen_delay_ns = entered_delay_ns;
        rows.live.push(Row {
            id,
            role,
            clock,
            entered_ns,
            seen_ns: entered_ns,
            thread,
            entered_delay_ns,
            seen_delay_ns,
        });
        drop(rows);
        Entered { roll: Arc::clone(self), id, not_send: PhantomData }
    }

    /// CPU time so far, by role.
    pub fn read(&self) -> CpuTimes {
        let mut rows = self.rows();
        let mut times = rows.gone;
        for row in &mut rows.live {
            if let Some(ns) = row.clock.and_then(ThreadClock::read_ns) {
                row.seen_ns = ns;
            }
            times.add(row.role, row.seen_ns - row.entered_ns);
        }
        // Last, because reading a running thread's clock brings the kernel's
        // sum for the process up to date as well; in the other order the
        // process would lag by up to a scheduler tick per running client, and
        // background threads would seem to have worked less than nothing.
        let process_ns = clock::process_ns();
        drop(rows);
        let background_ns = process_ns.saturating_sub(times.client_ns + times.harness_ns);
        CpuTimes { client_ns: times.client_ns, harness_ns: times.harness_ns, background_ns }
    }

    /// Nanoseconds that client threads were ready to run and waited for a CPU, so far. It opens a file for each of them, so
    /// it is read where clients wait for servers alone.
    ///
    /// # Errors
    /// Why the kernel does not say it.
    pub fn client_run_delay_ns(&self) -> Known<u64> {
        // Whether there is such a file at all: that of a client which has just ended is missing, too.
        clock::run_delay_ns(rustix::thread::gettid())
            .map_err(|error| format!("{error}: the kernel does not count how long threads wait for a CPU"))?;
        let mut rows = self.rows();
        let mut sum_ns = rows.gone_delay_ns;
        for row in rows.live.iter_mut().filter(|row| row.role == Role::Client) {
            if let Ok(ns) = clock::run_delay_ns(row.thread) {
                row.seen_delay_ns = ns;
            }
            sum_ns += row.seen_delay_ns.saturating_sub(row.entered_delay_ns);
        }
        Ok(sum_ns)
    }

    fn leave(&self, id: u64) {
        let mut rows = self.rows();
        if let Some(at) = rows.live.iter().position(|row| row.id == id) {
            let row = rows.live.swap_remove(at);
            rows.gone.add(row.role, clock::this_thread_ns() - row.entered_ns);
            if row.role == Role::Client {
                let delay_ns = clock::run_delay_ns(row.thread).unwrap_or(row.seen_delay_ns);
                rows.gone_delay_ns += delay_ns.saturating_sub(row.entered_delay_ns);
            }
        }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        // The rows are whole between any two statements above, so a panic
        // elsewhere in a thread that held the lock does not spoil them.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread's entry in the roll. It cannot be sent: leaving reads the clock of
/// the thread that entered.
#[derive(Debug)]
pub struct Entered {
    roll: Arc<CpuRoll>,
    id: u64,
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.roll.leave(self.id);
    }
}
