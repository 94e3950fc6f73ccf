//! The end of a run: every operation started or due before it is served and counted once, even over a slow or hanging
//! server.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rumba_results::record::QueueKind;

use super::cells::Counts;
use super::choice::Driving;
use super::driver::{Running, Schedule};
use super::group::{ClientGroup, Waited};
use super::queue::{Queue, seed_of};
use super::testing::{Action, ScriptedClient, drivers, made_for, wait_for_end};

const CLIENTS: u32 = 3;
const RATE: f64 = 3_000.0;

/// Blocks operations while it is closed.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    is_closed: bool,
    /// The number of blocked threads.
    held: u32,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the gate, and waits until it blocks this many threads.
    fn close(&self, threads: u32) {
        self.lock().is_closed = true;
        let waited = self.0.1.wait_timeout_while(self.lock(), Duration::from_secs(20), |state| state.held < threads);
        assert!(!waited.unwrap_or_else(PoisonError::into_inner).1.timed_out(), "not all threads reached the gate");
    }

    fn open(&self) {
        self.lock().is_closed = false;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut state = self.lock();
        if state.is_closed {
            state.held += 1;
            self.0.1.notify_all();
            state = self.0.1.wait_while(state, |state| state.is_closed).unwrap_or_else(PoisonError::into_inner);
            state.held -= 1;
        }
    }
}

fn start(driving: Driving, schedule: Schedule, gate: &Gate) -> Running {
    let gate = gate.clone();
    let make = move |_| {
        let gate = gate.clone();
        Ok(ScriptedClient { log: Box::new(move || gate.pass()), ..ScriptedClient::new(&[Action::Request], u64::MAX) }
            .boxed())
    };
    made_for(driving, CLIENTS, schedule, make).unwrap().start()
}

/// The number of the schedule's arrivals before a time, over all its queues.
fn due_before(schedule: &Schedule, end_ns: u64) -> u64 {
    let queues = match schedule.queue {
        QueueKind::Shared => 1,
        QueueKind::Client => u64::from(CLIENTS),
    };
    let due = |queue: u64| {
        let arrivals = Queue::new(RATE / queues as f64, seed_of(schedule.seed, queue));
        arrivals.left_ns().take_while(|due| *due < end_ns).count() as u64
    };
    (0..queues).map(due).sum()
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

fn max_ms(counts: &Counts) -> f64 {
    counts.kinds[0].response.max_ns as f64 / 1e6
}

fn open_loops() -> impl Iterator<Item = (Driving, Schedule)> {
    let queues = [QueueKind::Shared, QueueKind::Client];
    queues.into_iter().flat_map(|queue| drivers(CLIENTS).map(|driving| (driving, Schedule::open(RATE, queue, 7))))
}

#[test]
fn open_loop_serves_all_arrivals_before_its_end_and_none_after() {
    for (driving, schedule) in open_loops() {
        let gate = Gate::default();
        let mut running = start(driving, schedule, &gate);
        pause(60);
        gate.close(driving.threads());
        pause(60);
        running.finish();
        let end_ns = running.end_ns().unwrap();
        let mut counts = running.collect();
        pause(60);
        gate.open();
        wait_for_end(&mut running);
        let (late, censored) = running.cut();
        assert!(censored.is_empty(), "{driving:?} {censored:?}");
        assert!(late.ops() >= 50, "{driving:?}: {} of about 180 had waited", late.ops());
        counts.merge(&late);
        assert_eq!(counts.ops(), due_before(&schedule, end_ns), "{driving:?} {:?}", schedule.queue);
        assert!(max_ms(&counts) >= 100.0, "{driving:?}: the first arrival waited for the whole stall");
        running.join();
    }
}

#[test]
fn operation_open_at_deadline_is_counted_once_with_its_wait() {
    for (driving, schedule) in open_loops() {
        let gate = Gate::default();
        let mut running = start(driving, schedule, &gate);
        pause(60);
        gate.close(driving.threads());
        pause(60);
        running.finish();
        let end_ns = running.end_ns().unwrap();
        pause(60);
        let (counts, censored) = running.cut();
        let in_flight = censored.open.len() as u64;
        // On a shared thread, some clients had started before another blocked the thread.
        let held_up = u64::from(driving.threads())..=u64::from(CLIENTS);
        assert!(held_up.contains(&in_flight), "{driving:?}: {in_flight} operations are open");
        let all = counts.ops() + in_flight + censored.not_begun;
        assert_eq!(all, due_before(&schedule, end_ns), "{driving:?} {:?}", schedule.queue);
        let (shortest_ns, longest_ns) = censored.not_begun_ns.unwrap();
        assert!(shortest_ns >= 50_000_000 && shortest_ns < longest_ns, "{shortest_ns} {longest_ns}");
        // On a busy host an operation may have started as late as the end, so it has waited at least since then.
        assert!(censored.open.iter().all(|open| open.service_ns >= 50_000_000 && open.response_ns >= open.service_ns));
        gate.open();
        wait_for_end(&mut running);
        assert_eq!(
            running.collect().ops(),
            in_flight,
            "after the deadline each ends what it had in flight, and no more"
        );
        running.join();
    }
}

#[test]
fn closed_loop_completes_operations_in_flight() {
    for driving in drivers(CLIENTS) {
        let gate = Gate::default();
        let mut running = start(driving, Schedule::closed(7), &gate);
        pause(30);
        gate.close(driving.threads());
        pause(60);
        running.finish();
        running.collect();
        pause(60);
        gate.open();
        wait_for_end(&mut running);
        let (late, censored) = running.cut();
        // On a shared thread, only the client that held the thread had begun.
        assert!((1..=u64::from(CLIENTS)).contains(&late.ops()) && censored.is_empty(), "{driving:?} {late:?}");
        assert!(max_ms(&late) >= 100.0);
        running.join();
    }
}

#[test]
fn stuck_client_holds_no_arrival_from_a_free_client() {
    // One client hangs from its first operation on; the two others serve the schedule.
    let gate = Gate::default();
    gate.close(0);
    let held = gate.clone();
    let make = move |client| {
        let gate = if client == 0 { held.clone() } else { Gate::default() };
        Ok(ScriptedClient { log: Box::new(move || gate.pass()), ..ScriptedClient::new(&[Action::Request], u64::MAX) }
            .boxed())
    };
    let schedule = Schedule::open(300.0, QueueKind::Shared, 7);
    let mut running = made_for(Driving::Threads { threads: CLIENTS }, CLIENTS, schedule, make).unwrap().start();
    pause(500);
    running.finish();
    let until = Instant::now() + Duration::from_secs(20);
    while running.active() > 1 {
        assert!(Instant::now() < until, "the free clients serve all that is due and end");
        assert_eq!(running.wait(Instant::now() + Duration::from_millis(20)), Waited::Until);
    }
    let (counts, censored) = running.cut();
    assert_eq!((censored.open.len(), censored.not_begun), (1, 0), "all but the one in flight was served by the others");
    assert!(counts.ops() > 50);
    gate.open();
    wait_for_end(&mut running);
    running.join();
}

#[test]
fn clients_of_a_closed_loop_start_spread_over_its_first_second() {
    let starts: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let log = starts.clone();
    let make = move |_| {
        let log = log.clone();
        Ok(ScriptedClient {
            log: Box::new(move || log.lock().unwrap().push(Instant::now())),
            ..ScriptedClient::new(&[Action::Request], 1)
        }
        .boxed())
    };
    let schedule = Schedule::closed(7).spread_over(0.4);
    assert_eq!((schedule.spread_s, Schedule::closed(7).spread_over(60.0).spread_s), (0.2, 1.0));
    let before = Instant::now();
    let mut running = made_for(Driving::Loops { threads: 1 }, 20, schedule, make).unwrap().start();
    wait_for_end(&mut running);
    let starts = starts.lock().unwrap();
    let early = |ms| starts.iter().filter(|start| **start < before + Duration::from_millis(ms)).count();
    assert_eq!(starts.len(), 20);
    assert!(early(50) < 15 && early(100) < 20, "they do not start together");
    running.join();
}
