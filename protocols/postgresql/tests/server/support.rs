//! Sessions with a private server for the tests, and their statements.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rumba_protocol_postgresql::codec::frame;
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

/// A session of each kind, over each kind of connection.
pub fn sessions(server: &PostgreSql) -> Vec<PgSession> {
    let all = |options: SessionOptions| {
        [local(server), tcp(server)].map(|target| PgSession::connect(&target, &options).unwrap())
    };
    [all(SessionOptions::default()), all(text())].into_iter().flatten().collect()
}

pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    let at = frame::start(&mut message, kind);
    message.extend_from_slice(body);
    frame::finish(&mut message, at);
    message
}
