//! Statements that look for rows by their ids and find none. Some servers number rows with gaps: with
//! `auto_increment_increment` of 3 two thirds of the statements find nothing, which is fast and no measurement.

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Answer, SqlSession};
use rumba_engine_api::worker::block_on;

/// Whether a statement looked for rows and found none. MySQL's `matched` distinguishes an update that changed nothing from one
/// that found nothing.
#[inline]
pub(crate) fn found_no_row(answer: &Answer, sql: &[u8]) -> bool {
    match answer.columns {
        Some(_) => answer.rows == 0,
        None => answer.affected == 0 && answer.matched == 0 && is_search(sql),
    }
}

/// Whether it is an UPDATE or a DELETE.
fn is_search(sql: &[u8]) -> bool {
    let verb = sql.trim_ascii_start().get(..6);
    verb.is_some_and(|verb| verb.eq_ignore_ascii_case(b"update") || verb.eq_ignore_ascii_case(b"delete"))
}

/// The ids of a table's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The lowest.
    pub first: i64,
    /// The highest; 0 for a table without rows.
    pub last: i64,
}

impl Ids {
    /// The ids of sysbench's first table.
    ///
    /// # Errors
    /// Any error of the engine, for example that there is no such table.
    pub fn read(session: &mut dyn SqlSession) -> Result<Option<Self>> {
        let statement = session.prepare("SELECT MIN(id), MAX(id) FROM sbtest1")?;
        session.submit(statement, &[])?;
        let mut ids = None;
        block_on(session.answer(&mut |row| ids = Some(Ids { first: row.int(0), last: row.int(1) })))?;
        Ok(ids)
    }

    /// The gaps that let statements with ids from 1 to `rows` find no row, with the remedy; `None` without gaps.
    pub fn gaps(self, rows: i64) -> Option<String> {
        if self.last <= rows {
            return None;
        }
        let (first, last, steps) = (grouped(self.first), grouped(self.last), self.steps(rows));
        let shown = grouped(rows);
        Some(format!(
            "ids go from {first} to {last}{steps}, not from 1 to {shown}; load with --auto_inc=off, so that they have no \
             gaps"
        ))
    }

    /// The lack of rows that lets statements with ids from 1 to `rows` find no row, with the remedy. A few last rows may
    /// have been deleted.
    pub fn shortage(self, rows: i64) -> Option<String> {
        let (last, shown) = (grouped(self.last), grouped(rows));
        let words = || format!("no id is above {last}, and --table-size is {shown}; give the size of prepare");
        (self.last < rows - rows / 10).then(words)
    }

    /// The mean distance of two ids of so many rows, if it is more than 1 and not absurd.
    fn steps(self, rows: i64) -> String {
        let step = (self.last.saturating_sub(self.first) as f64 / (rows - 1).max(1) as f64).round();
        if (2.0..1e6).contains(&step) { format!(" in steps of {}", grouped(step as i64)) } else { String::new() }
    }
}

/// A number with commas between its thousands.
pub fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = if number < 0 { "-".to_owned() } else { String::new() };
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_updates_and_deletes_may_find_no_row() {
        let read = |rows| Answer { rows, columns: Some(1), ..Answer::default() };
        assert!(found_no_row(&read(0), b"SELECT c FROM sbtest1 WHERE id=?"));
        assert!(!found_no_row(&read(1), b"SELECT c FROM sbtest1 WHERE id=?"));
        let none = Answer::default();
        for sql in [&b"UPDATE sbtest1 SET k=k+1 WHERE id=?"[..], b" delete FROM sbtest1 WHERE id=?"] {
            assert!(found_no_row(&none, sql));
            assert!(!found_no_row(&Answer { affected: 1, ..none }, sql));
            assert!(!found_no_row(&Answer { matched: 1, ..none }, sql), "it has the value already");
        }
        for sql in [&b"BEGIN"[..], b"COMMIT", b"", b"INSERT INTO t VALUES (1)", b"UPDAT"] {
            assert!(!found_no_row(&none, sql));
        }
    }

    #[test]
    fn ids_explain_why_rows_are_not_found() {
        let gaps = |first, last, rows| Ids { first, last }.gaps(rows);
        assert_eq!(
            gaps(2, 89_999, 30_000).as_deref(),
            Some(
                "ids go from 2 to 89,999 in steps of 3, not from 1 to 30,000; load with --auto_inc=off, so that they have \
                 no gaps"
            )
        );
        let far = gaps(912_345_678_901_234_567, 912_345_678_909_999_999, 100).unwrap();
        assert!(far.starts_with("ids go from 912,345,678,901,234,567 to "), "{far}");
        assert!(far.contains("in steps of 88,540, not"), "{far}");
        assert_eq!(gaps(1, 10_000, 10_000), None, "rows were deleted");
        let shortage = |last, rows| Ids { first: 1, last }.shortage(rows);
        assert_eq!(
            shortage(1000, 10_000).as_deref(),
            Some("no id is above 1,000, and --table-size is 10,000; give the size of prepare")
        );
        assert!(shortage(0, 10).is_some_and(|why| why.starts_with("no id is above 0")));
        assert_eq!(shortage(9990, 10_000), None, "the last rows were deleted");
    }
}
