//! Every engine answers LinkBench's operations as the in-memory oracle does: each of the registry that keeps its data
//! and is no server. `servers` has those that are.
#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

#[allow(dead_code)] // Of it, the engines alone are wanted here.
#[path = "../src/registry.rs"]
mod registry;

use rumba_core::engine::{Asked, Durability, Engine, EngineConfig, Form, Session};
use rumba_core::setting::Settings;
use rumba_workload_linkbench::{conformance, schema};

const STEPS: usize = 4_000;

fn conforms(engine: &dyn Engine, compression: &str, durability: Durability) {
    let name = engine.info().name;
    for seed in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let config = EngineConfig {
            name: name.to_owned(),
            engine: name.to_owned(),
            cache: 4 << 20,
            durability,
            compression: Some(compression.to_owned()),
            library: None,
            server: None,
            limits: Default::default(),
            settings: Settings::default(),
        };
        engine.check(&config).unwrap_or_else(|error| panic!("{name}: {error}"));
        let instance = engine.open(dir.path(), &config, schema(engine.info().family)).unwrap();
        let mut open = || -> Session { instance.session().unwrap() };
        conformance(&mut open, seed, STEPS)
            .unwrap_or_else(|why| panic!("{name}, {compression}, {}, seed {seed}: {why}", durability.name()));
        instance.close().unwrap();
    }
}

#[test]
fn every_engine_conforms() {
    let mut engines = registry::engines();
    engines.retain(|engine| engine.info().keeps_data && engine.info().form != Form::Server);
    assert!(!engines.is_empty());
    std::thread::scope(|scope| {
        for engine in &engines {
            scope.spawn(|| {
                let availability = engine.availability(Asked::default());
                assert!(availability.missing.is_none(), "{}: {:?}", engine.info().name, availability.missing);
                conforms(engine.as_ref(), "none", Durability::NoSync);
                if let [_, .., compression] = engine.info().compressions {
                    conforms(engine.as_ref(), compression, Durability::None);
                }
            });
        }
    });
}
