//! Ends the waits of writers that RocksDB has stopped for ever.
//!
//! When a flush fails for lack of space, RocksDB waits until there is space again. New writes fail meanwhile. A writer
//! that was stopped before the failure waits as well (`DBImpl::DelayWrite`). It waits for ever if nothing frees space, or
//! if the flush of the recovery waits for that writer (`DBImpl::FlushMemTable`).

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result};

use crate::db::Database;
use crate::quiet;

/// The pause between two checks, of which each reads a few properties.
const POLL: Duration = Duration::from_millis(500);

/// Consecutive checks after which nothing can be expected to end a wait.
const STUCK: u32 = 2;

/// A thread that looks for such writers while an instance is open.
pub struct Watch {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl Watch {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(db: &Arc<Database>) -> Result<Self> {
        let (end, ended) = mpsc::channel();
        let db = Arc::downgrade(db);
        let thread = thread::Builder::new()
            .name("rocksdb-stopped".to_owned())
            .spawn(move || look(&db, &ended))
            .map_err(|error| EngineError::failed("thread", error.to_string()))?;
        Ok(Self { end, thread })
    }

    /// Ends the thread, which then uses the database no more.
    pub fn end(self) {
        drop(self.end);
        let _ = self.thread.join();
    }
}

fn look(db: &Weak<Database>, ended: &Receiver<()>) {
    let mut stuck = 0;
    while ended.recv_timeout(POLL) == Err(RecvTimeoutError::Timeout) {
        let Some(db) = db.upgrade() else { return };
        stuck = if is_stuck(&db) { stuck + 1 } else { 0 };
        if stuck == STUCK {
            return db.release_writers();
        }
    }
}

/// Whether background work has failed, writes are stopped, and no work runs that could let them go on.
fn is_stuck(db: &Database) -> bool {
    let is_positive = |value: Option<u64>| value.is_some_and(|value| value > 0);
    is_positive(db.int_of_all(c"rocksdb.background-errors"))
        && is_positive(db.int_of_all(c"rocksdb.is-write-stopped"))
        && quiet::running(db) == 0
}
