//! Warnings that a trial finds itself and that weaken its results.

use std::path::{Path, PathBuf};

use rumba_engine_api::engine::ProcessLocation;
use rumba_results::host_cpu::uncharged_cpu_s;
use rumba_results::metric::Metric;
use rumba_results::record::PhaseRecord;
use rumba_results::warning::Warning;

use super::metrics::online_cpus;
use crate::host::links;

/// Client lateness that is worth a warning: this share of the mean response time.
const LATE_SHARE: f64 = 0.1;
/// CPU time taken by the hypervisor that is worth a warning: this share of all CPUs.
const STEAL_SHARE: f64 = 0.01;
/// CPU time of no process that is worth a warning: this share of the charged CPU time.
const UNCHARGED_SHARE: f64 = 0.1;
/// The host's idle time and other processes' CPU are in ticks of 10 ms: a share of fewer seconds is not reliable.
const UNCHARGED_S: f64 = 0.25;
/// CPU time of other processes that is worth a warning: this share of all CPUs.
const OTHERS_SHARE: f64 = 0.05;
/// CPU time that clients take from a server on the same host and that is worth a warning: this share of all CPUs.
const CLIENT_SHARE: f64 = 0.2;

/// The warning that a server has files outside its data directory: their size is not measured, and they may be on
/// another device.
pub fn elsewhere(place: &ProcessLocation) -> Option<Warning> {
    let ProcessLocation::Server { data_dir: Some(dir), .. } = place else { return None };
    let links = links::leading_out(dir);
    let shown = |(link, to): &(PathBuf, PathBuf)| format!("{} leads to {}", name_in(dir, link), to.display());
    (!links.is_empty()).then(|| {
        let reported: Vec<String> = links.iter().map(shown).collect();
        Warning::new(
            "data-elsewhere",
            format!(
                "part of the server's data is outside of {}: {}; its size is in no figure, and neither is its I/O if \
                 it is on another device",
                dir.display(),
                reported.join(", ")
            ),
            "read proc_wkb_per_op and proc_rkb_per_op, which are of the server's processes, or measure a server that has all \
             of it in one directory",
        )
    })
}

/// The name of a link within the directory.
fn name_in(dir: &Path, link: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_default();
    link.strip_prefix(dir).unwrap_or(link).display().to_string()
}

/// The warning that clients themselves were late, over all loops.
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

/// The warning that readable answers waited for their clients, over all loops.
pub fn received_late(loops: &PhaseRecord) -> Option<Warning> {
    let (late_us, response_us) = (loops.metrics.receive_late_us_per_op.value()?, mean_response_us(loops)?);
    (late_us > response_us * LATE_SHARE).then(|| {
        Warning::new(
            "receive-late",
            format!(
                "readable answers waited {late_us:.2} µs per operation for their clients, with a mean response time \
                 of {response_us:.2} µs; this is rumba's own time and part of the service times"
            ),
            "give the clients more CPU or a host of their own, use fewer clients, or driver = \"threads\"",
        )
    })
}

/// The warning that a hypervisor gave CPU time that this host wanted to other guests.
pub fn stolen(loops: &PhaseRecord, steal_s: &Metric) -> Option<Warning> {
    let share = steal_s.value()? / (loops.seconds * online_cpus()).max(f64::MIN_POSITIVE);
    (share > STEAL_SHARE).then(|| {
        Warning::new(
            "stolen-cpu",
            format!("the hypervisor gave {:.1}% of this host's CPU to others during the loops", share * 100.0),
            "use a dedicated host, or compare CPU per operation instead of throughput",
        )
    })
}

/// The warning that other processes worked on this host while the loops ran.
pub fn other_processes(loops: &PhaseRecord) -> Option<Warning> {
    let others_s = loops.spent.others_cpu_s.value()?;
    let share = others_s / (loops.seconds * online_cpus()).max(f64::MIN_POSITIVE);
    (share > OTHERS_SHARE).then(|| {
        Warning::new(
            "others-cpu",
            format!("other processes used {:.0}% of this host's CPU during the loops", share * 100.0),
            "stop them, or compare costs per operation instead of throughput",
        )
    })
}

/// The warning that the host used CPU for the trial that no process is charged with.
pub fn uncharged(loops: &PhaseRecord) -> Option<Warning> {
    let (charged, uncharged) = (loops.spent.cpu_s.value()?, uncharged_cpu_s(&loops.spent).value()?);
    (uncharged > UNCHARGED_S && uncharged > charged * UNCHARGED_SHARE).then(|| {
        let per_op = |metric: &Metric| metric.value().map_or("-".to_owned(), |us| format!("{us:.1}"));
        Warning::new(
            "cpu-uncharged",
            format!(
                "the host used {} µs of CPU per operation, {:.0}% more than the {} µs that clients and engine are \
                 charged with: write-back, journal, loop devices and interrupts",
                per_op(&loops.metrics.host_cpu_us_per_op),
                100.0 * uncharged / charged,
                per_op(&loops.metrics.cpu_us_per_op)
            ),
            "compare host_cpu_us_per_op, not cpu_us_per_op; verdicts use the host's figure where it is known",
        )
    })
}

/// The warning that a server and its clients share the host's CPUs, and that the clients used many of them.
pub fn shared_cpus(loops: &PhaseRecord, place: &ProcessLocation) -> Option<Warning> {
    if !matches!(place, ProcessLocation::Server { pid: Some(_), .. }) {
        return None;
    }
    client_share(loops, online_cpus()).map(|(cpus, client, server)| {
        Warning::new(
            "client-shares-cpus",
            format!(
                "client and server share the host's {cpus} CPUs: of them the clients used {:.0}%, the server {:.0}%",
                client * 100.0,
                server * 100.0
            ),
            "compare server_cpu_us_per_op instead of throughput, use fewer clients, or run the server on another host",
        )
    })
}

/// The shares of clients and server in the CPUs, if the clients' share is worth a warning.
fn client_share(loops: &PhaseRecord, cpus: f64) -> Option<(f64, f64, f64)> {
    let available_s = (loops.seconds * cpus).max(f64::MIN_POSITIVE);
    let (client, server) = (loops.spent.client_cpu_s.value()?, loops.spent.server_cpu_s.value()?);
    (client / available_s > CLIENT_SHARE).then_some((cpus, client / available_s, server / available_s))
}

/// The mean over the types with a known mean; a type with open operations at the end has none.
fn mean_response_us(loops: &PhaseRecord) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for kind in loops.op_types.values() {
        if let Some(mean_ms) = kind.response.mean_ms.value() {
            let ended = (kind.count + kind.errors) as f64;
            (sum, count) = (sum + mean_ms * 1e3 * ended, count + ended);
        }
    }
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use rumba_results::record::PhaseKind;
    use rumba_results::samples::phase;

    use super::*;

    /// Guards against an existing PostgreSQL with its log on another device: it seemed to write only its pages.
    #[test]
    fn log_on_another_device_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let (data, wal) = (dir.path().join("data"), dir.path().join("wal"));
        let server = ProcessLocation::Server { pid: None, data_dir: Some(data.clone()) };
        for made in [&data, &wal] {
            std::fs::create_dir(made).unwrap();
        }
        assert_eq!(elsewhere(&server), None);
        std::os::unix::fs::symlink(&wal, data.join("pg_wal")).unwrap();
        let warning = elsewhere(&server).unwrap();
        assert!(
            warning.message.contains(": pg_wal leads to ") && warning.undermines_metric("wkb_per_op"),
            "{warning:?}"
        );
        assert_eq!(elsewhere(&ProcessLocation::Embedded), None);
    }

    #[test]
    fn clients_are_late_by_the_responses_that_are_known() {
        let op = |count: u64, mean_ms: rumba_results::metric::Metric| {
            let mut op = rumba_results::record::OpStats { count, ..Default::default() };
            op.response.mean_ms = mean_ms;
            op
        };
        let mut loops = phase(PhaseKind::Loops, 10.0);
        loops.metrics.late_us_per_op = Metric::Value(2.0);
        loops.op_types.insert("get_node".to_owned(), op(90, Metric::absent("30 operations were still open")));
        assert!(late(&loops).is_none(), "nothing is known of them");
        loops.op_types.insert("add_node".to_owned(), op(10, Metric::Value(1.0)));
        assert_eq!(mean_response_us(&loops), Some(1000.0));
        loops.metrics.late_us_per_op = Metric::Value(900.0);
        assert!(late(&loops).is_some_and(|warning| warning.message.contains("1000.00 µs")));
    }

    #[test]
    fn replies_delayed_by_a_tenth_of_response_time_are_reported() {
        let mut loops = phase(PhaseKind::Loops, 10.0);
        let mut op = rumba_results::record::OpStats { count: 10, ..Default::default() };
        op.response.mean_ms = Metric::Value(1.0);
        loops.op_types.insert("get_node".to_owned(), op);
        assert_eq!(received_late(&loops), None, "an embedded engine has no such figure");
        loops.metrics.receive_late_us_per_op = Metric::Value(90.0);
        assert_eq!(received_late(&loops), None);
        loops.metrics.receive_late_us_per_op = Metric::Value(110.0);
        let warning = received_late(&loops).unwrap();
        assert!(warning.message.contains("110.00 µs") && warning.undermines_metric("p99_ms"), "{warning:?}");
    }

    #[test]
    fn clients_using_a_fifth_of_the_host_cpus_are_reported() {
        let mut loops = phase(PhaseKind::Loops, 10.0);
        loops.spent.server_cpu_s = Metric::Value(20.0);
        loops.spent.client_cpu_s = Metric::Value(8.0);
        assert_eq!(client_share(&loops, 4.0), None, "8 of 40 CPU seconds are no more than a fifth");
        loops.spent.client_cpu_s = Metric::Value(10.0);
        assert_eq!(client_share(&loops, 4.0), Some((4.0, 0.25, 0.5)));
        assert_eq!(shared_cpus(&loops, &ProcessLocation::Embedded), None, "an embedded engine works in its clients");
    }

    #[test]
    fn other_processes_using_a_twentieth_of_the_host_are_reported() {
        let mut loops = phase(PhaseKind::Loops, 10.0);
        loops.spent.others_cpu_s = Metric::Value(0.04 * 10.0 * online_cpus());
        assert_eq!(other_processes(&loops), None);
        loops.spent.others_cpu_s = Metric::Value(0.3 * 10.0 * online_cpus());
        assert!(other_processes(&loops).unwrap().message.contains("30% of this host's CPU"));
    }

    #[test]
    fn uncharged_cpu_over_10_percent_is_warned_of_excluding_others() {
        let mut loops = phase(PhaseKind::Loops, 10.0);
        loops.spent.cpu_s = Metric::Value(10.0);
        loops.spent.harness_cpu_s = Metric::Value(0.5);
        loops.spent.others_cpu_s = Metric::Value(4.0);
        loops.spent.host_cpu_s = Metric::Value(15.4);
        assert_eq!(uncharged(&loops), None, "0.9 s beyond 10 s");
        loops.spent.host_cpu_s = Metric::Value(16.0);
        let warning = uncharged(&loops).unwrap();
        assert!(warning.message.contains("15% more"), "{}", warning.message);
        loops.spent.others_cpu_s = Metric::absent("no /proc");
        assert_eq!(uncharged(&loops), None, "other processes may have used it all");
    }
}
