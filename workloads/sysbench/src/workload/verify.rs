//! Conditions that the bundled scripts' tables must meet after their events.

use rumba_engine_api::check::Check;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Dialect, SqlSession};
use rumba_engine_api::worker::block_on;

use super::validated_script::Tables;
use crate::gaps::Ids;

/// The effect of events on the number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// No effect: a deleted row is inserted again in the same transaction.
    None,
    Grows,
    Shrinks,
    /// Either: a test of `micro` by name, or events without transactions, which may be refused in part.
    Any,
}

impl Change {
    pub(super) fn of(script: &str, is_transactional: bool) -> Self {
        match script {
            "oltp_insert" => Change::Grows,
            "oltp_delete" => Change::Shrinks,
            "micro" => Change::Any,
            "oltp_read_write" | "oltp_write_only" if !is_transactional => Change::Any,
            _ => Change::None,
        }
    }

    /// The change of the number of rows by a writing statement; `None` if unknown.
    pub(super) fn rows_per_write(self) -> Option<i64> {
        match self {
            Change::None => Some(0),
            Change::Grows => Some(1),
            Change::Shrinks => Some(-1),
            Change::Any => None,
        }
    }

    /// Events draw ids from 1 to the number of rows, so with holes among the ids they would find no row.
    fn allows(self, found: Sums, loaded: u64) -> bool {
        match self {
            Change::None => found.rows == loaded && found.last_id == loaded,
            Change::Grows => found.rows >= loaded,
            Change::Shrinks => found.rows <= loaded && found.last_id <= loaded,
            Change::Any => true,
        }
    }
}

/// The number of a table's rows, the sum of their k, the last and the first id, as read in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    rows: u64,
    k: i64,
    last_id: u64,
    first_id: u64,
}

/// Checks every table through its rows and through its index.
pub(super) fn verify(
    session: &mut dyn SqlSession,
    script: &str,
    is_transactional: bool,
    tables: Tables,
) -> Result<Vec<Check>> {
    let change = Change::of(script, is_transactional);
    let mut rows = Check::new("every table has the rows that its events leave, without holes in their ids");
    let mut index = Check::new("the index on k holds every row, each with its k");
    for table in 1..=tables.tables {
        let by_rows = sums(session, table, Way::Rows)?;
        rows.examined += 1;
        if !change.allows(by_rows, tables.rows) {
            rows.fail(|| {
                format!("sbtest{table}: {by_rows:?}, and {} were loaded{}", tables.rows, gaps(by_rows, tables))
            });
        }
        if tables.has_k_index {
            let by_index = sums(session, table, Way::Index)?;
            index.examined += by_rows.rows;
            if by_index != by_rows {
                index.fail(|| format!("sbtest{table}: {by_rows:?} by its rows, {by_index:?} by its index"));
            }
        }
    }
    Ok(if tables.has_k_index { vec![rows, index] } else { vec![rows] })
}

/// The explanation of ids with gaps, as at the end of a message.
fn gaps(found: Sums, loaded: Tables) -> String {
    let [first, last, rows] = [found.first_id, found.last_id, loaded.rows].map(u64::cast_signed);
    Ids { first, last }.gaps(rows).map_or_else(String::new, |why| format!(": {why}"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Rows,
    Index,
}

fn sums(session: &mut dyn SqlSession, table: u64, way: Way) -> Result<Sums> {
    let hint = match (session.dialect(), way) {
        // Without the index on k, the server must read the rows themselves, because only they hold c.
        (Dialect::MySql, Way::Rows) => format!("IGNORE INDEX (k_{table})"),
        (Dialect::MySql, Way::Index) => format!("FORCE INDEX (k_{table})"),
        (Dialect::Sqlite, Way::Rows) => "NOT INDEXED".to_owned(),
        (Dialect::Sqlite, Way::Index) => format!("INDEXED BY k_{table}"),
        (Dialect::PostgreSql, _) => {
            let rows = if way == Way::Rows { "on" } else { "off" };
            session.run(&format!("SET enable_seqscan = {rows}"))?;
            let index = if way == Way::Rows { "off" } else { "on" };
            ["indexscan", "indexonlyscan", "bitmapscan"]
                .iter()
                .try_for_each(|scan| session.run(&format!("SET enable_{scan} = {index}")))?;
            String::new()
        }
        (other, _) => {
            return Err(EngineError::failed("verify", format!("no statements for {other:?}")));
        }
    };
    // Without a bound on k, PostgreSQL would read the index of the key; k is above 0.
    let bound = if way == Way::Index { "WHERE k > -1" } else { "" };
    let sql = format!("SELECT COUNT(*), SUM(k), MAX(id), MIN(id) FROM sbtest{table} {hint} {bound}");
    let statement = session.prepare(&sql)?;
    let mut sums = Sums::default();
    session.submit(statement, &[])?;
    block_on(session.answer(&mut |row| {
        let [rows, last_id, first_id] = [0, 2, 3].map(|column| row.int(column).unsigned_abs());
        sums = Sums { rows, k: row.int(1), last_id, first_id };
    }))?;
    session.close(statement)?;
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowed_sums_follow_from_the_events() {
        let lost = Sums { rows: 9, k: 0, last_id: 10, first_id: 1 };
        assert!(!Change::of("oltp_write_only", true).allows(lost, 10));
        // The delete is committed even if the insert after it is refused.
        assert!(Change::of("oltp_write_only", false).allows(lost, 10));
        assert!(!Change::of("oltp_read_only", false).allows(lost, 10));
        assert!(!Change::of("oltp_insert", true).allows(lost, 10));
        assert!(Change::of("oltp_insert", true).allows(lost, 0));
    }

    /// The failure once said no more than the numbers.
    #[test]
    fn ids_with_gaps_are_named_with_the_remedy() {
        let loaded = Tables { tables: 1, rows: 30_000, has_k_index: true, is_numbered: true };
        let found = Sums { rows: 30_000, k: 0, last_id: 89_999, first_id: 2 };
        assert!(!Change::None.allows(found, loaded.rows));
        let words = gaps(found, loaded);
        assert!(words.starts_with(": ids go from 2 to 89,999 in steps of 3, not from 1 to 30,000"), "{words}");
        assert_eq!(gaps(Sums { rows: 29_999, last_id: 30_000, ..found }, loaded), "");
    }
}
