//! A client's operations must not pay for the harness. After warmup, a read or a write through the session allocates no
//! memory on the Rust side.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use rumba_engine_api::delta::Delta;
use rumba_engine_api::engine::{Engine, EngineConfig, Schema};
use rumba_engine_api::kv::{KeySpace, Scan};
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::allocations::{self, Counting};
use rumba_testkit::key_value;

/// Counts this thread's Rust allocations. The library's own go directly to malloc.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn a_warmed_up_session_allocates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let config = EngineConfig { cache: 32 << 20, ..EngineConfig::new("fractal-tree") };
    let spaces = [KeySpace { name: "rows", scan_prefix: 0, derived: false }];
    let instance = FractalTree.open(dir.path(), &config, Schema::KeyValue(&spaces)).unwrap();
    let mut session = key_value::session(&*instance);
    let (mut value, mut delta, mut sum) = (Vec::new(), Delta::default(), 0);
    let mut round = |rounds: u32| {
        for id in 0..rounds {
            let key = (id % 100).to_be_bytes();
            session.begin().unwrap();
            session.get_for_update(0, &key, &mut value).unwrap();
            session.put(0, &key, &[7; 300]).unwrap();
            session.delete(0, b"absent").unwrap();
            delta.begin(Some(&[0; 16]));
            delta.add(0, 1);
            delta.overwrite(8, b"now");
            session.update(0, b"count", &delta).unwrap();
            session.commit().unwrap();
            session.get(0, &key, &mut value).unwrap();
            session.get(0, b"count", &mut value).unwrap();
            let scan = Scan { from: &key, to: &[0xff], limit: 10 };
            sum += session.scan(0, scan, &mut |_, _| {}).unwrap();
        }
    };
    assert!(allocations::during(|| round(100)) > 0, "the counter counts");
    assert_eq!(allocations::during(|| round(1000)), 0);
    assert!(sum > 0);
}
