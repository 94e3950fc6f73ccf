//! The driver `threads`: a thread per client.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use rumba_core::engine::EngineError;
use rumba_core::worker::{Client, block_on};

use super::cells::{Cells, Collector, Counts};
use super::pace::ThreadPace;
use crate::meter::{CpuRoll, Role};

/// How clients are started.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Operations per second over all clients; closed loop if absent.
    pub rate: Option<f64>,
    /// The seed of the arrivals.
    pub seed: u64,
}

/// Clients that are running.
pub struct Running {
    stop: Arc<AtomicBool>,
    ends: Receiver<Result<(), EngineError>>,
    threads: Vec<JoinHandle<()>>,
    active: usize,
    failure: Option<EngineError>,
    collector: Collector,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The time came.
    Until,
    /// Every client has ended.
    AllEnded,
}

impl Running {
    /// Starts the clients, each on a thread of its own.
    ///
    /// # Errors
    /// When the host does not give as many threads.
    pub fn start(
        clients: Vec<Box<dyn Client>>,
        kinds: usize,
        schedule: Schedule,
        roll: &Arc<CpuRoll>,
    ) -> Result<Self, EngineError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, ends) = channel();
        let share = schedule.rate.map(|rate| rate / clients.len() as f64);
        let all_cells: Vec<_> = clients.iter().map(|_| Arc::new(Cells::new(kinds))).collect();
        let active = clients.len();
        let threads: std::io::Result<Vec<_>> = clients
            .into_iter()
            .zip(&all_cells)
            .enumerate()
            .map(|(number, (client, cells))| {
                let (cells, stop, sender) = (cells.clone(), stop.clone(), sender.clone());
                let (roll, seed) = (roll.clone(), schedule.seed.wrapping_add(number as u64));
                let body = move || {
                    let _present = roll.enter(Role::Client);
                    if share.is_some() {
                        wake_on_time();
                    }
                    let pace = ThreadPace::new(cells, stop, share, seed);
                    run_client(client, pace, &sender);
                };
                std::thread::Builder::new().name(format!("client-{number}")).spawn(body)
            })
            .collect();
        let threads = threads.map_err(|error| {
            // Those that did start end after their operation.
            stop.store(true, Relaxed);
            EngineError::failed("clients", format!("the host gives no {active} threads ({error}); lower clients"))
        })?;
        let collector = Collector::new(all_cells, kinds);
        Ok(Self { stop, ends, threads, active, failure: None, collector })
    }

    /// Waits until a time, or until every client has ended. A client that fails stops the others.
    pub fn wait(&mut self, until: Instant) -> Waited {
        while self.active > 0 {
            let timeout = until.saturating_duration_since(Instant::now());
            match self.ends.recv_timeout(timeout) {
                Ok(end) => {
                    self.active -= 1;
                    if let Err(error) = end {
                        self.stop();
                        self.failure.get_or_insert(error);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Waited::Until,
                Err(RecvTimeoutError::Disconnected) => self.active = 0,
            }
        }
        Waited::AllEnded
    }

    /// What was counted since the last call.
    pub fn collect(&mut self) -> Counts {
        self.collector.collect()
    }

    /// Asks the clients to end after the operation at hand.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// How many clients have not ended.
    pub fn active(&self) -> usize {
        self.active
    }

    /// The first failure, if a client has failed.
    pub fn failure(&self) -> Option<&EngineError> {
        self.failure.as_ref()
    }

    /// Waits for the threads of clients that have all ended.
    pub fn join(self) {
        for thread in self.threads {
            // A panic was caught inside and reported as that client's failure.
            let _ = thread.join();
        }
    }
}

/// Has the kernel wake this thread when its sleep is over and not up to 50 µs
/// later, its default, which would count as response time.
fn wake_on_time() {
    // SAFETY: it sets a number of the calling thread. If it is refused, wake-ups are later, and the lateness shows it.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}

fn run_client(mut client: Box<dyn Client>, mut pace: ThreadPace, ends: &Sender<Result<(), EngineError>>) {
    let run = AssertUnwindSafe(|| block_on(client.run(&mut pace)));
    let end = catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(EngineError::failed("client", format!("panicked: {}", text.unwrap_or("without a message"))))
    });
    drop(client);
    // The receiver outlives every client unless the trial is being torn down.
    let _ = ends.send(end);
}
