//! The load over SQL: rows are sent in batches, in the session's best way.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Dialect, Param, SqlSession, Statement};
use rumba_engine_api::worker::StatementCounts;
use rumba_workload_kit::Transactions;

use super::text::{INDEXES, columns, create};
use crate::data_set::DataSet;
use crate::stage::Stage;
use crate::tables::Table;

pub fn create_tables(session: &mut dyn SqlSession, sets: u32) -> Result<()> {
    let (dialect, options) = (session.dialect(), session.table_options().to_owned());
    let mut all = DataSet::all(sets).flat_map(|set| Table::ALL.map(|table| create(table, set, dialect, &options)));
    all.try_for_each(|text| session.run(&text))
}

/// The adapter of the load.
pub struct SqlLoader {
    transactions: Transactions,
    /// By the numbers of data sets and of tables.
    tables: Vec<[Statement; Table::ALL.len()]>,
}

impl SqlLoader {
    /// Wraps a session; the tables exist.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(session: Box<dyn SqlSession>, sets: u32) -> Result<Self> {
        let mut transactions = Transactions::new(session)?;
        let mut tables = vec![[Statement(0); Table::ALL.len()]; sets as usize];
        for (set, tables) in DataSet::all(sets).zip(&mut tables) {
            for (table, prepared) in Table::ALL.into_iter().zip(tables) {
                *prepared = transactions.session.prepare_rows(&set.name(table.name()), &columns(table))?;
            }
        }
        Ok(Self { transactions, tables })
    }

    /// Loads the staged rows, all or none.
    pub async fn load(&mut self, set: DataSet, stage: &Stage) -> Result<()> {
        let loaded = self.load_all(set, stage).await;
        self.transactions.end(loaded, true).await
    }

    async fn load_all(&mut self, set: DataSet, stage: &Stage) -> Result<()> {
        let dialect = self.transactions.session.dialect();
        let mut values: Vec<Param<'_>> = Vec::new();
        let mut begins = true;
        for (table, rows) in stage.filled() {
            values.clear();
            rows.params(dialect, &mut values);
            let statement = self.tables[set.number as usize][table as usize];
            if std::mem::replace(&mut begins, false) {
                let first = |session: &mut dyn SqlSession| session.submit_rows(statement, &values);
                self.transactions.begin_with(first, &mut |_| {}).await?;
            } else {
                self.transactions.session.load_rows(statement, &values).await?;
            }
        }
        Ok(())
    }

    /// The statements since this was last called.
    pub fn statements(&mut self) -> StatementCounts {
        self.transactions.take_statements()
    }

    /// The number of indexes to build, over all data sets.
    pub fn indexes(&self) -> usize {
        self.tables.len() * INDEXES.len()
    }

    /// The number of loaders that may build indexes: as many as one data set has indexes, for any number of sets and
    /// loaders. The limit exists because a server takes memory for each index that it builds. SQLite has only one
    /// writer, for which the others would wait.
    pub fn index_loaders(&self) -> u32 {
        if self.transactions.session.dialect() == Dialect::Sqlite { 1 } else { INDEXES.len() as u32 }
    }

    /// Builds the index with this number. This may take minutes, while other clients of the thread continue.
    pub async fn build_index(&mut self, number: usize) -> Result<()> {
        let set = DataSet { number: (number / INDEXES.len()) as u32, of: self.tables.len() as u32 };
        let sql = set.sql(INDEXES[number % INDEXES.len()]);
        let session = &mut *self.transactions.session;
        session.submit_text(&sql)?;
        match session.answer(&mut |_| {}).await {
            // The session does not add the statement, because it was not prepared.
            Err(error @ EngineError::Refused(_)) => Err(error.followed_by(&format!(", in: {sql}"))),
            made => made.map(drop),
        }
    }
}
