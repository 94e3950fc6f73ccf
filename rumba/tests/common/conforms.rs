//! Whether an engine answers the workloads' operations like in-memory oracles.
#![allow(clippy::unwrap_used)]

use rumba_engine_api::engine::{Engine, EngineConfig, Family, Form, Schema, Session};
use rumba_engine_api::workload::Workload;
use rumba_workload_linkbench as linkbench;
use rumba_workload_tpcc as tpcc;
use rumba_workload_ycsb as ycsb;

/// Operations of an embedded engine for each seed; one of TPC-C's transactions is four of them.
const STEPS: usize = 4_000;
/// The number of operations on a server, which takes far longer for each, and is one of many in its family. Each server
/// has its own seed.
const STEPS_OF_SERVERS: usize = 1_200;
/// Tests a workload, with sessions, a seed, and this many operations.
type Conformance = fn(&mut dyn FnMut() -> Session, u64, usize) -> Result<(), String>;
type Tested = (&'static dyn Workload, fn(Family) -> Schema<'static>, Conformance);
const WORKLOADS: [Tested; 3] = [
    (&linkbench::LinkBench, linkbench::schema, |open, seed, steps| linkbench::conformance(open, seed, steps)),
    (&tpcc::TpcC, tpcc::schema, |open, seed, steps| tpcc::conformance(open, seed, steps / 4)),
    (&ycsb::Ycsb, ycsb::schema, |open, seed, steps| ycsb::conformance(open, seed, steps)),
];

/// An engine with default settings; for a server engine, with this server of the catalogue.
pub fn config(engine: &dyn Engine, server: Option<&str>) -> EngineConfig {
    let name = engine.info().name;
    EngineConfig {
        // The minimum that every server accepts, and small enough that data goes to disk and back.
        cache: 8 << 20,
        compression: Some("none".to_owned()),
        server: server.map(str::to_owned),
        ..EngineConfig::new(name)
    }
}

/// Tests each workload that can run on the engine, with these seeds. A server is started once for each seed, and
/// workloads have their own tables in it. For any other engine, each workload has its own instance, with its own key
/// spaces.
pub fn conforms(engine: &dyn Engine, config: &EngineConfig, seeds: &[u64]) {
    let info = engine.info();
    let has_what_it_needs =
        |workload: &dyn Workload| info.has_transactions || !workload.needs_transactions(info.family);
    let mut served: Vec<Tested> = WORKLOADS.to_vec();
    served.retain(|(workload, ..)| workload.families().contains(&info.family) && has_what_it_needs(*workload));
    let together = if info.form == Form::Server { served.len() } else { 1 };
    for served in served.chunks(together.max(1)) {
        seeds.iter().for_each(|&seed| conform(engine, config, served, seed));
    }
}

/// These workloads with this seed, in one instance.
fn conform(engine: &dyn Engine, config: &EngineConfig, served: &[Tested], seed: u64) {
    let reported = format!(
        "{} {}, {}, {}",
        config.name,
        config.server.as_deref().unwrap_or_default(),
        config.compression.as_deref().unwrap_or_default(),
        config.durability.name()
    );
    let dir = tempfile::tempdir().unwrap();
    engine.check(config).unwrap_or_else(|error| panic!("{reported}: {error}"));
    let (_, schema, _) = served[0];
    let instance = engine.open(dir.path(), config, schema(engine.info().family)).unwrap();
    let steps = if engine.info().form == Form::Server { STEPS_OF_SERVERS } else { STEPS };
    for (workload, _, conformance) in served {
        let mut open = || -> Session { instance.session().unwrap() };
        conformance(&mut open, seed, steps)
            .unwrap_or_else(|why| panic!("{} over {reported}, seed {seed}: {why}", workload.name()));
    }
    instance.close().unwrap();
}
