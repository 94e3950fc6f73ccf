//! Runs on a clock that the test sets: every time in them is known to the nanosecond, without waiting.
//!
//! The clients' paces, queues and counts are the real ones. The bounds of phases and intervals, the cut at the end and
//! the statistics are real too. One queue of timers replaces threads, epoll and `Running`. There are no meters, and the
//! events of `Trial` are not covered.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::os::fd::RawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use quanta::{Clock, Mock};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::wait::{Driver, Wait, drive_with, wait_for};
use rumba_engine_api::worker::{Client, HostShare, Op, OpKind, Worker};
use rumba_engine_api::workload::OpInfo;
use rumba_results::arrivals::{Arrivals, RateShape};
use rumba_results::client_steps::ClientSteps;
use rumba_results::metric::Metric;
use rumba_results::record::{OpStats, PhaseKind, QueueKind, RunPlan};
use rumba_results::search::{Found, Percentile, Probe, Purpose, Search};

use rumba_results::samples;
use rumba_statistics::Next;
use rumba_testkit::queueing::highest_rate;

use super::phases::{of_probe, spans};
use super::span::interval_end;
use crate::run::cells::{Cells, Collector, Counts};
use crate::run::cut::cut;
use crate::run::driver::Schedule;
use crate::run::in_flight::InFlight;
use crate::run::pace::ClientPace;
use crate::run::queue::Queue;
use crate::run::stats::op_stats;
use crate::run::stop::{RunClock, Stop};
use crate::run::tail::Tail;
use crate::run::timers::Timers;

const OPS: &[OpInfo] = &[OpInfo::new("get")];
const MS: u64 = 1_000_000;
/// The service time of a get.
const SERVICE_NS: u64 = MS;
/// A get that does not return during the test.
const STUCK_NS: u64 = 3_600_000 * MS;
/// The wait for open operations at the end.
const BACKLOG: Duration = Duration::from_millis(200);

/// A key-value engine on the test's clock: every get takes the same time, except one.
struct MockEngine {
    clock: RunClock,
    gets: u64,
    /// The number of the get that does not return.
    stuck_at: Option<u64>,
}

impl MockEngine {
    async fn get(&mut self) {
        self.gets += 1;
        let takes_ns = if self.stuck_at == Some(self.gets) { STUCK_NS } else { SERVICE_NS };
        let end_ns = self.clock.now_ns() + takes_ns;
        let clock = &self.clock;
        poll_fn(|_| {
            let now_ns = clock.now_ns();
            if now_ns >= end_ns {
                return Poll::Ready(());
            }
            assert!(wait_for(Wait::Until(clock.instant(end_ns, now_ns))), "the simulation drives this client");
            Poll::Pending
        })
        .await;
    }
}

impl Worker for MockEngine {
    fn draw(&mut self) -> Option<OpKind> {
        Some(0)
    }

    async fn perform(&mut self) -> Result<Op, EngineError> {
        self.get().await;
        Ok(Op { rows: 1, ..Op::default() })
    }
}

#[derive(Default)]
struct SimulatedDriver(Cell<Option<Wait>>);

impl Driver for SimulatedDriver {
    fn wait(&self, wait: Wait) -> bool {
        self.0.set(Some(wait));
        true
    }

    fn forget(&self, _: RawFd) {}
}

type Run = Pin<Box<dyn Future<Output = Result<(), EngineError>>>>;

/// Clients on the test's clock.
struct Simulation {
    mock: Arc<Mock>,
    start: Instant,
    clock: RunClock,
    driver: Rc<SimulatedDriver>,
    clients: Vec<Option<Run>>,
    /// The number of polls of each client: a timer of an earlier poll is obsolete.
    turns: Vec<u64>,
    timers: Timers,
    stop: Arc<Stop>,
    collector: Collector,
    in_flight: Vec<Arc<InFlight>>,
    queues: Vec<Arc<Queue>>,
}

impl Simulation {
    /// This many clients; the last one hangs at operation `stuck_at`.
    fn new(count: u32, schedule: Schedule, stuck_at: Option<u64>) -> Self {
        let ((source, mock), start) = (Clock::mock(), Instant::now());
        let clock = RunClock::simulated(source, start);
        let (cells, stop) = (Arc::new(Cells::new(OPS.len())), Arc::<Stop>::default());
        let in_flight: Vec<Arc<InFlight>> = (0..count).map(|_| Arc::default()).collect();
        let queues = schedule.queues(count, HostShare::ALL);
        let client = |number: u32| -> Option<Run> {
            let stuck_at = stuck_at.filter(|_| number + 1 == count);
            let mut engine = MockEngine { clock: clock.clone(), gets: 0, stuck_at };
            let (in_flight, due) = (in_flight[number as usize].clone(), schedule.due(&queues, number, HostShare::ALL));
            let mut pace = ClientPace::new(clock.clone(), cells.clone(), stop.clone(), in_flight, due);
            Some(Box::pin(async move { Client::run(&mut engine, &mut pace).await }))
        };
        let (clients, turns) = ((0..count).map(client).collect(), vec![0; count as usize]);
        let collector = Collector::new(vec![cells.clone()], OPS.len());
        let (driver, timers) = (Rc::default(), Timers::default());
        let mut all = Self { mock, start, clock, driver, clients, turns, timers, stop, collector, in_flight, queues };
        (0..count as usize).for_each(|client| all.poll(client));
        all
    }

    fn poll(&mut self, client: usize) {
        let Some(run) = &mut self.clients[client] else { return };
        self.turns[client] += 1;
        let _driven = drive_with(self.driver.clone());
        match run.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(end) => {
                end.unwrap();
                self.clients[client] = None;
            }
            Poll::Pending => match self.driver.0.take() {
                Some(Wait::Until(time)) => self.timers.add(time, client, self.turns[client]),
                other => panic!("{other:?}"),
            },
        }
    }

    /// Runs all events until then, in order, including those at that time.
    fn run_until(&mut self, until: Instant) {
        while let Some(next) = self.timers.first().filter(|next| *next <= until) {
            self.set(next);
            let due = self.timers.take_due(|| next);
            for timer in &due {
                if self.turns[timer.client] == timer.turn {
                    self.poll(timer.client);
                }
            }
            self.timers.recycle(due);
        }
        self.set(until);
    }

    /// Changes the arrivals; waiting clients see it at once, as in the drivers.
    fn shape(&mut self, arrivals: &Arc<Arrivals>) {
        let (from_ns, share) = (self.clock.now_ns(), 1.0 / self.queues.len() as f64);
        self.queues.iter().for_each(|queue| queue.shape(arrivals.clone(), from_ns, share));
        self.stop.reschedule();
        (0..self.clients.len()).for_each(|client| self.poll(client));
    }

    /// Begins the time of changing numbers of clients; waiting clients see it at once, as in the drivers.
    fn begin_steps(&mut self, steps: &ClientSteps) {
        self.stop.begin_steps(steps.clone(), self.clock.now_ns());
        (0..self.clients.len()).for_each(|client| self.poll(client));
    }

    fn set(&self, now: Instant) {
        let ns = (now - self.start).as_nanos() as u64;
        self.mock.increment(ns - self.mock.value());
    }
}

/// An interval: its phase, its bounds in milliseconds since the start, and its operations.
type IntervalSummary = (PhaseKind, u128, u128, u64);

/// The results of a run.
#[derive(Debug, PartialEq)]
struct Outcome {
    intervals: Vec<IntervalSummary>,
    phases: Vec<(PhaseKind, u64)>,
    /// The last phase with its tail.
    last: OpStats,
    tail: (u64, u64, u64),
    longest_ns: Option<u64>,
}

fn plan() -> RunPlan {
    let backlog_s = BACKLOG.as_secs_f64();
    RunPlan { warmup_s: 1.0, loops: 2, backlog_s, seed: 7, interval_s: 0.3, ..samples::run_plan() }
}

fn run(plan: &RunPlan, mut clients: Simulation) -> Outcome {
    let (interval, start) = (Duration::from_secs_f64(plan.interval_s), clients.start);
    let (mut intervals, mut phases, mut ended) = (Vec::new(), Vec::new(), start);
    let mut last = Counts::new(OPS.len());
    let (first, following) = spans(plan);
    let spans: Vec<_> = std::iter::once(first).chain(following).collect();
    let mut shaped = plan.arrivals.clone().map(Arc::new);
    for (number, (phase, seconds)) in spans.iter().copied().enumerate() {
        if let Some(arrivals) = shaped.take_if(|_| phase != PhaseKind::Warmup) {
            clients.shape(&arrivals);
        }
        if phase == PhaseKind::Loop(1) {
            plan.client_steps.iter().for_each(|steps| clients.begin_steps(steps));
        }
        let until = ended + Duration::from_secs_f64(seconds);
        last = Counts::new(OPS.len());
        while ended < until {
            let next = interval_end(ended, interval, Some(until));
            clients.run_until(next);
            if number + 1 == spans.len() && next >= until {
                clients.stop.set_at(clients.clock.now_ns());
            }
            let counts = clients.collector.collect();
            intervals.push((phase, (ended - start).as_millis(), (next - start).as_millis(), counts.ops()));
            last.merge(&counts);
            ended = next;
        }
        phases.push((phase, last.ops()));
    }
    let end_ns = clients.clock.now_ns();
    clients.run_until(ended + BACKLOG);
    clients.stop.set();
    let now_ns = clients.clock.now_ns();
    let (counts, censored) = cut(&mut clients.collector, &clients.in_flight, &clients.queues, end_ns, || now_ns);
    let tail = Tail::new(BACKLOG, counts, censored);
    let reported = tail.reported();
    let last = op_stats(OPS, &last, Some(&tail)).remove("get").unwrap();
    let longest_ns = tail.censored.longest_ns();
    Outcome { intervals, phases, last, tail: (reported.ended, reported.open, reported.not_begun), longest_ns }
}

fn is_near(ms: Option<f64>, expected: f64) -> bool {
    // The buckets are accurate to 0.8%.
    ms.is_some_and(|ms| (ms / expected - 1.0).abs() < 0.008)
}

#[test]
fn closed_loop_operations_match_the_service_time_exactly() {
    let closed = || run(&plan(), Simulation::new(4, Schedule::closed(7), None));
    let outcome = closed();
    let (warmup, one, two) = (PhaseKind::Warmup, PhaseKind::Loop(1), PhaseKind::Loop(2));
    // Four clients, a get each millisecond. Three intervals of 300 ms leave 100 of a second.
    let second = |phase, from: u128| {
        [(0, 300, 1200), (300, 600, 1200), (600, 900, 1200), (900, 1000, 400)]
            .map(|(start, end, ops)| (phase, from + start, from + end, ops))
    };
    assert_eq!(outcome.intervals, [second(warmup, 0), second(one, 1000), second(two, 2000)].concat());
    assert_eq!(outcome.phases, [(warmup, 4000), (one, 4000), (two, 4000)]);
    // Each client was in a get at the end, and completed it after another millisecond.
    assert_eq!((outcome.tail, outcome.longest_ns), ((4, 0, 0), None));
    let times = &outcome.last.response;
    assert!(is_near(times.p50_ms.value(), 1.0) && is_near(times.p99_ms.value(), 1.0), "{times:?}");
    assert_eq!((times.mean_ms.value(), times.max_ms.value()), (Some(1.0), Some(1.0)));
    assert_eq!(outcome, closed(), "the same again, to the last digit");
}

#[test]
fn unreturned_operation_is_open_at_end_with_its_elapsed_time() {
    let outcome = run(&plan(), Simulation::new(4, Schedule::closed(7), Some(2_501)));
    // The last client hangs in its 2,501st get from 2.5 s on; the others continue.
    let ops: Vec<u64> = outcome.intervals[8..].iter().map(|(.., ops)| *ops).collect();
    assert_eq!(ops, [1200, 3 * 300 + 200, 900, 300]);
    assert_eq!((outcome.tail, outcome.longest_ns), ((3, 1, 0), Some(700 * MS)));
    assert_eq!((outcome.last.count, outcome.last.open), (3500, 1));
    let times = &outcome.last.response;
    assert!(is_near(times.p99_ms.value(), 1.0), "it is less than the time of the open operation: {times:?}");
    assert_eq!(times.max_ms.value(), None, "its length is not known");
}

#[test]
fn arrivals_waiting_for_a_stuck_client_count_as_not_begun() {
    const RATE: f64 = 400.0;
    let schedule = Schedule::open(RATE, QueueKind::Shared, 7);
    // The expected result, by hand: one client serves the arrivals in order, each for a millisecond.
    let arrivals =
        schedule.queues(1, HostShare::ALL)[0].left_ns().take_while(|due| *due < 3_000 * MS).collect::<Vec<u64>>();
    let (mut free_ns, mut responses) = (0, Vec::new());
    for due in &arrivals {
        free_ns = free_ns.max(*due) + SERVICE_NS;
        responses.push((free_ns, free_ns - due));
    }
    let served_until = |ns: u64| responses.iter().filter(|(end, _)| *end <= ns).count() as u64;

    let outcome = run(&plan(), Simulation::new(1, schedule, None));
    let expected = [1_000 * MS, 2_000 * MS, 3_000 * MS].map(served_until);
    let ops: Vec<u64> = outcome.phases.iter().map(|(_, ops)| *ops).collect();
    assert_eq!(ops, [expected[0], expected[1] - expected[0], expected[2] - expected[1]]);
    assert_eq!(outcome.tail, (arrivals.len() as u64 - expected[2], 0, 0), "the backlog is served");
    let in_last = responses.iter().filter(|(end, _)| *end > 2_000 * MS).map(|(_, ns)| *ns);
    assert_eq!(outcome.last.response.max_ms.value(), in_last.max().map(|ns| ns as f64 / 1e6));
    assert_eq!(outcome.last.service.max_ms.value(), Some(1.0), "waiting is no service");

    let stuck = expected[1] + 100;
    let outcome = run(&plan(), Simulation::new(1, schedule, Some(stuck)));
    let stuck_due = arrivals[stuck as usize - 1];
    assert_eq!(outcome.phases[2].1, stuck - 1 - expected[1]);
    assert_eq!(outcome.tail, (0, 1, arrivals.len() as u64 - stuck));
    assert_eq!(outcome.longest_ns, Some(3_200 * MS - stuck_due), "since it was due, not since it was begun");
}

#[test]
fn arrivals_follow_schedule_from_loop_start_for_any_queue() {
    let points = vec![(0.0, 200.0), (1.0, 2000.0), (1.5, 0.0)];
    let arrivals = Arrivals { points, shape: RateShape::Step, period_s: None };
    let plan = RunPlan { rate: Some(arrivals.mean_rate(2.0)), arrivals: Some(arrivals), ..plan() };
    for queue in [QueueKind::Shared, QueueKind::Client] {
        let outcome = run(&plan, Simulation::new(4, Schedule::open(200.0, queue, 7), None));
        let ops: Vec<f64> = outcome.phases.iter().map(|(_, ops)| *ops as f64).collect();
        // The warmup at the first rate, a loop at it, half a loop at ten times that; each with its own deviation.
        for (ops, expected) in ops.iter().zip([200.0f64, 200.0, 1000.0]) {
            assert!((ops - expected).abs() < 4.0 * expected.sqrt(), "{queue:?}: {ops} of {expected}");
        }
        let (.., last) = outcome.intervals[outcome.intervals.len() - 1];
        assert_eq!(last, 0, "{queue:?}: no arrival is due after the last point");
    }
}

/// Guards against sleeping through a burst: each client had taken an arrival at the old rate, spread over about a
/// minute.
#[test]
fn clients_that_are_idle_when_a_burst_comes_serve_it_at_once() {
    let arrivals = Arrivals { points: vec![(0.0, 1.0), (1.0, 2000.0)], shape: RateShape::Step, period_s: None };
    let plan = RunPlan { rate: Some(arrivals.mean_rate(2.0)), arrivals: Some(arrivals), ..plan() };
    for queue in [QueueKind::Shared, QueueKind::Client] {
        let outcome = run(&plan, Simulation::new(64, Schedule::open(1.0, queue, 7), None));
        let ops = outcome.phases[2].1 as f64;
        assert!((ops - 2000.0).abs() < 4.0 * 2000f64.sqrt(), "{queue:?}: {ops} of 2000");
        // Two of 64 are busy on average. With separate queues, one arrival in thirty finds its client busy.
        let mean_ms = outcome.last.response.mean_ms.value().unwrap();
        assert!((0.999..1.05).contains(&mean_ms), "{queue:?}: {mean_ms} ms");
    }
}

#[test]
fn active_clients_serve_all_and_idle_clients_end_with_them() {
    let closed = run(&plan(), Simulation::new(100, Schedule::closed(7).with_active(5), None));
    assert_eq!(closed.phases[1].1, 5 * 1000, "five clients, a get each millisecond");
    let schedule = Schedule::open(400.0, QueueKind::Client, 7).with_active(5);
    assert_eq!(schedule.queues(100, HostShare::ALL).len(), 5, "idle clients have no share of the arrivals");
    let open = run(&plan(), Simulation::new(100, schedule, None));
    assert!((open.phases[1].1 as f64 - 400.0).abs() < 80.0, "{:?}", open.phases);
}

#[test]
fn throughput_follows_the_steps_of_clients_from_the_loops_start() {
    let steps = ClientSteps { points: vec![(0.0, 1), (0.6, 3), (1.0, 8), (1.6, 2), (1.9, 3)] };
    let plan = RunPlan { client_steps: Some(steps), ..plan() };
    let outcome = run(&plan, Simulation::new(8, Schedule::closed(7).in_steps(1), None));
    // A get takes a millisecond. The intervals of a second are 300, 300, 300 and 100 ms long.
    let ops: Vec<u64> = outcome.intervals.iter().map(|(.., ops)| *ops).collect();
    assert_eq!(ops, [[300, 300, 300, 100], [300, 300, 900, 300], [2400, 2400, 600, 300]].concat());
    assert_eq!((outcome.tail, outcome.longest_ns), ((3, 0, 0), None), "idle clients end with the others");
    assert_eq!(outcome.last.response.max_ms.value(), Some(1.0), "a wait for a step is no response time");
}

#[test]
fn clients_that_a_step_adds_start_at_different_times() {
    let steps = ClientSteps { points: vec![(0.0, 1), (1.0, 200)] };
    let schedule = Schedule::closed(7).spread_over(1.0).in_steps(1);
    let plan = RunPlan { client_steps: Some(steps), interval_s: 0.1, ..plan() };
    let outcome = run(&plan, Simulation::new(200, schedule, None));
    let after_step: Vec<u64> = outcome.intervals[20..].iter().map(|(.., ops)| *ops).collect();
    // They start within 100 ms, so on average half of the 199 work.
    assert!((8_000..12_000).contains(&after_step[0]), "{after_step:?}");
    assert_eq!(after_step[1..], [20_000; 9]);
}

#[test]
fn rate_search_finds_the_queueing_limit_within_3_percent() {
    const CLIENTS: u32 = 4;
    let limit_ms = 4.0;
    let search = Search { percentile: Percentile::P99, limit_ms };
    let times = RunPlan { loops: 1, loop_s: 30.0, interval_s: 1.0, ..plan() };
    let mut probes: Vec<Probe> = Vec::new();
    let mut following = Next::Probe(None);
    while let Next::Probe(rate) = following {
        let seed = of_probe(7, Some(probes.len() as u32 + 1));
        let schedule = rate.map_or(Schedule::closed(seed), |rate| Schedule::open(rate, QueueKind::Shared, seed));
        let outcome = run(&times, Simulation::new(CLIENTS, schedule, None));
        let percentile_ms = outcome.last.response.p99_ms.clone();
        let is_kept = percentile_ms.value().is_some_and(|ms| ms < search.limit_ms);
        let found = match rate {
            None => Found::Reference,
            Some(_) if is_kept => Found::Kept,
            Some(_) => Found::Missed,
        };
        probes.push(Probe {
            trial: 1,
            rate,
            ops_per_s: Metric::Value(outcome.last.count as f64 / times.loop_s),
            percentile_ms,
            purpose: Purpose::Step,
            found,
            reason: String::new(),
            disturbed: None,
        });
        following = rumba_statistics::next(&probes);
    }
    // The last kept probe has the final rate.
    let kept = probes.iter().rfind(|probe| probe.found == Found::Kept).and_then(|probe| probe.rate).unwrap();
    let expected = highest_rate(CLIENTS as usize, SERVICE_NS as f64 / 1e9, 0.99, limit_ms / 1e3);
    assert!((3000.0..4000.0).contains(&expected), "{expected}");
    assert!((kept / expected - 1.0).abs() < 0.03, "{kept}/s, by arithmetic {expected}/s; {probes:?}");
}
