//! A client's operations must not pay for the harness. After warmup, a read or a write through the session allocates no
//! memory on the Rust side.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use rumba_engine_api::kv::Scan;
use rumba_testkit::allocations::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_warmed_up_session_allocates_nothing() {
    let (_dir, instance) = open();
    let mut session = session(&*instance);
    let mut value = Vec::new();
    let mut sum = 0u64;
    let mut round = |rounds: u32| {
        for id in 0..rounds {
            let key = (id % 100).to_be_bytes();
            session.begin().unwrap();
            session.get_for_update(ROWS, &key, &mut value).unwrap();
            session.put(ROWS, &key, &[7; 300]).unwrap();
            session.delete(INDEX, &key).unwrap();
            session.commit().unwrap();
            session.get(ROWS, &key, &mut value).unwrap();
            let keys: [&[u8]; 2] = [&key, b"absent"];
            session.multi_get(ROWS, &keys, &mut value, &mut |_, value| sum += value.len() as u64).unwrap();
            let scan = Scan { from: &key, to: &[0xff], limit: 10 };
            session.scan(ROWS, scan, &mut |key, _| sum += key.len() as u64).unwrap();
        }
    };
    assert!(allocations::during(|| round(100)) > 0, "the counter counts");
    assert_eq!(allocations::during(|| round(1000)), 0);
    assert!(sum > 0);
}
