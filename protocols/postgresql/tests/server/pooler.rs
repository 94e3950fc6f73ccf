//! Sessions over PgBouncer. It refuses startup parameters that it does not track, and in `pool_mode=transaction` it gives
//! each transaction any of its connections to the server. Debian 12 has release 1.18, which does not prepare statements
//! again on another connection.

use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rumba_engine_api::sql::{Param, SqlSession};
use rumba_protocol_postgresql::{Address, PgSession, SessionOptions, Target};
use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};
use rumba_testkit::sql::{fetch, ints};

use crate::support::{admin, local, shared, text};

/// A PgBouncer in front of a server.
struct Pooler {
    child: Child,
    target: Target,
    server: Arc<PostgreSql>,
}

impl Pooler {
    fn start(pool_mode: &str) -> Self {
        let server = shared();
        let dir = server.directory();
        // The socket's name has a port's number, although nothing listens on that port.
        static POOLERS: AtomicU16 = AtomicU16::new(1);
        let port = POOLERS.fetch_add(1, Relaxed);
        let users = server.keep(&format!("users-{port}"), format!("\"{SUPERUSER}\" \"\"\n").as_bytes());
        let config = format!(
            "[databases]\npostgres = host={0} port={1}\n[pgbouncer]\npool_mode = {pool_mode}\nunix_socket_dir = {0}\n\
             listen_port = {port}\nauth_type = trust\nauth_file = {2}\n",
            dir.display(),
            server.port(),
            users.display()
        );
        let config = server.keep(&format!("pooler-{port}.ini"), config.as_bytes());
        let mut child = server.start_program("/usr/sbin/pgbouncer", &config);
        let socket = dir.join(format!(".s.PGSQL.{port}"));
        let since = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "pgbouncer has ended");
            assert!(since.elapsed() < Duration::from_secs(30), "pgbouncer does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { child, target: Target { address: Address::Socket(socket), ..local(&server) }, server }
    }

    fn session(&self, options: &SessionOptions) -> PgSession {
        PgSession::connect(&self.target, options).unwrap()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // An error is fine if it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A session in a transaction, which keeps one of the pooler's connections to the server until [`end`].
fn holder(pooler: &Pooler) -> PgSession {
    let mut session = pooler.session(&text());
    session.run("BEGIN").unwrap();
    session.run("SELECT 1").unwrap();
    session
}

/// Gives the connection back; the pooler uses it first for the next transaction of any client.
fn end(mut holder: PgSession) {
    holder.run("COMMIT").unwrap();
}

/// The login failed: PgBouncer does not track `bytea_output`.
#[test]
#[needs(PostgreSql, PgBouncer)]
fn session_pooling_needs_no_configuration_and_names_what_it_does_not_track() {
    let pooler = Pooler::start("session");
    for options in [SessionOptions::default(), text()] {
        let mut session = pooler.session(&options);
        let echo = session.prepare("SELECT $1::bytea").unwrap();
        for _ in 0..3 {
            assert_eq!(fetch(&mut session, echo, &[Param::Bytes(b"\0\xff")], 1).unwrap().1, [[b"\0\xff"]]);
        }
        session.run("SELECT 1").unwrap();
    }
    let startup = vec![("options", "-c work_mem=1MB".to_owned())];
    let options = SessionOptions { startup, ..SessionOptions::default() };
    let error = PgSession::connect(&pooler.target, &options).err().unwrap().to_string();
    assert!(error.contains("unsupported startup parameter") && error.contains("PGOPTIONS"), "{error}");
}

#[test]
#[needs(PostgreSql, PgBouncer)]
fn transaction_pooling_works_with_statements_as_text() {
    let pooler = Pooler::start("transaction");
    admin(&pooler.server).query("CREATE TABLE pooled (id bigint PRIMARY KEY)").unwrap();
    let mut session = pooler.session(&text());
    let [begin, commit] = ["BEGIN", "COMMIT"].map(|sql| session.prepare(sql).unwrap());
    let insert = session.prepare("INSERT INTO pooled VALUES ($1)").unwrap();
    for id in 0..6 {
        let other = holder(&pooler);
        fetch(&mut session, begin, &[], 0).unwrap();
        fetch(&mut session, insert, &[Param::Int(id)], 0).unwrap();
        fetch(&mut session, commit, &[], 0).unwrap();
        end(other);
    }
    assert_eq!(ints(&mut session, "SELECT count(*) FROM pooled").unwrap(), [6]);
}
