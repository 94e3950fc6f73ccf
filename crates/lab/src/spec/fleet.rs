//! The `[fleet]` table: clients on several hosts.

use rumba_engine_api::worker::HostShare;
use rumba_engine_api::workload::Bound;
use rumba_results::fleet::{FleetPlan, Launcher, OnLost};

use super::error::{Origin, SpecError};
use super::memory::Fitted;
use super::node::{Node, Table};
use super::{RunSpec, take};
use crate::registry::Registry;

pub const FLEET_KEYS: &[&str] = &["hosts", "launcher", "address", "port", "on_lost", "wait", "job_time"];
/// The default port of the coordinator.
const PORT: i64 = 7331;
/// The default of `wait`, seconds.
const WAIT_S: f64 = 60.0;
/// The default of `job_time`, seconds.
const JOB_S: f64 = 14400.0;

/// Reads the table.
///
/// # Errors
/// The first mistake, at its place.
pub fn fleet(node: &Node) -> Result<FleetPlan, SpecError> {
    let table = node.table("fleet")?;
    take::only(table, "[fleet]", FLEET_KEYS)?;
    let hosts = take::required(table, "hosts", node, "hosts = 3, the number of client hosts")?;
    let address = take::required(table, "address", node, "address = \"10.0.0.1\", by which the hosts reach this one")?;
    let seconds = |key: &str, default: f64| table.get(key).map_or(Ok(default), |node| take::seconds(key, node));
    let launcher = take::one_of(table, "launcher", &Launcher::NAMES, Launcher::default())?;
    let port = table.get("port").map_or(Ok(PORT), |node| take::int("port", node, 0, 65535))? as u16;
    if let (0, Launcher::None, Some(node)) = (port, launcher, table.get("port")) {
        let problem = "port = 0 takes any free port, and only launcher = \"slurm\" passes it to the agents";
        return Err(SpecError::new(&node.origin, problem, "give a port, or leave it out"));
    }
    Ok(FleetPlan {
        hosts: take::int("hosts", hosts, 1, 1024)? as u32,
        launcher,
        address: take::text("address", address)?.to_owned(),
        port,
        on_lost: take::one_of(table, "on_lost", &OnLost::NAMES, OnLost::default())?,
        wait_s: seconds("wait", WAIT_S)?,
        job_minutes: (seconds("job_time", JOB_S)? / 60.0).ceil().max(1.0) as u32,
    })
}

/// Refuses what clients on several hosts cannot do.
///
/// # Errors
/// The obstacle, at the place of `[fleet]`.
pub fn refuse(
    experiment: &Table,
    run: &RunSpec,
    bound: &dyn Bound,
    engines: &[Fitted],
    registry: &Registry,
) -> Result<(), SpecError> {
    let Some(fleet) = &run.fleet else { return Ok(()) };
    let origin = experiment.get("fleet").map_or(Origin::Default, |node| node.key_origin.clone());
    let refuse = |problem: String, remedy: String| Err(SpecError::new(&origin, problem, remedy));
    let without = |what: &str| format!("take [fleet] or {what} out");
    if run.crash_s.is_some() {
        return refuse("verify = \"acid\" needs clients in one process".to_owned(), "set verify = true".to_owned());
    }
    if run.age_s.is_some() {
        return refuse("age is not supported with clients on several hosts".to_owned(), without("age"));
    }
    let share = HostShare { host: 0, hosts: fleet.hosts };
    if let Err(why) = bound.partition(share) {
        return refuse(format!("the workload cannot be divided among hosts: {why}"), without("the workload"));
    }
    for Fitted { config, .. } in engines {
        let Some(engine) = registry.engine(&config.engine) else { continue };
        if config.limits.client_cpus.is_some() {
            let problem =
                format!("{}: limits.client_cpus restricts clients of this host, and they run on others", config.name);
            return refuse(problem, "start the agents under `taskset`, and take limits.client_cpus out".to_owned());
        }
        if let Err(error) = engine.check_attachable(config) {
            return refuse(format!("{}: {}", config.name, error.problem), error.remedy);
        }
    }
    Ok(())
}
