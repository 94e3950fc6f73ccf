//! Captures a server's messages as seeds for the fuzz targets.
//!
//! `capture_mongodb SOCKET|HOST:PORT CORPUS`: the server must accept connections without authentication. The program
//! works in the database `capture`, and drops it at the end.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rumba_engine_api::bson::{DocumentBuf, Writer};
use rumba_protocol_mongodb::codec::frame::{self, Framed};
use rumba_protocol_mongodb::codec::hello;

trait Both: Read + Write {}
impl<T: Read + Write> Both for T {}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, corpus] = &arguments[..] else { return Err("usage: capture_mongodb SOCKET|HOST:PORT CORPUS".into()) };
    let mut server: Box<dyn Both> = match address.rsplit_once(':') {
        Some(_) => Box::new(TcpStream::connect(address)?),
        None => Box::new(UnixStream::connect(address)?),
    };
    for (name, command) in commands() {
        let message = fetch(&mut *server, &command)?;
        std::fs::write(Path::new(corpus).join("answers").join(name), message)?;
    }
    for (name, payloads) in logins() {
        std::fs::write(Path::new(corpus).join("login").join(name), payloads)?;
    }
    Ok(())
}

fn fetch(server: &mut dyn Both, command: &DocumentBuf) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut out = Vec::new();
    let at = frame::start(&mut out, 1, |of| {
        of.values_of(command.get());
        of.text("$db", "capture");
    });
    frame::finish(&mut out, at);
    server.write_all(&out)?;
    let mut said = Vec::new();
    loop {
        match frame::framed(&said)? {
            Framed::Whole(length) if length == said.len() => return Ok(said),
            Framed::Whole(_) => return Err("more than an answer".into()),
            Framed::Short(needed) => {
                let from = said.len();
                said.resize(needed, 0);
                server.read_exact(&mut said[from..])?;
            }
        }
    }
}

fn commands() -> Vec<(&'static str, DocumentBuf)> {
    let of = |values: fn(&mut Writer<'_>)| DocumentBuf::of(values);
    let insert = |of: &mut Writer<'_>| {
        of.text("insert", "t");
        of.array("documents", |of| {
            for id in 0..5 {
                of.document(|of| {
                    of.int("_id", id);
                    of.text("text", "one of five");
                    of.binary("data", &[0, 7, 255]);
                    of.double("half", 0.5);
                    of.null("nothing");
                });
            }
        });
    };
    let find = |of: &mut Writer<'_>| {
        of.text("find", "t");
        of.small("batchSize", 2);
    };
    let modify = |of: &mut Writer<'_>| {
        of.text("findAndModify", "t");
        of.document("query", |of| of.int("_id", 3));
        of.document("update", |of| of.document("$set", |of| of.bool("changed", true)));
    };
    let upsert = |of: &mut Writer<'_>| {
        of.text("update", "t");
        of.array("updates", |of| {
            of.document(|of| {
                of.document("q", |of| of.int("_id", 77));
                of.document("u", |of| of.document("$inc", |of| of.small("n", 1)));
                of.bool("upsert", true);
            });
        });
    };
    vec![
        ("hello", hello::first("hello", Some("admin.nobody"))),
        ("version", of(|of| of.small("buildInfo", 1))),
        ("inserted", DocumentBuf::of(insert)),
        ("duplicate", DocumentBuf::of(insert)),
        ("found", DocumentBuf::of(find)),
        ("found-none", of(|of| of.text("find", "nowhere"))),
        ("modified", DocumentBuf::of(modify)),
        ("upserted", DocumentBuf::of(upsert)),
        ("listed", of(|of| of.small("listCollections", 1))),
        ("unknown", of(|of| of.small("nonsense", 1))),
        ("dropped", of(|of| of.small("dropDatabase", 1))),
    ]
}

/// A login never repeats the same bytes, so these are from servers that fail at each step.
fn logins() -> Vec<(&'static str, Vec<u8>)> {
    let said = |payload: &str, done: bool| {
        let mut out = Vec::new();
        let at = frame::start(&mut out, 1, |of| {
            of.small("conversationId", 1);
            of.bool("done", done);
            of.binary("payload", payload.as_bytes());
            of.double("ok", 1.0);
        });
        frame::finish(&mut out, at);
        out
    };
    let challenge = "r=of another login,s=c2l4dGVlbiBieXRlcyBvZg==,i=4096";
    vec![
        ("challenged", said(challenge, false)),
        ("let-in-at-once", said("", true)),
        ("too-many", said("r=a,s=AAAA,i=4294967295", false)),
        ("proven", [said(challenge, false), said("v=AAAA", true)].concat()),
        ("refused", [said(challenge, false), said("e=other-error", true)].concat()),
    ]
}
