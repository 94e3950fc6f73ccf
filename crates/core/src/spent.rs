//! What the hardware spent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// What the hardware spent over a span of time. Absent is absent with a reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Reads that the device of the data completed, merged ones once, whoever asked for them.
    pub device_reads: Metric,
    /// Writes that the device of the data completed, merged ones once, whoever asked for them.
    #[serde(default)]
    pub device_writes: Metric,
    /// Reads and writes that the device was asked for, before they were merged: what a throttle counts.
    #[serde(default)]
    pub device_submitted: Metric,
    /// Bytes that the device of the data read.
    pub device_read_bytes: Metric,
    /// Device bytes written, discards not counted.
    pub device_write_bytes: Metric,
    /// Bytes that the device was told it need not keep any more (TRIM).
    pub device_discard_bytes: Metric,
    /// Seconds that the device's reads took, all together, from submission to completion.
    #[serde(default)]
    pub device_read_s: Metric,
    /// Seconds that the device's writes took, all together, from submission to completion.
    #[serde(default)]
    pub device_write_s: Metric,
    /// Seconds that all requests of the device took together, discards and flushes included.
    #[serde(default)]
    pub device_queue_s: Metric,
    /// Seconds in which the device had at least one request in flight.
    #[serde(default)]
    pub device_busy_s: Metric,
    /// Bytes that the engine's process, or the server's processes, had read from storage.
    pub process_read_bytes: Metric,
    /// Bytes that the engine's process, or the server's processes, caused to be written to storage.
    pub process_write_bytes: Metric,
    /// CPU seconds of the client threads.
    pub client_cpu_s: Metric,
    /// CPU seconds of the clients' process that are neither its clients' nor
    /// rumba's own: an embedded engine's background threads.
    pub background_cpu_s: Metric,
    /// Seconds that client threads of a server were ready to run and waited for a CPU.
    #[serde(default)]
    pub client_run_delay_s: Metric,
    /// CPU seconds of rumba's own threads.
    pub harness_cpu_s: Metric,
    /// CPU seconds of the server's process and its descendants.
    #[serde(default)]
    pub server_cpu_s: Metric,
    /// CPU seconds of clients, background and server together: what operations cost.
    /// Absent when the engine is a server whose share cannot be read.
    #[serde(default)]
    pub cpu_s: Metric,
    /// CPU seconds of the whole host: user, system, interrupts; not idle, waiting for devices, or stolen by a hypervisor.
    pub host_cpu_s: Metric,
    /// CPU seconds that a hypervisor gave to others while this host wanted to run.
    #[serde(default)]
    pub steal_s: Metric,
    /// CPU seconds of this host's processes that are neither the trial's nor its server's; threads of the kernel are
    /// not among them.
    #[serde(default)]
    pub strangers_cpu_s: Metric,
    /// Context switches of the clients' process.
    pub ctx_switches: Metric,
    /// Context switches of the server's processes.
    #[serde(default)]
    pub server_ctx_switches: Metric,
    /// Context switches of the whole host, of all processes and of the kernel's own threads.
    #[serde(default)]
    pub host_ctx_switches: Metric,
    /// Resident memory of the engine's process, or of the server's processes, at the end, bytes.
    pub rss_bytes: Metric,
    /// Resident memory of the clients' process at the end, bytes, when the engine is not in it.
    #[serde(default)]
    pub client_rss_bytes: Metric,
}
