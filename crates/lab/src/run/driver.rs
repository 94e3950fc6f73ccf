//! Running clients: made on the threads that will run them, started together, counted, stopped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use rumba_engine_api::conflict::count_with;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::{Client, ClientAddress, HostShare, unparker};
use rumba_engine_api::workload::OpInfo;
use rumba_results::arrivals::Arrivals;
use rumba_results::client_steps::ClientSteps;
use rumba_results::record::QueueKind;
use serde::{Deserialize, Serialize};

use super::active::ActivePeriods;
use super::cells::{Cells, Collector, Counts};
use super::choice::Driving;
use super::cut::{Censored, cut};
use super::group::{ClientGroup, Waited};
use super::in_flight::{InFlight, Stage};
use super::lateness::Lateness;
use super::loops::{Loop, panicked};
use super::pace::{ClientPace, Due, Turns, wake_on_time};
use super::queue::{Queue, seed_of, share_of};
use super::stop::{RunClock, Stop};
use super::threads;
use crate::meter::{Role, ThreadCpuRegistry};

/// The times at which clients' operations are due.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Schedule {
    /// Operations per second over all clients; closed loop if absent.
    pub rate: Option<f64>,
    /// How the arrivals of an open loop are distributed to clients.
    pub queue: QueueKind,
    /// How many clients work, if not all; the others are connected and idle.
    pub active: Option<u32>,
    /// For a closed loop in which the number of active clients changes: the number until the loops begin.
    pub first_step: Option<u32>,
    /// Seconds over which the first operations of a closed loop are spread.
    pub spread_s: f64,
    /// The base of each client's own seed.
    pub seed: u64,
}

/// The longest time over which clients start, seconds.
const SPREAD_S: f64 = 1.0;
/// The same for clients that a step adds: short, so that the step is sharp in the figures of its second.
const STEP_SPREAD_S: f64 = 0.1;

impl Schedule {
    /// A closed loop, all clients at once.
    pub const fn closed(seed: u64) -> Self {
        Self { rate: None, queue: QueueKind::Client, active: None, first_step: None, spread_s: 0.0, seed }
    }

    /// An open loop at this rate per second.
    pub const fn open(rate: f64, queue: QueueKind, seed: u64) -> Self {
        Self { rate: Some(rate), queue, active: None, first_step: None, spread_s: 0.0, seed }
    }

    /// The same with only `active` working clients.
    #[must_use]
    pub const fn with_active(self, active: u32) -> Self {
        Self { active: Some(active), ..self }
    }

    /// The same closed loop with a changing number of active clients, of which this is the first.
    /// [`ClientGroup::begin_steps`] gives the others.
    #[must_use]
    pub const fn in_steps(self, first: u32) -> Self {
        Self { first_step: Some(first), spread_s: self.spread_s.min(STEP_SPREAD_S), ..self }
    }

    /// The same with clients that start at random times in the first half of the warmup, within at most a second.
    ///
    /// If all answers take the same time, clients that start together stay together: they send in bursts and wait for
    /// each other's answers. The method needs no knowledge of the server. Times that are uniform over a span much
    /// longer than an answer are uniform over the time of one answer.
    #[must_use]
    pub const fn spread_over(self, warmup_s: f64) -> Self {
        Self { spread_s: (warmup_s / 2.0).min(SPREAD_S), ..self }
    }

    /// The queues of a host's clients: one for each client, or one for all. A closed loop has no queue.
    pub(crate) fn queues(&self, clients: u32, share: HostShare) -> Vec<Arc<Queue>> {
        let Some(rate) = self.rate else { return Vec::new() };
        let clients = self.active.map_or(clients, |active| active.min(clients));
        let queue = |rate: f64, number: u32| Arc::new(Queue::new(rate, seed_of(self.seed, u64::from(number))));
        let own = share.count(clients);
        match self.queue {
            QueueKind::Shared if own == 0 => Vec::new(),
            QueueKind::Shared => vec![queue(rate * (f64::from(own) / f64::from(clients)), share.host)],
            QueueKind::Client => (0..own).map(|own| queue(rate / f64::from(clients), share.client(own))).collect(),
        }
    }

    /// The part of all arrivals that each of a host's queues has.
    fn queue_share(&self, clients: u32, share: HostShare) -> f64 {
        let clients = self.active.map_or(clients, |active| active.min(clients)).max(1);
        match self.queue {
            QueueKind::Shared => f64::from(share.count(clients)) / f64::from(clients),
            QueueKind::Client => 1.0 / f64::from(clients),
        }
    }

    /// The rule for when a client's operations are due.
    pub(crate) fn due(&self, queues: &[Arc<Queue>], client: u32, share: HostShare) -> Due {
        // The first clients are spread evenly over the driver's threads, each of which has every n-th client.
        if self.active.is_some_and(|active| client >= active) {
            return Due::Never;
        }
        let own = || queues.get(share.own(client) as usize).or(queues.first());
        let offset_ns = || (share_of(self.seed, u64::from(client)) * self.spread_s * 1e9) as u64;
        match (own(), self.first_step) {
            (Some(queue), _) => Due::AtArrival { queue: queue.clone(), taken: None },
            (None, Some(first)) => Due::InSteps(Box::new(ActivePeriods::new(client, first, offset_ns()))),
            (None, None) if self.spread_s > 0.0 => Due::FirstAt(offset_ns()),
            (None, None) => Due::WhenFree,
        }
    }
}

/// The clients of a phase.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of clients on all hosts.
    pub clients: u32,
    /// This host's share of them.
    pub share: HostShare,
    /// The number of operation types.
    pub kinds: usize,
    /// The schedule of their operations.
    pub schedule: Schedule,
    /// The driver that runs them.
    pub driving: Driving,
}

/// Makes a client on the thread that will run it, so that its memory is separate from the memory of other threads.
pub type Make = Arc<dyn Fn(ClientAddress) -> Result<Box<dyn Client>, EngineError> + Send + Sync>;

pub struct Running {
    stop: Arc<Stop>,
    ends: Receiver<(Instant, Result<(), EngineError>)>,
    threads: Vec<JoinHandle<()>>,
    active: usize,
    failure: Option<EngineError>,
    collector: Collector,
    clock: RunClock,
    in_flight: Vec<Arc<InFlight>>,
    queues: Vec<Arc<Queue>>,
    /// The part of all arrivals that each queue has.
    queue_share: f64,
    /// The end of the schedule, by the clients' clock.
    end_ns: Option<u64>,
    /// The last end of a client until now.
    last_end: Option<Instant>,
}

/// Clients that are made and wait for their start. Dropping it ends them without a start.
pub struct Made {
    running: Running,
    starts: Vec<Sender<RunClock>>,
}

impl Made {
    /// Makes the clients of a plan. All are made before any starts.
    ///
    /// # Errors
    /// When a client cannot be made, or the host provides too few threads: no client then runs.
    pub fn new(plan: &Plan, make: &Make, roll: &Arc<ThreadCpuRegistry>) -> Result<Self, EngineError> {
        if let Driving::Threads { threads } = plan.driving {
            threads::allow(threads, plan.kinds)?;
        }
        let stop = Arc::<Stop>::default();
        let (report_made, made) = channel();
        let (report_end, ends) = channel();
        let count = plan.driving.threads();
        let cells: Vec<_> = (0..count).map(|_| Arc::new(Cells::new(plan.kinds))).collect();
        let own = plan.share.count(plan.clients);
        let in_flight: Vec<_> = (0..own).map(|_| Arc::<InFlight>::default()).collect();
        let queues = plan.schedule.queues(plan.clients, plan.share);
        let (mut threads, mut starts) = (Vec::new(), Vec::new());
        let mut failure = None;
        for (number, cells) in (0..count).zip(&cells) {
            let (start, started) = channel();
            let thread = Thread {
                number,
                plan: *plan,
                cells: cells.clone(),
                in_flight: in_flight.clone(),
                queues: queues.clone(),
                stop: stop.clone(),
                report_made: report_made.clone(),
                started,
                report_end: report_end.clone(),
            };
            let (make, roll) = (make.clone(), roll.clone());
            let body = move || {
                let _present = roll.enter(Role::Client);
                thread.run(make);
            };
            match std::thread::Builder::new().name(format!("clients-{number}")).spawn(body) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let words = format!("the host gives no {count} threads ({error}); lower clients");
                    stop.set();
                    failure = Some(EngineError::failed("clients", words));
                    break;
                }
            }
            starts.push(start);
        }
        drop((report_made, report_end));
        for end in made {
            // The other threads stop after the client that they are making.
            end.unwrap_or_else(|error| {
                stop.set();
                failure.get_or_insert(error);
            });
        }
        let collector = Collector::new(cells, plan.kinds);
        let (active, clock) = (own as usize, RunClock::start());
        let running = Running {
            stop,
            ends,
            threads,
            active,
            failure: None,
            collector,
            clock,
            in_flight,
            queues,
            queue_share: plan.schedule.queue_share(plan.clients, plan.share),
            end_ns: None,
            last_end: None,
        };
        match failure {
            None => Ok(Self { running, starts }),
            Some(error) => {
                Self { running, starts }.abandon();
                Err(error)
            }
        }
    }

    /// Sets the limits of these types of operations.
    #[must_use]
    pub fn held_to(self, ops: &[OpInfo]) -> Self {
        self.running.collector.hold_to(ops);
        self
    }

    /// Drops the clients on their threads, and waits for that.
    pub fn abandon(self) {
        drop(self.starts);
        self.running.join();
    }

    /// Starts all clients.
    pub fn start(mut self) -> Running {
        self.running.clock = RunClock::start();
        for start in self.starts {
            // A missing thread is detected while waiting for its clients' ends.
            let _ = start.send(self.running.clock.clone());
        }
        self.running
    }
}

impl Running {
    /// Ends a warmup: skips arrivals that have not started, and counts the response of operations in flight from now.
    /// The warmup's backlog would otherwise add to later response times.
    pub fn forget_waiting(&mut self) {
        let now_ns = self.clock.now_ns();
        self.stop.count_from(now_ns);
        self.queues.iter().for_each(|queue| queue.skip_to_ns(now_ns));
    }

    /// Stops the clients of a closed loop from starting operations after this time, without a further call.
    pub fn end_by(&self, at: Instant) {
        let left_ns = at.saturating_duration_since(Instant::now()).as_nanos() as u64;
        self.stop.set_at(self.clock.now_ns().saturating_add(left_ns));
    }

    /// When the last client ended, once all have.
    pub fn ended_at(&self) -> Option<Instant> {
        self.last_end.filter(|_| self.active == 0)
    }

    /// The time of the call of [`ClientGroup::finish`], by the clients' clock.
    pub fn end_ns(&self) -> Option<u64> {
        self.end_ns
    }

    /// The number of arrivals of an open loop that are due and not started, counted up to `most` for each queue.
    pub fn waiting(&self, most: usize) -> u64 {
        let now_ns = self.clock.now_ns();
        let left =
            |queue: &Arc<Queue>| queue.left_ns().take(most).take_while(|due_ns| *due_ns <= now_ns).count() as u64;
        let is_late = |client: &Stage| matches!(client, Stage::Arrival { intended_ns } if *intended_ns <= now_ns);
        let taken = self.in_flight.iter().map(|client| client.now()).filter(is_late).count() as u64;
        self.queues.iter().map(left).sum::<u64>() + taken
    }

    /// The number of clients inside an operation.
    pub fn inside(&self) -> usize {
        self.in_flight.iter().filter(|client| matches!(client.now(), Stage::Operation { .. })).count()
    }

    /// Waits for the threads of clients that have all ended.
    pub fn join(self) {
        for thread in self.threads {
            // A panic was caught in the thread and reported as that client's failure.
            let _ = thread.join();
        }
    }
}

impl ClientGroup for Running {
    fn wait(&mut self, until: Instant) -> Waited {
        while self.active > 0 {
            let timeout = until.saturating_duration_since(Instant::now());
            match self.ends.recv_timeout(timeout) {
                Ok((at, end)) => {
                    self.active -= 1;
                    self.last_end = self.last_end.max(Some(at));
                    if let Err(error) = end {
                        self.stop();
                        self.failure.get_or_insert(error);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Waited::Until,
                Err(RecvTimeoutError::Disconnected) => {
                    let words = format!("{} clients ended without a word", self.active);
                    self.failure.get_or_insert_with(|| EngineError::failed("clients", words));
                    self.active = 0;
                }
            }
        }
        Waited::AllEnded
    }

    fn collect(&mut self) -> Counts {
        self.collector.collect()
    }

    fn failure(&self) -> Option<&EngineError> {
        self.failure.as_ref()
    }

    fn finish(&mut self) {
        let end_ns = self.clock.now_ns();
        self.stop.set_at(end_ns);
        self.end_ns.get_or_insert(end_ns);
    }

    fn stop(&mut self) {
        self.stop.set();
    }

    fn cut(&mut self) -> (Counts, Censored) {
        self.stop();
        let end_ns = self.end_ns.unwrap_or_else(|| self.clock.now_ns());
        cut(&mut self.collector, &self.in_flight, &self.queues, end_ns, || self.clock.now_ns())
    }

    fn shape(&mut self, arrivals: &Arc<Arrivals>, from: Instant) {
        let from_ns = self.clock.now_ns().saturating_sub(from.elapsed().as_nanos() as u64);
        self.queues.iter().for_each(|queue| queue.shape(arrivals.clone(), from_ns, self.queue_share));
        self.stop.reschedule();
    }

    fn begin_steps(&mut self, steps: &ClientSteps, from: Instant) {
        let from_ns = self.clock.now_ns().saturating_sub(from.elapsed().as_nanos() as u64);
        self.stop.begin_steps(steps.clone(), from_ns);
    }

    fn active(&self) -> usize {
        self.active
    }

    fn join(self: Box<Self>) {
        Self::join(*self);
    }
}

/// One thread of a driver, with its share of the clients.
struct Thread {
    number: u32,
    plan: Plan,
    cells: Arc<Cells>,
    in_flight: Vec<Arc<InFlight>>,
    queues: Vec<Arc<Queue>>,
    stop: Arc<Stop>,
    report_made: Sender<Result<(), EngineError>>,
    started: Receiver<RunClock>,
    report_end: Sender<(Instant, Result<(), EngineError>)>,
}

impl Thread {
    fn run(self, make: Make) {
        let turns = Arc::<Turns>::default();
        let ready = catch_unwind(AssertUnwindSafe(|| self.prepare(&make, &turns)))
            .unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        // Drop it before the ends are reported, because the receiver may then close the instance.
        drop(make);
        let (waits, clients) = match ready {
            Ok(ready) => ready,
            Err(error) => return notify(&self.report_made, Err(error)),
        };
        let Thread { plan, cells, in_flight, queues, stop, report_made, started, report_end, .. } = self;
        cells.touch();
        let _counting = count_with(cells.conflicts.clone());
        notify(&report_made, Ok(()));
        drop(report_made);
        let Ok(clock) = started.recv() else {
            return; // Another client could not be made.
        };
        if plan.schedule.rate.is_some() {
            wake_on_time();
        }
        let paced = clients.into_iter().map(|(ClientAddress { client: number, .. }, client)| {
            let in_flight = in_flight[plan.share.own(number) as usize].clone();
            let due = plan.schedule.due(&queues, number, plan.share);
            (client, ClientPace::new(clock.clone(), cells.clone(), stop.clone(), in_flight, due))
        });
        match waits {
            Some(waits) => {
                let clients = paced.map(|(client, pace)| (client, pace.sharing(turns.clone()))).collect();
                let lateness = Lateness::new(cells.clone(), clock.clone());
                waits.run(clients, lateness, |end| notify(&report_end, (Instant::now(), end)));
            }
            None => {
                stop.wakes(unparker());
                paced.for_each(|(client, pace)| {
                    let end = run_alone(client, pace);
                    notify(&report_end, (Instant::now(), end));
                });
            }
        }
    }

    /// The clients of this thread, and the loop that runs them if they share the thread.
    fn prepare(&self, make: &Make, turns: &Arc<Turns>) -> Result<(Option<Loop>, Clients), EngineError> {
        let Plan { clients, share, driving, .. } = self.plan;
        let event_loop = match driving {
            Driving::Threads { .. } => None,
            Driving::Loops { .. } => Some(
                Loop::new(self.stop.clone(), turns.clone())
                    .map_err(|error| EngineError::failed("epoll_create", error.to_string()))?,
            ),
        };
        let mut mine = Vec::new();
        for own in (self.number..share.count(clients)).step_by(driving.threads() as usize) {
            if self.stop.is_set() {
                return Err(EngineError::failed("clients", "another client could not be made"));
            }
            let address = ClientAddress { host: share.host, driver: self.number, client: share.client(own), clients };
            mine.push((address, make(address)?));
        }
        Ok((event_loop, mine))
    }
}

/// Clients with their addresses.
type Clients = Vec<(ClientAddress, Box<dyn Client>)>;

fn notify<T>(whom: &Sender<T>, what: T) {
    // The receiver outlives every client unless the trial is being torn down.
    let _ = whom.send(what);
}

/// Runs the only client of a thread to its end, and drops it.
fn run_alone(mut client: Box<dyn Client>, pace: ClientPace) -> Result<(), EngineError> {
    let run = AssertUnwindSafe(move || {
        let end = threads::run(client.as_mut(), pace);
        drop(client);
        end
    });
    catch_unwind(run).unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}
