//! A full device and a full map end a trial with words that say which it was.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::*;
use rumba_core::engine::{Durability, EngineError};
use rumba_core::kv::{Batch, KvSession};
use rumba_core::setting::Value;

/// A small file system in memory, unmounted when dropped.
struct SmallDevice {
    at: PathBuf,
    _dir: tempfile::TempDir,
}

impl SmallDevice {
    fn new(mib: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("device");
        std::fs::create_dir(&at).unwrap();
        let size = format!("size={mib}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "rumba-test"]).arg(&at).output();
        assert!(mounted.is_ok_and(|output| output.status.success()));
        Self { at, _dir: dir }
    }

    fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for SmallDevice {
    fn drop(&mut self) {
        // Lazily: a process that another test has just forked holds what was open here until it becomes its program.
        let unmounted = Command::new("umount").arg("-l").arg(&self.at).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} is still mounted", self.at.display());
    }
}

/// Writes until an error comes, and rolls back; returns it and the rows that were committed.
fn fill(session: &mut dyn KvSession) -> (EngineError, u32) {
    for id in 0..1_000_000u32 {
        session.begin().unwrap();
        let written = session.put(ROWS, &id.to_be_bytes(), &[7; 3000]).and_then(|()| session.commit());
        if let Err(error) = written {
            session.rollback().unwrap();
            return (error, id);
        }
    }
    panic!("a million rows fit into a few MiB");
}

#[test]
#[needs(Tmpfs)]
fn a_full_device_is_said_to_be_full_and_what_was_committed_can_be_read() {
    let device = SmallDevice::new(8);
    let instance = open_in(device.path(), &config(Durability::NoSync, &[]));
    let mut session = session(&*instance);
    // A batch larger than the device ends in the middle of a write, which LMDB calls an I/O error.
    let mut batch = Batch::default();
    (0..4000u32).for_each(|id| batch.push(INDEX, &id.to_be_bytes(), &[7; 3000]));
    let error = session.load(&batch).unwrap_err();
    assert!(matches!(error, EngineError::DiskFull(_)), "{error:?}");
    assert!(get(&mut *session, INDEX, &0u32.to_be_bytes()).is_none());
    // Single rows end between two writes.
    let (error, rows) = fill(&mut *session);
    assert!(matches!(error, EngineError::DiskFull(_)), "{error:?}");
    assert!(rows > 0);
    for id in 0..rows {
        assert!(get(&mut *session, ROWS, &id.to_be_bytes()).is_some(), "row {id} of {rows} was committed");
    }
    assert!(get(&mut *session, ROWS, &rows.to_be_bytes()).is_none());
    drop(session);
    instance.close().unwrap();
}

#[test]
fn a_full_map_names_the_setting_that_makes_it_larger() {
    let dir = tempfile::tempdir().unwrap();
    let instance = open_in(dir.path(), &config(Durability::NoSync, &[("map_size", Value::Text("1MiB".into()))]));
    let mut session = session(&*instance);
    let (error, rows) = fill(&mut *session);
    assert!(rows > 0);
    let EngineError::Failed { message, .. } = error else { panic!("{error:?} is no full map") };
    assert!(message.contains("raise the setting map_size (now 1.00 MiB)"), "{message}");
}
