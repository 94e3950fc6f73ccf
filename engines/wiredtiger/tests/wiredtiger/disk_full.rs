//! A device that fills up: an error that says so, and a close that returns.
//!
//! The library may give up for good then, with its files open and its threads
//! running; so a process of its own fills the device.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rumba_core::engine::{Durability, Engine, EngineConfig, Instance, Schema, Session};
use rumba_core::error::EngineError;
use rumba_core::kv::Batch;
use rumba_core::setting::Value;
use rumba_engine_wiredtiger::WiredTiger;

use crate::{SPACES, settings, unlogged};

const DIRECTORY: &str = "RUMBA_TEST_FULL_DIRECTORY";
const DURABILITY: &str = "RUMBA_TEST_FULL_DURABILITY";

/// A small file system, unmounted when dropped.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=32m", "rumba-test"])
            .arg(dir.path())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        assert!(mounted);
        Self(dir)
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a process that another test has just forked holds what was open here until it becomes its program.
        let status = Command::new("umount").arg("-l").arg(self.0.path()).status();
        assert!(status.is_ok_and(|status| status.success()) || std::thread::panicking(), "umount failed");
    }
}

#[test]
#[needs(Tmpfs)]
fn a_full_device_is_named_and_the_instance_can_still_be_closed() {
    for durability in [Durability::None, Durability::NoSync] {
        let small = Small::mount();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "disk_full::fill_the_directory_of_the_environment", "--ignored", "--nocapture"])
            .env(DIRECTORY, small.0.path())
            .env(DURABILITY, durability.name())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Not a measure: a bound for a hang, which is what this test is about.
        let deadline = Instant::now() + Duration::from_secs(120);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("durability {}: hung on a full device", durability.name());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("full: the device is full"), "{}: {printed}", durability.name());
        assert!(printed.contains("closed: "), "{}: {printed}", durability.name());
    }
}

fn fill(dir: &Path, instance: &dyn Instance) -> EngineError {
    let Ok(Session::Kv(mut session)) = instance.session() else { panic!("no session in {}", dir.display()) };
    let mut batch = Batch::default();
    for turn in 0u64.. {
        batch.clear();
        for row in 0..100 {
            // Spread over the tree, so that pages are evicted and not only appended.
            let key = (turn * 100 + row).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            batch.push(0, &key, &key.repeat(64));
        }
        while let Err(error) = session.load(&batch) {
            // A cache full of dirty pages, which eviction makes room in.
            if !error.is_conflict() {
                return error;
            }
            std::thread::yield_now();
        }
    }
    unreachable!("the device is small")
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn fill_the_directory_of_the_environment() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let dir = Path::new(&dir);
    let logged = std::env::var(DURABILITY).unwrap() == Durability::NoSync.name();
    let config = if logged {
        EngineConfig {
            durability: Durability::NoSync,
            settings: settings(&[("log.file_max", Value::Text("1MiB".into()))]),
            ..unlogged()
        }
    } else {
        EngineConfig { cache: 8 << 20, ..unlogged() }
    };
    let instance = WiredTiger.open(dir, &config, Schema::KeyValue(SPACES)).unwrap();
    println!("full: {}", fill(dir, &*instance));
    println!("closed: {:?}", instance.close());
}
