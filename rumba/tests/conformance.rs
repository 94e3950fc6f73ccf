//! Every engine answers LinkBench's operations and TPC-C's transactions as oracles in memory do: each of the registry that keeps its data
//! and is no server. `servers` has those that are.
#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

#[allow(dead_code)] // Of it, the engines alone are wanted here.
#[path = "../src/registry.rs"]
mod registry;

use rumba_core::engine::{Asked, Durability, Engine, EngineConfig, Family, Form, Schema, Session};
use rumba_core::setting::Settings;
use rumba_workload_linkbench as linkbench;
use rumba_workload_tpcc as tpcc;

const STEPS: usize = 4_000;
const TRANSACTIONS: usize = 1_000;
/// Of each workload: its name, its schema, and its test for a seed.
type Workload =
    (&'static str, fn(Family) -> Schema<'static>, fn(&mut dyn FnMut() -> Session, u64) -> Result<(), String>);
const WORKLOADS: [Workload; 2] = [
    ("linkbench", linkbench::schema, |open, seed| linkbench::conformance(open, seed, STEPS)),
    ("tpcc", tpcc::schema, |open, seed| tpcc::conformance(open, seed, TRANSACTIONS)),
];

fn conforms(engine: &dyn Engine, compression: &str, durability: Durability) {
    let name = engine.info().name;
    for ((workload, schema, conformance), seed) in
        WORKLOADS.into_iter().flat_map(|workload| [(workload, 1), (workload, 2)])
    {
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
        conformance(&mut open, seed).unwrap_or_else(|why| {
            panic!("{workload} over {name}, {compression}, {}, seed {seed}: {why}", durability.name())
        });
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
