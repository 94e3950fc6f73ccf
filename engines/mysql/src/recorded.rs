//! Sessions on an existing server. They record the tables that a workload creates, because rumba drops no others.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::{Answer, Dialect, Param, ParamType, SqlSession, Statement, Visit};

use crate::control::Control;
use crate::created::created_tables;
use crate::marker;

/// Records in the marker each table that a session is about to create.
pub struct Recorder {
    control: Arc<Mutex<Control>>,
    schema: String,
}

impl Recorder {
    /// A recorder over the control session, for a trial whose tables are in `schema`.
    pub fn new(control: Arc<Mutex<Control>>, schema: &str) -> Self {
        Self { control, schema: schema.to_owned() }
    }

    /// Records the tables that a statement creates. It may still fail, because a name without a table is harmless.
    #[inline]
    fn before(&self, sql: &[u8]) -> Result<(), EngineError> {
        created_tables(sql).iter().try_for_each(|table| {
            let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
            marker::record(&mut *control, &self.schema, table).map_err(|error| error.during("recording a table"))
        })
    }
}

/// A session whose tables are recorded.
pub struct Recorded<S> {
    /// The session.
    pub session: S,
    /// The recorder of all sessions.
    pub recorder: Arc<Recorder>,
}

impl<S: SqlSession> SqlSession for Recorded<S> {
    fn dialect(&self) -> Dialect {
        self.session.dialect()
    }

    fn table_options(&self) -> &str {
        self.session.table_options()
    }

    fn pipeline(&self) -> usize {
        self.session.pipeline()
    }

    fn survives_errors(&self) -> bool {
        self.session.survives_errors()
    }

    fn group_statements(&mut self) -> bool {
        self.session.group_statements()
    }

    fn rereads(&self, statement: Statement) -> bool {
        self.session.rereads(statement)
    }

    fn reread(&mut self, statement: Statement, raw: &[u8], visit: Visit<'_>) {
        self.session.reread(statement, raw, visit);
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, EngineError> {
        self.recorder.before(sql.as_bytes())?;
        self.session.prepare(sql)
    }

    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement, EngineError> {
        self.recorder.before(sql)?;
        self.session.prepare_bytes(sql)
    }

    fn prepare_declared(&mut self, sql: &[u8], types: &[ParamType]) -> Result<Statement, EngineError> {
        self.recorder.before(sql)?;
        self.session.prepare_declared(sql, types)
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement, EngineError> {
        self.session.prepare_rows(table, columns)
    }

    #[inline]
    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<(), EngineError> {
        self.session.submit(statement, params)
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<(), EngineError> {
        self.session.submit_rows(rows, values)
    }

    fn submit_text(&mut self, sql: &str) -> Result<(), EngineError> {
        self.recorder.before(sql.as_bytes())?;
        self.session.submit_text(sql)
    }

    fn submit_bytes(&mut self, sql: &[u8]) -> Result<(), EngineError> {
        self.recorder.before(sql)?;
        self.session.submit_bytes(sql)
    }

    fn close(&mut self, statement: Statement) -> Result<(), EngineError> {
        self.session.close(statement)
    }

    #[inline]
    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer, EngineError>> {
        self.session.poll_answer(context, visit)
    }

    fn run(&mut self, sql: &str) -> Result<(), EngineError> {
        self.recorder.before(sql.as_bytes())?;
        self.session.run(sql)
    }
}
