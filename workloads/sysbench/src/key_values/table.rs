//! Keys and values in a table of two columns, for SQL engines.

use rumba_engine_api::error::Result;
use rumba_engine_api::kv::Batch;
use rumba_engine_api::sql::{Answer, Dialect, Param, SqlSession, Statement, Visit};

use super::NAME;
use crate::context::ClientContext;

/// The definition of the table, with the session's table options at its end.
pub(crate) fn create(dialect: Dialect, options: &str) -> String {
    let (key, value) = match dialect {
        Dialect::MySql => ("VARBINARY(255)", "LONGBLOB"),
        Dialect::PostgreSql => ("BYTEA", "BYTEA"),
        _ => ("BLOB", "BLOB"),
    };
    format!("CREATE TABLE {NAME} (k {key} NOT NULL PRIMARY KEY, v {value} NOT NULL) {options}")
}

/// A session with the statements of the table.
pub(super) struct Table {
    session: Box<dyn SqlSession>,
    get: Statement,
    get_for_update: Statement,
    scan: Statement,
    put: Statement,
    delete: Statement,
    begin: Statement,
    commit: Statement,
    rollback: Statement,
    rows: Option<Statement>,
}

impl Table {
    pub(super) fn new(mut session: Box<dyn SqlSession>) -> Result<Self> {
        let dialect = session.dialect();
        let mark = |number: usize| match dialect {
            Dialect::PostgreSql => format!("${number}"),
            _ => "?".to_owned(),
        };
        let (first, second) = (mark(1), mark(2));
        let get = format!("SELECT v FROM {NAME} WHERE k = {first}");
        let (lock, begin) = match dialect {
            // A transaction that reads first and writes later would fail if another connection wrote in between.
            Dialect::Sqlite => ("", "BEGIN IMMEDIATE"),
            _ => (" FOR UPDATE", "BEGIN"),
        };
        let put = match dialect {
            Dialect::PostgreSql => {
                format!("INSERT INTO {NAME} (k, v) VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v")
            }
            _ => format!("REPLACE INTO {NAME} (k, v) VALUES (?, ?)"),
        };
        Ok(Self {
            get: session.prepare(&get)?,
            get_for_update: session.prepare(&format!("{get}{lock}"))?,
            scan: session.prepare(&format!("SELECT k, v FROM {NAME} WHERE k >= {first} ORDER BY k LIMIT {second}"))?,
            put: session.prepare(&put)?,
            delete: session.prepare(&format!("DELETE FROM {NAME} WHERE k = {first}"))?,
            begin: session.prepare(begin)?,
            commit: session.prepare("COMMIT")?,
            rollback: session.prepare("ROLLBACK")?,
            rows: None,
            session,
        })
    }

    fn run(
        &mut self,
        client: &ClientContext,
        statement: Statement,
        params: &[Param<'_>],
        visit: Visit<'_>,
    ) -> Result<Answer> {
        self.session.submit(statement, params)?;
        client.wait(|context| self.session.poll_answer(context, visit))
    }

    pub(super) fn get(
        &mut self,
        client: &ClientContext,
        key: &[u8],
        for_update: bool,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let statement = if for_update { self.get_for_update } else { self.get };
        let answer = self.run(client, statement, &[Param::Bytes(key)], &mut |row| {
            value.clear();
            value.extend_from_slice(row.bytes(0));
        })?;
        Ok(answer.rows > 0)
    }

    pub(super) fn scan(
        &mut self,
        client: &ClientContext,
        from: &[u8],
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize> {
        let params = [Param::Bytes(from), Param::Int(limit as i64)];
        let answer = self.run(client, self.scan, &params, &mut |row| visit(row.bytes(0), row.bytes(1)))?;
        Ok(answer.rows as usize)
    }

    pub(super) fn put(&mut self, client: &ClientContext, key: &[u8], value: &[u8]) -> Result<()> {
        self.run(client, self.put, &[Param::Bytes(key), Param::Bytes(value)], &mut |_| {}).map(drop)
    }

    pub(super) fn delete(&mut self, client: &ClientContext, key: &[u8]) -> Result<()> {
        self.run(client, self.delete, &[Param::Bytes(key)], &mut |_| {}).map(drop)
    }

    pub(super) fn begin(&mut self, client: &ClientContext) -> Result<()> {
        self.run(client, self.begin, &[], &mut |_| {}).map(drop)
    }

    pub(super) fn commit(&mut self, client: &ClientContext) -> Result<()> {
        self.run(client, self.commit, &[], &mut |_| {}).map(drop)
    }

    pub(super) fn rollback(&mut self, client: &ClientContext) -> Result<()> {
        self.run(client, self.rollback, &[], &mut |_| {}).map(drop)
    }

    /// Loads new rows in one transaction, in the session's best way.
    pub(super) fn load(&mut self, client: &ClientContext, batch: &Batch) -> Result<()> {
        let rows = match self.rows {
            Some(rows) => rows,
            None => self.session.prepare_rows(NAME, &["k", "v"])?,
        };
        self.rows = Some(rows);
        self.begin(client)?;
        // Freed before the wait, where the client may be dropped.
        let values: Vec<Param<'_>> =
            batch.iter().flat_map(|(_, key, value)| [Param::Bytes(key), Param::Bytes(value)]).collect();
        self.session.submit_rows(rows, &values)?;
        drop(values);
        client.wait(|context| self.session.poll_answer(context, &mut |_| {}))?;
        self.commit(client)
    }
}
