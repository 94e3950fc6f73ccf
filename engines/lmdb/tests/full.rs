//! A full device and a full map end a trial with an error that says which it was.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::*;
use rumba_engine_api::engine::Durability;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::Batch;
use rumba_engine_api::setting::Value;
use rumba_engine_lmdb::Lmdb;
use rumba_testkit::full::{self, Full};
use rumba_testkit::mounts::Tmpfs;

/// Held by tests that start a process or that depend on space just freed. A forked process keeps the files that were
/// open here, deleted or not, until it executes its program. On a device that stays full for that reason, a write to
/// LMDB's mapped lock file ends the process with SIGBUS.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
#[needs(Tmpfs)]
fn full_device_is_reported_and_commits_stay_readable() {
    let _alone = alone();
    let Full { instance, device } = full::is_named(&Lmdb, &config(Durability::NoSync, &[]), 8);
    instance.close().unwrap();
    drop(device);
}

/// The results are usually on the same device and rewritten all the time. The space they freed for a moment turned a
/// full device into an "Input/output error (5)".
#[test]
#[needs(Tmpfs)]
fn shared_full_device_is_reported_as_full() {
    let _alone = alone();
    let device = Tmpfs::of_mebibytes(8);
    let (data, neighbour) = (device.path().join("data"), device.path().join("record.json"));
    let mut batch = Batch::default();
    (0..4000u32).for_each(|id| batch.push(INDEX, &id.to_be_bytes(), &[7; 3000]));
    let done = AtomicBool::new(false);
    let loaded: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // This write may also find the device full.
                let _ = std::fs::write(&neighbour, [1; 512 << 10]);
                let _ = std::fs::remove_file(&neighbour);
            }
        });
        // A panic must also stop the neighbor thread, because the scope waits for it.
        let _done = Done(&done);
        (0..100).map(|_| load_again(&data, &batch)).collect()
    });
    let other = loaded.iter().find(|loaded| !matches!(loaded, Err(EngineError::DiskFull(_))));
    assert_eq!(other, None, "every batch is larger than the device");
}

/// Sets its flag when dropped, also on a panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Loads a batch into a new database and deletes it afterwards.
fn load_again(dir: &Path, batch: &Batch) -> Result<()> {
    std::fs::create_dir(dir).unwrap();
    let instance = open_in(dir, &config(Durability::NoSync, &[]));
    let loaded = session(&*instance).load(batch);
    instance.close().unwrap();
    std::fs::remove_dir_all(dir).unwrap();
    loaded
}

/// A file-size limit also cuts writes short, and free space on the device would not help.
#[test]
fn file_size_limit_is_named_instead_of_a_full_device() {
    if std::env::var_os(HELPER).is_none() {
        let _alone = alone();
        let own = std::env::current_exe().unwrap();
        let test = "file_size_limit_is_named_instead_of_a_full_device";
        let mut command = Command::new("sh");
        // `ulimit -f` counts blocks of 512 bytes.
        command.args(["-c", "ulimit -f 20000; exec \"$0\" --exact \"$1\""]).arg(own).arg(test).env(HELPER, "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let instance = open_in(dir.path(), &config(Durability::NoSync, &[]));
    let mut batch = Batch::default();
    (0..4000u32).for_each(|id| batch.push(INDEX, &id.to_be_bytes(), &[7; 3000]));
    let error = session(&*instance).load(&batch).unwrap_err();
    let EngineError::Failed { message, .. } = error else { panic!("{error:?}: the device has room") };
    assert!(message.contains("ulimit -f"), "{message}");
}

/// Set in the child process that runs a test again under a file-size limit.
const HELPER: &str = "RUMBA_TEST_WITH_SMALL_FILES";

#[test]
fn a_full_map_names_the_setting_that_makes_it_larger() {
    let dir = tempfile::tempdir().unwrap();
    let instance = open_in(dir.path(), &config(Durability::NoSync, &[("map_size", Value::Text("1MiB".into()))]));
    let mut session = session(&*instance);
    let (error, rows) = full::fill(&mut *session);
    assert!(rows > 0);
    let EngineError::Failed { message, .. } = error else { panic!("{error:?} is no full map") };
    assert!(message.contains("raise the setting map_size (now 1.00 MiB)"), "{message}");
}
