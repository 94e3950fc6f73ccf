//! Every engine answers LinkBench's and YCSB's operations and TPC-C's transactions like in-memory oracles. The test
//! covers the registry's embedded engines that store data; `servers` has the server engines, each with every server of
//! the catalogue.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

#[path = "common/conforms.rs"]
mod conforms;
#[path = "common/embedded.rs"]
mod embedded;

use std::path::Path;
use std::process::Command;

use conforms::{config, conforms};
use rumba_engine_api::engine::{BuildSelector, Durability, Engine, ExternalLibrary};
use rumba_testkit::Need;

#[test]
fn cacheless_engine_reports_no_cache() {
    for engine in embedded::and_servers() {
        let info = engine.info();
        let listed = Command::new(env!("CARGO_BIN_EXE_rumba")).args(["engines", info.name]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        let cache = listed.lines().find(|line| line.starts_with("  cache ")).unwrap();
        assert_eq!(cache.contains("it has no cache"), !info.has_cache, "{}: {cache}", info.name);
    }
}

/// An engine without these facts would count as comparable with every other.
#[test]
fn every_engine_states_its_traits() {
    for engine in embedded::and_servers() {
        let (info, config) = (engine.info(), config(engine.as_ref(), None));
        let (name, nature) = (info.name, engine.nature(&config));
        assert!(nature.isolation.is_some() || !engine.has_transactions(&config), "{name}: its isolation");
        assert!(nature.has_log.is_some(), "{name}: whether commits go to a log");
        assert!(nature.reads.is_some() || !info.has_cache, "{name}: how it reads its files");
    }
}

/// Checks that the engine, the program, the page and the tests describe in the same way how to obtain a library.
#[test]
fn external_library_has_its_own_variable_and_a_setup_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut engines = embedded::and_servers();
    engines.retain(|engine| engine.info().brought.is_some());
    assert!(!engines.is_empty(), "nothing is tested");
    let mut variables = Vec::new();
    for engine in &engines {
        let info = engine.info();
        let brought = info.brought.unwrap();
        let ExternalLibrary { variable, page } = brought;
        assert!(variable.starts_with("RUMBA_") && !variables.contains(&variable), "{}: {variable}", info.name);
        variables.push(variable);
        let text = std::fs::read_to_string(root.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(variable), "{page} does not name {variable}");
        let requested = BuildSelector { library: Some(Path::new("/nowhere/lib.so")), ..BuildSelector::default() };
        let install = engine.availability(requested).missing.unwrap().install;
        let listed = Command::new(env!("CARGO_BIN_EXE_rumba")).args(["engines", info.name]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        for reported in [install, listed] {
            assert!(reported.contains(variable) && reported.contains(page), "{}: {reported}", info.name);
        }
        let need = Need::ExternalLibrary(brought);
        let mut tested = embedded::brought().into_iter();
        assert!(
            tested.any(|each| (each.name, each.need) == (info.name, Some(need))),
            "{}: tests leave it out",
            info.name
        );
    }
}

#[test]
fn every_engine_conforms() {
    conform(&embedded::here());
}

#[test]
#[each(embedded::brought)]
fn every_brought_engine_conforms(engine: &'static str) {
    conform(&[embedded::called(engine)]);
}

fn conform(engines: &[Box<dyn Engine>]) {
    assert!(!engines.is_empty());
    std::thread::scope(|scope| {
        for engine in engines {
            scope.spawn(|| {
                let availability = engine.availability(BuildSelector::default());
                assert!(availability.missing.is_none(), "{}: {:?}", engine.info().name, availability.missing);
                let mut config = config(engine.as_ref(), None);
                conforms(engine.as_ref(), &config, &[1, 2]);
                if let [_, .., compression] = engine.info().compressions {
                    config.compression = Some((*compression).to_owned());
                    config.durability = Durability::None;
                    conforms(engine.as_ref(), &config, &[1, 2]);
                }
            });
        }
    });
}
