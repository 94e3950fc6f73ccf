//! Clients on several hosts: the plan, and the record of each host.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// The program that starts the agents on the client hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Launcher {
    /// The user, or any program that gives rank, size and coordinator.
    #[default]
    None,
    /// rumba, with Slurm's `srun`.
    Slurm,
}

impl Launcher {
    /// Each variant with its name in an experiment.
    pub const NAMES: [(&'static str, Launcher); 2] = [("none", Launcher::None), ("slurm", Launcher::Slurm)];
}

/// The consequence of a lost client host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnLost {
    /// The trial fails.
    #[default]
    Abort,
    /// The other hosts go on with their share, and the record says so.
    Degraded,
}

impl OnLost {
    /// Each variant with its name in an experiment.
    pub const NAMES: [(&'static str, OnLost); 2] = [("abort", OnLost::Abort), ("degraded", OnLost::Degraded)];
}

/// `[fleet]`: the clients run on several hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetPlan {
    /// The number of client hosts.
    pub hosts: u32,
    /// The program that starts their agents.
    #[serde(default)]
    pub launcher: Launcher,
    /// The coordinator's address, by which the agents reach it.
    pub address: String,
    /// The coordinator's port; 0 for any that is free.
    pub port: u16,
    /// The consequence of a lost host.
    #[serde(default)]
    pub on_lost: OnLost,
    /// The longest wait for the hosts, seconds.
    pub wait_s: f64,
    /// The longest time of the Slurm job, minutes.
    pub job_minutes: u32,
}

/// A client host in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientHost {
    /// Its rank, from 0.
    pub rank: u32,
    /// Its name.
    pub name: String,
    /// Its processor and kernel, in words.
    pub about: String,
    /// The CPUs that its clients may use.
    pub cpus: u32,
    /// Its clients of the mix.
    pub clients: u32,
    /// Operations of its clients in warmup, loops and backlog.
    pub ops: u64,
    /// How much later or earlier than agreed its clients started, in the phase where that was most, milliseconds.
    pub start_skew_ms: Metric,
    /// The shortest time of a ping and its answer, milliseconds. Its clock is known to half of it.
    pub round_trip_ms: Metric,
    /// How much the offset of its clock has changed over the trial, milliseconds.
    pub clock_drift_ms: Metric,
    /// Frames that came later than a tenth of a second after they were requested.
    pub late_frames: u64,
    /// Frames that did not come.
    pub missing_frames: u64,
    /// CPU time of its clients in the mix, percent of its CPUs.
    pub client_cpu_percent: Metric,
    /// CPU time of all its processes meanwhile, percent of its CPUs.
    pub host_cpu_percent: Metric,
    /// How late its clients started operations, microseconds per operation.
    pub late_us_per_op: Metric,
    /// When and why it was lost; absent if it was there to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

/// In one line, for tables and conditions.
impl fmt::Display for ClientHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figure = |metric: &Metric, unit: &str| {
            metric.value().map_or_else(|| "unknown".to_owned(), |value| format!("{value:.1}{unit}"))
        };
        let half = self.round_trip_ms.value().map_or_else(|| "unknown".to_owned(), |ms| format!("{:.3} ms", ms / 2.0));
        let (own, all) = (figure(&self.client_cpu_percent, "%"), figure(&self.host_cpu_percent, "%"));
        let (late, skew) = (figure(&self.late_us_per_op, " µs"), figure(&self.start_skew_ms, " ms"));
        let drift = figure(&self.clock_drift_ms, " ms");
        write!(f, "{}: {} clients, {} operations; ", self.name, self.clients, self.ops)?;
        write!(f, "CPU {own} for clients, {all} in all, of {} CPUs; ", self.cpus)?;
        write!(f, "late {late} per operation, start skew {skew}, clock ± {half}, drift {drift}; ")?;
        write!(f, "frames {} late, {} missing", self.late_frames, self.missing_frames)?;
        self.lost.as_ref().map_or(Ok(()), |lost| write!(f, "; {lost}"))
    }
}
