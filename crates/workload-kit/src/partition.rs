//! The part of a workload that this host has.

use std::sync::OnceLock;

use rumba_engine_api::worker::HostShare;

/// This host's share of the work; all of it unless several hosts divide it.
#[derive(Debug, Default)]
pub struct Partition(OnceLock<HostShare>);

impl Partition {
    /// Sets the share, once, before any client works.
    pub fn set(&self, share: HostShare) {
        // A share does not change.
        let _ = self.0.set(share);
    }

    /// The share.
    pub fn share(&self) -> HostShare {
        self.0.get().copied().unwrap_or(HostShare::ALL)
    }
}
