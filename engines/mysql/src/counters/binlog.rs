//! Bytes of the binary log.

use rumba_protocol_mysql::WireError;

use super::ask::cell;
use super::{Ask, Status};

/// `ER_NO_BINARY_LOGGING`.
const NO_BINARY_LOGGING: u16 = 1381;

/// Bytes written into the binary log. MariaDB counts them since its start; MySQL
/// does not, there it is the size of the files that are kept: it falls when one
/// is purged, and it holds what earlier runs of the server wrote.
pub(super) fn written(admin: &mut dyn Ask, status: &Status) -> Result<f64, String> {
    if let Some(bytes) = status.get("Binlog_bytes_written") {
        return Ok(bytes);
    }
    match admin.ask("SHOW BINARY LOGS") {
        Ok(rows) => rows
            .rows
            .iter()
            .map(|row| cell(row, 1).parse::<f64>().map_err(|_| "SHOW BINARY LOGS gives no size".to_owned()))
            .sum(),
        // There is no log, so nothing was written into it: a zero that is known.
        Err(WireError::Server { code: NO_BINARY_LOGGING, .. }) => Ok(0.0),
        Err(error) => Err(format!("SHOW BINARY LOGS: {error}")),
    }
}
