//! What conformance tests of workloads do alike. The operations, the adapters and the oracle are each workload's own: an
//! operation of LinkBench answers with the rows that it visits, a transaction of TPC-C with what its terminal shows.

use std::fmt::Debug;

use rumba_core::document::DocumentSession;
use rumba_core::engine::Session;
use rumba_core::kv::KvSession;
use rumba_core::sql::SqlSession;

/// A session of keys and values, as the instance's first was.
///
/// # Errors
/// That it is of another family.
pub fn kv(session: Session) -> Result<Box<dyn KvSession>, String> {
    match session {
        Session::Kv(session) => Ok(session),
        other => Err(format!("the instance first gave a key-value session and then {}", other.told())),
    }
}

/// A session of SQL, as the instance's first was.
///
/// # Errors
/// That it is of another family.
pub fn sql(session: Session) -> Result<Box<dyn SqlSession>, String> {
    match session {
        Session::Sql(session) => Ok(session),
        other => Err(format!("the instance first gave an SQL session and then {}", other.told())),
    }
}

/// A session over documents, as the instance's first was.
///
/// # Errors
/// That it is of another family.
pub fn documents(session: Session) -> Result<Box<dyn DocumentSession>, String> {
    match session {
        Session::Document(session) => Ok(session),
        other => Err(format!("the instance first gave a session over documents and then {}", other.told())),
    }
}

/// Whether a table has the rows that it is to have, in their order.
///
/// # Errors
/// The first row that it has otherwise, or not.
pub fn same<T: PartialEq + Debug>(table: &str, found: &[T], right: &[T]) -> Result<(), String> {
    let differs = (0..found.len().max(right.len())).find(|&row| found.get(row) != right.get(row));
    differs.map_or(Ok(()), |row| {
        Err(format!("{table}, row {row}: the engine has {:?}, right is {:?}", found.get(row), right.get(row)))
    })
}
