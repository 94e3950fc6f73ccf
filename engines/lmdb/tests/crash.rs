//! Checks which commits survive a kill at each durability level.

mod common;

use common::*;
use rumba_engine_api::engine::Durability;
use rumba_engine_lmdb::Lmdb;
use rumba_testkit::crash;

#[test]
fn a_killed_process_loses_no_acknowledged_commit() {
    for durability in [Durability::NoSync, Durability::Sync] {
        crash::loses_no_commit(&Lmdb, &small(durability), "commit_until_killed");
    }
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn commit_until_killed() {
    crash::commit_until_killed(&Lmdb);
}
