//! Sessions that count their statements: the requests of a client's operations to the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll};

use rumba_engine_api::delta::Delta;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{Batch, KvSession, Scan, SpaceId};
use rumba_engine_api::sql::{Answer, Param, SqlSession, Statement, Visit};
use rumba_engine_api::worker::StatementCounts;

/// Keeps the first error of a visitor, because visitors cannot return one.
#[inline]
pub fn keep_first(first: &mut Option<EngineError>, result: Result<()>) {
    if let Err(error) = result {
        first.get_or_insert(error);
    }
}

/// How a transaction's body ended.
pub enum End<T> {
    /// Something was written.
    Commit(T),
    /// The body wrote nothing that should stay.
    Nothing(T),
}

/// A session over keys and values that counts its calls.
pub struct CountedKv {
    session: Box<dyn KvSession>,
    statements: StatementCounts,
}

impl CountedKv {
    /// Counts the requests to `session`.
    pub fn new(session: Box<dyn KvSession>) -> Self {
        Self { session, statements: StatementCounts::NONE }
    }

    /// The requests since the last call.
    #[inline]
    pub fn take_statements(&mut self) -> StatementCounts {
        std::mem::take(&mut self.statements)
    }

    /// Ends a transaction: commits it if its body wrote, and otherwise rolls it back, also on errors.
    #[inline]
    pub fn end<T>(&mut self, body: Result<End<T>>) -> Result<T> {
        let ended = body.and_then(|end| match end {
            End::Commit(answer) => self.commit().map(|()| answer),
            End::Nothing(answer) => self.rollback().map(|()| answer),
        });
        self.undone(ended)
    }

    /// A failure leaves no transaction behind.
    #[inline]
    fn undone<T>(&mut self, ended: Result<T>) -> Result<T> {
        if ended.is_err() {
            // The first error is more useful than a second one.
            let _ = self.rollback();
        }
        ended
    }
}

impl KvSession for CountedKv {
    #[inline]
    fn get(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.statements.reads += 1;
        self.session.get(space, key, value)
    }

    #[inline]
    fn multi_get(
        &mut self,
        space: SpaceId,
        keys: &[&[u8]],
        scratch: &mut Vec<u8>,
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<()> {
        self.statements.reads += 1;
        self.session.multi_get(space, keys, scratch, visit)
    }

    #[inline]
    fn scan(&mut self, space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        self.statements.reads += 1;
        self.session.scan(space, scan, visit)
    }

    #[inline]
    fn begin(&mut self) -> Result<()> {
        self.statements.others += 1;
        self.session.begin()
    }

    #[inline]
    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.statements.reads += 1;
        self.session.get_for_update(space, key, value)
    }

    #[inline]
    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) -> Result<()> {
        self.statements.writes += 1;
        self.session.put(space, key, value)
    }

    #[inline]
    fn delete(&mut self, space: SpaceId, key: &[u8]) -> Result<()> {
        self.statements.writes += 1;
        self.session.delete(space, key)
    }

    #[inline]
    fn update(&mut self, space: SpaceId, key: &[u8], delta: &Delta) -> Result<bool> {
        let updated = self.session.update(space, key, delta)?;
        self.statements.writes += u32::from(updated);
        Ok(updated)
    }

    #[inline]
    fn commit(&mut self) -> Result<()> {
        self.statements.others += 1;
        self.session.commit()
    }

    #[inline]
    fn rollback(&mut self) -> Result<()> {
        self.statements.others += 1;
        self.session.rollback()
    }

    fn load(&mut self, batch: &Batch) -> Result<()> {
        self.statements.writes += batch.len() as u32;
        let loaded = self.session.load(batch);
        self.undone(loaded)
    }
}

/// The effect of a statement, by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Other,
}

impl Kind {
    fn of(sql: &str) -> Self {
        let sql = sql.trim_start();
        let first = &sql[..sql.bytes().take_while(u8::is_ascii_alphabetic).count()];
        let is = |words: &[&str]| words.iter().any(|word| first.eq_ignore_ascii_case(word));
        if is(&["SELECT", "WITH", "VALUES", "TABLE"]) {
            Kind::Read
        } else if is(&["INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "LOAD", "COPY"]) {
            Kind::Write
        } else {
            Kind::Other
        }
    }
}

/// The counts of one session; only its client writes them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    reads: AtomicU32,
    writes: AtomicU32,
    others: AtomicU32,
}

impl Counts {
    #[inline]
    fn count(&self, kind: Kind) {
        let cell = match kind {
            Kind::Read => &self.reads,
            Kind::Write => &self.writes,
            Kind::Other => &self.others,
        };
        cell.store(cell.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The counts since the last call.
    pub(crate) fn take(&self) -> StatementCounts {
        let take = |cell: &AtomicU32| {
            let count = cell.load(Relaxed);
            cell.store(0, Relaxed);
            count
        };
        StatementCounts { reads: take(&self.reads), writes: take(&self.writes), others: take(&self.others) }
    }
}

/// An SQL session that counts the statements which it starts; all other calls go to the session, for every method of
/// the trait.
pub(crate) struct CountedSql {
    session: Box<dyn SqlSession>,
    /// The kind of each prepared statement.
    kinds: Vec<Kind>,
    counts: Arc<Counts>,
}

impl CountedSql {
    /// Counts the requests to `session`, on which no statement is prepared yet.
    pub(crate) fn over(session: Box<dyn SqlSession>) -> (Box<dyn SqlSession>, Arc<Counts>) {
        let counts = Arc::<Counts>::default();
        (Box::new(Self { session, kinds: Vec::new(), counts: counts.clone() }), counts)
    }

    fn is_prepared(&mut self, statement: Statement, kind: Kind) {
        if self.kinds.len() <= statement.0 {
            self.kinds.resize(statement.0 + 1, Kind::Other);
        }
        self.kinds[statement.0] = kind;
    }
}

impl SqlSession for CountedSql {
    rumba_engine_api::forward_sql_properties!(session);

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        let statement = self.session.prepare(sql)?;
        self.is_prepared(statement, Kind::of(sql));
        Ok(statement)
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement> {
        self.session.prepare_rows(table, columns)
    }

    #[inline]
    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        self.counts.count(self.kinds.get(statement.0).copied().unwrap_or(Kind::Other));
        self.session.submit(statement, params)
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
        self.counts.count(Kind::Write);
        self.session.submit_rows(rows, values)
    }

    fn submit_text(&mut self, sql: &str) -> Result<()> {
        self.counts.count(Kind::of(sql));
        self.session.submit_text(sql)
    }

    fn close(&mut self, statement: Statement) -> Result<()> {
        self.session.close(statement)
    }

    #[inline]
    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer>> {
        self.session.poll_answer(context, visit)
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.counts.count(Kind::of(sql));
        self.session.run(sql)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_known_by_the_word_that_it_begins_with() {
        for (sql, kind) in [
            ("SELECT c FROM t WHERE id = ? FOR UPDATE", Kind::Read),
            (" with n AS (SELECT 1) SELECT * FROM n", Kind::Read),
            ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING", Kind::Write),
            ("update t SET a = 1 RETURNING a", Kind::Write),
            ("BEGIN IMMEDIATE", Kind::Other),
            ("COMMIT", Kind::Other),
            ("CREATE INDEX i ON t (a)", Kind::Other),
        ] {
            assert_eq!(Kind::of(sql), kind, "{sql}");
        }
    }
}
