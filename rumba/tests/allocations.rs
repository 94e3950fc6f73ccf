//! Guards against allocations of the harness per operation, which would distort the engine's own figure.
#![allow(clippy::unwrap_used)]

use rumba_testkit::allocations::{self, Counting};
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

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The real pace, which ends after some operations and counts the allocations of the rest.
struct Counted {
    pace: ClientPace,
    warmup: u64,
    left: u64,
    before: Option<u64>,
}

impl Pace for Counted {
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if self.warmup > 0 {
            self.warmup -= 1;
        } else {
            self.before.get_or_insert_with(allocations::count);
            if self.left == 0 {
                return Poll::Ready(false);
            }
            self.left -= 1;
        }
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

/// The allocations of 100,000 operations of a workload's mix, after 20,000 that let buffers grow.
fn allocated(workload: &dyn Workload, settings: &Settings) -> u64 {
    let bound = workload.bind(settings).unwrap();
    let config = EngineConfig { cache: 1, durability: Durability::None, ..EngineConfig::new("null") };
    let instance = Null.open(Path::new("."), &config, bound.schema(Null.info().family)).unwrap();
    let at = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };
    let mut client = bound.client(instance.session().unwrap(), at, 1).unwrap();
    let cells = Arc::new(Cells::new(bound.ops().len()));
    let pace = ClientPace::alone(cells);
    let mut counted = Counted { pace, warmup: 20_000, left: 100_000, before: None };
    block_on(client.run(&mut counted)).unwrap();
    allocations::count() - counted.before.unwrap()
}

#[test]
fn nothing_is_allocated_per_operation() {
    assert_eq!(allocated(&LinkBench, &Settings::default()), 0, "allocations in 100,000 operations of LinkBench's mix");
    for profile in ["a", "b", "c", "d", "e", "f"] {
        let settings = Settings::from([("profile", Value::Text(profile.to_owned()))]);
        assert_eq!(allocated(&Ycsb, &settings), 0, "allocations in 100,000 operations of YCSB's workload {profile}");
    }
}
