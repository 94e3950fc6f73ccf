//! Bytes of the binary log.

use rumba_protocol_mysql::WireError;

use super::fetch::cell;
use super::{Request, Status};

/// `ER_NO_BINARY_LOGGING`.
const NO_BINARY_LOGGING: u16 = 1381;

/// Bytes written to the binary log. MariaDB counts them since its start. MySQL does not, so there it is the size of the
/// existing files. That size includes earlier runs of the server, and decreases when a file is purged.
pub(super) fn written(admin: &mut dyn Request, status: &Status) -> Option<f64> {
    if let Some(bytes) = status.get("Binlog_bytes_written") {
        return Some(bytes);
    }
    match admin.fetch("SHOW BINARY LOGS") {
        Ok(rows) => rows.rows.iter().map(|row| cell(row, 1).parse::<f64>().ok()).sum(),
        // Without a binary log the number of bytes is known to be zero.
        Err(WireError::Server { code: NO_BINARY_LOGGING, .. }) => Some(0.0),
        Err(_) => None,
    }
}
