//! Checks which commits survive a kill at each durability level.

use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::setting::Value;
use rumba_engine_wiredtiger::WiredTiger;
use rumba_testkit::crash::{self, Death};

use crate::{config, settings};

pub const WRITER: &str = "crash::commit_until_killed";

/// This is the reason why `no-sync` does not map to the library's `transaction_sync=(enabled=false)`. If this test
/// begins to fail, that cheaper setting has become good enough.
#[test]
fn commits_that_stay_in_the_log_buffer_are_lost() {
    let small = [("log.file_max", Value::Text("1MiB".into()))];
    let config = EngineConfig { durability: Durability::Buffered, settings: settings(&small), ..config() };
    assert!(crash::survivors(&WiredTiger, &config, WRITER, Death::AfterTheLast) < crash::ROWS);
}

#[test]
#[ignore = "run by other tests in a separate process"]
fn commit_until_killed() {
    crash::commit_until_killed(&WiredTiger);
}
