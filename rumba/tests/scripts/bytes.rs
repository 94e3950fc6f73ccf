//! Statements of scripts are bytes: the script and the server agree on their character set.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, SqlSession, Statement, Visit};
use rumba_workload_sysbench::Interpreter;
use rumba_workload_sysbench::host::{Driver, Host, Rank, Remedy};
use rumba_workload_sysbench::setup::Setup;

use super::{Run, TABLE};

/// The data that sessions receive, as it would go to a server.
pub type Given = Arc<Mutex<Vec<Vec<u8>>>>;

/// Sessions that record their statements. All open ones share the record with their host.
pub struct Recorder {
    pub dialect: Dialect,
    pub given: Given,
    /// The messages to the host.
    pub reported: Arc<Mutex<Vec<String>>>,
    /// Answers come only at the second poll.
    pub is_late: bool,
}

impl Recorder {
    pub fn of(dialect: Dialect) -> Self {
        Self { dialect, given: Given::default(), reported: Arc::default(), is_late: false }
    }

    /// A script over such sessions.
    pub fn setup(self, script: &str) -> Arc<Setup> {
        Arc::new(Setup { host: Arc::new(self), ..Arc::into_inner(Run::new().setup(script)).unwrap() })
    }

    pub fn load(self, script: &str) -> Interpreter {
        Interpreter::new(&self.setup(script), 3, Arc::default()).unwrap()
    }
}

impl Host for Recorder {
    fn drivers(&self) -> &[Driver] {
        &[Driver { name: "recorder", title: "what is sent", options: &[] }]
    }

    fn default_driver(&self) -> Option<usize> {
        Some(0)
    }

    fn connect(&self, _driver: usize, _client: u32, _turn: u32) -> Result<Box<dyn SqlSession>> {
        let (dialect, given, is_late) = (self.dialect, self.given.clone(), self.is_late);
        Ok(Box::new(Recording { dialect, given, prepared: 0, is_late, was_requested: false }))
    }

    fn key_values(&self, client: u32) -> Result<Session> {
        self.connect(0, client, 0).map(Session::Sql)
    }

    fn remedy(&self, _driver: usize, _error: &EngineError) -> Remedy {
        Remedy::Fatal
    }

    fn log(&self, rank: Rank, words: &str) {
        self.reported.lock().unwrap().push(format!("{rank:?}: {words}"));
    }
}

struct Recording {
    dialect: Dialect,
    given: Given,
    prepared: usize,
    is_late: bool,
    was_requested: bool,
}

impl Recording {
    fn note(&self, bytes: &[u8]) {
        self.given.lock().unwrap().push(bytes.to_vec());
    }
}

impl SqlSession for Recording {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn survives_errors(&self) -> bool {
        true
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.prepare_bytes(sql.as_bytes())
    }

    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement> {
        self.note(sql);
        self.prepared += 1;
        Ok(Statement(self.prepared))
    }

    fn prepare_rows(&mut self, table: &str, _columns: &[&str]) -> Result<Statement> {
        self.prepare(table)
    }

    fn submit(&mut self, _statement: Statement, params: &[Param<'_>]) -> Result<()> {
        params.iter().for_each(|param| self.note(param.bytes()));
        Ok(())
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
        self.submit(rows, values)
    }

    fn submit_text(&mut self, sql: &str) -> Result<()> {
        self.submit_bytes(sql.as_bytes())
    }

    fn submit_bytes(&mut self, sql: &[u8]) -> Result<()> {
        self.note(sql);
        Ok(())
    }

    fn close(&mut self, _statement: Statement) -> Result<()> {
        Ok(())
    }

    fn poll_answer(&mut self, _context: &mut Context<'_>, _visit: Visit<'_>) -> Poll<Result<Answer>> {
        self.was_requested = self.is_late && !self.was_requested;
        if self.was_requested { Poll::Pending } else { Poll::Ready(Ok(Answer::default())) }
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.submit_text(sql)
    }
}

/// Guards against changed bytes: `prepare` once replaced each invalid byte with the three bytes of a replacement
/// character, and `query` refused it.
#[test]
fn every_statement_and_parameter_byte_reaches_the_server() {
    let script = r"
        local con = sysbench.sql.driver():connect()
        con:query('SELECT \228')
        con:bulk_insert_init('INSERT INTO t VALUES')
        con:bulk_insert_next('(\'\228\')')
        con:bulk_insert_done()
        local statement = con:prepare('SELECT \'\228?\', ?')
        local parameter = statement:bind_create(sysbench.sql.type.VARCHAR, 4)
        statement:bind_param(parameter)
        parameter:set('\255\0\228')
        statement:execute()
        con:reconnect()";
    let prepared: [(_, &[u8]); 2] =
        [(Dialect::MySql, b"SELECT '\xe4?', ?"), (Dialect::PostgreSql, b"SELECT '\xe4?', $1")];
    for (dialect, prepared) in prepared {
        let given = Given::default();
        Recorder { given: given.clone(), ..Recorder::of(dialect) }.load(script);
        let expected: [&[u8]; 5] =
            [b"SELECT \xe4", b"INSERT INTO t VALUES ('\xe4')", prepared, b"\xff\0\xe4", prepared];
        assert_eq!(*given.lock().unwrap(), expected, "{dialect}");
    }
}

/// SQLite's text is UTF-8.
#[test]
fn sqlite_statements_not_in_utf8_are_refused() {
    let script = format!(
        r"{TABLE}
        local function refuses(call, ...)
            local done, why = pcall(call, con, ...)
            assert(not done and tostring(why):find('the statement is not UTF%-8 from its byte'), tostring(why))
        end
        local insert = 'INSERT INTO t VALUES (1, \'\228\', 0)'
        refuses(con.query, insert)
        refuses(con.prepare, insert)
        con:bulk_insert_init('INSERT INTO t VALUES')
        con:bulk_insert_next('(1, \'\228\', 0)')
        refuses(con.bulk_insert_done)
        refuses(con.prepare, 'SELECT \'\228\'')
        assert(con:query_row('SELECT count(*) FROM t') == '0')
        local statement = con:prepare('INSERT INTO t VALUES (1, ?, 0)')
        local parameter = statement:bind_create(sysbench.sql.type.CHAR, 1)
        statement:bind_param(parameter)
        parameter:set('\228')
        statement:execute()
        assert(con:query_row('SELECT hex(c) FROM t') == 'E4')
        local done, why = pcall(con.load_rows_init, con, 't\228', 'id')
        assert(not done and tostring(why):find('name is not UTF%-8'), tostring(why))
        assert(con:query_row('SELECT count(*) FROM t') == '1')"
    );
    Run::new().load(&script).unwrap();
}
