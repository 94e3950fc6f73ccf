//! Divides the process's CPU time: rumba's threads register with their role, and the rest belongs to the engine's
//! background threads.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Known;
use super::clock::{self, CpuClock};

/// The role of a rumba thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It runs clients, and embedded engines in their calls.
    Client,
    /// It measures, prints or waits: work that exists only because of rumba.
    Harness,
}

/// The registry of the process's threads. It is locked when a thread enters or leaves and when it is read, never on the
/// hot path.
#[derive(Debug, Default)]
pub struct ThreadCpuRegistry {
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    live: Vec<Row>,
    gone: RoleTimes,
    /// CPU wait of clients that have left.
    gone_delay_ns: u64,
    next_id: u64,
}

#[derive(Debug)]
struct Row {
    id: u64,
    role: Role,
    /// Its clock, and the clock's value when the thread entered.
    clock: Option<CpuClock>,
    entered_ns: u64,
    /// The clock's value at the last reading.
    seen_ns: u64,
    thread: rustix::thread::Pid,
    /// CPU wait of a client when it entered, and at the last reading.
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
    /// CPU time of threads while they were registered as clients.
    pub client_ns: u64,
    /// CPU time of threads while they were registered as harness.
    pub harness_ns: u64,
    /// Everything else: the engine's own threads, and threads before they entered.
    pub background_ns: u64,
}

impl ThreadCpuRegistry {
    /// An empty registry.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Registers the calling thread; it leaves when the guard is dropped. Its CPU time in between counts for its role.
    /// A thread can be registered only once at a time.
    #[must_use = "the thread leaves the roll when this is dropped"]
    pub fn enter(self: &Arc<Self>, role: Role) -> Entered {
        let entered_ns = clock::this_thread_ns();
        let mut rows = self.rows();
        let id = rows.next_id;
        rows.next_id += 1;
        let clock = CpuClock::of_this_thread();
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
            if let Some(ns) = row.clock.and_then(CpuClock::read_ns) {
                row.seen_ns = ns;
            }
            times.add(row.role, row.seen_ns - row.entered_ns);
        }
        // Read the process last. Reading a running thread's clock also updates the kernel's sum for the process. In the
        // other order the process would lag by up to a scheduler tick per running client. The background threads' time
        // would then seem negative.
        let process_ns = clock::process_ns();
        drop(rows);
        let background_ns = process_ns.saturating_sub(times.client_ns + times.harness_ns);
        CpuTimes { client_ns: times.client_ns, harness_ns: times.harness_ns, background_ns }
    }

    /// Nanoseconds that client threads were ready to run and waited for a CPU, so far. It opens a file for each thread,
    /// so it is read only if clients do nothing but wait for servers.
    ///
    /// # Errors
    /// Why the kernel does not report it.
    pub fn client_run_delay_ns(&self) -> Known<u64> {
        // Check that the kernel has such a file at all, because the file of a client that has just ended is missing
        // too.
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

    /// The ids of the threads that are registered with this role.
    pub fn threads(&self, role: Role) -> Vec<u32> {
        let rows = self.rows();
        let of_role = rows.live.iter().filter(|row| row.role == role);
        of_role.map(|row| row.thread.as_raw_pid() as u32).collect()
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
        // The rows are complete between any two statements above. A panic in a thread that held the lock therefore does
        // not damage them.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread's entry in the registry. It is not `Send`, because leaving reads the clock of the thread that entered.
#[derive(Debug)]
pub struct Entered {
    roll: Arc<ThreadCpuRegistry>,
    id: u64,
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.roll.leave(self.id);
    }
}
