//! Every adapter answers as the oracle does, and conformance detects an adapter that does not.
#![allow(clippy::unwrap_used)]

mod support;

use rumba_engine_api::engine::Session;
use rumba_workload_linkbench::conformance;
use support::memory::Memory;
use support::sqlite::Sqlite;

#[test]
fn the_key_value_adapter_answers_as_the_oracle_does() {
    for seed in 0..8 {
        let memory = Memory::default();
        conformance(&mut || memory.session(), seed, 4000).unwrap();
    }
}

#[test]
fn the_sql_adapter_answers_as_the_oracle_does() {
    for seed in 0..4 {
        let sqlite = Sqlite::new();
        conformance(&mut || sqlite.session(), seed, 3000).unwrap();
    }
}

#[test]
fn an_engine_that_loses_deletes_does_not_pass() {
    let memory = Memory::default();
    let mut open = || {
        let mut session = memory.kv();
        session.loses_deletes = true;
        Session::Kv(Box::new(session))
    };
    let reported = conformance(&mut open, 1, 4000).unwrap_err();
    assert!(reported.contains("seed 1, step"), "{reported}");
}
