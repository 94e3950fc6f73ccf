//! The table over SQL. As in YCSB, each statement is its own transaction: a read-modify-write is two.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, Row, SqlSession, Statement};
use rumba_engine_api::worker::{StatementCounts, block_on};
use rumba_workload_kit::Transactions;

use crate::keys::Key;
use crate::load::BATCH;
use crate::settings::MOST_FIELDS;
use crate::sql_text;
use crate::store::{Fields, Inspect, Load, Store, Values, VisitField, VisitRecord, Wanted, Written};

/// The capacity for the parameters of most statements; the others need one for each field and the key.
const FEW: usize = 12;
const MANY: usize = MOST_FIELDS + 1;

/// The fields that operations read or write at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// All of a record.
    pub all: bool,
    /// Any one.
    pub one: bool,
}

impl Uses {
    /// All if `all`, otherwise single ones; empty if the operation is not used.
    pub fn of(all: bool, is_done: bool) -> Self {
        Self { all: is_done && all, one: is_done && !all }
    }

    fn wanted(self, fields: usize) -> impl Iterator<Item = Wanted> {
        let one = (0..fields).map(Wanted::One).filter(move |_| self.one);
        self.all.then_some(Wanted::All).into_iter().chain(one)
    }
}

/// The statements that a client needs, because a server keeps them for each of thousands of clients.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs {
    pub fields: usize,
    pub reads: Uses,
    pub scans: Uses,
    pub writes: Uses,
    pub inserts: bool,
}

/// A statement for all fields, and one for each.
#[derive(Debug, Default)]
struct Prepared {
    all: Option<Statement>,
    one: Vec<Statement>,
}

impl Prepared {
    fn new(
        session: &mut dyn SqlSession,
        uses: Uses,
        fields: usize,
        text: impl Fn(Wanted, Dialect) -> String,
    ) -> Result<Self> {
        let (dialect, mut prepared) = (session.dialect(), Self::default());
        for wanted in uses.wanted(fields) {
            let statement = session.prepare(&text(wanted, dialect))?;
            match wanted {
                Wanted::All => prepared.all = Some(statement),
                Wanted::One(_) => prepared.one.push(statement),
            }
        }
        Ok(prepared)
    }

    fn of(&self, wanted: Wanted) -> Result<Statement> {
        let found = match wanted {
            Wanted::All => self.all,
            Wanted::One(field) => self.one.get(field).copied(),
        };
        found.ok_or_else(not_prepared)
    }
}

#[cold]
fn not_prepared() -> EngineError {
    EngineError::failed("ycsb", "an operation that the mix does not have: its statement was not prepared")
}

/// The adapter of clients.
pub struct SqlStore {
    transactions: Transactions,
    read: Prepared,
    scan: Prepared,
    update: Prepared,
    insert: Option<Statement>,
}

impl SqlStore {
    /// A client's adapter over its session; the table exists.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(session: Box<dyn SqlSession>, needs: Needs) -> Result<Self> {
        let mut transactions = Transactions::new(session)?;
        let (session, fields) = (&mut *transactions.session, needs.fields);
        let read = Prepared::new(session, needs.reads, fields, sql_text::read)?;
        let scan = Prepared::new(session, needs.scans, fields, sql_text::scan)?;
        let update =
            Prepared::new(session, needs.writes, fields, |wanted, dialect| sql_text::update(wanted, fields, dialect))?;
        let dialect = session.dialect();
        let insert = if needs.inserts { Some(session.prepare(&sql_text::insert(fields, dialect))?) } else { None };
        Ok(Self { transactions, read, scan, update, insert })
    }

    /// Starts a statement with a record's key and content, the key first or last.
    fn submit(&mut self, statement: Statement, key: &Key, values: &Values, is_key_first: bool) -> Result<()> {
        if values.fields().len() < FEW {
            self.submit_with::<FEW>(statement, key, values, is_key_first)
        } else {
            self.submit_with::<MANY>(statement, key, values, is_key_first)
        }
    }

    fn submit_with<const N: usize>(
        &mut self,
        statement: Statement,
        key: &Key,
        values: &Values,
        is_key_first: bool,
    ) -> Result<()> {
        let mut params = [Param::Null; N];
        let count = values.fields().len();
        let (first, key_at) = if is_key_first { (1, 0) } else { (0, count) };
        params[key_at] = Param::Text(key.bytes());
        for (param, field) in params[first..].iter_mut().zip(values.fields()) {
            *param = Param::Text(values.get(field).unwrap_or_default());
        }
        self.transactions.session.submit(statement, &params[..=count])
    }

    async fn answer(&mut self) -> Result<Answer> {
        self.transactions.session.answer(&mut |_| {}).await
    }
}

/// Visits the columns of a row: all fields follow the key, and a single one is alone.
fn visit_row(row: &dyn Row, wanted: Wanted, visit: VisitField<'_>) {
    match wanted {
        Wanted::All => (1..row.columns()).for_each(|column| visit(column - 1, row.bytes(column))),
        Wanted::One(field) => visit(field, row.bytes(0)),
    }
}

impl Store for SqlStore {
    async fn read(&mut self, key: &Key, wanted: Wanted, visit: VisitField<'_>) -> Result<bool> {
        let (statement, params) = (self.read.of(wanted)?, [Param::Text(key.bytes())]);
        let visit = &mut |row: &dyn Row| visit_row(row, wanted, visit);
        let answer = self.transactions.session.execute(statement, &params, visit).await?;
        Ok(answer.rows > 0)
    }

    async fn update(&mut self, key: &Key, values: &Values) -> Result<Written> {
        let fields = values.fields();
        let one = if fields.len() == 1 { self.update.one.get(fields.start).copied() } else { None };
        let statement = one.or(self.update.all).ok_or_else(not_prepared)?;
        self.submit(statement, key, values, false)?;
        let answer = self.answer().await?;
        Ok(Written { found: Some(answer.matched > 0), growth: None })
    }

    async fn insert(&mut self, key: &Key, values: &Values) -> Result<()> {
        self.submit(self.insert.ok_or_else(not_prepared)?, key, values, true)?;
        self.answer().await.map(drop)
    }

    async fn scan(&mut self, from: &Key, count: u64, wanted: Wanted, visit: VisitField<'_>) -> Result<u64> {
        let (statement, params) = (self.scan.of(wanted)?, [Param::Text(from.bytes()), Param::Int(count as i64)]);
        let visit = &mut |row: &dyn Row| visit_row(row, wanted, visit);
        Ok(self.transactions.session.execute(statement, &params, visit).await?.rows)
    }

    fn statements(&mut self) -> StatementCounts {
        self.transactions.take_statements()
    }
}

/// The adapter of loaders: batches in the session's best way.
pub struct SqlLoader {
    transactions: Transactions,
    rows: Statement,
    columns: usize,
    /// The cells of the batch, concatenated, and the end of each.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SqlLoader {
    /// Wraps a session; the table exists.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(session: Box<dyn SqlSession>, fields: usize) -> Result<Self> {
        let mut transactions = Transactions::new(session)?;
        // Names are not quoted: PostgreSQL folds them to lower case, and others ignore case.
        let columns = sql_text::columns(fields).into_iter().map(|name| name.to_ascii_lowercase());
        let columns: Vec<String> = columns.collect();
        let names: Vec<&str> = columns.iter().map(String::as_str).collect();
        let rows = transactions.session.prepare_rows(sql_text::TABLE, &names)?;
        Ok(Self { transactions, rows, columns: columns.len(), bytes: Vec::new(), ends: Vec::new() })
    }

    fn push(&mut self, cell: &[u8]) {
        self.bytes.extend_from_slice(cell);
        self.ends.push(self.bytes.len());
    }
}

impl Load for SqlLoader {
    /// As large as other batches, because smaller ones would need more round trips.
    const SCATTERED_TOGETHER: u64 = BATCH;

    fn stage(&mut self, key: &Key, values: &Values) {
        self.push(key.bytes());
        for field in 0..self.columns - 1 {
            self.push(values.get(field).unwrap_or_default());
        }
    }

    async fn load_staged(&mut self) -> Result<()> {
        let Self { transactions, rows, bytes, ends, .. } = self;
        let mut start = 0;
        let cells = ends.iter().map(|end| Param::Text(&bytes[std::mem::replace(&mut start, *end)..*end]));
        let values: Vec<Param<'_>> = cells.collect();
        let loaded = transactions.begin_with(|session| session.submit_rows(*rows, &values), &mut |_| {}).await;
        transactions.end(loaded.map(drop), true).await
    }

    fn clear_staged(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn statements(&mut self) -> StatementCounts {
        self.transactions.take_statements()
    }
}

/// The adapter of the proof.
pub struct SqlInspector {
    session: Box<dyn SqlSession>,
    page: Statement,
}

impl SqlInspector {
    /// Wraps a session; the table exists.
    ///
    /// # Errors
    /// A statement that the engine refuses.
    pub fn new(mut session: Box<dyn SqlSession>) -> Result<Self> {
        let page = session.prepare(&sql_text::page(session.dialect()))?;
        Ok(Self { session, page })
    }
}

struct WholeRow<'a>(&'a dyn Row);

impl Fields for WholeRow<'_> {
    fn count(&self) -> usize {
        self.0.columns().saturating_sub(1)
    }

    fn get(&self, field: usize) -> &[u8] {
        self.0.bytes(field + 1)
    }
}

impl Inspect for SqlInspector {
    fn page(&mut self, after: Option<&[u8]>, limit: u64, visit: VisitRecord<'_>) -> Result<u64> {
        // No key is empty.
        let params = [Param::Text(after.unwrap_or_default()), Param::Int(limit as i64)];
        let visit = &mut |row: &dyn Row| visit(row.bytes(0), &WholeRow(row));
        Ok(block_on(self.session.execute(self.page, &params, visit))?.rows)
    }
}
