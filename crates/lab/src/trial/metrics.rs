//! Computes the metrics of a phase from its counts and resources.

use rumba_engine_api::limits::StorageLimit;
use rumba_results::host_cpu::host_cpu_s;
use rumba_results::metric::{Metric, Metrics, without_logs};
use rumba_results::record::{PhaseKind, Spent};

use crate::meter::DiskSize;

const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * 1024.0;
/// Computes the metrics of a phase.
pub fn metrics(
    phase: PhaseKind,
    ops: u64,
    seconds: f64,
    late_ns: u64,
    spent: &Spent,
    size: Result<DiskSize, String>,
    logical_bytes: Metric,
) -> Metrics {
    let ops = ops as f64;
    let per_op = |spent: &Metric, unit: f64| spent.map(|amount| amount / unit).per(ops, "operations in this phase");
    let per_s = |spent: &Metric, unit: f64| spent.map(|amount| amount / unit).per(seconds, "time passed");
    let await_ms =
        |seconds: &Metric, requests: &Metric, name| seconds.map(|seconds| seconds * 1e3).over(requests, name);
    let requests = spent.device_reads.plus(&spent.device_writes);
    let request_s = spent.device_read_s.plus(&spent.device_write_s);
    let size_bytes = Metric::from(size.clone().map(|size| size.total as f64));
    let log_bytes = Metric::from(size.map(|size| size.logs as f64));
    let data_bytes = without_logs(&size_bytes, &log_bytes);
    Metrics {
        ops_per_s: match has_operations(phase) {
            // Zero operations is a value here: a stalled engine differs from an engine without requests.
            true => Metric::Value(ops).per(seconds, "time passed"),
            false => Metric::absent("no operations in this phase"),
        },
        reads_per_op: per_op(&spent.device_reads, 1.0),
        writes_per_op: per_op(&spent.device_writes, 1.0),
        rkb_per_op: per_op(&spent.device_read_bytes, KB),
        wkb_per_op: per_op(&spent.device_write_bytes, KB),
        proc_rkb_per_op: per_op(&spent.process_read_bytes, KB),
        proc_wkb_per_op: per_op(&spent.process_write_bytes, KB),
        cpu_us_per_op: per_op(&spent.cpu_s, 1e-6),
        host_cpu_us_per_op: per_op(&host_cpu_s(spent), 1e-6),
        client_cpu_us_per_op: per_op(&spent.client_cpu_s, 1e-6),
        background_cpu_us_per_op: per_op(&spent.background_cpu_s, 1e-6),
        server_cpu_us_per_op: per_op(&spent.server_cpu_s, 1e-6),
        late_us_per_op: per_op(&Metric::Value(late_ns as f64), 1e3),
        ctx_switches_per_op: per_op(&spent.ctx_switches, 1.0),
        server_ctx_switches_per_op: per_op(&spent.server_ctx_switches, 1.0),
        reads_per_s: per_s(&spent.device_reads, 1.0),
        writes_per_s: per_s(&spent.device_writes, 1.0),
        device_await_ms: await_ms(&request_s, &requests, "device reads or writes"),
        device_read_await_ms: await_ms(&spent.device_read_s, &spent.device_reads, "device reads"),
        device_write_await_ms: await_ms(&spent.device_write_s, &spent.device_writes, "device writes"),
        device_queue_length: per_s(&spent.device_queue_s, 1.0),
        device_utilisation_percent: per_s(&spent.device_busy_s, 1e-2),
        device_busy_us_per_op: per_op(&spent.device_busy_s, 1e-6),
        device_request_us_per_op: per_op(&request_s, 1e-6),
        host_ctx_switches_per_s: per_s(&spent.host_ctx_switches, 1.0),
        read_mb_s: per_s(&spent.device_read_bytes, MB),
        write_mb_s: per_s(&spent.device_write_bytes, MB),
        discard_mb_s: per_s(&spent.device_discard_bytes, MB),
        host_cpu_percent: per_s(&spent.host_cpu_s, online_cpus() / 100.0),
        stolen_cpu_percent: per_s(&spent.steal_s, online_cpus() / 100.0),
        others_cpu_percent: per_s(&spent.others_cpu_s, online_cpus() / 100.0),
        space_amp: data_bytes.over(&logical_bytes, "logical bytes"),
        write_amp: if phase == PhaseKind::Load {
            spent.device_write_bytes.over(&logical_bytes, "logical bytes")
        } else {
            Metric::absent("defined for the load, where the logical bytes are known")
        },
        data_bytes,
        size_bytes,
        log_bytes,
        logical_bytes,
        rss_bytes: spent.rss_bytes.clone(),
        client_rss_bytes: spent.client_rss_bytes.clone(),
        // The caller sets the others: from its counts, the limits, the size at the start and the hardware counters.
        ..Metrics::default()
    }
}

/// Whether operations, or rows of a load, are served in a phase.
fn has_operations(phase: PhaseKind) -> bool {
    match phase {
        PhaseKind::Load
        | PhaseKind::Age
        | PhaseKind::Warmup
        | PhaseKind::Loop(_)
        | PhaseKind::Loops
        | PhaseKind::Backlog => true,
        PhaseKind::Provision
        | PhaseKind::Settle
        | PhaseKind::VerifyLoad
        | PhaseKind::Drain
        | PhaseKind::Verify
        | PhaseKind::Isolation
        | PhaseKind::Crash
        | PhaseKind::Recovery => false,
    }
}

/// The delay of readable answers: their wait on event loops, and the CPU wait of their clients' threads. Absent if the
/// clients receive no answers.
pub fn receive_late_us_per_op(queued_ns: u64, spent: &Spent, ops: u64) -> Metric {
    let late_s = spent.client_run_delay_s.plus(&Metric::Value(queued_ns as f64 / 1e9));
    late_s.map(|seconds| seconds * 1e6).per(ops as f64, "operations in this phase")
}

/// The growth of the data on disk per operation, given its size at the start and the end of the phase.
pub fn growth_bytes_per_op(start_bytes: &Metric, end_bytes: &Metric, ops: u64) -> Metric {
    match (start_bytes.value(), end_bytes.value()) {
        (Some(start), Some(end)) => Metric::Value(end - start).per(ops as f64, "operations in this phase"),
        (None, _) => start_bytes.clone(),
        (_, None) => end_bytes.clone(),
    }
}

/// Statements per operation: reads, writes, and all others. Absent for a workload that does not count them.
pub fn statements_per_op(statements: [u64; 3], ops: u64) -> [Metric; 3] {
    let is_counted = ops == 0 || statements != [0; 3];
    statements.map(|count| match is_counted {
        true => Metric::Value(count as f64).per(ops as f64, "operations in this phase"),
        false => Metric::absent("the workload does not count its statements"),
    })
}

/// The used share of a budget of operations.
pub fn iops_used_percent(phase: PhaseKind, spent: &Spent, seconds: f64, storage: Option<&StorageLimit>) -> Metric {
    match storage.and_then(|storage| storage.iops) {
        None => Metric::absent("limits.storage sets no iops"),
        Some(_) if matches!(phase, PhaseKind::VerifyLoad | PhaseKind::Verify) => {
            Metric::absent("the throttle is lifted for the verification")
        }
        Some(iops) => spent.device_submitted.per(seconds, "time passed").map(|per_s| 100.0 * per_s / f64::from(iops)),
    }
}

/// The number of CPUs in the sums of `/proc/stat`: all online CPUs, even those that this process may not use.
pub fn online_cpus() -> f64 {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let online = crate::host::parse::list_length(text.trim());
    let cpus = online.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    cpus as f64
}

#[cfg(test)]
mod tests {
    use rumba_results::host_cpu::uncharged_cpu_s;

    use super::*;

    #[test]
    fn growth_per_op_may_be_negative_and_is_absent_without_sizes() {
        let bytes = Metric::Value;
        assert_eq!(growth_bytes_per_op(&bytes(4096.0), &bytes(8192.0), 16), bytes(256.0));
        assert_eq!(growth_bytes_per_op(&bytes(8192.0), &bytes(4096.0), 16), bytes(-256.0));
        assert!(growth_bytes_per_op(&bytes(1.0), &bytes(2.0), 0).reason().unwrap().contains("no operations"));
        let gone = Metric::absent("no directory");
        assert_eq!(growth_bytes_per_op(&gone, &bytes(1.0), 1), gone);
        assert_eq!(growth_bytes_per_op(&bytes(1.0), &gone, 1), gone);
    }

    #[test]
    fn stalled_phase_has_rate_zero_and_non_serving_phase_has_none() {
        let rate = |phase, ops| {
            metrics(phase, ops, 4.0, 0, &Spent::default(), Err("gone".into()), Metric::default()).ops_per_s
        };
        for phase in [PhaseKind::Load, PhaseKind::Warmup, PhaseKind::Loop(1), PhaseKind::Loops] {
            assert_eq!((rate(phase, 0), rate(phase, 8)), (Metric::Value(0.0), Metric::Value(2.0)), "{phase}");
        }
        assert_eq!(rate(PhaseKind::Drain, 0), Metric::absent("no operations in this phase"));
    }

    #[test]
    fn statements_are_per_operation_and_absent_if_uncounted() {
        let [reads, writes, others] = statements_per_op([30, 0, 10], 10);
        assert_eq!([reads, writes, others].map(|metric| metric.value()), [Some(3.0), Some(0.0), Some(1.0)]);
        let [reads, ..] = statements_per_op([0; 3], 10);
        assert_eq!(reads.reason(), Some("the workload does not count its statements"));
        assert_eq!(statements_per_op([0; 3], 0)[0].reason(), Some("no operations in this phase"));
    }

    #[test]
    fn an_unreadable_meter_makes_its_metrics_absent_with_its_reason() {
        let spent = Spent {
            device_write_bytes: Metric::absent("tmpfs has no device"),
            process_write_bytes: Metric::Value(2048.0),
            client_cpu_s: Metric::Value(0.001),
            server_cpu_s: Metric::Value(0.001),
            cpu_s: Metric::Value(0.002),
            ..Spent::default()
        };
        let metrics = metrics(PhaseKind::Loop(1), 2, 1.0, 0, &spent, Err("gone".into()), Metric::default());
        assert_eq!(metrics.wkb_per_op, Metric::absent("tmpfs has no device"));
        assert_eq!(metrics.proc_wkb_per_op, Metric::Value(1.0));
        assert_eq!(metrics.cpu_us_per_op.value().map(f64::round), Some(1000.0));
        assert_eq!(metrics.server_cpu_us_per_op.value().map(f64::round), Some(500.0));
        assert_eq!(metrics.size_bytes, Metric::absent("gone"));
    }

    #[test]
    fn host_cpu_excludes_harness_and_other_processes() {
        let mut spent = Spent {
            cpu_s: Metric::Value(2.0),
            host_cpu_s: Metric::Value(5.0),
            harness_cpu_s: Metric::Value(0.5),
            others_cpu_s: Metric::Value(1.5),
            ..Spent::default()
        };
        let of =
            |spent: &Spent| metrics(PhaseKind::Loops, 1_000_000, 4.0, 0, spent, Err("gone".into()), Metric::default());
        assert_eq!(of(&spent).host_cpu_us_per_op, Metric::Value(3.0));
        assert_eq!(uncharged_cpu_s(&spent), Metric::Value(1.0));
        spent.others_cpu_s = Metric::absent("no /proc");
        assert_eq!(of(&spent).host_cpu_us_per_op, Metric::absent("no /proc"), "it would include other CPU");
        spent.others_cpu_s = Metric::Value(2.1);
        assert!(of(&spent).host_cpu_us_per_op.reason().unwrap().contains("so the kernel's work cannot be assigned"));
        assert!(uncharged_cpu_s(&spent).value().is_none(), "so no engine is blamed for it");
    }

    #[test]
    fn the_host_never_used_less_than_its_processes() {
        let of = |host_s: f64, charged_s: f64| {
            let spent = Spent {
                cpu_s: Metric::Value(charged_s),
                host_cpu_s: Metric::Value(host_s + 0.75),
                harness_cpu_s: Metric::Value(0.5),
                others_cpu_s: Metric::Value(0.25),
                ..Spent::default()
            };
            let metrics = metrics(PhaseKind::Loops, 1_000_000, 4.0, 0, &spent, Err("gone".into()), Metric::default());
            (metrics.host_cpu_us_per_op, uncharged_cpu_s(&spent))
        };
        assert_eq!(of(2.5, 2.0), (Metric::Value(2.5), Metric::Value(0.5)));
        assert_eq!(of(1.96875, 2.0), (Metric::Value(2.0), Metric::Value(0.0)), "ticks that are cut off");
        let (host, uncharged) = of(1.5, 2.0);
        assert!(host.reason().unwrap().contains("1.50 s for the trial, but its processes are charged 2.00 s"));
        assert!(uncharged.reason().is_some(), "the uncharged CPU is unknown");
        assert!(of(-0.5, 2.0).0.reason().is_some(), "a negative figure is none");
    }

    #[test]
    fn writes_are_counted_with_reads_and_against_the_budget() {
        let spent = Spent {
            device_reads: Metric::Value(300.0),
            device_writes: Metric::Value(500.0),
            device_submitted: Metric::Value(900.0),
            ..Spent::default()
        };
        let phase = metrics(PhaseKind::Loops, 100, 2.0, 0, &spent, Err("gone".into()), Metric::default());
        assert_eq!((phase.reads_per_op, phase.writes_per_op), (Metric::Value(3.0), Metric::Value(5.0)));
        assert_eq!((phase.reads_per_s, phase.writes_per_s), (Metric::Value(150.0), Metric::Value(250.0)));
        let tier = StorageLimit::tier("disk-array").unwrap();
        assert_eq!(iops_used_percent(PhaseKind::Loops, &spent, 1.0, Some(&tier)), Metric::Value(90.0));
        let free = StorageLimit::unthrottled();
        assert!(iops_used_percent(PhaseKind::Loops, &spent, 1.0, Some(&free)).reason().is_some());
        assert!(iops_used_percent(PhaseKind::Verify, &spent, 1.0, Some(&tier)).reason().is_some());
    }

    #[test]
    fn receive_lateness_sums_answer_waits_and_thread_run_delay() {
        let spent = Spent { client_run_delay_s: Metric::Value(0.002), ..Spent::default() };
        assert_eq!(receive_late_us_per_op(1_000_000, &spent, 100), Metric::Value(30.0));
        assert!(receive_late_us_per_op(1, &spent, 0).reason().unwrap().contains("no operations"));
        let embedded = Spent { client_run_delay_s: Metric::absent("the engine is embedded"), ..Spent::default() };
        assert_eq!(receive_late_us_per_op(1, &embedded, 1), Metric::absent("the engine is embedded"));
    }

    #[test]
    fn the_devices_times_are_those_that_iostat_shows() {
        let spent = Spent {
            device_reads: Metric::Value(300.0),
            device_writes: Metric::Value(100.0),
            device_read_s: Metric::Value(0.6),
            device_write_s: Metric::Value(1.0),
            device_queue_s: Metric::Value(1.8),
            device_busy_s: Metric::Value(0.5),
            host_ctx_switches: Metric::Value(4000.0),
            ..Spent::default()
        };
        let of = |spent: &Spent| metrics(PhaseKind::Loops, 100, 2.0, 0, spent, Err("gone".into()), Metric::default());
        let phase = of(&spent);
        assert_eq!(phase.device_read_await_ms, Metric::Value(2.0));
        assert_eq!((phase.device_write_await_ms, phase.device_await_ms), (Metric::Value(10.0), Metric::Value(4.0)));
        assert_eq!(phase.device_queue_length, Metric::Value(0.9));
        assert_eq!(phase.device_utilisation_percent, Metric::Value(25.0));
        assert_eq!(phase.device_busy_us_per_op.value().map(f64::round), Some(5_000.0));
        assert_eq!(phase.device_request_us_per_op.value().map(f64::round), Some(16_000.0));
        assert_eq!(phase.host_ctx_switches_per_s, Metric::Value(2000.0));
        let no_reads = of(&Spent { device_reads: Metric::Value(0.0), device_read_s: Metric::Value(0.0), ..spent });
        assert_eq!(no_reads.device_read_await_ms, Metric::absent("no device reads"));
    }
}
