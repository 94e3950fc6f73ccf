//! SQLite's counters per connection, summed over all sessions.
//!
//! Only a connection's own thread may read its counters. Therefore each session periodically publishes them on its own
//! cache lines, and the sum uses the last published values.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rumba_engine_api::engine::Gauge;

/// The counters of one connection, from `sqlite3_db_status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheStatus {
    /// Pages found in the cache.
    pub hit: u64,
    /// Pages not found in it.
    pub miss: u64,
    /// Pages written from it.
    pub write: u64,
    /// Dirty pages written early because the cache was too small.
    pub spill: u64,
    /// Bytes that it holds.
    pub used_bytes: u64,
}

/// The counters that one session has published. 128 bytes: two cache lines, which are fetched in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Published {
    hit: AtomicU64,
    miss: AtomicU64,
    write: AtomicU64,
    spill: AtomicU64,
    used_bytes: AtomicU64,
    waited_us: AtomicU64,
}

impl Published {
    /// Adds a wait of this session for other writers; only the session itself calls this.
    pub fn waited(&self, time: Duration) {
        let waited_us = self.waited_us.load(Ordering::Relaxed) + time.as_micros() as u64;
        self.waited_us.store(waited_us, Ordering::Relaxed);
    }

    /// Replaces the published counters.
    pub fn set(&self, status: CacheStatus) {
        self.hit.store(status.hit, Ordering::Relaxed);
        self.miss.store(status.miss, Ordering::Relaxed);
        self.write.store(status.write, Ordering::Relaxed);
        self.spill.store(status.spill, Ordering::Relaxed);
        self.used_bytes.store(status.used_bytes, Ordering::Relaxed);
    }
}

/// The published counters of all sessions of an instance; ended sessions keep theirs.
#[derive(Debug, Default)]
pub(crate) struct StatusBoard(Mutex<Vec<Arc<Published>>>);

impl StatusBoard {
    /// Adds an entry for a new session.
    pub fn join(&self) -> Arc<Published> {
        let place = Arc::new(Published::default());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&place));
        place
    }

    /// The number of open sessions.
    pub fn open_sessions(&self) -> usize {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.iter().filter(|place| Arc::strong_count(place) > 1).count()
    }

    /// The sums, by SQLite's names.
    pub fn counters(&self) -> Vec<Gauge> {
        let places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |figure: fn(&Published) -> &AtomicU64| {
            places.iter().map(|place| figure(place).load(Ordering::Relaxed)).sum::<u64>() as f64
        };
        vec![
            Gauge::new("cache_hit", sum(|place| &place.hit)),
            Gauge::new("cache_miss", sum(|place| &place.miss)),
            Gauge::new("cache_write", sum(|place| &place.write)),
            Gauge::new("cache_spill", sum(|place| &place.spill)),
            Gauge::new("cache_used_bytes", sum(|place| &place.used_bytes)),
            Gauge::new("waited_writer_us", sum(|place| &place.waited_us)),
        ]
    }
}
