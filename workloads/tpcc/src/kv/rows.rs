//! The rows of keys and values, for the proof.

use rumba_core::error::EngineError;
use rumba_core::kv::{KvSession, Scan};

use super::part;
use super::row::layout;
use crate::data_set::DataSet;
use crate::proof::{Each, Rows};
use crate::tables::{Table, Type};

/// Reads by scans, in the order of the keys.
pub struct KvRows(pub Box<dyn KvSession>);

impl KvRows {
    fn scan(&mut self, set: DataSet, table: Table, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<i64, EngineError> {
        let everything = Scan { from: &[], to: &[0xff; 24], limit: usize::MAX };
        Ok(self.0.scan(set.table(table), everything, each)? as i64)
    }
}

impl Rows for KvRows {
    fn visit(&mut self, set: DataSet, table: Table, columns: &[usize], each: &mut Each) -> Result<i64, EngineError> {
        let (layout, mut row) = (layout(table), vec![0; columns.len()]);
        let is_key = |column: usize| table.columns()[column].1 == Type::Key;
        self.scan(set, table, &mut |key, value| {
            for (number, column) in row.iter_mut().zip(columns) {
                *number = if is_key(*column) { part(key, *column).into() } else { layout.number(value, *column) };
            }
            each(&row);
        })
    }

    fn count(&mut self, set: DataSet, table: Table) -> Result<i64, EngineError> {
        self.scan(set, table, &mut |_, _| {})
    }
}
