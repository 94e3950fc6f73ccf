//! What recording one operation costs: the pace's two clock readings, two
//! histograms and the counters. Prints JSON; `make bench` reads it.
//!
//! Under callgrind the same loop gives instructions per operation.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rumba_core::worker::{Op, Pace};
use rumba_lab::run::cells::Cells;
use rumba_lab::run::pace::ThreadPace;

/// As many types of operations as LinkBench has, so that the cells' size is real.
const KINDS: usize = 10;

fn main() {
    let ops: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_000_000);
    let cells = Arc::new(Cells::new(KINDS));
    let mut pace = ThreadPace::new(cells, Arc::default(), None, 1);
    let mut context = Context::from_waker(Waker::noop());
    turns(&mut pace, &mut context, ops / 10);
    let before = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    turns(&mut pace, &mut context, ops);
    let after = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let ns = (after.tv_sec - before.tv_sec) as f64 * 1e9 + (after.tv_nsec - before.tv_nsec) as f64;
    println!("{{\"ops\": {ops}, \"cpu_ns_per_op\": {:.2}}}", ns / ops as f64);
}

/// Through the trait object, as a client calls it.
fn turns(pace: &mut dyn Pace, context: &mut Context<'_>, ops: u64) {
    for number in 0..ops {
        assert!(pace.poll_turn(context) == Poll::Ready(true), "nobody stops this pace");
        pace.start();
        pace.done(number as usize % KINDS, Op { rows: 1, ..Op::default() });
    }
}
