//! The harness's own CPU cost per operation on this host. One client runs the workload over an engine that answers at
//! once and stores nothing. It runs briefly before the first trial, in a separate process. The reader of a record then
//! sees which part of a figure is the harness's.

use std::fmt;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::setting::Settings;
use rumba_engine_api::worker::HostShare;
use rumba_engine_api::workload::{Bound, Workload};
use rumba_results::metric::Metric;
use rumba_results::record::TrialPlan;
use serde::{Deserialize, Serialize};

use crate::meter::ThreadCpuRegistry;
use crate::registry::Registry;
use crate::run::Driving;
use crate::run::driver::{Made, Make, Plan, Running, Schedule};
use crate::run::group::ClientGroup;

/// The longest measurement, seconds, so that a short run does not wait for it.
const LONGEST_S: f64 = 1.0;
/// The shortest, seconds: some hundred thousand operations of a release build.
const SHORTEST_S: f64 = 0.1;
/// The measurement takes at most this share of the run's loops.
const SHARE: f64 = 0.05;

/// The workload to measure, and for how long.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    workload: String,
    settings: Settings,
    seed: u64,
    seconds: f64,
}

/// The harness's own overhead.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Harness {
    /// CPU microseconds per operation, or why they are not known.
    pub cpu_us_per_op: Metric,
    /// The workload, and the engine that it ran over.
    of: String,
}

/// As in a record's conditions.
impl fmt::Display for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cpu_us_per_op {
            Metric::Value(us) => write!(f, "{us:.2} µs, {}", self.of),
            Metric::Absent { absent } => write!(f, "not known: {absent}"),
        }
    }
}

impl Harness {
    /// Measures the overhead for the workload of a trial, in the process of a command that runs [`serve`].
    pub fn measure(child: &dyn Fn() -> io::Result<Command>, trial: &TrialPlan) -> Self {
        let seconds = (trial.run.loop_s * f64::from(trial.run.loops) * SHARE).clamp(SHORTEST_S, LONGEST_S);
        let order = Order {
            workload: trial.workload.clone(),
            settings: trial.workload_settings.clone(),
            seed: trial.run.seed,
            seconds,
        };
        elsewhere(child, &order).unwrap_or_else(|error| Self::unknown(format!("its process failed: {error}")))
    }

    fn unknown(reason: impl Into<String>) -> Self {
        Self { cpu_us_per_op: Metric::absent(reason), of: String::new() }
    }
}

fn elsewhere(child: &dyn Fn() -> io::Result<Command>, order: &Order) -> io::Result<Harness> {
    let mut child = child()?.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&serde_json::to_vec(order)?)?;
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("it ended with {}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Reads an order from standard input and answers on standard output.
pub fn serve(registry: &Registry) -> io::Result<()> {
    let order: Order = serde_json::from_reader(io::stdin().lock())?;
    println!("{}", serde_json::to_string(&here(registry, &order))?);
    Ok(())
}

fn here(registry: &Registry, order: &Order) -> Harness {
    let Some(workload) = registry.workload(&order.workload) else {
        return Harness::unknown(format!("unknown workload {}", order.workload));
    };
    let families = workload.families();
    let fits = |engine: &&dyn Engine| !engine.info().keeps_data && families.contains(&engine.info().family);
    let Some(engine) = registry.engines.iter().map(AsRef::as_ref).find(fits) else {
        return Harness::unknown(no_engine(workload));
    };
    match over(engine, workload, order) {
        Ok(us) => Harness {
            cpu_us_per_op: us,
            of: format!("{} by one client over {}, which stores nothing", workload.name(), engine.info().name),
        },
        Err(error) => Harness::unknown(error.to_string()),
    }
}

/// Why no engine without storage supports the workload, and which metric to read instead.
fn no_engine(workload: &dyn Workload) -> String {
    let families: Vec<String> = workload.families().iter().map(ToString::to_string).collect();
    format!(
        "no engine that keeps nothing speaks what {} does ({}); client_cpu_us_per_op is all that its clients used, \
         with encoding, sending and decoding, and a run over `rumba null-server` has nothing else",
        workload.name(),
        families.join(", ")
    )
}

fn over(engine: &dyn Engine, workload: &dyn Workload, order: &Order) -> Result<Metric> {
    let io = |error: io::Error| EngineError::failed("making a directory", error.to_string());
    let bound: Arc<dyn Bound> =
        Arc::from(workload.bind(&order.settings).map_err(|error| EngineError::failed("workload", error.to_string()))?);
    let dir = tempfile::tempdir().map_err(io)?;
    let schema = bound.schema(engine.info().family);
    let instance: Arc<Box<dyn Instance>> = Arc::new(engine.open(dir.path(), &config(engine), schema)?);
    let kinds = bound.ops().len();
    let seed = order.seed;
    let make: Make = Arc::new(move |at| bound.client(instance.session()?, at, seed));
    let plan = Plan {
        clients: 1,
        share: HostShare::ALL,
        kinds,
        schedule: Schedule::closed(seed),
        driving: Driving::Threads { threads: 1 },
    };
    let roll = ThreadCpuRegistry::new();
    let mut running = Made::new(&plan, &make, &roll)?.start();
    let measured = measure(&mut running, &roll, Duration::from_secs_f64(order.seconds));
    running.stop();
    running.wait(Instant::now() + Duration::from_secs_f64(LONGEST_S));
    match running.failure() {
        Some(error) => Err(error.clone()),
        None => Ok(measured),
    }
}

/// CPU microseconds of the client per operation. A fifth of the time comes before it as a warmup.
fn measure(running: &mut Running, roll: &ThreadCpuRegistry, time: Duration) -> Metric {
    running.wait(Instant::now() + time / 5);
    let (before, _) = (roll.read(), running.collect());
    running.wait(Instant::now() + time);
    let (after, counts) = (roll.read(), running.collect());
    let us = (after.client_ns - before.client_ns) as f64 / 1e3;
    Metric::from(us).per(counts.ops() as f64, "operations")
}

/// An engine without storage needs only its name.
fn config(engine: &dyn Engine) -> EngineConfig {
    EngineConfig { cache: 1, durability: Durability::None, ..EngineConfig::new(engine.info().name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::testing;

    #[test]
    fn harness_without_empty_engine_names_the_client_cpu_metric() {
        let order = Order { workload: "linkbench".to_owned(), settings: Settings::default(), seed: 1, seconds: 0.1 };
        // All test engines that support this workload keep their data.
        let harness = here(&testing::registry(), &order);
        let reason = harness.cpu_us_per_op.reason().unwrap();
        assert!(reason.contains("what linkbench does (") && reason.contains("SQL of SQLite)"), "{reason}");
        assert!(reason.contains("client_cpu_us_per_op"), "{reason}");
        assert!(harness.to_string().starts_with("not known: no engine"), "{harness}");
    }
}
