//! Metrics: a number, or the reason why there is none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A measured number, or its absence with a reason. Never zero for "unknown".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Metric {
    /// The number, in the unit at the end of its name.
    Value(f64),
    /// The reason.
    Absent {
        /// The reason, for people.
        absent: String,
    },
}

impl Default for Metric {
    fn default() -> Self {
        Metric::absent("not measured in this phase")
    }
}

/// The reason for an absent percentile when too few operations lie beyond it, which is no fault of either engine.
pub const TOO_FEW_SAMPLES: &str = "samples are too few";

impl Metric {
    /// The reason for a missing value.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Metric::Value(_) => None,
            Metric::Absent { absent } => Some(absent),
        }
    }

    /// An absence with its reason.
    pub fn absent(reason: impl Into<String>) -> Self {
        Metric::Absent { absent: reason.into() }
    }

    /// The number, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Metric::Value(value) => Some(*value),
            Metric::Absent { .. } => None,
        }
    }

    /// Applies `change` to the number; an absence stays as it is.
    pub fn map(&self, change: impl FnOnce(f64) -> f64) -> Self {
        match self {
            Metric::Value(value) => Metric::from(change(*value)),
            absent => absent.clone(),
        }
    }

    /// The sum; absent, with the reason, if one part is, because it would be too low.
    pub fn plus(&self, other: &Metric) -> Self {
        self.joined(other, |a, b| a + b)
    }

    /// The product; absent, with the reason, if one factor is.
    pub fn times(&self, other: &Metric) -> Self {
        self.joined(other, |a, b| a * b)
    }

    fn joined(&self, other: &Metric, join: fn(f64, f64) -> f64) -> Self {
        match (self.value(), other.value()) {
            (Some(a), Some(b)) => Metric::from(join(a, b)),
            (None, _) => self.clone(),
            (_, None) => other.clone(),
        }
    }

    /// This divided by that; absent when the divisor is zero.
    pub fn per(&self, divisor: f64, divisor_name: &str) -> Self {
        if divisor > 0.0 { self.map(|value| value / divisor) } else { Metric::absent(format!("no {divisor_name}")) }
    }

    /// The same for a divisor that may be absent, whose reason then comes first.
    pub fn over(&self, divisor: &Metric, divisor_name: &str) -> Self {
        divisor.value().map_or_else(|| divisor.clone(), |divisor| self.per(divisor, divisor_name))
    }
}

impl From<f64> for Metric {
    fn from(value: f64) -> Self {
        if value.is_finite() { Metric::Value(value) } else { Metric::absent("the figures give no finite number") }
    }
}

impl From<Result<f64, String>> for Metric {
    fn from(result: Result<f64, String>) -> Self {
        result.map_or_else(Metric::absent, Metric::from)
    }
}

/// The metrics that are sizes on disk; they depend neither on the host's speed nor on the engine's memory.
pub const SIZES: &[&str] = &["data_bytes", "size_bytes", "log_bytes", "logical_bytes", "space_amp"];

/// The better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// More is better: operations per second.
    More,
    /// Less is better: all resources spent.
    Less,
    /// Neither: a fact, which gets no verdict.
    Neither,
}

/// The kind of a metric, which decides what can disturb it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Work per unit of time: throughput, device rates.
    Rate,
    /// Durations: response times, waits.
    Time,
    /// CPU time and scheduling: CPU per operation, context switches.
    Cpu,
    /// Device or process I/O per operation: reads, writes, bytes, amplification.
    Io,
    /// Space on disk.
    Size,
    /// Resident memory.
    Memory,
    /// Counts of the workload's work: statements, retries.
    Count,
}

impl Class {
    /// Whether CPU used by other processes, or a slow build, changes such a figure: rates, times and CPU. Bytes, reads,
    /// sizes and memory per operation do not change if the same operations merely take longer.
    pub fn depends_on_cpu(self) -> bool {
        matches!(self, Class::Rate | Class::Time | Class::Cpu)
    }
}

/// A metric's name, its better direction, and how it is measured.
#[derive(Clone, Copy, Debug)]
pub struct MetricInfo {
    /// The stable name in JSON, claims and documents.
    pub name: &'static str,
    /// The unit: `KB/op`.
    pub unit: &'static str,
    /// The better direction, which verdicts use.
    pub better: Better,
    /// Its kind, which decides what can disturb it.
    pub class: Class,
    /// The metric's meaning and how it is measured.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $name:ident: $unit:literal, $better:ident, $class:ident;)+) => {
        /// The metrics of one phase. KB are 1024 bytes, MB 1024 KB.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct Metrics {
            $($(#[doc = $help])+ #[serde(default)] pub $name: Metric,)+
        }

        /// Every metric's description, in the order of [`Metrics`].
        pub const METRICS: &[MetricInfo] = &[
            $(MetricInfo {
                name: stringify!($name),
                unit: $unit,
                better: Better::$better,
                class: Class::$class,
                help: concat!($($help),+),
            },)+
        ];

        impl Metrics {
            /// A metric by its stable name.
            pub fn get(&self, name: &str) -> Option<&Metric> {
                match name {
                    $(stringify!($name) => Some(&self.$name),)+
                    _ => None,
                }
            }
        }
    };
}

metrics! {
    /// Operations per second of the phase (load: rows inserted per second).
    ops_per_s: "1/s", More, Rate;
    /// Device reads completed per operation.
    reads_per_op: "1/op", Less, Io;
    /// Device writes completed per operation: requests after merging, not bytes; discards not counted, but each flush of the device's cache is.
    writes_per_op: "1/op", Less, Io;
    /// KB read from the device per operation.
    rkb_per_op: "KB/op", Less, Io;
    /// KB written to the device per operation, discards not counted.
    wkb_per_op: "KB/op", Less, Io;
    /// KB that the engine's process, or the server's processes, had read from storage per operation (/proc/PID/io).
    proc_rkb_per_op: "KB/op", Less, Io;
    /// KB that the engine's process, or the server's processes, caused to be written to storage per operation (/proc/PID/io).
    proc_wkb_per_op: "KB/op", Less, Io;
    /// CPU microseconds per operation of clients, background and server together, without rumba's own threads.
    cpu_us_per_op: "µs/op", Less, Cpu;
    /// CPU microseconds per operation of the host, the kernel's own threads and interrupts included; without rumba's own threads and without processes that are neither the trial's nor its server's.
    host_cpu_us_per_op: "µs/op", Less, Cpu;
    /// CPU microseconds per operation of the client threads; embedded engines run in them.
    client_cpu_us_per_op: "µs/op", Less, Cpu;
    /// CPU microseconds per operation of the clients' process beyond its clients and rumba's own threads: an embedded engine's background threads.
    background_cpu_us_per_op: "µs/op", Less, Cpu;
    /// CPU microseconds per operation of the server's process and its descendants; absent for embedded engines.
    server_cpu_us_per_op: "µs/op", Less, Cpu;
    /// Microseconds per operation that its client, though free, started it late: drawing it, and waking up in an open loop.
    late_us_per_op: "µs/op", Less, Time;
    /// Microseconds per operation from the arrival of a server's answer to its reading: it waited for other clients of the event loop, or the client's thread waited for a CPU. It is part of the service time.
    receive_late_us_per_op: "µs/op", Less, Time;
    /// Retried rollbacks per operation: transactions that conflicted with each other.
    retries_per_op: "1/op", Less, Count;
    /// Statements per operation that read: they ask for rows. Those of retries and of operations given up are included; over keys and values each call is one.
    read_statements_per_op: "1/op", Neither, Count;
    /// Statements per operation that write: they insert, change, delete or load rows; over keys and values each call is one, of a batch each entry.
    write_statements_per_op: "1/op", Neither, Count;
    /// Statements per operation that neither read nor write: they begin and end transactions.
    other_statements_per_op: "1/op", Neither, Count;
    /// Context switches per operation of the clients' process, voluntary and not; embedded engines run in it.
    ctx_switches_per_op: "1/op", Less, Cpu;
    /// Context switches per operation of the server's processes, voluntary and not; absent for embedded engines, and where processes that ended meanwhile took too many with them.
    server_ctx_switches_per_op: "1/op", Less, Cpu;
    /// Context switches of the whole host per second, of all processes and of the kernel's own threads (vmstat's `cs`).
    host_ctx_switches_per_s: "1/s", Neither, Cpu;
    /// Instructions in user mode per operation, of the server's processes; absent for embedded engines. Only with `run.hardware_counters`.
    server_instructions_per_op: "1/op", Less, Cpu;
    /// CPU cycles in user mode per operation, of the server's processes; absent for embedded engines. Only with `run.hardware_counters`.
    server_cycles_per_op: "1/op", Less, Cpu;
    /// Instructions per CPU cycle in user mode, of the server's processes; absent for embedded engines. Only with `run.hardware_counters`.
    server_ipc: "ratio", Neither, Cpu;
    /// Loads that missed the last level cache in user mode per operation, of the server's processes; absent for embedded engines. Only with `run.hardware_counters`.
    server_llc_misses_per_op: "1/op", Less, Cpu;
    /// Loads that missed the data TLB in user mode per operation, of the server's processes; absent for embedded engines. Only with `run.hardware_counters`.
    server_dtlb_misses_per_op: "1/op", Less, Cpu;
    /// Instructions in user mode per operation, of the clients' process without rumba's own threads; embedded engines run in it. Only with `run.hardware_counters`.
    client_instructions_per_op: "1/op", Less, Cpu;
    /// CPU cycles in user mode per operation, of the clients' process without rumba's own threads; embedded engines run in it. Only with `run.hardware_counters`.
    client_cycles_per_op: "1/op", Less, Cpu;
    /// Instructions per CPU cycle in user mode, of the clients' process without rumba's own threads; embedded engines run in it. Only with `run.hardware_counters`.
    client_ipc: "ratio", Neither, Cpu;
    /// Loads that missed the last level cache in user mode per operation, of the clients' process without rumba's own threads; embedded engines run in it. Only with `run.hardware_counters`.
    client_llc_misses_per_op: "1/op", Less, Cpu;
    /// Loads that missed the data TLB in user mode per operation, of the clients' process without rumba's own threads; embedded engines run in it. Only with `run.hardware_counters`.
    client_dtlb_misses_per_op: "1/op", Less, Cpu;
    /// Instructions in kernel mode per operation, of clients and server together; the kernel's own threads not included. Only with `run.hardware_counters`.
    kernel_instructions_per_op: "1/op", Less, Cpu;
    /// CPU cycles in kernel mode per operation, of clients and server together; the kernel's own threads not included. Only with `run.hardware_counters`.
    kernel_cycles_per_op: "1/op", Less, Cpu;
    /// Instructions per CPU cycle in kernel mode, of clients and server together; the kernel's own threads not included. Only with `run.hardware_counters`.
    kernel_ipc: "ratio", Neither, Cpu;
    /// Loads that missed the last level cache in kernel mode per operation, of clients and server together; the kernel's own threads not included. Only with `run.hardware_counters`.
    kernel_llc_misses_per_op: "1/op", Less, Cpu;
    /// Loads that missed the data TLB in kernel mode per operation, of clients and server together; the kernel's own threads not included. Only with `run.hardware_counters`.
    kernel_dtlb_misses_per_op: "1/op", Less, Cpu;
    /// Share of the CPU time in which the least counted of these events was counted; the figures are scaled up to the whole time. Below 100, the CPU has fewer counters than there are events. Only with `run.hardware_counters`.
    hardware_counted_percent: "%", Neither, Cpu;
    /// Device reads per second.
    reads_per_s: "1/s", Neither, Rate;
    /// Device writes per second.
    writes_per_s: "1/s", Neither, Rate;
    /// Share of `limits.storage.iops` that reads and writes used over the phase, counted before merging as the throttle does.
    iops_used_percent: "%", Neither, Rate;
    /// MB read from the device per second.
    read_mb_s: "MB/s", Neither, Rate;
    /// MB written to the device per second.
    write_mb_s: "MB/s", Neither, Rate;
    /// MB discarded (trimmed) on the device per second.
    discard_mb_s: "MB/s", Neither, Rate;
    /// Milliseconds that a device read or write took on average, from submission to completion: waiting in the queue included.
    device_await_ms: "ms", Less, Time;
    /// Milliseconds that a device read took on average, from submission to completion.
    device_read_await_ms: "ms", Less, Time;
    /// Milliseconds that a device write took on average, from submission to completion; discards not counted, but each flush of the device's cache is.
    device_write_await_ms: "ms", Less, Time;
    /// Requests in flight at the device on average, discards and flushes included.
    device_queue_length: "requests", Neither, Time;
    /// Share of the time in which the device had at least one request in flight, discards and flushes included. A device that serves requests in parallel is not saturated at 100%.
    device_utilisation_percent: "%", Neither, Time;
    /// Microseconds of device time per operation: those in which the device had at least one request in flight.
    device_busy_us_per_op: "µs/op", Less, Time;
    /// Microseconds per operation that device reads and writes took, all together: their number times `device_await_ms`.
    device_request_us_per_op: "µs/op", Less, Time;
    /// CPU used by the whole host over the phase, percent of all cores.
    host_cpu_percent: "%", Neither, Cpu;
    /// CPU that a hypervisor took from this host over the phase (steal), percent of all cores.
    stolen_cpu_percent: "%", Neither, Cpu;
    /// CPU that processes of other programs used over the phase, percent of all cores.
    others_cpu_percent: "%", Neither, Cpu;
    /// Bytes allocated on disk at the end of the phase without logs, whose size some engines fix in advance: what sizes are compared by.
    data_bytes: "B", Less, Size;
    /// Bytes allocated on disk at the end of the phase, logs included.
    size_bytes: "B", Less, Size;
    /// Bytes allocated on disk by logs at the end of the phase.
    log_bytes: "B", Less, Size;
    /// Bytes of keys and payloads in the database at the end of the phase, index entries included.
    logical_bytes: "B", Neither, Size;
    /// Bytes by which the data grew on disk per operation of the mix, logs not counted; below zero where more was freed.
    growth_bytes_per_op: "B/op", Less, Size;
    /// Resident memory of the engine's process, or of the server's processes, at the end of the phase. Pages that the server's processes share count once. Pages of files that others map too are included.
    rss_bytes: "B", Less, Memory;
    /// Resident memory of the clients' process at the end of the phase, shared pages included; absent for embedded engines.
    client_rss_bytes: "B", Less, Memory;
    /// Bytes written to the device per logical byte inserted (load only).
    write_amp: "ratio", Less, Io;
    /// Bytes allocated on disk without logs, per logical byte.
    space_amp: "ratio", Less, Size;
}

impl Metrics {
    /// Adds metrics that records of older versions lack: `data_bytes`, and `space_amp`, which counted logs.
    pub fn complete(&mut self) {
        if self.data_bytes != Metric::default() || self.size_bytes == Metric::default() {
            return;
        }
        self.data_bytes = without_logs(&self.size_bytes, &self.log_bytes);
        if let (Some(data), Some(logical)) = (self.data_bytes.value(), self.logical_bytes.value()) {
            self.space_amp = Metric::Value(data).per(logical, "logical bytes");
        }
    }
}

/// A size on disk without its logs; absent if one of both is.
pub fn without_logs(size_bytes: &Metric, log_bytes: &Metric) -> Metric {
    size_bytes.plus(&log_bytes.map(|logs| -logs))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A redo log of fixed size made one version of a server look 41% smaller than another.
    #[test]
    fn records_without_data_bytes_get_them_from_size_and_logs() {
        let older = r#"{"size_bytes": 3000.0, "log_bytes": 1000.0, "logical_bytes": 500.0, "space_amp": 6.0}"#;
        let mut metrics: Metrics = serde_json::from_str(older).unwrap();
        metrics.complete();
        assert_eq!((metrics.data_bytes, metrics.space_amp), (Metric::Value(2000.0), Metric::Value(4.0)));
        let mut newer =
            Metrics { data_bytes: Metric::Value(7.0), size_bytes: Metric::Value(9.0), ..Metrics::default() };
        newer.complete();
        assert_eq!(newer.data_bytes, Metric::Value(7.0));
        let mut unknown = Metrics { size_bytes: Metric::absent("elsewhere"), ..Metrics::default() };
        unknown.complete();
        assert_eq!(unknown.data_bytes, Metric::absent("elsewhere"));
    }

    #[test]
    fn division_by_nothing_is_an_absence_not_an_infinity() {
        assert_eq!(Metric::Value(3.0).per(0.0, "operations"), Metric::absent("no operations"));
        assert_eq!(Metric::from(f64::NAN).value(), None);
    }
}
