//! The rows of keys and values, for verification.

use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{KvSession, Scan, SpaceId};

use super::row::layout;
use super::{BY_CUSTOMER, BY_NAME, part};
use crate::data_set::DataSet;
use crate::proof::{Each, Entries, Rows};
use crate::tables::{Table, Type};

/// Reads by scans, in the order of the keys.
pub struct KvRows(pub Box<dyn KvSession>);

impl KvRows {
    fn scan(&mut self, space: SpaceId, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<i64> {
        let everything = Scan { from: &[], to: &[0xff; 24], limit: usize::MAX };
        Ok(self.0.scan(space, everything, each)? as i64)
    }
}

impl Rows for KvRows {
    fn visit(&mut self, set: DataSet, table: Table, columns: &[usize], each: &mut Each) -> Result<i64> {
        let (layout, mut row) = (layout(table), vec![0; columns.len()]);
        let is_key = |column: usize| table.columns()[column].1 == Type::Key;
        self.scan(set.table(table), &mut |key, value| {
            for (number, column) in row.iter_mut().zip(columns) {
                *number = if is_key(*column) { part(key, *column).into() } else { layout.number(value, *column) };
            }
            each(&row);
        })
    }

    fn count(&mut self, set: DataSet, table: Table) -> Result<i64> {
        self.scan(set.table(table), &mut |_, _| {})
    }

    fn entries(&mut self, set: DataSet) -> Result<Option<Entries>> {
        let customers_by_name = self.scan(set.space(BY_NAME), &mut |_, _| {})?;
        let orders_by_customer = self.scan(set.space(BY_CUSTOMER), &mut |_, _| {})?;
        Ok(Some(Entries { customers_by_name, orders_by_customer }))
    }
}
