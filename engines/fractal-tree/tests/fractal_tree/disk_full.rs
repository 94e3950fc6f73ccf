//! A device that fills up: an error that says so, and a close that returns.
//!
//! The library would wait for room for ever. What is made to go on is its process, and for good; so a process of its own
//! fills the device.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rumba_core::engine::{Durability, Engine, Schema};
use rumba_core::setting::Value;
use rumba_engine_fractal_tree::FractalTree;
use rumba_testkit::mounts::Tmpfs;
use rumba_testkit::{full, key_value, process};

use crate::{SPACES, config};

const DIRECTORY: &str = "RUMBA_TEST_FULL_DIRECTORY";
const DURABILITY: &str = "RUMBA_TEST_FULL_DURABILITY";

#[test]
#[needs(FractalTree, Tmpfs)]
fn a_full_device_is_named_and_the_instance_can_still_be_closed() {
    for durability in [Durability::None, Durability::NoSync] {
        let small = Tmpfs::of_mebibytes(24);
        let mut child = process::with_test("disk_full::fill_the_directory_of_the_environment")
            .env(DIRECTORY, small.path())
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

#[test]
#[ignore = "run by the test above in a process of its own"]
fn fill_the_directory_of_the_environment() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let dir = Path::new(&dir);
    let durability = if std::env::var(DURABILITY).unwrap() == "none" { Durability::None } else { Durability::NoSync };
    // Small nodes in a small cache, so that trees are written too; without the zone that the library keeps free.
    let settings = [
        ("pagesize", Value::Text("64KiB".into())),
        ("readpagesize", Value::Text("16KiB".into())),
        ("redzone", Value::Int(0)),
    ];
    let mut config = config(durability, &settings);
    config.cache = 8 << 20;
    config.compression = Some("none".to_owned());
    let instance = FractalTree.open(dir, &config, Schema::KeyValue(SPACES)).unwrap();
    let (full, _) = full::fill(&mut *key_value::session(&*instance));
    println!("full: {full}");
    println!("closed: {:?}", instance.close());
}
