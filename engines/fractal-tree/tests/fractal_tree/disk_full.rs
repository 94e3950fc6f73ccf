//! A full device must cause an error that says so, and `close` must return.
//!
//! The library itself would wait forever. rumba's workaround is permanent for the process, so the test fills the device
//! in a child process.

use rumba_engine_api::engine::{Durability, Engine, Schema};
use rumba_engine_api::setting::Value;
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::full;

use crate::{SPACES, config};

#[test]
#[needs(ExternalLibrary(LIBRARY), Tmpfs)]
fn a_full_device_is_named_and_the_instance_can_still_be_closed() {
    for durability in [Durability::None, Durability::NoSync] {
        full::is_named_by_a_process("disk_full::fill_the_directory_of_the_environment", durability, 24);
    }
}

#[test]
#[ignore = "run by the test above in a separate process"]
fn fill_the_directory_of_the_environment() {
    full::fill_and_close(|dir, durability| {
        // Small nodes in a small cache make the library write trees too. The library's reserved free space is off.
        let settings = [
            ("pagesize", Value::Text("64KiB".into())),
            ("readpagesize", Value::Text("16KiB".into())),
            ("redzone", Value::Int(0)),
        ];
        let mut config = config(durability, &settings);
        config.cache = 8 << 20;
        config.compression = Some("none".to_owned());
        FractalTree.open(dir, &config, Schema::KeyValue(&SPACES)).unwrap()
    });
}
