//! The harness's cost per operation with an engine that answers at once: drawing, performing, clock, histograms and
//! counters, on one thread.
//! It runs LinkBench, or YCSB's workload A with `ycsb` after the number of operations, and prints JSON. Under
//! callgrind, the difference between two runs of N and 2N operations gives instructions per operation without noise.

use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use rumba_engine_api::engine::{Durability, Engine, EngineConfig};
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_api::worker::{ClientAddress, Op, OpKind, Pace, StatementCounts, block_on};
use rumba_engine_api::workload::Workload;
use rumba_engine_null::Null;
use rumba_lab::run::cells::Cells;
use rumba_lab::run::pace::ClientPace;
use rumba_workload_linkbench::LinkBench;
use rumba_workload_ycsb::Ycsb;

/// The real pace, ended after a number of operations.
struct Ended {
    pace: ClientPace,
    left: u64,
}

impl Pace for Ended {
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if self.left == 0 {
            return Poll::Ready(false);
        }
        self.left -= 1;
        self.pace.poll_turn(context)
    }

    fn start(&mut self, kind: OpKind) {
        self.pace.start(kind);
    }

    fn statements(&mut self, kind: OpKind, statements: StatementCounts) {
        self.pace.statements(kind, statements);
    }

    fn done(&mut self, kind: OpKind, op: Op) -> u64 {
        self.pace.done(kind, op);
        0
    }
}

fn main() {
    let ops: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5_000_000);
    let size = |name: &str| Settings::from([(name, Value::Int(10_000_000))]);
    let bound = match std::env::args().nth(2).as_deref() {
        Some("ycsb") => Ycsb.bind(&size("recordcount")),
        _ => LinkBench.bind(&size("maxid1")),
    };
    let bound = bound.expect("the workload's own settings");
    let config = EngineConfig { cache: 1, durability: Durability::None, ..EngineConfig::new("null") };
    let instance = Null.open(Path::new("."), &config, bound.schema(Null.info().family)).expect("null opens anywhere");
    let at = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };
    let session = instance.session().expect("null has sessions without end");
    let mut client = bound.client(session, at, 1).expect("a key-value session fits");
    let cells = Arc::new(Cells::new(bound.ops().len()));
    let mut pace = Ended { pace: ClientPace::alone(cells), left: ops };
    let before = cpu_ns();
    block_on(client.run(&mut pace)).expect("null never fails");
    let after = cpu_ns();
    let ns = after - before;
    println!("{{\"ops\": {ops}, \"cpu_ns_per_op\": {:.2}}}", ns / ops as f64);
}

/// CPU time of this thread so far, nanoseconds; read from /proc, which works under valgrind too.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux reports a thread's CPU time");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("the first field is nanoseconds on the CPU")
}
