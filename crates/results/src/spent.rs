//! Hardware resources spent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

/// Hardware resources spent over a span of time. A value that could not be measured is absent with a reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Completed reads of the data's device by all processes; merged reads count once.
    pub device_reads: Metric,
    /// Completed writes of the data's device by all processes; merged writes count once.
    #[serde(default)]
    pub device_writes: Metric,
    /// Reads and writes submitted to the device before merging, which is what a throttle counts.
    #[serde(default)]
    pub device_submitted: Metric,
    /// Bytes that the device of the data read.
    pub device_read_bytes: Metric,
    /// Device bytes written, discards not counted.
    pub device_write_bytes: Metric,
    /// Bytes discarded on the device (TRIM).
    pub device_discard_bytes: Metric,
    /// The total seconds of the device's reads, from submission to completion.
    #[serde(default)]
    pub device_read_s: Metric,
    /// The total seconds of the device's writes, from submission to completion.
    #[serde(default)]
    pub device_write_s: Metric,
    /// The total seconds of all requests of the device, discards and flushes included.
    #[serde(default)]
    pub device_queue_s: Metric,
    /// Seconds in which the device had at least one request in flight.
    #[serde(default)]
    pub device_busy_s: Metric,
    /// Bytes that the engine's process, or the server's processes, read from storage.
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
    /// CPU seconds of clients, background and server together, which is the cost of operations. Absent when the engine
    /// is a server whose share cannot be read.
    #[serde(default)]
    pub cpu_s: Metric,
    /// CPU seconds of the whole host: user, system and interrupts, without idle time, waits for devices, and time
    /// stolen by a hypervisor.
    pub host_cpu_s: Metric,
    /// CPU seconds that a hypervisor took from this host while it had work.
    #[serde(default)]
    pub steal_s: Metric,
    /// CPU seconds of this host's processes other than the trial's and its server's; kernel threads are not included.
    #[serde(default, alias = "strangers_cpu_s")]
    pub others_cpu_s: Metric,
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
    /// Resident memory of the clients' process at the end, bytes, when the engine runs in another process.
    #[serde(default)]
    pub client_rss_bytes: Metric,
}
