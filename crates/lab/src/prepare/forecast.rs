//! What a run will take, as far as that is known before its first trial.

use rumba_core::record::{RunPlan, TrialPart, TrialPlan};
use serde::Serialize;

use super::Admitted;
use super::room::{TIMES_DATA, databases};
use crate::provision;
use crate::registry::Registry;

/// So many probes does a search for a rate mostly take.
const PROBES: f64 = 12.0;

/// What a run will take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// How many trials it has; of a search for a rate its first probe alone.
    pub trials: usize,
    /// Rows that one load writes.
    pub rows: u64,
    /// Bytes of keys and payloads that one load writes.
    pub data_bytes: u64,
    /// How often data is loaded.
    pub loads: usize,
    /// Databases that are on the disk at once: kept ones, and those at work.
    pub databases: u64,
    /// The most that these may take: so many times three times the rows' bytes.
    pub disk_bytes: u64,
    /// What is free where they will be; `null` where it cannot be told.
    pub disk_free_bytes: Option<u64>,
    /// What each engine is given of memory.
    pub memory: Vec<Memory>,
    /// Seconds of warmups and loops, and of the work before a kill; a search for a rate counts with twelve probes.
    pub measured_s: f64,
    /// The same where warmups and ageing go on as long as they may.
    pub measured_most_s: f64,
}

/// What an engine is given of memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// Its name in the experiment.
    pub engine: String,
    /// Its own cache, bytes.
    pub cache_bytes: u64,
    /// The limit of its control group, bytes; `null` for none.
    pub limit_bytes: Option<u64>,
}

impl Admitted {
    /// What these trials of it will take.
    pub fn forecast(&self, trials: &[TrialPlan], registry: &Registry) -> Forecast {
        let experiment = self.experiment();
        let data_bytes = experiment.bound.expected_logical_bytes();
        let (kept, working) = databases(experiment, trials, registry);
        let memory = experiment.engines.iter().map(|engine| Memory {
            engine: engine.name.clone(),
            cache_bytes: engine.cache,
            limit_bytes: engine.limits.memory_bytes,
        });
        let sum = |seconds: fn(&TrialPlan) -> f64| trials.iter().map(seconds).sum::<f64>();
        Forecast {
            trials: trials.len(),
            rows: experiment.bound.expected_rows(),
            data_bytes,
            loads: trials.iter().filter(|trial| trial.part != TrialPart::Run).count(),
            databases: kept + working,
            disk_bytes: data_bytes.saturating_mul(kept + working).saturating_mul(TIMES_DATA),
            disk_free_bytes: provision::free_bytes(&self.data_base).ok(),
            memory: memory.collect(),
            measured_s: sum(|trial| seconds(trial, trial.run.warmup_s, 0.0)),
            measured_most_s: sum(|trial| {
                let RunPlan { warmup_s, warmup_most_s, age_s, .. } = trial.run;
                seconds(trial, warmup_most_s.unwrap_or(warmup_s), age_s.unwrap_or(0.0))
            }),
        }
    }
}

/// Seconds of a trial that are known, with this warmup and this ageing.
fn seconds(trial: &TrialPlan, warmup_s: f64, age_s: f64) -> f64 {
    let run = &trial.run;
    let probes = if run.search.is_some() { PROBES } else { 1.0 };
    let measured = probes * (warmup_s + f64::from(run.loops) * run.loop_s) + run.crash_s.unwrap_or(0.0);
    match trial.part {
        TrialPart::Load => age_s,
        TrialPart::Run => measured,
        TrialPart::Whole => age_s + measured,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;
    use crate::prepare::Allowed;
    use crate::spec::testing::registry;
    use crate::spec::{Overrides, read_text};

    const TEXT: &str =
        "name = \"a\"\n[workload.linkbench]\n[[engine]]\nuse = \"rocksdb\"\n[[engine]]\nuse = \"sqlite\"\n";

    #[test]
    fn what_a_run_will_take_is_known_from_its_plan() {
        let set = ["repeats=4", "loops=2", "loop=30s", "warmup=10s", "warmup_most=60s", "clients=1"];
        let set = set.map(str::to_owned).to_vec();
        let experiment = read_text("a.toml", TEXT, &Overrides { set, ..Overrides::default() }, &registry()).unwrap();
        let engines = experiment.engines.len();
        let admitted = Admitted::new(experiment, Path::new("/nowhere/at/all"), Allowed::default()).unwrap();
        let trials = admitted.plan(&registry());
        let forecast = admitted.forecast(&trials, &registry());
        let runs = (4 * engines) as f64;
        assert_eq!((forecast.measured_s, forecast.measured_most_s), (70.0 * runs, 120.0 * runs));
        // The second engine's data cannot be kept: each of its trials loads.
        assert_eq!((engines, forecast.trials, forecast.loads), (2, 9, 5));
        assert_eq!(forecast.disk_bytes, forecast.data_bytes * forecast.databases * TIMES_DATA);
        assert_eq!(forecast.memory.len(), engines);
    }
}
