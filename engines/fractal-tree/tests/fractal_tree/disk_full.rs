//! A device that fills up: an error that says so, and a close that returns.
//!
//! The library would wait for room for ever. What is made to go on is its process, and for good; so a process of its own
//! fills the device.

use rumba_core::engine::{Durability, Engine, Schema};
use rumba_core::setting::Value;
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::full;

use crate::{SPACES, config};

#[test]
#[needs(Brought(LIBRARY), Tmpfs)]
fn a_full_device_is_named_and_the_instance_can_still_be_closed() {
    for durability in [Durability::None, Durability::NoSync] {
        full::is_named_by_a_process("disk_full::fill_the_directory_of_the_environment", durability, 24);
    }
}

#[test]
#[ignore = "run by the test above in a process of its own"]
fn fill_the_directory_of_the_environment() {
    full::fill_and_close(|dir, durability| {
        // Small nodes in a small cache, so that trees are written too; without the zone that the library keeps free.
        let settings = [
            ("pagesize", Value::Text("64KiB".into())),
            ("readpagesize", Value::Text("16KiB".into())),
            ("redzone", Value::Int(0)),
        ];
        let mut config = config(durability, &settings);
        config.cache = 8 << 20;
        config.compression = Some("none".to_owned());
        FractalTree.open(dir, &config, Schema::KeyValue(SPACES)).unwrap()
    });
}
