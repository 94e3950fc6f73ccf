//! Tests the choice of library. A process loads only one RocksDB, so this is a single test in a separate process, with
//! the cases in order.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use rumba_engine_api::engine::{BuildSelector, Engine, EngineConfig, Schema};
use rumba_engine_api::kv::KeySpace;
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_rocksdb::RocksDb;

const SPACES: [KeySpace; 1] = [KeySpace { name: "node", scan_prefix: 0, derived: false }];

fn config(library: Option<&Path>) -> EngineConfig {
    EngineConfig { cache: 8 << 20, library: library.map(Path::to_owned), ..EngineConfig::new("rocksdb") }
}

/// The installed library's file, without loading it.
fn installed() -> PathBuf {
    let list = Command::new("/sbin/ldconfig").arg("-p").output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let line = list.lines().find(|line| line.contains("librocksdb.so")).expect("RocksDB is installed");
    line.rsplit(' ').next().unwrap().into()
}

fn missing_library_is_named_with_the_remedy(nowhere: &Path) {
    let selector = BuildSelector { library: Some(nowhere), ..BuildSelector::default() };
    let missing = RocksDb.availability(selector).missing.unwrap();
    assert!(missing.what.contains(nowhere.to_str().unwrap()), "{}", missing.what);
    assert_eq!(missing.install, "rumba engines install rocksdb@10.4");
    let error = RocksDb.check(&config(Some(nowhere))).unwrap_err();
    assert_eq!(error.key, "library");
    assert!(error.remedy.contains("apt-get install librocksdb7.8"));
    let unknown = RocksDb.check(&config(Some(Path::new("rocksdb@10.5")))).unwrap_err();
    assert!(unknown.problem.contains("did you mean `rocksdb@10.4`"), "{unknown:?}");
    let error = RocksDb.open(Path::new("/nowhere"), &config(Some(nowhere)), Schema::KeyValue(&SPACES)).err().unwrap();
    assert!(error.to_string().contains("apt-get install"), "{error}");
}

#[test]
fn named_library_is_loaded_and_a_second_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    missing_library_is_named_with_the_remedy(Path::new("/nowhere/librocksdb.so.99"));
    let selector = BuildSelector { library: Some(Path::new("libm.so.6")), ..BuildSelector::default() };
    let other = RocksDb.availability(selector).missing.unwrap();
    assert!(other.what.contains("no function rocksdb_free"), "{}", other.what);

    let named = dir.path().join("librocksdb.so.7.8.99");
    std::fs::copy(installed(), &named).unwrap();
    let named = named.canonicalize().unwrap();
    let availability = RocksDb.availability(BuildSelector { library: Some(&named), ..BuildSelector::default() });
    assert_eq!(Path::new(&availability.source), named);
    assert!(availability.version.unwrap().starts_with("7.8.99"));
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let instance = RocksDb.open(&data, &config(Some(&named)), Schema::KeyValue(&SPACES)).unwrap();
    instance.settle().unwrap();
    instance.close().unwrap();

    // Loading a second RocksDB would end this process, but its settings can still be checked by name.
    let error = RocksDb.open(&data, &config(None), Schema::KeyValue(&SPACES)).err().unwrap();
    assert!(error.to_string().contains("its own process"), "{error}");
    RocksDb.check(&config(None)).unwrap();
    let wrong = Settings::from([("write_buffer_size", Value::Text("8apples".into()))]);
    let error = RocksDb.check(&EngineConfig { settings: wrong, ..config(None) }).unwrap_err();
    assert_eq!(error.key, "write_buffer_size");
    let availability = RocksDb.availability(BuildSelector { library: Some(&installed()), ..BuildSelector::default() });
    assert!(availability.missing.is_none());
    assert_eq!(Path::new(&availability.source), installed().canonicalize().unwrap());
}
