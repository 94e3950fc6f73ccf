//! The host's CPU that a trial used: the CPU of its processes, and the kernel's work for them.

use crate::metric::Metric;
use crate::spent::Spent;

/// The rounding error: idle, waiting and stolen time are each counted in truncated ticks of 10 ms.
pub const HOST_CPU_ROUNDING_S: f64 = 0.03;
/// The measurement error by which the host's CPU may seem less than that of processes. It has a constant part in
/// seconds for truncated ticks of the host and of other processes. It has a relative part because a hypervisor's delay
/// of a waking CPU is counted both as stolen and as idle.
const HOST_ERROR_S: f64 = HOST_CPU_ROUNDING_S + 0.02;
const HOST_ERROR_SHARE: f64 = 0.01;

/// CPU seconds of the host that belong neither to rumba itself nor to other processes, and at least the trial's own
/// CPU. The kernel's work for other processes is not in their accounts. If other processes used more CPU than the
/// trial, the metric is absent, because most of the rest may be theirs.
pub fn host_cpu_s(spent: &Spent) -> Metric {
    if let (Some(other_processes), Some(charged)) = (spent.others_cpu_s.value(), spent.cpu_s.value())
        && other_processes > charged
    {
        return Metric::absent(format!(
            "other processes used {other_processes:.1} s of CPU and the trial {charged:.1} s, so the kernel's work \
             cannot be assigned"
        ));
    }
    let others = spent.harness_cpu_s.plus(&spent.others_cpu_s);
    match (spent.host_cpu_s.value(), others.value(), spent.cpu_s.value()) {
        (None, _, _) => spent.host_cpu_s.clone(),
        (_, None, _) => others,
        (_, _, None) => spent.cpu_s.clone(),
        (Some(host), Some(others), Some(charged)) => at_least(charged, host - others),
    }
}

/// The host's CPU for a trial with this CPU: at least that much, and absent if the meters differ by more than their
/// rounding.
fn at_least(charged_s: f64, host_s: f64) -> Metric {
    if host_s >= charged_s {
        Metric::Value(host_s)
    } else if charged_s - host_s <= HOST_ERROR_S + HOST_ERROR_SHARE * charged_s {
        Metric::Value(charged_s)
    } else {
        Metric::absent(format!(
            "the host's CPUs worked {host_s:.2} s for the trial, but its processes are charged {charged_s:.2} s: the \
             kernel counts idle time by sampling, or a hypervisor took CPU"
        ))
    }
}

/// CPU seconds that the host spent for a trial without charging any of its processes.
pub fn uncharged_cpu_s(spent: &Spent) -> Metric {
    spent.cpu_s.map(|charged| -charged).plus(&host_cpu_s(spent))
}
