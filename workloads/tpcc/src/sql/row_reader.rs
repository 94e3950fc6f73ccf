//! The rows of SQL's tables, for the proof.

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Dialect, Row, SqlSession, Visit};
use rumba_engine_api::worker::block_on;

use super::{money, rate};
use crate::data_set::DataSet;
use crate::proof::{Each, Rows};
use crate::tables::{NONE, Table, Type};

/// Reads rows with statements in text form.
pub struct SqlRowReader {
    pub(super) session: Box<dyn SqlSession>,
    pub(super) dialect: Dialect,
}

impl SqlRowReader {
    pub fn new(session: Box<dyn SqlSession>) -> Self {
        Self { dialect: session.dialect(), session }
    }

    /// Visits the rows of an answer, up to the first that cannot be read.
    pub(super) fn rows(&mut self, sql: &str, visit: &mut dyn FnMut(&dyn Row) -> Result<()>) -> Result<()> {
        let statement = self.session.prepare(sql)?;
        let mut read = Ok(());
        let visit: Visit<'_> = &mut |row: &dyn Row| {
            if read.is_ok() {
                read = visit(row);
            }
        };
        let answer = block_on(self.session.execute(statement, &[], visit));
        let closed = self.session.close(statement);
        answer.and(closed).and(read)
    }

    /// The only number of an answer.
    pub(super) fn number(&mut self, sql: &str) -> Result<i64> {
        let mut number = 0;
        self.rows(sql, &mut |row| {
            number = row.int(0);
            Ok(())
        })?;
        Ok(number)
    }
}

impl Rows for SqlRowReader {
    /// In the order of the database, which neither sorts nor joins.
    fn visit(&mut self, set: DataSet, table: Table, columns: &[usize], each: &mut Each) -> Result<i64> {
        let columns: Vec<(&'static str, Type)> = columns.iter().map(|column| table.columns()[*column]).collect();
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let sql = format!("SELECT {} FROM {}", names.join(", "), set.name(table.name()));
        let (dialect, mut numbers, mut rows) = (self.dialect, vec![0; columns.len()], 0);
        self.rows(&sql, &mut |row| {
            for (nth, (number, column)) in numbers.iter_mut().zip(&columns).enumerate() {
                *number = number_of(dialect, row, nth, *column)?;
            }
            rows += 1;
            each(&numbers);
            Ok(())
        })?;
        Ok(rows)
    }

    fn count(&mut self, set: DataSet, table: Table) -> Result<i64> {
        self.number(&format!("SELECT COUNT(*) FROM {}", set.name(table.name())))
    }
}

/// A column of a row, as verification uses it.
pub(super) fn number_of(
    dialect: Dialect,
    row: &dyn Row,
    column: usize,
    (name, kind): (&'static str, Type),
) -> Result<i64> {
    match kind {
        _ if row.value(column).is_null() => Ok(NONE),
        Type::Money => money(dialect, row, column, name),
        Type::Rate => rate(dialect, row, column, name),
        Type::Key | Type::Int => Ok(row.int(column)),
        Type::Time | Type::Text(_) | Type::Letters(_) => Ok(0),
    }
}
