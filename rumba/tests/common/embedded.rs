//! The embedded engines of the registry that store data: a new one is tested without being added to any list. Server
//! engines are in `servers`.
#![allow(dead_code)] // Each test file uses its part.

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, EngineInfo, Form};
use rumba_testkit::{Each, Need};

#[path = "../../src/registry.rs"]
mod registry;

/// Engines that are available wherever tests run.
pub fn here() -> Vec<Box<dyn Engine>> {
    engines(|info| info.brought.is_none())
}

/// Engines whose library the user must provide, for `#[each(embedded::brought)]`. Each has a separate test, which shows
/// as ignored if the library is missing.
pub fn brought() -> Vec<Each> {
    let each = |info: &EngineInfo| Some(Each { name: info.name, need: Some(Need::ExternalLibrary(info.brought?)) });
    engines(|_| true).iter().filter_map(|engine| each(engine.info())).collect()
}

pub fn called(name: &str) -> Box<dyn Engine> {
    let found = engines(|info| info.name == name).pop();
    found.unwrap_or_else(|| panic!("{name} is no engine in the process that keeps its data"))
}

/// All that keep their data, servers too.
pub fn and_servers() -> Vec<Box<dyn Engine>> {
    let mut engines = registry::engines();
    engines.retain(|engine| engine.info().keeps_data);
    engines
}

fn engines(which: impl Fn(&EngineInfo) -> bool) -> Vec<Box<dyn Engine>> {
    let mut engines = registry::engines();
    engines.retain(|engine| {
        let info = engine.info();
        info.keeps_data && info.form != Form::Server && which(info)
    });
    engines
}

/// The names of those for which `which` holds.
pub fn names(engines: &[Box<dyn Engine>], which: impl Fn(&dyn Engine) -> bool) -> Vec<&'static str> {
    engines.iter().filter(|engine| which(engine.as_ref())).map(|engine| engine.info().name).collect()
}

/// The names of the available engines that LinkBench runs on; its operations use several keys.
pub fn of_linkbench() -> Vec<&'static str> {
    let names = names(&here(), |engine| engine.info().has_transactions);
    assert!(!names.is_empty(), "nothing is tested");
    names
}

/// Whether all of these have transactions of several keys. A name that is not an embedded engine counts as having them:
/// it is a server's, and those named in tests support LinkBench.
pub fn have_transactions(names: &[&str]) -> bool {
    engines(|info| names.contains(&info.name)).iter().all(|engine| engine.info().has_transactions)
}

/// Whether its commits can be synced. An engine that never syncs refuses that durability, and offers a weaker one.
pub fn syncs(engine: &dyn Engine) -> bool {
    let name = engine.info().name;
    let check = |durability| engine.check(&EngineConfig { cache: 8 << 20, durability, ..EngineConfig::new(name) });
    // A refusal of everything must not hide the engine.
    check(Durability::NoSync).unwrap_or_else(|error| panic!("{name}: {error}"));
    check(Durability::Sync).is_ok()
}
