//! Settling a server after the load, and draining its deferred work after the loops.
//!
//! Settle gathers statistics and leaves nothing of the load's to do. Drain does what the server owes: it writes what is
//! dirty and finishes what the server's own triggers demand. Both wait as long
//! as there is progress. On a managed server, which ends with its trial, they
//! may change variables to make it hurry, and set them back whatever happens; on an existing
//! one they change none: see [`existing`]. docs/engines/mysql-counters.md says which.

mod analyze;
pub mod existing;
mod globals;
mod innodb;
mod rocksdb;
#[cfg(test)]
mod tests;

use rumba_core::error::EngineError;

use crate::counters::{Ask, Kind, Server, query};
pub use rumba_server_kit::wait::Patience;

/// Brings the tables of `schema`, on a managed server, to the state in which
/// reads after a load are representative. May take minutes: the connection must bear answers that are
/// long in coming (`ANALYZE TABLE`, a flush).
///
/// # Errors
/// The server's words; what is left when nothing has moved for [`Patience::stuck_after`].
pub fn settle(admin: &mut dyn Ask, server: &Server, schema: &str, patience: &Patience) -> Result<(), EngineError> {
    match server.kind {
        // MyRocks takes its statistics from table files: it flushes first.
        Kind::RocksDb => {
            rocksdb::settle(admin, patience)?;
            analyze::tables(admin, schema)
        }
        Kind::InnoDb | Kind::Other(_) => {
            analyze::tables(admin, schema)?;
            drain(admin, server, patience)
        }
    }
}

/// Does the work that a managed server owes, and no more. May take minutes, see [`settle`].
///
/// # Errors
/// See [`settle`].
pub fn drain(admin: &mut dyn Ask, server: &Server, patience: &Patience) -> Result<(), EngineError> {
    match &server.kind {
        Kind::InnoDb => innodb::drain(admin, server, patience),
        Kind::RocksDb => rocksdb::drain(admin, patience),
        // Whatever it is: closing the tables writes what was cached of them, and
        // engines with a log take this as the time for a checkpoint.
        Kind::Other(_) => {
            query(admin, "FLUSH TABLES", "FLUSH LOCAL TABLES")?;
            query(admin, "FLUSH ENGINE LOGS", "FLUSH LOCAL ENGINE LOGS").map(|_| ())
        }
    }
}
