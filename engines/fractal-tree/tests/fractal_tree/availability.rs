//! Finding the library, and the error when it is missing.

use std::path::Path;

use rumba_engine_api::engine::{BuildSelector, Durability, Engine, EngineConfig, Schema};
use rumba_engine_fractal_tree::{FractalTree, LIBRARY};
use rumba_testkit::key_value;

use crate::{SPACES, config};

fn missing(path: &str) -> String {
    let requested = BuildSelector { library: Some(Path::new(path)), ..BuildSelector::default() };
    let missing = FractalTree.availability(requested).missing.unwrap();
    assert!(missing.install.contains("RUMBA_FRACTAL_TREE") && missing.install.contains("PerconaFT"), "{missing:?}");
    assert!(missing.install.contains(LIBRARY.variable) && missing.install.contains(LIBRARY.page), "{missing:?}");
    missing.what
}

/// The error omitted the loader's message and reported an existing file as missing. In most cases one of the library's
/// own dependencies is missing.
#[test]
fn unloadable_library_is_reported_with_the_loader_error() {
    assert!(missing("/nowhere/libtokufractaltree.so").contains("cannot open shared object file"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("libtokufractaltree.so");
    std::fs::write(&file, [0u8; 4096]).unwrap();
    let what = missing(file.to_str().unwrap());
    assert!(what.contains("cannot be loaded") && what.contains("invalid ELF header"), "{what}");
}

#[test]
fn replaced_library_is_not_called() {
    assert!(missing("libm.so.6").contains("no function db_version: it is not PerconaFT"));
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn named_library_reports_its_version() {
    let availability = FractalTree.availability(BuildSelector::default());
    assert_eq!((availability.version.as_deref(), availability.missing.is_none()), (Some("4.6.119"), true));
    assert!(Path::new(&availability.source).is_file(), "{}", availability.source);
}

#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn reopening_a_missing_database_creates_none() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Durability::NoSync, &[]);
    let error = FractalTree.reopen(dir.path(), &config, Schema::KeyValue(&SPACES)).err().unwrap();
    assert!(error.to_string().contains("tokudb.environment is missing"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let config = EngineConfig { durability: Durability::None, ..config };
    assert!(!FractalTree.reopens(&config));
    let error = FractalTree.reopen(dir.path(), &config, Schema::KeyValue(&SPACES)).err().unwrap();
    assert!(error.to_string().contains("without a log"), "{error}");
}

/// A failed open must not leave locks behind or end the process.
#[test]
#[needs(ExternalLibrary(LIBRARY))]
fn missing_or_used_directory_is_an_error_without_damage() {
    let config = config(Durability::NoSync, &[]);
    let open = |dir: &Path| FractalTree.open(dir, &config, Schema::KeyValue(&SPACES));
    let error = open(Path::new("/nowhere/at/all")).err().unwrap();
    assert!(error.to_string().contains("DB_ENV->open"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).unwrap();
    let error = open(dir.path()).err().unwrap();
    assert!(error.to_string().contains("DB_ENV->open"), "{error}");
    let mut session = key_value::session(&*first);
    key_value::put(&mut *session, 0, b"a", b"1");
    assert_eq!(key_value::get(&mut *session, 0, b"a").as_deref(), Some(&b"1"[..]));
    drop(session);
    first.close().unwrap();
}
