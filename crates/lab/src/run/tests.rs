//! The guarantees that both drivers give their clients.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::HostShare;
use rumba_results::arrivals::{Arrivals, RateShape};
use rumba_results::client_steps::ClientSteps;

use super::buckets::BUCKETS;
use super::choice::Driving;
use super::driver::{Made, Make, Plan, Schedule};
use super::group::{ClientGroup, Waited};
use super::queue::{Queue, seed_of};
use super::testing::{Action, ScriptedClient, drivers, made, made_for, run, wait_for_end};
use crate::meter::ThreadCpuRegistry;

const SHORT: Duration = Duration::from_micros(300);

/// Three clients on one loop, with operations that never wait and take this long: the client of each operation.
fn taking_turns(each: Duration, operations: u64) -> Vec<u32> {
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = order.clone();
    let (counts, _) = run(Driving::Loops { threads: 1 }, 3, move |client| {
        let log = log.clone();
        let operation = move || {
            log.lock().unwrap().push(client);
            let until = Instant::now() + each;
            while Instant::now() < until {}
        };
        ScriptedClient { log: Box::new(operation), ..ScriptedClient::new(&[Action::Nothing], operations) }
    });
    assert_eq!(counts.ops(), 3 * operations);
    std::mem::take(&mut order.lock().unwrap())
}

/// Guards against counting this delay as service time, as if the server had caused it.
#[test]
fn answers_delayed_by_a_busy_client_of_the_loop_count_as_late() {
    const BUSY: Duration = Duration::from_millis(5);
    const OPERATIONS: u64 = 20;
    let (counts, failure) = run(Driving::Loops { threads: 1 }, 3, |client| {
        let is_busy = client == 0;
        let work = move || {
            let until = Instant::now() + if is_busy { BUSY } else { Duration::ZERO };
            while Instant::now() < until {}
        };
        let operations = if is_busy { OPERATIONS } else { 20 * OPERATIONS };
        ScriptedClient { log: Box::new(work), ..ScriptedClient::new(&[Action::Request], operations) }
    });
    assert_eq!(failure, None);
    // Two answers wait each time, for half of it by the estimate. They wait less if the peer that answers has to wait
    // for a CPU.
    let least_ns = OPERATIONS * BUSY.as_nanos() as u64 / 5;
    assert!(counts.receive_late_ns >= least_ns, "{} of {least_ns} ns", counts.receive_late_ns);
}

#[test]
fn clients_that_never_wait_take_turns_on_their_loop() {
    let order = taking_turns(Duration::from_micros(30), 50);
    assert!(order.chunks(3).all(|round| round == [0, 1, 2]), "{order:?}");
}

/// Guards against switching after every operation, which would evict each client's data from the cache.
#[test]
fn instant_operations_run_in_batches_and_starve_no_client() {
    let order = taking_turns(Duration::ZERO, 20_000);
    let turns = order.chunk_by(|a, b| a == b).count();
    assert!((300..20_000).contains(&turns), "{turns}");
}

#[test]
fn a_stop_reaches_clients_that_wait_for_an_arrival() {
    for driving in drivers(4) {
        // One arrival in a hundred days on average: no arrival ends the wait.
        let fetch = |_| Ok(ScriptedClient::new(&[Action::Request], u64::MAX).boxed());
        let mut running = made(driving, 4, Some(1e-7), fetch).unwrap().start();
        running.stop();
        wait_for_end(&mut running);
        assert_eq!(running.collect().ops(), 0);
        running.join();
    }
}

/// Guards against clients that sleep until their arrival is due at the old rate.
#[test]
fn clients_waiting_at_a_low_rate_are_woken_by_a_higher_one() {
    for driving in drivers(4) {
        // One arrival in a hundred days on average: no arrival ends the wait.
        let fetch = |_| Ok(ScriptedClient::new(&[Action::Request], 50).boxed());
        let mut running = made(driving, 4, Some(1e-7), fetch).unwrap().start();
        assert_eq!(running.wait(Instant::now() + Duration::from_millis(20)), Waited::Until, "they wait");
        let arrivals = Arrivals { points: vec![(0.0, 4_000.0)], shape: RateShape::Step, period_s: None };
        running.shape(&Arc::new(arrivals), Instant::now());
        wait_for_end(&mut running);
        assert_eq!((running.collect().ops(), running.failure()), (4 * 50, None), "{driving:?}");
        running.join();
    }
}

#[test]
fn closed_loop_clients_end_on_time_without_a_stop() {
    for driving in drivers(4) {
        let endless = |_| Ok(ScriptedClient::new(&[Action::Pause(SHORT), Action::Nothing], u64::MAX).boxed());
        let mut running = made(driving, 4, None, endless).unwrap().start();
        let end = Instant::now() + Duration::from_millis(20);
        running.end_by(end);
        assert_eq!(running.ended_at(), None);
        wait_for_end(&mut running);
        let ended = running.ended_at().unwrap();
        // The clients' clock differs slightly from the system's.
        assert!(ended + Duration::from_millis(2) >= end && ended <= Instant::now(), "{driving:?}");
        running.join();
    }
}

#[test]
fn arrivals_keep_times_and_order_and_none_is_skipped() {
    const OPS: usize = 40;
    for driving in drivers(3) {
        let starts: Arc<[Mutex<Vec<Instant>>; 3]> = Arc::default();
        let log = starts.clone();
        let make = move |client: u32| {
            let log = log.clone();
            let log = move || log[client as usize].lock().unwrap().push(Instant::now());
            Ok(ScriptedClient { log: Box::new(log), ..ScriptedClient::new(&[Action::Request], OPS as u64) }.boxed())
        };
        let made = made(driving, 3, Some(3_000.0), make).unwrap();
        let before = Instant::now();
        let mut running = made.start();
        wait_for_end(&mut running);
        assert_eq!(running.collect().ops(), 3 * OPS as u64, "{driving:?}");
        running.join();
        for (client, starts) in starts.iter().enumerate() {
            let arrivals = Queue::new(1_000.0, seed_of(7, client as u64));
            for start in starts.lock().unwrap().iter() {
                let due = before + Duration::from_nanos(arrivals.due_ns(arrivals.take()));
                assert!(*start >= due, "{driving:?}: an operation began before its arrival");
            }
        }
    }
}

#[test]
fn a_client_that_fails_or_panics_stops_the_others_and_is_named() {
    for (action, words) in [(Action::Fail, "failed as planned"), (Action::Panic, "panicked: as planned")] {
        for driving in drivers(4) {
            let (_, failure) = run(driving, 4, move |client| {
                let actions = if client == 2 { [action] } else { [Action::Request] };
                ScriptedClient::new(&actions, u64::MAX)
            });
            assert!(failure.unwrap().to_string().contains(words), "{driving:?}");
        }
    }
}

#[test]
fn failed_client_creation_starts_no_client() {
    for driving in drivers(5) {
        let ran = Arc::new(AtomicU32::new(0));
        let count = ran.clone();
        let end = made(driving, 5, None, move |client| {
            let count = count.clone();
            let log = Box::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            match client {
                3 => Err(EngineError::failed("connect", "refused")),
                _ => Ok(ScriptedClient { log, ..ScriptedClient::new(&[Action::Request], 10) }.boxed()),
            }
        });
        assert_eq!(end.err().unwrap().to_string(), "connect: refused", "{driving:?}");
        assert_eq!(ran.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn a_maker_that_panics_is_a_client_that_cannot_be_made() {
    for driving in drivers(2) {
        let end = made(driving, 2, None, |_| panic!("as planned"));
        assert!(end.err().unwrap().to_string().contains("panicked: as planned"));
    }
}

#[test]
fn clients_that_never_start_release_their_resources() {
    for driving in drivers(3) {
        let held = Arc::new(());
        let holds = held.clone();
        let made = made(driving, 3, None, move |_| {
            let holds = holds.clone();
            Ok(ScriptedClient {
                log: Box::new(move || drop(holds.clone())),
                ..ScriptedClient::new(&[Action::Request], 1)
            }
            .boxed())
        });
        made.unwrap().abandon();
        assert_eq!(Arc::strong_count(&held), 1, "{driving:?}");
    }
}

/// Page faults of this thread without I/O: field 10 of its `stat`; see proc(5).
fn pages_given() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, after_name) = stat.rsplit_once(')').unwrap();
    after_name.split_ascii_whitespace().nth(7).unwrap().parse().unwrap()
}

/// Guards against allocating count pages during a run. The first operation on each page was slower, and memory grew by
/// a fifth in four minutes.
#[test]
fn thread_has_memory_for_all_counts_before_first_operation() {
    const KINDS: usize = 20;
    // Without huge pages, so that single pages can be counted.
    let [yes, none]: [libc::c_ulong; 2] = [1, 0];
    // SAFETY: it sets a flag of this process from values.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, yes, none, none, none) }, 0);
    let pages = (2 * KINDS * BUCKETS * size_of::<u32>() / 4096) as u64;
    for driving in [Driving::Threads { threads: 1 }, Driving::Loops { threads: 1 }] {
        let [made_at, first_at] = [(); 2].map(|()| Arc::<AtomicU64>::default());
        let (at_making, at_first) = (made_at.clone(), first_at.clone());
        let make: Make = Arc::new(move |_| {
            let at_first = at_first.clone();
            let log = Box::new(move || at_first.store(pages_given(), Ordering::Relaxed));
            let client = ScriptedClient { log, ..ScriptedClient::new(&[Action::Nothing], 1) }.boxed();
            at_making.store(pages_given(), Ordering::Relaxed);
            Ok(client)
        });
        let plan = Plan { clients: 1, share: HostShare::ALL, kinds: KINDS, schedule: Schedule::closed(7), driving };
        let mut running = Made::new(&plan, &make, &ThreadCpuRegistry::new()).unwrap().start();
        wait_for_end(&mut running);
        running.join();
        let given = first_at.load(Ordering::Relaxed) - made_at.load(Ordering::Relaxed);
        // Other pages that a thread touches between the two readings are about a dozen.
        assert!(given >= pages / 2, "{driving:?}: {given} pages of {pages}");
    }
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => Just(Action::Request),
        1 => Just(Action::RequestMuch),
        2 => (0u64..500).prop_map(|micros| Action::Pause(Duration::from_micros(micros))),
        1 => Just(Action::BeWoken),
        1 => Just(Action::WakeSelf),
        2 => Just(Action::Nothing),
        1 => Just(Action::Reconnect),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn all_clients_finish_for_any_mix_and_order_of_waits(
        actions in prop::collection::vec(prop::collection::vec(any_action(), 1..8), 1..7),
        which in 0usize..3,
    ) {
        let clients = actions.len() as u32;
        let (counts, failure) = run(drivers(clients)[which], clients, move |client| ScriptedClient::new(&actions[client as usize], 24));
        let all = u64::from(clients) * 24;
        prop_assert_eq!(failure, None);
        prop_assert_eq!((counts.ops(), counts.rows()), (all, all));
        prop_assert_eq!(counts.kinds[0].response.buckets.iter().sum::<u64>(), all);
    }
}

/// Guards against clients that start before their step, sleep through it, or do not end because it has not come.
#[test]
fn added_clients_start_at_their_step_and_all_end_together() {
    for driving in drivers(3) {
        let firsts: Arc<Mutex<BTreeMap<u32, Instant>>> = Arc::default();
        let log = firsts.clone();
        let make = move |client| {
            let log = log.clone();
            let operation = move || {
                log.lock().unwrap().entry(client).or_insert_with(Instant::now);
            };
            Ok(ScriptedClient { log: Box::new(operation), ..ScriptedClient::new(&[Action::Pause(SHORT)], u64::MAX) }
                .boxed())
        };
        let mut running = made_for(driving, 3, Schedule::closed(7).in_steps(1), make).unwrap().start();
        std::thread::sleep(Duration::from_millis(20));
        assert!(firsts.lock().unwrap().keys().all(|client| *client == 0), "{driving:?}: the first step has one client");
        let step = Duration::from_millis(50);
        let begun = Instant::now();
        running.begin_steps(&ClientSteps { points: vec![(0.0, 1), (step.as_secs_f64(), 2), (3600.0, 3)] }, begun);
        let until = begun + Duration::from_secs(20);
        while !firsts.lock().unwrap().contains_key(&1) {
            assert!(Instant::now() < until, "{driving:?}: the second client waits for ever");
            std::thread::sleep(Duration::from_millis(5));
        }
        running.finish();
        wait_for_end(&mut running);
        let firsts = firsts.lock().unwrap();
        // The clients' clock and the system's differ by microseconds.
        assert!(firsts[&1] + Duration::from_millis(1) >= begun + step, "{driving:?}: it started before its step");
        assert!(!firsts.contains_key(&2), "{driving:?}: the third step has not come");
        running.join();
    }
}
