//! Divides the common cache among sessions.
//!
//! SQLite's page cache belongs to one connection, and only the thread that uses the connection may resize its cache.
//! Therefore the budget is accounted centrally. A session takes its fair share (the budget divided by the number of
//! sessions) before its first statement. When sessions come or go, each resizes its cache before its next statement. A
//! session that must shrink first shrinks and then returns the bytes; one that may grow takes only available bytes. The
//! sum of all shares therefore never exceeds the budget. With a constant number of sessions the cost is one load of a
//! value that is not written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rumba_engine_api::error::Result;

/// The cache budget of an instance.
#[derive(Debug)]
pub(crate) struct Cache {
    budget_bytes: u64,
    sessions: AtomicU64,
    granted_bytes: Mutex<u64>,
}

impl Cache {
    /// A budget without any sessions.
    pub fn new(budget_bytes: u64) -> Arc<Self> {
        Arc::new(Self { budget_bytes, sessions: AtomicU64::new(0), granted_bytes: Mutex::new(0) })
    }

    /// Adds a session, which has no bytes yet.
    pub fn join(self: &Arc<Self>) -> Share {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Share { cache: Arc::clone(self), bytes: 0, settled_for: 0 }
    }

    /// Ignores poisoning: the sum is a plain number, so a panic cannot leave it half changed.
    fn granted(&self) -> MutexGuard<'_, u64> {
        self.granted_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's share of the budget.
#[derive(Debug)]
pub(crate) struct Share {
    cache: Arc<Cache>,
    bytes: u64,
    /// The number of sessions for which the share was last computed.
    settled_for: u64,
}

impl Share {
    /// Whether the number of sessions has changed since [`Share::settle`].
    pub fn is_stale(&self) -> bool {
        self.settled_for != self.cache.sessions.load(Ordering::Relaxed)
    }

    /// Whether other sessions still hold bytes of this session's share.
    pub fn is_short(&self) -> bool {
        self.bytes < self.fair_bytes()
    }

    fn fair_bytes(&self) -> u64 {
        self.cache.budget_bytes / self.settled_for.max(1)
    }

    /// Moves towards the fair share; calls `resize` with the new size in bytes if it changes.
    pub fn settle(&mut self, resize: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        self.settled_for = self.cache.sessions.load(Ordering::Relaxed);
        let fair = self.fair_bytes();
        if fair < self.bytes {
            resize(fair)?;
            *self.cache.granted() -= self.bytes - fair;
            self.bytes = fair;
        } else if fair > self.bytes {
            let taken = {
                let mut granted = self.cache.granted();
                let taken = (fair - self.bytes).min(self.cache.budget_bytes - *granted);
                *granted += taken;
                taken
            };
            self.bytes += taken;
            if taken > 0 {
                resize(self.bytes)?;
            }
        }
        Ok(())
    }
}

/// Returns the share; the connection must be closed by then.
impl Drop for Share {
    fn drop(&mut self) {
        *self.cache.granted() -= self.bytes;
        self.cache.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::error::EngineError;

    use super::*;

    fn settle(share: &mut Share) -> u64 {
        share.settle(|_| Ok(())).unwrap();
        share.bytes
    }

    #[test]
    fn late_session_gets_only_free_cache_until_others_shrink() {
        let cache = Cache::new(1000);
        let mut first = cache.join();
        assert_eq!(settle(&mut first), 1000);
        let mut late = cache.join();
        assert_eq!(settle(&mut late), 0, "the first one still holds everything");
        assert!(late.is_short() && !late.is_stale());
        assert!(first.is_stale());
        assert_eq!(settle(&mut first), 500);
        assert_eq!(settle(&mut late), 500);
        drop(first);
        assert!(late.is_stale());
        assert_eq!(settle(&mut late), 1000);
        assert_eq!(*cache.granted(), 1000);
    }

    #[test]
    fn a_session_that_cannot_shrink_keeps_its_share_in_the_ledger() {
        let cache = Cache::new(1000);
        let mut first = cache.join();
        settle(&mut first);
        let _second = cache.join();
        first.settle(|_| Err(EngineError::failed("resize", "no"))).unwrap_err();
        assert_eq!(*cache.granted(), 1000);
    }
}
