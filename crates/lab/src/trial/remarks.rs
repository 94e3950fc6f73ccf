//! What a trial sees by itself that makes its figures less than they seem.

use rumba_core::metric::Metric;
use rumba_core::record::PhaseRecord;
use rumba_core::warning::Warning;

use super::metrics::online_cpus;

/// Lateness of the clients that is worth a warning: this share of the mean response time.
const LATE_SHARE: f64 = 0.1;
/// CPU taken by the hypervisor that is worth a warning: this share of all CPUs.
const STEAL_SHARE: f64 = 0.01;

/// The warning that clients were late by themselves, over all loops.
pub fn late(loops: &PhaseRecord) -> Option<Warning> {
    let (late_us, response_us) = (loops.metrics.late_us_per_op.value()?, mean_response_us(loops)?);
    (late_us > response_us * LATE_SHARE).then(|| {
        Warning::new(
            "client-late",
            format!("clients started operations {late_us:.2} µs late on average, of a mean response of {response_us:.2} µs"),
            "read the service time, or give the clients more CPU; a very fast engine is measured together with its client",
        )
    })
}

/// The warning that a hypervisor gave CPU time that this host wanted to others.
pub fn stolen(loops: &PhaseRecord, steal_s: &Metric) -> Option<Warning> {
    let share = steal_s.value()? / (loops.seconds * online_cpus()).max(f64::MIN_POSITIVE);
    (share > STEAL_SHARE).then(|| {
        Warning::new(
            "stolen-cpu",
            format!("the hypervisor gave {:.1}% of this host's CPU to others during the loops", share * 100.0),
            "run on a host of your own, or compare CPU per operation rather than throughput",
        )
    })
}

fn mean_response_us(loops: &PhaseRecord) -> Option<f64> {
    let kinds = loops.op_types.values();
    let count: u64 = kinds.clone().map(|kind| kind.count + kind.errors).sum();
    let sum: f64 =
        kinds.filter_map(|kind| Some(kind.response.mean_ms.value()? * 1e3 * (kind.count + kind.errors) as f64)).sum();
    (count > 0).then(|| sum / count as f64)
}
