//! The part of a workload that this host has.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rumba_engine_api::worker::HostShare;

/// A counter on a separate cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded(pub AtomicU64);

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

    /// The next number of this host, by its counter.
    #[inline]
    pub fn next(&self, counter: &Padded) -> u64 {
        self.share().nth(counter.0.fetch_add(1, Relaxed))
    }
}
