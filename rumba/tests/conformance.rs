//! Every engine answers LinkBench's and YCSB's operations and TPC-C's transactions as oracles in memory do: each of the
//! registry that keeps its data and runs in the process. `servers` has those that are servers, each with every server of
//! the catalogue.
#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

#[path = "common/conforms.rs"]
mod conforms;
#[path = "common/embedded.rs"]
mod embedded;

use conforms::{config, conforms};
use rumba_core::engine::{Asked, Durability, Engine};

/// Else it would be taken to be at par with every other.
#[test]
fn every_engine_says_what_it_is_by_nature() {
    for engine in embedded::and_servers() {
        let (info, config) = (engine.info(), config(engine.as_ref(), None));
        let (name, nature) = (info.name, engine.nature(&config));
        assert!(nature.isolation.is_some() || !engine.has_transactions(&config), "{name}: its isolation");
        assert!(nature.has_log.is_some(), "{name}: whether commits go to a log");
        // The server of TokuDB is one of others, and how it reads was for them to decide.
        assert!(nature.reads.is_some() || !info.has_cache || name == "tokudb", "{name}: how it reads its files");
    }
}

#[test]
fn every_engine_conforms() {
    conform(&embedded::here());
}

#[test]
#[needs(FractalTree)]
fn the_fractal_tree_conforms() {
    conform(&embedded::brought());
}

fn conform(engines: &[Box<dyn Engine>]) {
    assert!(!engines.is_empty());
    std::thread::scope(|scope| {
        for engine in engines {
            scope.spawn(|| {
                let availability = engine.availability(Asked::default());
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
