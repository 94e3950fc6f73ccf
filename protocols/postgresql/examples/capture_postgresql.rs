//! Captures a server's messages as seeds for the fuzz targets.
//!
//! `capture_postgresql SOCKET USER CORPUS`: the server must accept connections without authentication, and have a
//! database `postgres`.

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rumba_protocol_postgresql::codec::frame::{self, Framed, HEADER};
use rumba_protocol_postgresql::startup;

/// A message with this body.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    let at = frame::start(&mut message, kind);
    message.extend_from_slice(body);
    frame::finish(&mut message, at);
    message
}

fn query(sql: &str) -> Vec<u8> {
    message(b'Q', &[sql.as_bytes(), &[0]].concat())
}

/// Messages to parse and describe a statement.
fn prepare(sql: &str) -> Vec<u8> {
    [message(b'P', &[b"s\0", sql.as_bytes(), &[0, 0, 0]].concat()), message(b'D', b"Ss\0"), message(b'S', b"")].concat()
}

/// Messages to execute it without parameters, with these formats of its columns.
fn execute(formats: &[u16]) -> Vec<u8> {
    let mut bind = b"\0s\0\0\0\0\0".to_vec();
    bind.extend_from_slice(&(formats.len() as u16).to_be_bytes());
    formats.iter().for_each(|format| bind.extend_from_slice(&format.to_be_bytes()));
    [message(b'B', &bind), message(b'E', &[0; 5]), message(b'S', b"")].concat()
}

/// The server's messages until it is ready.
fn answer(stream: &mut UnixStream) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut said = Vec::new();
    let mut at = 0;
    let mut room = [0; 4096];
    loop {
        while let Framed::Whole { kind, length } = frame::framed(&said[at..])? {
            at += HEADER + length;
            if kind == b'Z' {
                return Ok(said);
            }
        }
        match stream.read(&mut room)? {
            0 => return Err("the server has closed the connection".into()),
            taken => said.extend_from_slice(&room[..taken]),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [socket, user, corpus] = &arguments[..] else {
        return Err("usage: capture_postgresql SOCKET USER CORPUS".into());
    };
    let corpus = Path::new(corpus);
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(&startup::first(user, Some("postgres"), &[]))?;
    std::fs::create_dir_all(corpus.join("startup"))?;
    std::fs::create_dir_all(corpus.join("answers"))?;
    std::fs::write(corpus.join("startup/trust"), answer(&mut stream)?)?;
    let request = |way: u32, rest: &[u8]| message(b'R', &[&way.to_be_bytes(), rest].concat());
    // Authentication messages have random parts, so their beginnings are composed here.
    std::fs::write(corpus.join("startup/md5"), request(5, b"salt"))?;
    std::fs::write(corpus.join("startup/clear"), request(3, b""))?;
    let scram = [
        request(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"),
        request(11, b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
        request(12, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="),
    ];
    std::fs::write(corpus.join("startup/scram"), scram.concat())?;

    const ALL: &str = "SELECT 1::smallint, 2::int, 3::bigint, 4.5::float8, true, 'text', '\\x00ff'::bytea, NULL::int, \
                       6.7::numeric, now()";
    for (name, request) in [
        ("text-rows", query(ALL)),
        ("text-many", query("SELECT n, repeat('r', n) FROM generate_series(1, 9) n")),
        ("text-several", query("SET lock_timeout = 0; SELECT 1; CREATE TEMPORARY TABLE t (id int PRIMARY KEY)")),
        ("text-changed", query("INSERT INTO t SELECT generate_series(1, 5)")),
        ("text-refused", query("INSERT INTO t VALUES (1)")),
        ("text-empty", query("")),
        ("text-notice", query("DROP TABLE IF EXISTS nowhere")),
        ("copy", [query("COPY t FROM STDIN"), message(b'd', b"9\n"), message(b'c', b"")].concat()),
        ("prepare-rows", prepare(ALL)),
        ("rows", execute(&[1, 1, 1, 1, 1, 1, 1, 1, 0, 0])),
        ("prepare-refused", prepare("SELECT nonsense")),
    ] {
        stream.write_all(&request)?;
        std::fs::write(corpus.join("answers").join(name), answer(&mut stream)?)?;
    }
    Ok(())
}
