//! A volume's device has the same properties on every disk and with every device number.

use std::fs;
use std::path::Path;

use rumba_engine_api::limits::{Backing, StorageLimit};
use rumba_lab::host::block::{self, DeviceFacts};
use rumba_lab::limits::Enforcement;

use crate::support::*;

fn facts(enforcement: &Enforcement) -> DeviceFacts {
    DeviceFacts::of(block::device_of(enforcement.storage_dir().unwrap()).unwrap().number)
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn backing_changes_neither_read_ahead_nor_rotational_flag() {
    let host = Host::new();
    let mut conditions = Vec::new();
    for backing in [Backing::Tmpfs, Backing::File] {
        let enforcement = host.begin(&storage_alone(small(backing)));
        let facts = facts(&enforcement);
        assert_eq!((facts.rotational, facts.read_ahead_bytes), (Some(false), Some(128 << 10)), "{backing}");
        assert!(enforcement.enforced()[0].contains("not rotational, read-ahead 128.0 KiB"), "said in the conditions");
        conditions.push(enforcement.enforced().to_vec());
        // A second device, because the first is in use.
        let second = host.begin(&storage_alone(small(backing)));
        assert_ne!(enforcement.device(), second.device());
        assert_eq!(enforcement.enforced(), second.enforced(), "which device is free is no condition");
        second.end().unwrap();
        enforcement.end().unwrap();
    }
    host.assert_nothing_left();
}

#[test]
#[needs(LoopDevice, StorageRates)]
fn requested_limit_is_enforced_and_removed_with_the_volume() {
    let host = Host::new();
    let turning = StorageLimit { read_ahead_bytes: Some(2560 << 10), rotational: Some(true), ..small(Backing::Tmpfs) };
    let enforcement = host.begin(&storage_alone(turning));
    let known = facts(&enforcement);
    assert_eq!((known.rotational, known.read_ahead_bytes), (Some(true), Some(2560 << 10)));
    assert!(enforcement.enforced()[0].contains(", rotational, read-ahead 2.50 MiB"), "{:?}", enforcement.enforced());
    let node = enforcement.device().unwrap().node.clone();
    enforcement.end().unwrap();
    let queue = Path::new("/sys/block").join(node.file_name().unwrap()).join("queue");
    let is = |name: &str| fs::read_to_string(queue.join(name)).unwrap().trim().to_owned();
    assert_eq!((is("rotational").as_str(), is("read_ahead_kb").as_str()), ("0", "128"), "nothing is inherited from it");
    host.assert_nothing_left();
}

fn backing_file(enforcement: &Enforcement) -> Option<String> {
    let node = enforcement.device().unwrap().node.clone();
    fs::read_to_string(Path::new("/sys/block").join(node.file_name().unwrap()).join("loop/backing_file")).ok()
}

/// Two containers share the host's loop devices, and have volumes of one path in separate filesystems.
#[test]
#[needs(LoopDevice, StorageRates)]
fn device_of_same_path_in_another_filesystem_is_left_alone() {
    let host = Host::new();
    let own = host.begin(&storage_alone(small(Backing::Tmpfs)));
    let before = backing_file(&own);
    let output = elsewhere("volume::child_makes_and_removes_a_volume", &host).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let shown = format!("backed by {}", before.as_deref().unwrap());
    assert!(String::from_utf8_lossy(&output.stdout).contains(&shown), "the kernel shows one path of both files");
    assert_eq!(backing_file(&own), before, "it is attached as it was");
    own.end().unwrap();
    host.assert_nothing_left();
}

#[test]
#[needs(LoopDevice, StorageRates)]
#[ignore = "run by another test, as a process of its"]
fn child_makes_and_removes_a_volume() {
    let enforcement = Host::of_parent().begin(&storage_alone(small(Backing::Tmpfs)));
    println!("backed by {}", backing_file(&enforcement).unwrap());
    enforcement.end().unwrap();
}
