//! Signs that a client host itself limits the load.

use rumba_results::fleet::ClientHost;
use rumba_results::warning::Warning;

/// The share of a host's CPUs, percent, from which its clients wait for a CPU.
const BUSY_PERCENT: f64 = 90.0;

pub fn bottleneck(host: &ClientHost) -> Option<Warning> {
    let percent = host.host_cpu_percent.value().filter(|percent| *percent >= BUSY_PERCENT)?;
    let own = host.client_cpu_percent.value().map(|own| format!(", {own:.0}% of them for the clients"));
    Some(Warning::new(
        "client-host-busy",
        format!(
            "the client host {} (rank {}) used {percent:.0}% of its {} CPUs{}: it may limit the load and delay answers",
            host.name,
            host.rank,
            host.cpus,
            own.unwrap_or_default()
        ),
        "add client hosts (fleet.hosts), or give this one more CPUs",
    ))
}
