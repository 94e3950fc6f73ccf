//! A scripted server, which answers as a test specifies.
#![allow(clippy::unwrap_used, dead_code)] // Each test file uses its part.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rumba_engine_api::bson::{Document, DocumentBuf, Writer};
use rumba_engine_api::document::{Command, DocumentSession, Done, Find};
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::block_on;
use rumba_protocol_mongodb::codec::frame::{self, Framed, HEADER};
use rumba_protocol_mongodb::{Address, MongoSession, SessionOptions, Target};

/// A server's reaction to a request: an answer, or `None` to close the connection.
pub type Answer = Option<DocumentBuf>;

/// A server whose answers come from a closure.
pub struct Server {
    dir: tempfile::TempDir,
    /// The commands it has received, except greetings.
    requested: Arc<Mutex<Vec<DocumentBuf>>>,
}

impl Server {
    /// A member of a replica set, so that it has transactions.
    pub fn new(answer: impl FnMut(&str, Document<'_>) -> Answer + Send + 'static) -> Self {
        Self::that_greets(|| hello(true), answer)
    }

    /// A server whose greeting to each client comes from `greeting`.
    pub fn that_greets(
        greeting: impl FnMut() -> DocumentBuf + Send + 'static,
        answer: impl FnMut(&str, Document<'_>) -> Answer + Send + 'static,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        let requested = Arc::<Mutex<Vec<DocumentBuf>>>::default();
        let received = requested.clone();
        let (greeting, answer) = (Arc::new(Mutex::new(greeting)), Arc::new(Mutex::new(answer)));
        // All threads end with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (received, greeting, answer) = (received.clone(), greeting.clone(), answer.clone());
                std::thread::spawn(move || serve(client.unwrap(), &received, &greeting, &answer));
            }
        });
        Self { dir, requested }
    }

    pub fn target(&self) -> Target {
        target(self.dir.path().join("s"))
    }

    pub fn session(&self, options: &SessionOptions) -> MongoSession {
        MongoSession::connect(&self.target(), options).unwrap()
    }

    /// The commands received so far.
    pub fn requested(&self) -> Vec<DocumentBuf> {
        self.requested.lock().unwrap().clone()
    }
}

pub fn target(socket: PathBuf) -> Target {
    let address = Address::Socket(socket);
    Target::anonymous(address)
}

fn serve(
    mut client: UnixStream,
    received: &Mutex<Vec<DocumentBuf>>,
    greeting: &Mutex<impl FnMut() -> DocumentBuf>,
    answer: &Mutex<impl FnMut(&str, Document<'_>) -> Answer>,
) {
    let mut bytes = Vec::new();
    let mut room = [0; 4096];
    loop {
        while let Ok(Framed::Whole(length)) = frame::framed(&bytes) {
            let message: Vec<u8> = bytes.drain(..length).collect();
            let number = u32::from_le_bytes(*message[4..].first_chunk().unwrap());
            let (command, _) = Document::first(&message[HEADER + 5..]).unwrap();
            let name = String::from_utf8(command.iter().next().unwrap().unwrap().0.to_vec()).unwrap();
            let said = match name.as_str() {
                "hello" => Some((greeting.lock().unwrap())()),
                _ => {
                    received.lock().unwrap().push(command.into());
                    if name == "endSessions" {
                        continue;
                    }
                    (answer.lock().unwrap())(&name, command)
                }
            };
            let Some(said) = said else { return };
            let mut out = Vec::new();
            let at = frame::start(&mut out, 1, |of| of.values_of(said.get()));
            frame::finish(&mut out, at);
            out[8..12].copy_from_slice(&number.to_le_bytes());
            // A client may have closed the connection after sending more requests.
            let _ = client.write_all(&out);
        }
        match client.read(&mut room) {
            Ok(0) | Err(_) => return,
            Ok(read) => bytes.extend_from_slice(&room[..read]),
        }
    }
}

pub fn hello(is_writable: bool) -> DocumentBuf {
    ok(|of| {
        of.bool("isWritablePrimary", is_writable);
        of.text("setName", "rs");
        of.small("logicalSessionTimeoutMinutes", 30);
        of.small("maxWireVersion", 21);
    })
}

pub fn ok(values: impl FnOnce(&mut Writer<'_>)) -> DocumentBuf {
    DocumentBuf::of(|of| {
        values(of);
        of.double("ok", 1.0);
    })
}

pub fn refused(code: i32, label: Option<&str>) -> DocumentBuf {
    DocumentBuf::of(|of| {
        if let Some(label) = label {
            of.array("errorLabels", |of| of.text(label));
        }
        of.double("ok", 0.0);
        of.text("errmsg", "no");
        of.small("code", code);
    })
}

pub fn batch(name: &str, ids: std::ops::Range<i64>, cursor: i64) -> DocumentBuf {
    ok(|of| {
        of.document("cursor", |of| {
            of.array(name, |of| ids.for_each(|id| of.document(|of| of.int("_id", id))));
            of.int("id", cursor);
            of.text("ns", "db.t");
        });
    })
}

/// Runs a command and returns its documents' ids.
pub fn fetch(session: &mut MongoSession, command: Command<'_>) -> Result<(Done, Vec<i64>)> {
    let session: &mut dyn DocumentSession = session;
    let mut ids = Vec::new();
    let done = block_on(session.execute(command, &mut |document| ids.push(document.int("_id").unwrap_or(-1))))?;
    Ok((done, ids))
}

pub fn find<'a>(filter: Document<'a>) -> Command<'a> {
    Command::Find { of: "t", find: Find::by(filter) }
}
