//! Measures the cost of recording one operation: the pace's two clock readings, two histograms and the counters. Prints
//! JSON; `make bench` reads it.
//!
//! Under callgrind the same loop gives instructions per operation. With `queue` as a second argument, operations are
//! due at arrivals. The client takes them from a queue that others may share, and all of them are past.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rumba_engine_api::worker::{Op, Pace};
use rumba_lab::run::cells::Cells;
use rumba_lab::run::pace::{ClientPace, Due};
use rumba_lab::run::queue::Queue;
use rumba_lab::run::stop::RunClock;

/// As many types of operations as LinkBench has, so that the cells' size is real.
const KINDS: usize = 10;

/// More arrivals per second than any client serves.
const ALL_PAST: f64 = 1e9;

fn main() {
    let ops: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_000_000);
    let cells = Arc::new(Cells::new(KINDS));
    let mut pace = match std::env::args().nth(2) {
        None => ClientPace::alone(cells),
        Some(_) => {
            let due = Due::AtArrival { queue: Arc::new(Queue::new(ALL_PAST, 1)), taken: None };
            ClientPace::new(RunClock::start(), cells, Arc::default(), Arc::default(), due)
        }
    };
    let mut context = Context::from_waker(Waker::noop());
    turns(&mut pace, &mut context, ops / 10);
    let before = cpu_ns();
    turns(&mut pace, &mut context, ops);
    let after = cpu_ns();
    let ns = after - before;
    println!("{{\"ops\": {ops}, \"cpu_ns_per_op\": {:.2}}}", ns / ops as f64);
}

/// Through the trait object, as a client calls it.
fn turns(pace: &mut dyn Pace, context: &mut Context<'_>, ops: u64) {
    for number in 0..ops {
        assert!(pace.poll_turn(context) == Poll::Ready(true), "this pace has no end");
        let kind = number as usize % KINDS;
        pace.start(kind);
        pace.done(kind, Op { rows: 1, ..Op::default() });
    }
}

/// CPU time of this thread so far, nanoseconds; read from /proc, which works under valgrind too.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux reports a thread's CPU time");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("the first field is nanoseconds on the CPU")
}
