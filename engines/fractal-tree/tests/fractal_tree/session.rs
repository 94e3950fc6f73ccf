//! Tests each call of a session separately.

use rumba_engine_api::engine::Durability;
use rumba_engine_api::kv::{Batch, Scan};
use rumba_engine_api::setting::Value;
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::key_value;

use crate::{Database, config, get, load, put, small_nodes};

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn a_session_is_a_sorted_map_with_transactions() {
    key_value::agrees_with_a_map(&FractalTree, &config(Durability::None, &small_nodes()));
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn a_rollback_undoes_puts_and_deletes_and_needs_no_transaction() {
    let database = Database::usual();
    let mut session = database.session();
    put(&mut *session, b"a", b"old");
    session.begin().unwrap();
    session.put(0, b"a", b"new").unwrap();
    session.put(0, b"b", b"new").unwrap();
    session.delete(0, b"a").unwrap();
    session.rollback().unwrap();
    session.rollback().unwrap();
    assert_eq!(get(&mut *session, b"a").as_deref(), Some(&b"old"[..]));
    assert_eq!(get(&mut *session, b"b"), None);
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn dropped_session_releases_its_transaction_and_locks() {
    let database = Database::usual();
    let mut session = database.session();
    session.begin().unwrap();
    session.put(0, b"a", b"never committed").unwrap();
    drop(session);
    let mut next = database.session();
    put(&mut *next, b"a", b"no conflict");
    assert_eq!(get(&mut *next, b"a").as_deref(), Some(&b"no conflict"[..]));
    drop(next);
    database.instance.close().unwrap();
    drop(database.dir);
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn a_write_outside_a_transaction_is_refused_not_committed_alone() {
    let database = Database::usual();
    let mut session = database.session();
    let mut value = Vec::new();
    for error in [
        session.put(0, b"a", b"1").unwrap_err(),
        session.delete(0, b"a").unwrap_err(),
        session.get_for_update(0, b"a", &mut value).unwrap_err(),
        session.commit().unwrap_err(),
    ] {
        assert!(error.to_string().contains("call begin first"), "{error}");
    }
    assert_eq!(get(&mut *session, b"a"), None);
    session.begin().unwrap();
    assert!(session.begin().is_err(), "it would lose the first");
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn a_scan_keeps_order_bounds_and_limit_over_many_nodes() {
    let database = Database::open(&config(Durability::None, &small_nodes()));
    let mut session = database.session();
    load(&mut *session, 5000);
    let mut scan = |from: &[u8], to: &[u8], limit| {
        let mut keys = Vec::new();
        let count = session
            .scan(0, Scan { from, to, limit }, &mut |key, _| keys.push(String::from_utf8_lossy(key).into_owned()))
            .unwrap();
        assert_eq!(count, keys.len());
        keys
    };
    assert_eq!(scan(b"key 00000007", b"key 00000009", 99), ["key 00000007", "key 00000008"]);
    assert_eq!(scan(b"key 00000007x", b"key 00000009x", 99), ["key 00000008", "key 00000009"]);
    assert_eq!(scan(b"key 00000100", b"z", 3), ["key 00000100", "key 00000101", "key 00000102"]);
    let all = scan(b"", b"z", usize::MAX);
    assert_eq!(all.len(), 5000);
    assert!(all.is_sorted());
    for empty in [scan(b"z", b"zz", 9), scan(b"", b"a", 9), scan(b"b", b"a", 9), scan(b"key", b"z", 0)] {
        assert!(empty.is_empty());
    }
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn long_values_come_back_from_the_files() {
    let database = Database::usual();
    let mut session = database.session();
    let long = vec![7u8; 300_000];
    put(&mut *session, b"long", &long);
    database.instance.drain().unwrap();
    assert!(get(&mut *session, b"long") == Some(long));
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn data_survives_reopening_with_every_compression() {
    use rumba_engine_api::engine::{Engine, Schema};
    for durability in [Durability::NoSync, Durability::Sync] {
        for compression in ["none", "snappy", "zlib", "quicklz", "lzma"] {
            let mut config = config(durability, &[("pagesize", Value::Text("64KiB".into()))]);
            config.settings.0.insert("readpagesize".into(), Value::Text("16KiB".into()));
            config.compression = Some(compression.to_owned());
            let database = Database::open(&config);
            let mut session = database.session();
            load(&mut *session, 2000);
            drop(session);
            database.instance.close().unwrap();
            let schema = Schema::KeyValue(crate::SPACES);
            let instance = FractalTree.reopen(database.dir.path(), &config, schema).unwrap();
            let rows = key_value::scan(&mut *key_value::session(&*instance), 0, b"", b"z", usize::MAX);
            assert_eq!(rows.len(), 2000, "{} {compression}", durability.name());
            let found = instance.effective_settings();
            assert!(found.contains(&("compression_method".to_owned(), compression.to_owned())), "{found:?}");
            instance.close().unwrap();
        }
    }
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn a_load_is_one_transaction() {
    let database = Database::usual();
    let mut session = database.session();
    let mut batch = Batch::default();
    (0..100u8).for_each(|row| batch.push(usize::from(row % 2), &[row], b"loaded"));
    session.load(&batch).unwrap();
    assert_eq!(get(&mut *session, &[98]).as_deref(), Some(&b"loaded"[..]));
    assert_eq!(key_value::get(&mut *session, 1, &[99]).as_deref(), Some(&b"loaded"[..]));
    // Its rows are no longer locked.
    put(&mut *database.session(), &[98], b"written");
}
