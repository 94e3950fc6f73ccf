//! Ids for new nodes where the engine does not assign them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Ids that a client takes at once. Few, so that clients keep appending near the same place, as with an auto-increment
/// column. Enough that the shared counter is touched once in 64 insertions.
const BLOCK: u64 = 64;

/// The ids after the loaded ones, shared by all clients of an instance.
#[derive(Debug)]
#[repr(align(128))]
pub struct NextNodeId(AtomicU64);

impl NextNodeId {
    /// The first id is `first`.
    pub fn new(first: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(first)))
    }

    /// The first id that no client has got.
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Continues from an id; called before any client takes one.
    pub fn set(&self, first: u64) {
        self.0.store(first, Ordering::Relaxed);
    }
}

/// One client's ids.
#[derive(Debug)]
pub struct NodeIds {
    shared: Arc<NextNodeId>,
    next: u64,
    end: u64,
    /// Separates the ids of different hosts.
    offset: u64,
}

impl NodeIds {
    /// Ids from `shared`, for a client on `host`; each host has 2^40 of them.
    pub fn new(shared: Arc<NextNodeId>, host: u32) -> Self {
        Self { shared, next: 0, end: 0, offset: u64::from(host) << 40 }
    }

    /// An unused id.
    #[inline]
    pub fn next(&mut self) -> u64 {
        if self.next == self.end {
            self.next = self.shared.0.fetch_add(BLOCK, Ordering::Relaxed);
            self.end = self.next + BLOCK;
        }
        self.next += 1;
        self.next - 1 + self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_clients_overwrite_each_others_new_nodes() {
        let shared = NextNodeId::new(1000);
        let mut clients: Vec<NodeIds> = [0, 0, 1].map(|host| NodeIds::new(shared.clone(), host)).into();
        let mut ids: Vec<u64> = (0..3000).map(|turn| clients[turn % 3].next()).collect();
        assert!(ids.iter().all(|&id| id >= 1000));
        ids.sort_unstable();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
