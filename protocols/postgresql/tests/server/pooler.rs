//! Sessions over a connection pooler. It refuses startup parameters that it does not track, and may give each
//! transaction another server connection, as PgBouncer before release 1.21.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use rumba_engine_api::sql::{Param, SqlSession};
use rumba_protocol_postgresql::codec::frame::HEADER;
use rumba_protocol_postgresql::startup;
use rumba_protocol_postgresql::{Address, PgSession, SessionOptions, Target};
use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};
use rumba_testkit::sql::{fetch, ints};

use crate::support::{admin, local, message, shared, text};

/// The startup parameters that PgBouncer accepts.
const TRACKED: [&str; 7] =
    ["user", "database", "application_name", "client_encoding", "datestyle", "timezone", "standard_conforming_strings"];

/// A message with its header; `None` at the end of the connection.
fn receive(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut message = vec![0; HEADER];
    stream.read_exact(&mut message).ok()?;
    let length = u32::from_be_bytes(*message.last_chunk().unwrap()) as usize;
    message.resize(1 + length, 0);
    stream.read_exact(&mut message[HEADER..]).ok()?;
    Some(message)
}

/// The messages of a client up to the one that the server answers; `None` at the end of the connection.
fn request(client: &mut UnixStream) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    loop {
        let message = receive(client)?;
        request.extend_from_slice(&message);
        match message[0] {
            b'X' => return None,
            b'S' | b'Q' => return Some(request),
            _ => {}
        }
    }
}

/// The messages of a server until it is ready. The last byte is its transaction state.
fn until_ready(server: &mut UnixStream) -> Vec<u8> {
    let mut answer = Vec::new();
    loop {
        let message = receive(server).unwrap();
        answer.extend_from_slice(&message);
        if message[0] == b'Z' {
            return answer;
        }
    }
}

/// The names of the startup parameters that a client sends.
fn parameters(client: &mut UnixStream) -> Option<Vec<String>> {
    let mut length = [0; 4];
    client.read_exact(&mut length).ok()?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut body).ok()?;
    let fields = body[4..].split(|&byte| byte == 0).step_by(2);
    let names = fields.map(|name| String::from_utf8(name.to_vec()).unwrap());
    Some(names.take_while(|name| !name.is_empty()).collect())
}

/// A logged-in connection of the pooler to its server.
fn backend(socket: &Path) -> UnixStream {
    let mut server = UnixStream::connect(socket).unwrap();
    server.write_all(&startup::first(SUPERUSER, Some("postgres"), &[])).unwrap();
    until_ready(&mut server);
    server
}

/// Serves a client until it ends the connection; its transactions use these connections in turn.
fn serve(client: &mut UnixStream, backends: &mut [UnixStream]) -> Option<()> {
    let wrong = parameters(client)?.into_iter().find(|name| !TRACKED.contains(&name.as_str()));
    if let Some(name) = wrong {
        let words = format!("SFATAL\0C08P01\0Munsupported startup parameter: {name}\0\0");
        return client.write_all(&message(b'E', words.as_bytes())).ok();
    }
    let version = message(b'S', b"server_version\x0015.0\0");
    client.write_all(&[message(b'R', &[0; 4]), version, message(b'Z', b"I")].concat()).ok()?;
    let mut turn = 0;
    loop {
        let request = request(client)?;
        let server = &mut backends[turn];
        server.write_all(&request).unwrap();
        let answer = until_ready(server);
        client.write_all(&answer).ok()?;
        if answer.last() == Some(&b'I') {
            turn = (turn + 1) % backends.len();
        }
    }
}

/// A pooler in front of a server, with this many connections for the transactions of each client.
struct Pooler {
    target: Target,
    _dir: tempfile::TempDir,
}

impl Pooler {
    fn start(server: &PostgreSql, connections: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (socket, behind) = (dir.path().join("s"), server.socket());
        let listener = UnixListener::bind(&socket).unwrap();
        std::thread::spawn(move || {
            for mut client in listener.incoming().map_while(Result::ok) {
                let behind = behind.clone();
                std::thread::spawn(move || {
                    let mut backends: Vec<UnixStream> = (0..connections).map(|_| backend(&behind)).collect();
                    serve(&mut client, &mut backends)
                });
            }
        });
        Self { target: Target { address: Address::Socket(socket), ..local(server) }, _dir: dir }
    }

    fn session(&self, options: &SessionOptions) -> PgSession {
        PgSession::connect(&self.target, options).unwrap()
    }
}

/// The login failed: PgBouncer does not track `bytea_output`.
#[test]
#[needs(PostgreSql)]
fn session_pooling_works_with_nothing_configured() {
    let server = shared();
    let pooler = Pooler::start(&server, 1);
    for options in [SessionOptions::default(), text()] {
        let mut session = pooler.session(&options);
        let echo = session.prepare("SELECT $1::bytea").unwrap();
        for _ in 0..3 {
            assert_eq!(fetch(&mut session, echo, &[Param::Bytes(b"\0\xff")], 1).unwrap().1, [[b"\0\xff"]]);
        }
        session.run("SELECT 1").unwrap();
    }
}

#[test]
#[needs(PostgreSql)]
fn transaction_pooling_works_with_statements_as_text() {
    let server = shared();
    admin(&server).query("CREATE TABLE pooled (id bigint PRIMARY KEY)").unwrap();
    let pooler = Pooler::start(&server, 2);
    let mut session = pooler.session(&text());
    let [begin, commit] = ["BEGIN", "COMMIT"].map(|sql| session.prepare(sql).unwrap());
    let insert = session.prepare("INSERT INTO pooled VALUES ($1)").unwrap();
    for id in 0..5 {
        fetch(&mut session, begin, &[], 0).unwrap();
        fetch(&mut session, insert, &[Param::Int(id)], 0).unwrap();
        fetch(&mut session, commit, &[], 0).unwrap();
    }
    assert_eq!(ints(&mut session, "SELECT count(*) FROM pooled").unwrap(), [5]);
}

#[test]
#[needs(PostgreSql)]
fn statement_that_a_pooler_loses_ends_with_the_remedy() {
    let server = shared();
    let mut session = Pooler::start(&server, 2).session(&SessionOptions::default());
    let select = session.prepare("SELECT 1 + $1::bigint").unwrap();
    let error = fetch(&mut session, select, &[Param::Int(1)], 1).unwrap_err().to_string();
    for words in ["26000", "does not exist", "--db-ps-mode=disable", "in: SELECT 1 + $1"] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
#[needs(PostgreSql)]
fn parameter_that_a_pooler_does_not_track_is_named() {
    let server = shared();
    let startup = vec![("options", "-c work_mem=1MB".to_owned())];
    let options = SessionOptions { startup, ..SessionOptions::default() };
    let error = PgSession::connect(&Pooler::start(&server, 1).target, &options).err().unwrap().to_string();
    assert!(error.contains("unsupported startup parameter: options") && error.contains("PGOPTIONS"), "{error}");
}
