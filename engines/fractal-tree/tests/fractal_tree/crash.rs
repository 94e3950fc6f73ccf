//! Checks which commits survive a kill at each durability level.

use rumba_engine_api::delta::Delta;
use rumba_engine_api::engine::{Durability, Engine, Schema};
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::crash::{self, Death, ROWS, Writer};
use rumba_testkit::key_value;

use crate::{SPACES, config};

#[test]
#[ignore = "run by the contract in a separate process"]
fn commit_until_killed() {
    crash::commit_until_killed(&FractalTree);
}

/// Recovery sends the messages again, but never applies one twice.
#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn messages_are_neither_lost_nor_sent_twice_by_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Durability::NoSync, &[]);
    crash::kill("crash::count_until_killed", dir.path(), &config, Death::AfterTheLast);
    let instance = FractalTree.reopen(dir.path(), &config, Schema::KeyValue(&SPACES)).unwrap();
    let mut session = key_value::session(&*instance);
    let count = key_value::get(&mut *session, 1, b"count").unwrap();
    assert_eq!(count, ROWS.to_le_bytes());
    drop(session);
    instance.close().unwrap();
}

#[test]
#[ignore = "run by the test above in a separate process"]
fn count_until_killed() {
    let Some(writer) = Writer::requested() else { return };
    let instance = FractalTree.open(&writer.dir, &writer.config, Schema::KeyValue(&SPACES)).unwrap();
    let mut session = key_value::session(&*instance);
    let mut delta = Delta::default();
    delta.begin(Some(&1u64.to_le_bytes()));
    delta.add(0, 1);
    writer.write(|row| {
        // Some rows are in a checkpoint, the others only in the log.
        if row == ROWS / 2 {
            instance.drain().unwrap();
        }
        session.begin().unwrap();
        assert!(session.update(1, b"count", &delta).unwrap());
        session.commit().unwrap();
    });
}
