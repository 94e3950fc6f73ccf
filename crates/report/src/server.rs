//! Engines that run in a server.

use rumba_core::record::Record;

/// Whether the trial's engine ran in a server: only then do its clients have a
/// process of their own. One that failed before anything was measured is known
/// by the server that it asked for.
pub fn in_server(record: &Record) -> bool {
    record.plan.engine.server.is_some()
        || record.phases.iter().any(|phase| phase.metrics.client_rss_bytes.value().is_some())
}
