//! The load over keys and values: rows with the entries of their indexes.

use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{Batch, KvSession};
use rumba_engine_api::sql::{Dialect, Param};
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::CountedKv;

use super::row::layout;
use super::{BY_CUSTOMER, BY_NAME, NOTHING, history_key, key4, name_key};
use crate::data_set::DataSet;
use crate::stage::Stage;
use crate::tables::{Table, Type, column};

/// The adapter of the load.
pub struct KvLoader {
    session: CountedKv,
    batch: Batch,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl KvLoader {
    /// A loader over a session.
    pub fn new(session: Box<dyn KvSession>) -> Self {
        let session = CountedKv::new(session);
        Self { session, batch: Batch::default(), key: Vec::new(), value: Vec::new() }
    }

    /// Loads the staged rows, all or none.
    pub fn load(&mut self, set: DataSet, stage: &Stage) -> Result<()> {
        self.batch.clear();
        let mut values: Vec<Param<'_>> = Vec::new();
        for (table, rows) in stage.filled() {
            values.clear();
            // With exact numbers in their smallest units.
            rows.params(Dialect::Sqlite, &mut values);
            values.chunks(table.columns().len()).for_each(|row| self.push(set, table, row));
        }
        self.session.load(&self.batch)
    }

    /// The statements since this was last called.
    pub fn statements(&mut self) -> StatementCounts {
        self.session.take_statements()
    }

    fn push(&mut self, set: DataSet, table: Table, row: &[Param<'_>]) {
        let number = |column: usize| row[column].int() as u32;
        let Self { batch, key, value, .. } = self;
        layout(table).put(row, value);
        key.clear();
        let keys = table.columns().iter().take_while(|(_, kind)| *kind == Type::Key).count();
        (0..keys).for_each(|column| key.extend_from_slice(&number(column).to_be_bytes()));
        match table {
            Table::History => {
                let customer = [column::H_C_W_ID, column::H_C_D_ID, column::H_C_ID].map(number);
                key.extend_from_slice(&history_key(customer, 0));
            }
            Table::Customer => {
                let (last, first) = (row[column::C_LAST].bytes(), row[column::C_FIRST].bytes());
                batch.push(set.space(BY_NAME), &name_key([number(0), number(1), number(2)], last, first), NOTHING);
            }
            Table::Orders => {
                let place = [number(0), number(1), number(column::O_C_ID), !number(2)];
                batch.push(set.space(BY_CUSTOMER), &key4(place), NOTHING);
            }
            _ => {}
        }
        batch.push(set.table(table), key, value);
    }
}
