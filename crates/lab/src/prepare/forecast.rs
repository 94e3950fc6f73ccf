//! Estimates the cost of a run before its first trial.

use rumba_engine_api::cpus::CpuSet;
use rumba_engine_api::limits::Backing;
use rumba_results::record::{RunPlan, TrialPart, TrialPlan};
use serde::Serialize;

use super::Validated;
use super::room::OnDisk;
use crate::provision;
use crate::registry::Registry;

/// The typical number of probes in a search for a rate.
const PROBES: f64 = 12.0;

/// The estimated cost of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// The number of trials; a search for a rate counts as one.
    pub trials: usize,
    /// Rows that one load writes.
    pub rows: u64,
    /// Bytes of keys and payloads that one load writes.
    pub data_bytes: u64,
    pub loads: usize,
    /// Databases that are on the disk at the same time, without volumes: kept ones and those in use.
    pub databases: u64,
    /// The file of the largest volume on the disk, bytes; 0 if there is none. One volume exists at a time.
    pub volume_bytes: u64,
    /// An upper bound for disk space: `databases` times three times the rows' bytes, and the volume.
    pub disk_bytes: u64,
    /// Free bytes at their place; `null` if unknown.
    pub disk_free_bytes: Option<u64>,
    pub memory: Vec<Memory>,
    /// The CPUs of engines and clients that are restricted to some.
    pub cpus: Vec<Cpus>,
    /// The volumes of engines with limited storage.
    pub storage: Vec<Storage>,
    /// Seconds of warmups, loops and the work before a kill. A search for a rate counts as twelve probes.
    pub measured_s: f64,
    /// The same with warmups and ageing at their maximum.
    pub measured_most_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// Its name in the experiment.
    pub engine: String,
    /// Its own cache, bytes. `null` for an existing server, and if an engine setting gives the size in other terms.
    pub cache_bytes: Option<u64>,
    /// The same as text, with the engine setting that decides it, if any: `1.00 GiB (innodb_buffer_pool_size)`.
    pub cache: String,
    /// The limit of its control group, bytes; `null` for none.
    pub limit_bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cpus {
    /// Its name in the experiment.
    pub engine: String,
    /// The CPUs of its processes; `null` for all.
    pub cpus: Option<CpuSet>,
    /// The CPUs of a server's clients; `null` for all.
    pub client_cpus: Option<CpuSet>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Storage {
    /// Its name in the experiment.
    pub engine: String,
    /// Bytes of the volume.
    pub size_bytes: u64,
    /// The medium of the volume's blocks.
    pub backing: Backing,
}

impl Validated {
    /// Estimates the cost of these trials of the experiment.
    pub fn forecast(&self, trials: &[TrialPlan], registry: &Registry) -> Forecast {
        let experiment = self.experiment();
        let data_bytes = experiment.bound.expected_logical_bytes();
        let disk = OnDisk::of(experiment, trials, registry);
        let memory = experiment.engines.iter().map(|engine| {
            let cache = engine.given_cache(registry.facts(engine).as_ref());
            Memory {
                engine: engine.name.clone(),
                cache_bytes: cache.value,
                cache: cache.to_string(),
                limit_bytes: engine.limits.memory_bytes,
            }
        });
        let storage = experiment.engines.iter().filter_map(|engine| {
            let limit = engine.limits.storage.as_ref()?;
            Some(Storage { engine: engine.name.clone(), size_bytes: limit.size_bytes, backing: limit.backing })
        });
        let cpus = experiment.engines.iter().filter_map(|engine| {
            let (cpus, client_cpus) = (engine.limits.cpus.clone(), engine.limits.client_cpus.clone());
            (cpus.is_some() || client_cpus.is_some()).then(|| Cpus { engine: engine.name.clone(), cpus, client_cpus })
        });
        let sum = |seconds: fn(&TrialPlan) -> f64| trials.iter().map(seconds).sum::<f64>();
        Forecast {
            trials: trials.len(),
            rows: experiment.bound.expected_rows(),
            data_bytes,
            loads: trials.iter().filter(|trial| trial.part != TrialPart::Run).count(),
            databases: disk.databases(),
            volume_bytes: disk.volume_bytes,
            disk_bytes: disk.bytes(data_bytes),
            disk_free_bytes: provision::free_bytes(&self.data_base).ok(),
            memory: memory.collect(),
            cpus: cpus.collect(),
            storage: storage.collect(),
            measured_s: sum(|trial| seconds(trial, trial.run.warmup_s, 0.0)),
            measured_most_s: sum(|trial| {
                let RunPlan { warmup_s, warmup_most_s, age_s, .. } = trial.run;
                seconds(trial, warmup_most_s.unwrap_or(warmup_s), age_s.unwrap_or(0.0))
            }),
        }
    }
}

/// The known seconds of a trial, with this warmup and this ageing.
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
    use std::path::Path;

    use super::*;
    use crate::prepare::{Allowed, TIMES_DATA};
    use crate::spec::testing::registry;
    use crate::spec::{Overrides, read_text};

    const TEXT: &str =
        "name = \"a\"\n[workload.linkbench]\n[[engine]]\nuse = \"rocksdb\"\n[[engine]]\nuse = \"sqlite\"\n";

    #[test]
    fn forecast_follows_from_the_plan() {
        let forecast = |more: &[&str]| {
            let set = [&["repeats=4", "loops=2", "loop=30s", "warmup=10s", "warmup_most=60s"], more].concat();
            let set = set.into_iter().map(str::to_owned).collect();
            let overrides = Overrides { set, ..Overrides::default() };
            let experiment = read_text("a.toml", TEXT, &overrides, &registry()).unwrap();
            let admitted = Validated::new(experiment, Path::new("/nowhere/at/all"), Allowed::default()).unwrap();
            admitted.forecast(&admitted.plan(&registry()), &registry())
        };
        let whole = forecast(&["clients=1"]);
        let runs = f64::from(4 * 2);
        assert_eq!((whole.measured_s, whole.measured_most_s), (70.0 * runs, 120.0 * runs));
        assert_eq!((whole.trials, whole.loads, whole.databases), (8, 8, 1), "each trial loads, one after the other");
        assert_eq!(whole.memory.len(), 2);
        // Both numbers of clients start from one load. The second engine's data cannot be kept, so each of its trials
        // loads.
        let shared = forecast(&["clients=1,2"]);
        assert_eq!((shared.trials, shared.loads), (20, 12));
        assert_eq!(shared.databases, 2, "a repeat's load is gone before the next repeat loads");
        assert_eq!(shared.disk_bytes, shared.data_bytes * shared.databases * TIMES_DATA);
        let kept = forecast(&["clients=1,2", "repeats_from=kept"]);
        assert_eq!((kept.trials, kept.loads, kept.databases), (17, 9, 2));
    }

    /// Guards against reporting the common cache, 64 MiB, for both engines.
    #[test]
    fn forecast_shows_cache_of_engine_setting_not_common_one() {
        let own = "[[engine]]\nname = \"own\"\nuse = \"myrocks\"\nsettings.own_cache = \"1GiB\"\n";
        let other = "[[engine]]\nname = \"other\"\nuse = \"myrocks\"\nsettings.own_cache = \"per session\"\n";
        let existing = "[[engine]]\nname = \"theirs\"\nuse = \"myrocks\"\nserver = \"mysql://me@host/db\"\n";
        let text = format!("{TEXT}{own}{other}{existing}");
        let experiment = read_text("a.toml", &text, &Overrides::default(), &registry()).unwrap();
        let admitted = Validated::new(experiment, Path::new("/nowhere/at/all"), Allowed::default()).unwrap();
        let trials = admitted.plan(&registry());
        let reported =
            admitted.forecast(&trials, &registry()).memory.into_iter().map(|memory| (memory.cache_bytes, memory.cache));
        let reported: Vec<(Option<u64>, String)> = reported.skip(2).collect();
        assert_eq!(reported[0], (Some(1 << 30), "1.00 GiB (own_cache)".to_owned()));
        assert_eq!(reported[1], (None, "own_cache = per session".to_owned()));
        assert_eq!(reported[2].0, None, "an existing server is given no cache");
        let planned = trials.iter().find(|trial| trial.engine.name == "own").unwrap().given_cache();
        assert_eq!(planned.to_string(), reported[0].1, "its record says the same");
    }

    /// Guards against a dry run that reports "0 B for 0 databases" for twelve engines on volumes.
    #[test]
    fn forecast_shows_volume_location_and_counts_its_file_on_disk() {
        let forecast = |storage: &str, clients: &str| {
            let text = format!("{TEXT}[limits]\nstorage = {storage}\n[run]\nclients = [{clients}]\nrepeats = 4\n");
            let experiment = read_text("a.toml", &text, &Overrides::default(), &registry()).unwrap();
            // The test does not depend on whether this host can make volumes.
            let admitted =
                Validated { experiment, data_base: "/nowhere/at/all".into(), notices: Vec::new(), known: Vec::new() };
            let trials = admitted.plan(&registry());
            admitted.forecast(&trials, &registry())
        };
        let in_memory = forecast("{ size = \"6GiB\", backing = \"tmpfs\" }", "1");
        assert_eq!((in_memory.databases, in_memory.volume_bytes, in_memory.disk_bytes), (0, 0, 0));
        let reported = |engine: &str| Storage { engine: engine.into(), size_bytes: 6 << 30, backing: Backing::Tmpfs };
        assert_eq!(in_memory.storage, [reported("rocksdb"), reported("sqlite")]);
        let file = forecast("{ size = \"6GiB\", backing = \"file\" }", "1, 2");
        // A load is kept outside the volume.
        assert_eq!((file.databases, file.volume_bytes), (1, 6 << 30));
        assert_eq!(file.disk_bytes, file.data_bytes * TIMES_DATA + (6 << 30));
    }
}
