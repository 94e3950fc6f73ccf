//! Deferred work, the effect of a drain, and the counters.

use rumba_engine_api::engine::{Durability, Engine, Gauge, Schema};
use rumba_engine_api::setting::Value;
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::key_value;

use crate::{Database, SPACES, config, load, open, small_nodes, usual};

fn debt(database: &Database) -> f64 {
    let debt: Vec<Gauge> = database.instance.debt();
    debt.iter().find(|gauge| gauge.name == "messages_in_trees_bytes").unwrap().value
}

/// Rewrites rows all over the table, so that messages wait in the buffers.
fn rewrite(database: &Database) {
    let mut session = database.session();
    for row in 0..4000u64 {
        let key = format!("key {:08}", row * 7919 % 20_000);
        crate::put(&mut *session, key.as_bytes(), &[7; 50]);
    }
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn drain_writes_a_checkpoint_and_leaves_buffered_messages() {
    let database = open(&config(Durability::None, &small_nodes()));
    load(&mut *database.session(), 20_000);
    database.instance.settle().unwrap();
    let before = database.counter("written_checkpoint_bytes");
    assert!(before > 0.0);
    rewrite(&database);
    let waiting = debt(&database);
    database.instance.drain().unwrap();
    assert!(database.counter("written_checkpoint_bytes") > before);
    assert!(debt(&database) > 0.0 && waiting > 0.0, "{waiting} bytes of messages waited");
    let unpaid = database.instance.unpaid().unwrap();
    assert!(unpaid.contains(" of messages wait above the leaves"), "{unpaid}");
    let reported: Vec<String> = database.instance.debt().into_iter().map(|gauge| gauge.name).collect();
    assert_eq!(reported, ["messages_in_trees_bytes", "writing_bytes", "checkpoint_age_changes"]);
}

/// The library counts from 0 in each process even if messages are pending, and the count became negative as they were
/// flushed.
#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn reopened_data_reports_pending_messages_as_unknown() {
    let config = config(Durability::NoSync, &small_nodes());
    let Database { instance, dir } = open(&config);
    load(&mut *key_value::session(&*instance), 20_000);
    instance.close().unwrap();
    let instance = FractalTree.reopen(dir.path(), &config, Schema::KeyValue(&SPACES)).unwrap();
    let database = Database { instance, dir };
    let reported = || database.instance.debt().into_iter().map(|gauge| gauge.name).collect::<Vec<_>>();
    assert_eq!(reported(), ["writing_bytes", "checkpoint_age_changes"]);
    rewrite(&database);
    assert_eq!(reported(), ["writing_bytes", "checkpoint_age_changes"], "nor after messages have come and gone");
    let counters = database.instance.counters();
    assert!(counters.iter().all(|gauge| !gauge.name.contains("messages currently in trees")), "{counters:?}");
    let unpaid = database.instance.unpaid().unwrap();
    assert!(unpaid.starts_with("messages may wait (PerconaFT counts"), "{unpaid}");
    let settings = database.instance.effective_settings();
    let why = "absent: PerconaFT counts messages since it was opened over this data";
    assert!(settings.contains(&("messages_in_trees_bytes".to_owned(), why.to_owned())), "{settings:?}");
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn with_hot_optimize_a_drain_brings_them_down() {
    let [page, part] = small_nodes();
    let settings = [page, part, ("hot_optimize", Value::Bool(true))];
    let database = open(&config(Durability::None, &settings));
    load(&mut *database.session(), 20_000);
    database.instance.settle().unwrap();
    rewrite(&database);
    // The library counts for the whole process, so other tests contribute; the check therefore only requires growth.
    let flushed = || database.counter("ft: bytes of messages flushed from h1 nodes to leaves");
    let before = flushed();
    database.instance.drain().unwrap();
    assert!(flushed() - before > 4000.0 * 62.0, "{before} bytes, then {}", flushed());
    assert_eq!(database.instance.unpaid(), None, "also if other tests have pending work");
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn log_writes_are_identified_and_counted() {
    let database = usual();
    let mut session = database.session();
    load(&mut *session, 2000);
    let files = std::fs::read_dir(database.dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let (logs, others): (Vec<_>, Vec<_>) = files.partition(|path| database.instance.is_log(path));
    assert!(!logs.is_empty() && !others.is_empty(), "{logs:?}, {others:?}");
    assert!(others.iter().any(|path| path.to_string_lossy().ends_with(".tokudb")), "{others:?}");
    let written: u64 = logs.iter().map(|path| path.metadata().unwrap().len()).sum();
    let counted = database.counter("written_log_bytes");
    assert!(counted > 500_000.0 && counted <= written as f64 * 1.1, "{counted} counted, {written} in the files");
}
