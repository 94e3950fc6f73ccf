//! The effect of each durability level: log and sync, and which commits survive a kill.

use rumba_engine_api::setting::Value;
use rumba_testkit::crash::{self, Death};

use super::*;

#[test]
fn only_the_write_ahead_log_counts_as_log() {
    let lab = open(&config());
    assert!(lab.instance.is_log(Path::new("/data/000012.log")));
    for file in ["LOG", "LOG.old.1700000000", "000012.sst", "MANIFEST-000005", "OPTIONS-000007"] {
        assert!(!lab.instance.is_log(Path::new(file)), "{file}");
    }
}

/// A `sync` that does not sync would win every comparison of durable engines.
#[test]
fn commits_and_loads_are_synced_only_under_sync() {
    const COMMITS: u64 = 20;
    let syncs = |durability| {
        let config = EngineConfig { durability, ..config_with([("statistics", Value::Bool(true))]) };
        let lab = open(&config);
        let mut session = lab.session();
        let synced = |lab: &Database| gauge(&lab.instance.counters(), "wal.synced");
        let before = synced(&lab);
        for row in 0..COMMITS {
            put(&mut *session, NODE, &row.to_be_bytes(), b"committed");
        }
        let after_commits = synced(&lab);
        for row in 0..COMMITS {
            load(&mut *session, LINK, row..row + 1);
        }
        let settings: BTreeMap<String, String> = lab.instance.effective_settings().into_iter().collect();
        let read_back = |name: &str| settings[&format!("WriteOptions.{name}")] == "true";
        let options = (read_back("sync"), read_back("disableWAL"));
        (after_commits - before, synced(&lab) - after_commits, options)
    };
    let (commits, loads, options) = syncs(Durability::Sync);
    assert!(commits >= COMMITS as f64 && loads >= COMMITS as f64, "{commits} and {loads} syncs");
    assert_eq!(options, (true, false));
    assert_eq!(syncs(Durability::NoSync), (0.0, 0.0, (false, false)));
    assert_eq!(syncs(Durability::None), (0.0, 0.0, (false, true)));
}

pub const WRITER: &str = "tests::durability::commit_until_killed";

/// Commits that `none` loses. This also proves that the contract's kill can fail.
#[test]
fn a_killed_process_loses_the_memtables_under_none() {
    let config = EngineConfig { durability: Durability::None, ..config() };
    assert_eq!(crash::survivors(&RocksDb, &config, WRITER, Death::AfterTheLast), 0);
}

#[test]
#[ignore = "run by other tests in a separate process"]
fn commit_until_killed() {
    crash::commit_until_killed(&RocksDb);
}
