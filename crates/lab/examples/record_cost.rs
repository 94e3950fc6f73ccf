//! What recording one operation costs: the pace's two clock readings, two
//! histograms and the counters. Prints JSON; `make bench` reads it.
//!
//! Under callgrind the same loop gives instructions per operation.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rumba_core::worker::{Op, Pace};
use rumba_lab::run::cells::Cells;
use rumba_lab::run::pace::ClientPace;

/// As many types of operations as LinkBench has, so that the cells' size is real.
const KINDS: usize = 10;

fn main() {
    let ops: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_000_000);
    let cells = Arc::new(Cells::new(KINDS));
    let mut pace = ClientPace::alone(cells);
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
        assert!(pace.poll_turn(context) == Poll::Ready(true), "nobody stops this pace");
        let kind = number as usize % KINDS;
        pace.start(kind);
        pace.done(kind, Op { rows: 1, ..Op::default() });
    }
}

/// CPU time of this thread so far, nanoseconds; read from /proc, which works under valgrind too.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells a thread its own CPU time");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("the first field is nanoseconds on the CPU")
}
