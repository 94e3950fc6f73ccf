//! A machine without the library, or with another version.

use std::path::Path;
use std::process::Command;

use rumba_engine_api::engine::{BuildSelector, Engine, EngineConfig, Schema};
use rumba_engine_wiredtiger::WiredTiger;

use crate::{SPACES, config};

#[test]
fn a_missing_library_names_the_command_that_installs_it() {
    let path = Path::new("/nonexistent/libwiredtiger.so");
    let selector = BuildSelector { library: Some(path), ..BuildSelector::default() };
    let missing = WiredTiger.availability(selector).missing.unwrap();
    assert!(missing.what.contains("/nonexistent/libwiredtiger.so"), "{}", missing.what);
    assert!(missing.what.contains("cannot open shared object file"), "{}", missing.what);
    assert_eq!(missing.install, "apt-get install libwiredtiger0");

    let config = EngineConfig { library: Some(path.to_owned()), ..config() };
    let dir = tempfile::tempdir().unwrap();
    let error = WiredTiger.open(dir.path(), &config, Schema::KeyValue(&SPACES)).err().unwrap().to_string();
    assert!(error.contains("apt-get install libwiredtiger0"), "{error}");
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
}

/// Another version has other structs, so calling it would corrupt memory.
#[test]
#[needs(CCompiler)]
fn another_version_is_refused_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (source, library) = (dir.path().join("fake.c"), dir.path().join("libwiredtiger.so"));
    let program = "const char *wiredtiger_version(int *a, int *b, int *c) {\n\
                   *a = 11; *b = 3; *c = 1; return \"WiredTiger 11.3.1: (February 01, 2025)\"; }\n";
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(compiled.success());
    let selector = BuildSelector { library: Some(&library), ..BuildSelector::default() };
    let missing = WiredTiger.availability(selector).missing.unwrap();
    assert!(missing.what.contains("WiredTiger 11.3.1") && missing.what.contains("3.2"), "{}", missing.what);
}

#[test]
fn library_of_another_kind_is_refused() {
    // Any library that every program loads.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let other = maps.lines().filter_map(|line| line.split_whitespace().nth(5)).find(|path| path.contains("libc.so"));
    let other = Path::new(other.unwrap());
    let selector = BuildSelector { library: Some(other), ..BuildSelector::default() };
    let missing = WiredTiger.availability(selector).missing.unwrap();
    assert!(missing.what.contains("it is not WiredTiger"), "{}", missing.what);
}
