//! The shared parts of workloads' conformance tests. Each workload has its own operations, adapters and oracle. For
//! example, an operation of LinkBench returns the visited rows, and a transaction of TPC-C the output of its terminal.

use std::fmt::Debug;

use rumba_engine_api::document::DocumentSession;
use rumba_engine_api::engine::Session;
use rumba_engine_api::kv::KvSession;
use rumba_engine_api::sql::SqlSession;

/// A key-value session, like the instance's first.
///
/// # Errors
/// It is of another family.
pub fn kv(session: Session) -> Result<Box<dyn KvSession>, String> {
    match session {
        Session::Kv(session) => Ok(session),
        other => Err(format!("the instance first gave a key-value session and then {}", other.reported())),
    }
}

/// An SQL session, like the instance's first.
///
/// # Errors
/// It is of another family.
pub fn sql(session: Session) -> Result<Box<dyn SqlSession>, String> {
    match session {
        Session::Sql(session) => Ok(session),
        other => Err(format!("the instance first gave an SQL session and then {}", other.reported())),
    }
}

/// A document session, like the instance's first.
///
/// # Errors
/// It is of another family.
pub fn documents(session: Session) -> Result<Box<dyn DocumentSession>, String> {
    match session {
        Session::Document(session) => Ok(session),
        other => Err(format!("the instance first gave a session over documents and then {}", other.reported())),
    }
}

/// Checks that a table has the expected rows, in order.
///
/// # Errors
/// The first row that differs or is missing.
pub fn same<T: PartialEq + Debug>(table: &str, found: &[T], right: &[T]) -> Result<(), String> {
    let differs = (0..found.len().max(right.len())).find(|&row| found.get(row) != right.get(row));
    differs.map_or(Ok(()), |row| {
        Err(format!("{table}, row {row}: the engine has {:?}, right is {:?}", found.get(row), right.get(row)))
    })
}
