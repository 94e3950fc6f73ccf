//! Hardware resources spent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

macro_rules! spent {
    ($($(#[$about:meta])+ $name:ident,)+) => {
        /// Hardware resources spent over a span of time. A value that could not be measured is absent with a reason.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct Spent {
            $($(#[$about])+ pub $name: Metric,)+
        }

        impl Spent {
            /// Every value is absent with this reason.
            pub fn absent(reason: &str) -> Self {
                Self { $($name: Metric::absent(reason),)+ }
            }
        }
    };
}

spent! {
    /// Completed reads of the data's device by all processes; merged reads count once.
    device_reads,
    /// Completed writes of the data's device by all processes; merged writes count once.
    #[serde(default)]
    device_writes,
    /// Reads and writes submitted to the device before merging, which is what a throttle counts.
    #[serde(default)]
    device_submitted,
    /// Bytes that the device of the data read.
    device_read_bytes,
    /// Device bytes written, discards not counted.
    device_write_bytes,
    /// Bytes discarded on the device (TRIM).
    device_discard_bytes,
    /// The total seconds of the device's reads, from submission to completion.
    #[serde(default)]
    device_read_s,
    /// The total seconds of the device's writes, from submission to completion.
    #[serde(default)]
    device_write_s,
    /// The total seconds of all requests of the device, discards and flushes included.
    #[serde(default)]
    device_queue_s,
    /// Seconds in which the device had at least one request in flight.
    #[serde(default)]
    device_busy_s,
    /// Bytes that the engine's process, or the server's processes, read from storage.
    process_read_bytes,
    /// Bytes that the engine's process, or the server's processes, caused to be written to storage.
    process_write_bytes,
    /// CPU seconds of the client threads.
    client_cpu_s,
    /// CPU seconds of the clients' process that are neither its clients' nor
    /// rumba's own: an embedded engine's background threads.
    background_cpu_s,
    /// Seconds that client threads of a server were ready to run and waited for a CPU.
    #[serde(default)]
    client_run_delay_s,
    /// CPU seconds of rumba's own threads.
    harness_cpu_s,
    /// CPU seconds of the server's process and its descendants.
    #[serde(default)]
    server_cpu_s,
    /// CPU seconds of clients, background and server together, which is the cost of operations. Absent when the engine
    /// is a server whose share cannot be read.
    #[serde(default)]
    cpu_s,
    /// CPU seconds of the whole host: user, system and interrupts, without idle time, waits for devices, and time
    /// stolen by a hypervisor.
    host_cpu_s,
    /// CPU seconds that a hypervisor took from this host while it had work.
    #[serde(default)]
    steal_s,
    /// CPU seconds of this host's processes other than the trial's and its server's; kernel threads are not included.
    #[serde(default, alias = "strangers_cpu_s")]
    others_cpu_s,
    /// Context switches of the clients' process.
    ctx_switches,
    /// Context switches of the server's processes.
    #[serde(default)]
    server_ctx_switches,
    /// Context switches of the whole host, of all processes and of the kernel's own threads.
    #[serde(default)]
    host_ctx_switches,
    /// Resident memory of the engine's process, or of the server's processes, at the end, bytes.
    rss_bytes,
    /// Resident memory of the clients' process at the end, bytes, when the engine runs in another process.
    #[serde(default)]
    client_rss_bytes,
}
