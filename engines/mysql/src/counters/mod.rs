//! The server's counters, gauges and deferred work.
//!
//! Names that begin with a capital are the server's own (`SHOW GLOBAL STATUS`). The others are rumba's, with the unit
//! last; docs/engines/mysql-counters.md lists them. All reads are plain statements over a connection that is not a
//! client's. Counters that cannot be read are left out.

mod binlog;
mod fetch;
mod innodb;
mod levels;
mod rocksdb;
mod server;
mod status;
#[cfg(test)]
pub(crate) mod tests;
mod tokudb;

use rumba_engine_api::error::Result;

pub use fetch::Request;
pub(crate) use fetch::{failed, is_denied, query};
pub(crate) use innodb::{LATCHES, PurgeProgress, WAITS, debt_status, purge_progress};
pub(crate) use levels::Levels;
pub(crate) use rocksdb::family_sums;
pub use rumba_server_kit::reading::Reading;
pub use server::{Kind, Server};
pub(crate) use status::Status;
pub(crate) use tokudb::{MESSAGES, OVER_OLDER_DATA, unpaid};

/// Enables InnoDB's optional counters, once after the start. If the user lacks the privilege, those counters are
/// absent.
///
/// # Errors
/// A lost connection.
pub fn enable(admin: &mut dyn Request, server: &Server) -> Result<()> {
    if server.kind != Kind::InnoDb {
        return Ok(());
    }
    for monitor in innodb::MONITORS {
        let sql = format!("SET GLOBAL innodb_monitor_enable = '{monitor}'");
        match admin.fetch(&sql) {
            Ok(_) | Err(rumba_protocol_mysql::WireError::Server { .. }) => {}
            Err(error) => return Err(failed("SET GLOBAL innodb_monitor_enable", &error)),
        }
    }
    Ok(())
}

/// Deferred work. Takes one or two statements, about a millisecond.
pub fn debt(admin: &mut dyn Request, server: &Server) -> Reading {
    match &server.kind {
        Kind::InnoDb => innodb::debt(admin),
        Kind::RocksDb => rocksdb::debt(admin),
        Kind::TokuDb => tokudb::debt(admin),
        Kind::Other(_) => Reading::default(),
    }
}

/// All counters (since the server's start) and gauges, including bytes written.
pub fn counters(admin: &mut dyn Request, server: &Server) -> Reading {
    let mut reading = Reading::default();
    let Ok(status) = Status::read_all(admin) else { return reading };
    status::of_server(&status, &mut reading);
    match &server.kind {
        Kind::InnoDb => innodb::counters(admin, &status, &mut reading),
        Kind::RocksDb => rocksdb::counters(admin, &status, &mut reading),
        Kind::TokuDb => tokudb::counters(&status, &mut reading),
        Kind::Other(name) => status::by_prefix(&status, name, &mut reading),
    }
    reading.gauges.extend(written_of(admin, server, &status).gauges);
    reading
}

/// Bytes written since the server's start, by purpose.
fn written_of(admin: &mut dyn Request, server: &Server, status: &Status) -> Reading {
    let mut reading = Reading::default();
    match &server.kind {
        Kind::InnoDb => innodb::written(server, status, &mut reading),
        Kind::RocksDb => rocksdb::written(admin, status, &mut reading),
        Kind::TokuDb => tokudb::written(status, &mut reading),
        Kind::Other(_) => {}
    }
    reading.put_any("written_binlog_bytes", binlog::written(admin, status));
    reading
}
