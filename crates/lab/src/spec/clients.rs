//! Checks that workload, engines and host support the requested numbers of clients. A mistake that is found when the
//! clients start would waste the load before it.

use rumba_engine_api::engine::{Engine, Form, MostClients};
use rumba_engine_api::workload::{Bound, LeastClients};
use rumba_results::record::{DriverKind, active_clients};

use super::error::{Origin, SpecError};
use super::memory::Fitted;
use super::node::Table;
use super::{RunSpec, client_steps, ladder};
use crate::registry::Registry;
use crate::run::room;

/// Refuses more clients than the workload's data suffices for, and more clients or loaders than the host can hold.
///
/// # Errors
/// At the place of the number: the limit that applies, and the number that would work.
pub fn refuse_too_many(
    experiment: &Table,
    run: &RunSpec,
    engines: &[Fitted],
    bound: &dyn Bound,
    registry: &Registry,
) -> Result<(), SpecError> {
    let (requested, kinds) = (requested(experiment, run), bound.ops().len());
    let of_workload = bound.most_clients();
    for (_, number, origin) in requested.iter().filter(|(key, ..)| *key == CLIENTS) {
        if let Some((problem, remedy)) = of_workload.as_ref().and_then(|most| most.refusal(*number)) {
            return Err(SpecError::new(origin, format!("clients: {problem}"), remedy));
        }
    }
    for Fitted { config, .. } in engines {
        let Some(engine) = registry.engine(&config.engine) else { continue };
        let of_engine = engine
            .most_clients(config)
            .map_err(|error| SpecError::new(&Origin::Default, error.to_string(), error.remedy))?;
        // With a fleet, each client host checks its own share.
        let of_host = if run.fleet.is_none() { of_host(engine, run.driver, kinds) } else { Vec::new() };
        for most in of_engine.into_iter().chain(of_host) {
            for (key, number, origin) in &requested {
                if let Some((problem, remedy)) = most.refusal(*number) {
                    return Err(SpecError::new(origin, format!("{}: {key}: {problem}", config.name), remedy));
                }
            }
        }
    }
    Ok(())
}

/// Refuses too few working clients to reach all of the data.
///
/// # Errors
/// At the place of the number: the data that would be unused, and the number that would work.
pub fn refuse_too_few(experiment: &Table, run: &RunSpec, least: Option<&LeastClients>) -> Result<(), SpecError> {
    let Some(least) = least else { return Ok(()) };
    for (_, number, origin) in requested(experiment, run).iter().filter(|(key, ..)| *key == CLIENTS) {
        if let Some((problem, remedy)) = least.refusal(active_clients(run.active_percent, *number)) {
            return Err(SpecError::new(origin, format!("clients: {problem}"), remedy));
        }
    }
    Ok(())
}

/// The key of the clients of the mix.
const CLIENTS: &str = "clients";

fn of_host(engine: &dyn Engine, driver: DriverKind, kinds: usize) -> Vec<MostClients> {
    let is_server = engine.info().form == Form::Server;
    let by_threads = match driver {
        DriverKind::Threads => true,
        // `auto` uses threads for a server only with a few clients per core.
        DriverKind::Auto => !is_server,
        DriverKind::Loops => false,
    };
    let threads = by_threads.then(|| room::of_threads(kinds)).flatten().map(|most| match is_server {
        true => MostClients { remedy: format!("{}, take driver = \"loops\"", most.remedy), ..most },
        false => most,
    });
    let connections = is_server.then(room::of_connections).flatten();
    threads.into_iter().chain(connections).collect()
}

/// The requested numbers, each with its key and its place.
fn requested(experiment: &Table, run: &RunSpec) -> Vec<(&'static str, u32, Origin)> {
    let node = |key: &str| experiment.get("run").and_then(|run| run.get(key));
    // Mistakes in them were reported when the run was read.
    let written = node(CLIENTS).map(|node| match client_steps::steps(node) {
        Some(steps) => steps.unwrap_or_default().into_iter().map(|((_, number), origin)| (number, origin)).collect(),
        None => ladder::rungs(node).unwrap_or_default(),
    });
    let default = || run.clients.iter().map(|number| (*number, Origin::Default)).collect();
    let clients = written.unwrap_or_else(default).into_iter().map(|(number, origin)| (CLIENTS, number, origin));
    let loaders = node("load_clients").map_or(Origin::Default, |node| node.origin.clone());
    clients.chain([("load_clients", run.load_clients, loaders)]).collect()
}
