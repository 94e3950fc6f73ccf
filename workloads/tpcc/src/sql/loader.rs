//! The load over SQL: rows go in batches, in the session's best way.

use rumba_core::error::EngineError;
use rumba_core::sql::{Param, SqlSession, Statement};
use rumba_workload_kit::Transactions;

use super::text::{INDEXES, columns, create};
use crate::stage::Stage;
use crate::tables::Table;

/// Creates the tables.
///
/// # Errors
/// Whatever the engine said.
pub fn create_tables(session: &mut dyn SqlSession) -> Result<(), EngineError> {
    let (dialect, options) = (session.dialect(), session.table_options().to_owned());
    Table::ALL.into_iter().try_for_each(|table| session.run(&create(table, dialect, &options)))
}

/// The adapter of the load.
pub struct SqlLoader {
    transactions: Transactions,
    tables: [Statement; Table::ALL.len()],
}

impl SqlLoader {
    /// A loader over a session; the tables are there.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(session: Box<dyn SqlSession>) -> Result<Self, EngineError> {
        let mut transactions = Transactions::new(session)?;
        let mut tables = [Statement(0); Table::ALL.len()];
        for (table, prepared) in Table::ALL.into_iter().zip(&mut tables) {
            *prepared = transactions.session.prepare_rows(table.name(), &columns(table))?;
        }
        Ok(Self { transactions, tables })
    }

    /// Loads what is staged, all or nothing.
    ///
    /// # Errors
    /// Whatever the engine said.
    pub async fn load(&mut self, stage: &Stage) -> Result<(), EngineError> {
        let loaded = self.load_all(stage).await;
        self.transactions.end(loaded, true).await
    }

    async fn load_all(&mut self, stage: &Stage) -> Result<(), EngineError> {
        let dialect = self.transactions.session.dialect();
        let mut values: Vec<Param<'_>> = Vec::new();
        let mut begins = true;
        for (table, rows) in stage.filled() {
            values.clear();
            rows.params(dialect, &mut values);
            let statement = self.tables[table as usize];
            if std::mem::replace(&mut begins, false) {
                let first = |session: &mut dyn SqlSession| session.submit_rows(statement, &values);
                self.transactions.begin_with(first, &mut |_| {}).await?;
            } else {
                self.transactions.session.load_rows(statement, &values).await?;
            }
        }
        Ok(())
    }

    /// Makes the indexes.
    ///
    /// # Errors
    /// Whatever the engine said.
    pub fn build_indexes(&mut self) -> Result<(), EngineError> {
        INDEXES.into_iter().try_for_each(|index| self.transactions.session.run(index))
    }
}
