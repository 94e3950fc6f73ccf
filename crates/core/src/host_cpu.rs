//! The host's CPU that a trial used: what its processes are charged with, and what the kernel did for it.

use crate::metric::Metric;
use crate::spent::Spent;

/// Idle, waiting and stolen time are counted in ticks of 10 ms, and each of them is cut off: so much is nothing.
pub const HOST_CPU_ROUNDING_S: f64 = 0.03;
/// By how much the host's CPU may seem less than that of processes though it is not: ticks that are cut off, the host's
/// and those of other processes, in seconds; and a share, because what a hypervisor takes from a CPU that is about to wake
/// up is counted as stolen and as idle.
const HOST_ERROR_S: f64 = HOST_CPU_ROUNDING_S + 0.02;
const HOST_ERROR_SHARE: f64 = 0.01;

/// CPU seconds of the host that are neither rumba's own nor other processes', and so never less than what the trial's
/// processes are charged with. What the kernel did for other processes is in no account of theirs: where they worked more
/// than the trial, most of the rest may be theirs.
pub fn host_cpu_s(spent: &Spent) -> Metric {
    if let (Some(strangers), Some(charged)) = (spent.strangers_cpu_s.value(), spent.cpu_s.value())
        && strangers > charged
    {
        return Metric::absent(format!(
            "other processes used {strangers:.1} s of CPU, the trial {charged:.1} s: whom the kernel worked for is not known"
        ));
    }
    let others = spent.harness_cpu_s.plus(&spent.strangers_cpu_s);
    match (spent.host_cpu_s.value(), others.value(), spent.cpu_s.value()) {
        (None, _, _) => spent.host_cpu_s.clone(),
        (_, None, _) => others,
        (_, _, None) => spent.cpu_s.clone(),
        (Some(host), Some(others), Some(charged)) => at_least(charged, host - others),
    }
}

/// The host's CPU for a trial that is charged with so much: no less than that, and none at all where the meters differ
/// by more than they round.
fn at_least(charged_s: f64, host_s: f64) -> Metric {
    if host_s >= charged_s {
        Metric::Value(host_s)
    } else if charged_s - host_s <= HOST_ERROR_S + HOST_ERROR_SHARE * charged_s {
        Metric::Value(charged_s)
    } else {
        Metric::absent(format!(
            "the host's CPUs worked {host_s:.2} s for the trial, whose processes are charged with {charged_s:.2} s: its \
             kernel counts idle time by sampling, or a hypervisor took CPU from it"
        ))
    }
}

/// CPU seconds that the host spent for a trial and that no process of it is charged with.
pub fn uncharged_cpu_s(spent: &Spent) -> Metric {
    match spent.cpu_s.value() {
        Some(charged) => host_cpu_s(spent).map(|host| host - charged),
        None => spent.cpu_s.clone(),
    }
}
