//! Settles a server after the load, and drains its deferred work after the loops.
//!
//! Settle collects statistics and completes all work that the load deferred. Drain writes dirty data and finishes the
//! work that the server's own triggers demand. Both wait as long as there is progress. On a managed server, which ends
//! with its trial, they may change variables to speed it up, and restore them in any case. On an existing server they
//! change none: see [`existing`]. docs/engines/mysql-counters.md lists the variables.

mod analyze;
pub mod existing;
mod globals;
mod innodb;
mod rocksdb;
#[cfg(test)]
mod tests;

use rumba_engine_api::error::Result;

use crate::counters::{Kind, Request, Server, query};
pub use rumba_server_kit::wait::Patience;

/// Brings the tables of `schema`, on a managed server, to the state in which reads after a load are representative. May
/// take minutes, so the connection must have a long timeout for answers (`ANALYZE TABLE`, a flush).
///
/// # Errors
/// The server's error; the remaining work if there is no progress for [`Patience::stuck_after`].
pub fn settle(admin: &mut dyn Request, server: &Server, schema: &str, patience: &Patience) -> Result<()> {
    match server.kind {
        // Flush first, because MyRocks takes its statistics from table files.
        Kind::RocksDb => {
            rocksdb::settle(admin, patience)?;
            analyze::tables(admin, schema)
        }
        Kind::InnoDb | Kind::TokuDb | Kind::Other(_) => {
            analyze::tables(admin, schema)?;
            drain(admin, server, patience)
        }
    }
}

/// Completes a managed server's deferred work, and no more. May take minutes, see [`settle`].
pub fn drain(admin: &mut dyn Request, server: &Server, patience: &Patience) -> Result<()> {
    match &server.kind {
        Kind::InnoDb => innodb::drain(admin, server, patience),
        Kind::RocksDb => rocksdb::drain(admin, patience),
        // Its profile makes this a checkpoint, which ends before the answer. To close the tables would write the same
        // nodes, and count them as evicted.
        Kind::TokuDb => query(admin, "FLUSH ENGINE LOGS", "FLUSH LOCAL ENGINE LOGS").map(drop),
        // For any engine: closing the tables writes their cached data, and engines with a log make a checkpoint.
        Kind::Other(_) => {
            query(admin, "FLUSH TABLES", "FLUSH LOCAL TABLES")?;
            query(admin, "FLUSH ENGINE LOGS", "FLUSH LOCAL ENGINE LOGS").map(drop)
        }
    }
}
