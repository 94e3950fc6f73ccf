//! A full device must cause an error that says so, and `close` must return.
//!
//! The library may then panic permanently, with its files open and its threads running, so the test fills the device in
//! a child process.

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Schema};
use rumba_engine_api::setting::Value;
use rumba_engine_wiredtiger::WiredTiger;
use rumba_testkit::full;

use crate::{SPACES, settings, unlogged};

#[test]
#[needs(Tmpfs)]
fn a_full_device_is_named_and_the_instance_can_still_be_closed() {
    for durability in [Durability::None, Durability::NoSync] {
        full::is_named_by_a_process("disk_full::fill_the_directory_of_the_environment", durability, 32);
    }
}

#[test]
#[ignore = "run by the test above in a separate process"]
fn fill_the_directory_of_the_environment() {
    full::fill_and_close(|dir, durability| {
        let config = if durability == Durability::NoSync {
            let settings = settings(&[("log.file_max", Value::Text("1MiB".into()))]);
            EngineConfig { durability, settings, ..unlogged() }
        } else {
            EngineConfig { cache: 8 << 20, ..unlogged() }
        };
        WiredTiger.open(dir, &config, Schema::KeyValue(&SPACES)).unwrap()
    });
}
