//! Captures a real server's messages, as seeds for the fuzz targets:
//!
//! ```text
//! capture SOCKET DIRECTORY [USER [PASSWORD]]
//! ```
//!
//! It relays a session's bytes and stores those of the server for each exchange: the handshake in DIRECTORY/handshake,
//! answers in DIRECTORY/answers. Each file starts with the byte from which `fuzz/entry.rs` knows how to parse it.

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rumba_engine_api::sql::{Param, SqlSession};
use rumba_engine_api::worker::block_on;
use rumba_protocol_mysql::{Address, LoadWay, Secret, SessionOptions, Target, Tls, WireSession};

/// Rows end with an OK packet; known definitions are left out (MariaDB); rows are binary. The answer is to preparing a
/// statement; the connection never leaves the host.
const DEPRECATE_EOF: u8 = 1;
const CACHE_METADATA: u8 = 2;
const BINARY: u8 = 4;
const PREPARED: u8 = 8;
const LOCAL: u8 = 32;

/// The server's bytes since the last request.
type Said = Arc<Mutex<Vec<u8>>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, directory, rest @ ..] = &arguments[..] else {
        return Err("usage: capture SOCKET DIRECTORY [USER [PASSWORD]]".into());
    };
    let directory = Path::new(directory);
    for target in ["answers", "handshake"] {
        std::fs::create_dir_all(directory.join(target))?;
    }
    let relay = std::env::temp_dir().join(format!("rumba-capture-{}", std::process::id()));
    let listener = UnixListener::bind(&relay)?;
    let said = Said::default();
    let (kept, server) = (said.clone(), socket.clone());
    std::thread::spawn(move || serve(&listener, &server, &kept));
    let result = capture(&relay, directory, rest, &said);
    std::fs::remove_file(&relay)?;
    result
}

fn serve(listener: &UnixListener, server: &str, said: &Said) -> std::io::Result<()> {
    for client in listener.incoming() {
        let (mut client, mut server) = (client?, UnixStream::connect(server)?);
        let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
        std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
        let mut room = [0; 4096];
        loop {
            let taken = server.read(&mut room)?;
            if taken == 0 {
                break;
            }
            said.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(&room[..taken]);
            client.write_all(&room[..taken])?;
        }
    }
    Ok(())
}

fn capture(relay: &Path, directory: &Path, who: &[String], said: &Said) -> Result<(), Box<dyn Error>> {
    let user = who.first().map_or("root", String::as_str);
    let password = Secret::new(who.get(1).map_or("", String::as_str));
    let address = Address::Socket(relay.to_owned());
    let target = Target { address, user: user.into(), password, database: None, tls: Tls::Off };
    let options = SessionOptions { load: LoadWay::Insert, ..SessionOptions::default() };
    let mut session = WireSession::connect(&target, &options)?;
    // MariaDB puts this before its version, for clients that expect MySQL.
    let version = session.server_version().trim_start_matches("5.5.5-");
    let name = version.split('-').next().unwrap_or_default().to_owned();
    let wording =
        if session.server_version().contains("MariaDB") { DEPRECATE_EOF | CACHE_METADATA } else { DEPRECATE_EOF };
    let keep = |target: &str, what: &str, how: u8| -> std::io::Result<()> {
        let bytes = std::mem::take(&mut *said.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        std::fs::write(directory.join(target).join(format!("{name}-{what}")), [&[how], &bytes[..]].concat())
    };
    keep("handshake", &format!("enter-{user}"), LOCAL)?;
    for (what, sql) in [
        ("row", "SELECT 1, 'text', NULL, 2.5e0, NOW(6), CAST('12:00:00.5' AS TIME), CAST(7 AS UNSIGNED), 'end'"),
        ("rows", "SELECT ? UNION ALL SELECT NULL UNION ALL SELECT REPEAT('x', 300)"),
        ("set", "SET @a = 1"),
        ("refused", "SELECT 1 UNION SELECT (SELECT 1 UNION SELECT 2)"),
    ] {
        let statement = session.prepare(sql)?;
        keep("answers", &format!("prepared-{what}"), wording | PREPARED)?;
        let params: &[Param<'_>] = if sql.contains('?') { &[Param::Bytes(b"parameter")] } else { &[] };
        for time in ["first", "again"] {
            let session: &mut dyn SqlSession = &mut session;
            let _refused_is_captured_too = block_on(session.execute(statement, params, &mut |_| {}));
            keep("answers", &format!("{what}-{time}"), wording | BINARY)?;
        }
        let as_text = sql.replace('?', "'parameter'");
        let _refused_is_captured_too = session.run(&as_text);
        keep("answers", &format!("text-{what}"), wording)?;
    }
    session.run("SET @a = 1; SELECT @a; SELECT 2")?;
    keep("answers", "several", wording)?;
    Ok(())
}
