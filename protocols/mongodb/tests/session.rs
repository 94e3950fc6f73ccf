//! A session's requests, and its handling of the answers.
#![allow(clippy::unwrap_used)]

mod support;

use std::cell::RefCell;
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use rumba_engine_api::bson::{Document, DocumentBuf, Documents, Value};
use rumba_engine_api::document::{Command, DocumentSession, Find, Update};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::wait::{Driver, Wait, drive_with};
use rumba_protocol_mongodb::{Admin, MongoError, OnLost, SessionOptions, Tls};
use support::{Server, batch, fetch, find, hello, ok, refused};

const TIMEOUT: Duration = Duration::from_secs(30);

fn of_id(id: i64) -> DocumentBuf {
    DocumentBuf::of(|of| of.int("_id", id))
}

fn update<'a>(filter: Document<'a>, update: Document<'a>) -> Command<'a> {
    Command::Update { of: "t", update: Update { filter, update, upsert: true } }
}

fn has(document: &DocumentBuf, name: &str) -> bool {
    document.get().get(name).unwrap().is_some()
}

#[test]
fn commands_are_what_the_manual_shows() {
    let server = Server::new(|name, _| {
        Some(match name {
            "find" | "aggregate" => batch("firstBatch", 0..0, 0),
            _ => ok(|of| of.small("n", 1)),
        })
    });
    let concern = DocumentBuf::of(|of| of.bool("j", true));
    let options = SessionOptions { write_concern: Some(concern), ..SessionOptions::to("db") };
    let mut session = server.session(&options);
    let (id, set, sort) = (of_id(7), DocumentBuf::of(|of| of.embed("$set", of_id(1).get())), of_id(-1));
    let (filter, change, other) = (id.get(), set.get(), of_id(8));
    let find = Find { sort: sort.get(), projection: id.get(), skip: 5, limit: 10, index: "by_a", ..Find::by(filter) };
    let mut documents = Documents::default();
    documents.embed(filter);
    let upsert = Update { filter, update: change, upsert: true };
    for command in [
        Command::Find { of: "t", find },
        Command::Find { of: "t", find: Find { limit: 1, ..Find::by(filter) } },
        Command::Find { of: "t", find: Find { limit: 1, ..Find::by(other.get()) } },
        Command::Find { of: "u", find: Find { limit: 1, ..Find::by(filter) } },
        Command::Insert { into: "t", documents: &documents },
        update(filter, change),
        Command::FindAndModify { of: "t", update: upsert, projection: filter, new: true },
        Command::Delete { from: "t", filter, all: false },
        Command::Count { of: "t", filter },
    ] {
        fetch(&mut session, command).unwrap();
    }
    session.run(DocumentBuf::of(|of| of.text("create", "t")).get()).unwrap();
    let requested: Vec<_> = server.requested().iter().map(|command| format!("{command:?}")).collect();
    let concern = "\"writeConcern\": { \"j\": true }, \"$db\": \"db\" }";
    let wanted = [
        "{ \"find\": \"t\", \"filter\": { \"_id\": 7 }, \"sort\": { \"_id\": -1 }, \"projection\": { \"_id\": 7 }, \
         \"skip\": 5, \"limit\": 10, \"hint\": \"by_a\", \"$db\": \"db\" }"
            .to_owned(),
        "{ \"find\": \"t\", \"filter\": { \"_id\": 7 }, \"limit\": 1, \"singleBatch\": true, \"$db\": \"db\" }".to_owned(),
        "{ \"find\": \"t\", \"filter\": { \"_id\": 8 }, \"limit\": 1, \"singleBatch\": true, \"$db\": \"db\" }".to_owned(),
        "{ \"find\": \"u\", \"filter\": { \"_id\": 7 }, \"limit\": 1, \"singleBatch\": true, \"$db\": \"db\" }".to_owned(),
        format!("{{ \"insert\": \"t\", {concern}"),
        format!(
            "{{ \"update\": \"t\", \"updates\": {{ \"0\": {{ \"q\": {{ \"_id\": 7 }}, \"u\": {{ \"$set\": {{ \"_id\": 1 }} }}, \
             \"upsert\": true }} }}, {concern}"
        ),
        format!(
            "{{ \"findAndModify\": \"t\", \"query\": {{ \"_id\": 7 }}, \"update\": {{ \"$set\": {{ \"_id\": 1 }} }}, \
             \"upsert\": true, \"fields\": {{ \"_id\": 7 }}, \"new\": true, {concern}"
        ),
        format!("{{ \"delete\": \"t\", \"deletes\": {{ \"0\": {{ \"q\": {{ \"_id\": 7 }}, \"limit\": 1 }} }}, {concern}"),
        "{ \"aggregate\": \"t\", \"pipeline\": { \"0\": { \"$match\": { \"_id\": 7 } }, \"1\": { \"$group\": { \"_id\": nothing, \
         \"n\": { \"$sum\": 1 } } } }, \"cursor\": { }, \"$db\": \"db\" }"
            .to_owned(),
        "{ \"create\": \"t\", \"$db\": \"db\" }".to_owned(),
    ];
    for (requested, wanted) in requested.iter().zip(&wanted) {
        assert_eq!(requested, wanted);
    }
    assert_eq!(requested.len(), wanted.len());
}

#[test]
fn a_transaction_begins_with_its_first_command_and_ends_once() {
    let server = Server::new(|name, _| {
        Some(match name {
            "find" => batch("firstBatch", 0..1, 0),
            _ => ok(|of| of.small("n", 1)),
        })
    });
    let options = SessionOptions { read_concern: Some("snapshot".into()), ..SessionOptions::to("db") };
    let mut session = server.session(&options);
    let id = of_id(7);
    assert!(session.has_transactions());
    for end in [Command::Commit, Command::Abort] {
        fetch(&mut session, Command::Begin).unwrap();
        assert!(fetch(&mut session, Command::Begin).unwrap_err().to_string().contains("end it first"));
        fetch(&mut session, find(id.get())).unwrap();
        fetch(&mut session, update(id.get(), id.get())).unwrap();
        fetch(&mut session, end).unwrap();
    }
    // A transaction without commands needs no server.
    for end in [Command::Commit, Command::Abort, Command::Commit] {
        fetch(&mut session, Command::Begin).unwrap();
        fetch(&mut session, end).unwrap();
        fetch(&mut session, end).unwrap();
    }
    drop(session);
    let since = Instant::now();
    while !server.requested().iter().any(|command| has(command, "endSessions")) {
        assert!(since.elapsed() < TIMEOUT);
        std::thread::yield_now();
    }
    let mut again = server.session(&options);
    fetch(&mut again, find(id.get())).unwrap();
    let requested = server.requested();
    let names: Vec<_> =
        requested.iter().map(|command| command.get().iter().next().unwrap().unwrap().0.to_vec()).collect();
    let wanted: [&[u8]; 8] =
        [b"find", b"update", b"commitTransaction", b"find", b"update", b"abortTransaction", b"endSessions", b"find"];
    assert_eq!(names, wanted);
    let numbers: Vec<_> = requested.iter().map(|command| command.get().int("txnNumber").ok()).collect();
    assert_eq!(numbers, [Some(1), Some(1), Some(1), Some(2), Some(2), Some(2), None, None]);
    assert!(
        has(&requested[0], "startTransaction")
            && has(&requested[0], "readConcern")
            && !has(&requested[1], "startTransaction")
    );
    let id = |command: &DocumentBuf| match command.get().get("lsid").unwrap() {
        Some(Value::Document(id)) => id.blob("id").unwrap().to_vec(),
        _ => Vec::new(),
    };
    assert!(id(&requested[0]).len() == 16 && id(&requested[0]) == id(&requested[5]) && id(&requested[7]).is_empty());
    assert_eq!(requested[2].get().blob("$db"), Ok(&b"admin"[..]));
}

fn names(requested: &[DocumentBuf]) -> Vec<String> {
    let name = |command: &DocumentBuf| command.get().iter().next().unwrap().unwrap().0.to_vec();
    requested.iter().map(|command| String::from_utf8(name(command)).unwrap()).collect()
}

#[test]
fn a_transaction_begins_with_the_first_command_that_is_sent() {
    let server = Server::new(|_, _| Some(batch("firstBatch", 0..1, 0)));
    let mut session = server.session(&SessionOptions::to("db"));
    fetch(&mut session, Command::Begin).unwrap();
    let nothing = Command::Insert { into: "t", documents: &Documents::default() };
    assert!(fetch(&mut session, nothing).unwrap_err().to_string().contains("no documents"));
    fetch(&mut session, find(of_id(7).get())).unwrap();
    let requested = server.requested();
    assert!(requested.len() == 1 && has(&requested[0], "startTransaction"), "{requested:?}");
}

/// The server releases a dropped session's locks only at its next session cleanup.
#[test]
fn a_transaction_that_is_left_open_is_aborted_with_its_session() {
    let server = Server::new(|_, _| Some(batch("firstBatch", 0..1, 0)));
    let mut session = server.session(&SessionOptions::to("db"));
    fetch(&mut session, Command::Begin).unwrap();
    fetch(&mut session, find(of_id(7).get())).unwrap();
    drop(session);
    let since = Instant::now();
    while server.requested().len() < 3 {
        assert!(since.elapsed() < TIMEOUT, "{:?}", names(&server.requested()));
        std::thread::yield_now();
    }
    assert_eq!(names(&server.requested()), ["find", "abortTransaction", "endSessions"]);
}

#[test]
fn conflicts_end_the_transaction() {
    let server = Server::new(|name, _| {
        Some(match name {
            "update" => refused(112, Some("TransientTransactionError")),
            "insert" => ok(|of| {
                of.small("n", 0);
                of.array("writeErrors", |of| of.document(|of| of.small("code", 11000)));
            }),
            "abortTransaction" => refused(251, Some("TransientTransactionError")),
            _ => refused(1, None),
        })
    });
    let options = SessionOptions::to("db");
    let mut session = server.session(&options);
    let id = of_id(7);
    let mut documents = Documents::default();
    documents.embed(id.get());
    fetch(&mut session, Command::Begin).unwrap();
    let error = fetch(&mut session, update(id.get(), id.get())).unwrap_err();
    assert_eq!(error.to_string(), "conflict: write conflict: error 112");
    // The server has aborted it already, which is no error.
    fetch(&mut session, Command::Abort).unwrap();
    fetch(&mut session, Command::Begin).unwrap();
    let error = fetch(&mut session, Command::Insert { into: "t", documents: &documents }).unwrap_err();
    assert!(matches!(error, EngineError::Duplicate(code) if code.vendor == 11000));
    let error = fetch(&mut session, Command::Commit).unwrap_err().to_string();
    assert!(error.contains("had failed, and it was aborted"), "{error}");
    let error = fetch(&mut session, find(id.get())).unwrap_err().to_string();
    assert_eq!(error, "execute: error 1: no");
    assert_eq!(options.counts.write_conflicts.load(Relaxed), 1);
    assert_eq!(options.counts.transient_errors.load(Relaxed), 0);
}

/// `mongod` itself uses only the second label for a commit; the first comes from drivers and routers.
#[test]
fn commit_with_unknown_outcome_is_retried_once() {
    for label in ["UnknownTransactionCommitResult", "RetryableWriteError"] {
        let mut commits = [true, false, true, true].into_iter();
        let server = Server::new(move |name, _| {
            Some(match name {
                "commitTransaction" if commits.next() == Some(true) => refused(50, Some(label)),
                "find" => batch("firstBatch", 0..0, 0),
                _ => ok(|_| {}),
            })
        });
        let options = SessionOptions::to("db");
        let mut session = server.session(&options);
        let transaction = |session: &mut _| {
            fetch(session, Command::Begin)?;
            fetch(session, find(Document::EMPTY))?;
            fetch(session, Command::Commit)
        };
        transaction(&mut session).unwrap();
        // Both answers leave the outcome open, so the error is reported unchanged.
        let error = transaction(&mut session).unwrap_err().to_string();
        assert_eq!(error, "execute: error 50: no", "{label}");
        assert_eq!(options.counts.commits_repeated.load(Relaxed), 2, "{label}");
        transaction(&mut session).unwrap();
    }
}

#[test]
fn reconnect_after_shutdown_aborts_the_open_transaction() {
    let mut finds = 0;
    let server = Server::new(move |name, _| match name {
        "find" => {
            finds += 1;
            match finds {
                // The server announces its shutdown and closes the connection.
                2 => Some(refused(91, Some("TransientTransactionError"))),
                4 => None,
                _ => Some(batch("firstBatch", 0..1, 0)),
            }
        }
        _ => Some(refused(251, None)),
    });
    let options = SessionOptions { on_lost: OnLost::Reconnect, ..SessionOptions::to("db") };
    let mut session = server.session(&options);
    for _ in 0..2 {
        fetch(&mut session, Command::Begin).unwrap();
        fetch(&mut session, find(Document::EMPTY)).unwrap();
        let error = fetch(&mut session, find(Document::EMPTY)).unwrap_err();
        assert!(matches!(error, EngineError::CutOff(_)), "{error}");
        fetch(&mut session, Command::Abort).unwrap();
    }
    fetch(&mut session, find(Document::EMPTY)).unwrap();
    let aborted = server.requested().iter().filter(|command| has(command, "abortTransaction")).count();
    assert_eq!((aborted, options.counts.link.reconnects.load(Relaxed)), (2, 2));
    assert_eq!(options.counts.link.connections_lost.load(Relaxed), 2);

    let fails = SessionOptions::to("db");
    let server = Server::new(|_, _| None);
    let mut session = server.session(&fails);
    let error = fetch(&mut session, find(Document::EMPTY)).unwrap_err();
    assert!(matches!(&error, EngineError::Lost(why) if why.contains("closed the connection")), "{error}");
    assert!(matches!(fetch(&mut session, find(Document::EMPTY)).unwrap_err(), EngineError::Lost(_)));
}

/// Each command was refused until the server was elected, and each refusal counted as another lost connection.
#[test]
fn a_server_is_back_when_it_takes_writes_again() {
    let (mut greetings, reported) = (0, Arc::new(AtomicU64::new(0)));
    let (greeted, mut finds) = (reported.clone(), 0);
    let server = Server::that_greets(
        move || {
            greetings += 1;
            greeted.store(greetings, Relaxed);
            // After the restart it is elected only at the third greeting.
            hello(!(2..4).contains(&greetings))
        },
        move |_, _| {
            finds += 1;
            (finds > 1).then(|| batch("firstBatch", 0..1, 0))
        },
    );
    let options = SessionOptions { on_lost: OnLost::Reconnect, ..SessionOptions::to("db") };
    let mut session = server.session(&options);
    assert!(matches!(fetch(&mut session, find(Document::EMPTY)), Err(EngineError::CutOff(_))));
    assert!(session.hello().is_writable);
    assert_eq!((reported.load(Relaxed), options.counts.link.reconnects.load(Relaxed)), (4, 1));
    assert_eq!(fetch(&mut session, find(Document::EMPTY)).unwrap().0.documents, 1);
    assert_eq!(options.counts.link.connections_lost.load(Relaxed), 1);
}

/// The control session waits like the clients' sessions.
#[test]
fn administration_waits_for_a_server_that_takes_writes_again() {
    let mut greetings = 0;
    let chosen_late = move || {
        greetings += 1;
        hello(greetings != 2)
    };
    let server = Server::that_greets(chosen_late, |_, _| None);
    let mut admin = Admin::connect(&server.target(), TIMEOUT).unwrap();
    admin.reconnect().unwrap();
    assert!(admin.hello().is_writable);
    // A server that accepted no writes before is accepted as it is.
    let server = Server::that_greets(|| hello(false), |_, _| None);
    let mut admin = Admin::connect(&server.target(), TIMEOUT).unwrap();
    admin.reconnect().unwrap();
    assert!(!admin.hello().is_writable);
}

#[test]
fn mistakes_are_reported_before_anything_is_sent() {
    let server = Server::new(|_, _| Some(ok(|of| of.small("n", 0))));
    let mut session = server.session(&SessionOptions::to("db"));
    let mut many = Documents::default();
    let megabyte = vec![7; 1 << 20];
    (0..50).for_each(|_| many.push(|of| of.binary("data", &megabyte)));
    let error = fetch(&mut session, Command::Insert { into: "t", documents: &many }).unwrap_err().to_string();
    assert!(error.contains("50 documents of"), "{error}");
    session.submit(find(Document::EMPTY)).unwrap();
    let error = session.submit(find(Document::EMPTY)).unwrap_err().to_string();
    assert!(error.contains("has not been taken"), "{error}");
    assert!(server.requested().is_empty());
    for tls in [Tls::Required, Tls::Preferred] {
        let target = rumba_protocol_mongodb::Target { tls, ..server.target() };
        let error = Admin::connect(&target, TIMEOUT).err().unwrap();
        assert!(matches!(error, MongoError::Transport(_)) && error.to_string().contains("TLS"), "{error}");
    }
    let greeting = || {
        ok(|of| {
            of.bool("isWritablePrimary", true);
            of.small("maxWireVersion", 21);
        })
    };
    let alone = Server::that_greets(greeting, |_, _| None);
    let error = fetch(&mut alone.session(&SessionOptions::to("db")), Command::Begin).unwrap_err().to_string();
    assert!(error.contains("replica set"), "{error}");
}

/// Records the waits of a client, as a driver of many clients would.
#[derive(Default)]
struct RecordingDriver(RefCell<Vec<Wait>>);

impl Driver for RecordingDriver {
    fn wait(&self, wait: Wait) -> bool {
        self.0.borrow_mut().push(wait);
        true
    }

    fn forget(&self, _fd: RawFd) {}
}

#[test]
fn with_a_driver_a_client_waits_without_its_thread() {
    let (send, receive) = mpsc::channel();
    let server = Server::new(move |name, _| {
        // Answer only after the client has begun to wait.
        receive.recv().unwrap();
        Some(batch(if name == "find" { "firstBatch" } else { "nextBatch" }, 0..2, i64::from(name == "find")))
    });
    let mut session = server.session(&SessionOptions::to("db"));
    let received = Rc::new(RecordingDriver::default());
    let _driven = drive_with(received.clone());
    session.submit(find(Document::EMPTY)).unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let (mut requested, mut seen, since) = (0, 0, Instant::now());
    let done = loop {
        assert!(since.elapsed() < TIMEOUT);
        match session.poll_answer(&mut context, &mut |_| seen += 1) {
            Poll::Ready(done) => break done.unwrap(),
            Poll::Pending if requested == server.requested().len() => std::thread::yield_now(),
            Poll::Pending => {
                requested = server.requested().len();
                send.send(()).unwrap();
            }
        }
    };
    assert_eq!((done.documents, seen, requested), (4, 4, 2));
    let waits = received.0.borrow();
    assert!(waits.len() >= 2 && waits.iter().all(|wait| matches!(wait, Wait::Readable(_))), "{waits:?}");
}
