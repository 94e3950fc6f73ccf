//! Sessions to a server of the tests' own, and what they are asked.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rumba_core::error::EngineError;
use rumba_core::sql::{Answer, Param, SqlSession, Statement};
use rumba_core::worker::block_on;
use rumba_protocol_postgresql::{Address, Admin, PgSession, Secret, SessionOptions, Target, Tls};
use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};

pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The server that the tests of one binary share.
pub fn shared() -> Arc<PostgreSql> {
    static SHARED: Mutex<Weak<PostgreSql>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(PostgreSql::start(&[], &["host all all 127.0.0.1/32 trust"]));
    *shared = Arc::downgrade(&server);
    server
}

pub fn local(server: &PostgreSql) -> Target {
    Target {
        address: Address::Socket(server.socket()),
        user: SUPERUSER.into(),
        password: Secret::default(),
        database: Some("postgres".into()),
        tls: Tls::Off,
    }
}

pub fn tcp(server: &PostgreSql) -> Target {
    Target { address: Address::Tcp { host: "127.0.0.1".into(), port: server.port() }, ..local(server) }
}

pub fn admin(server: &PostgreSql) -> Admin {
    Admin::connect(&local(server), TIMEOUT).unwrap()
}

pub fn session(server: &PostgreSql, options: &SessionOptions) -> PgSession {
    PgSession::connect(&local(server), options).unwrap()
}

/// Statements sent as text.
pub fn text() -> SessionOptions {
    SessionOptions { text: true, ..SessionOptions::default() }
}

/// A session of either kind, over each way to the server.
pub fn sessions(server: &PostgreSql) -> Vec<PgSession> {
    let all = |options: SessionOptions| {
        [local(server), tcp(server)].map(|target| PgSession::connect(&target, &options).unwrap())
    };
    [all(SessionOptions::default()), all(text())].into_iter().flatten().collect()
}

/// A row's columns as bytes.
pub type Values = Vec<Vec<u8>>;

/// Runs a statement; its rows are so many columns as bytes.
pub fn ask(
    session: &mut PgSession,
    statement: Statement,
    params: &[Param<'_>],
    columns: usize,
) -> Result<(Answer, Vec<Values>), EngineError> {
    session.submit(statement, params)?;
    answer(session, columns)
}

/// Takes an answer; its rows are so many columns as bytes.
pub fn answer(session: &mut PgSession, columns: usize) -> Result<(Answer, Vec<Values>), EngineError> {
    let session: &mut dyn SqlSession = session;
    let mut rows = Vec::new();
    let answer = block_on(session.answer(&mut |row| {
        rows.push((0..columns).map(|column| row.bytes(column).to_vec()).collect());
    }))?;
    Ok((answer, rows))
}

/// Runs a statement and takes its rows' first columns as integers.
pub fn ints(session: &mut PgSession, sql: &str) -> Result<Vec<i64>, EngineError> {
    let statement = session.prepare(sql)?;
    session.submit(statement, &[])?;
    let session: &mut dyn SqlSession = session;
    let mut found = Vec::new();
    block_on(session.answer(&mut |row| found.push(row.int(0))))?;
    Ok(found)
}

/// Loads rows.
pub fn load(session: &mut PgSession, rows: Statement, values: &[Param<'_>]) -> Result<Answer, EngineError> {
    let session: &mut dyn SqlSession = session;
    block_on(session.load_rows(rows, values))
}
