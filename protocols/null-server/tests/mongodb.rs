//! Answers to a client of MongoDB's protocol.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::{Duration, Instant};

use common::TestServer;
use rumba_engine_api::bson::{Document, DocumentBuf, Documents};
use rumba_engine_api::document::{Command, DocumentSession, Done, Find, Update};
use rumba_engine_api::worker::block_on;
use rumba_null_server::{Column, Config, Listen, NullServer, Protocol, ServerError};
use rumba_protocol_mongodb::{Address, Admin, MongoSession, Secret, SessionOptions, Target};

fn server(change: impl FnOnce(&mut Config)) -> TestServer {
    TestServer::new(|config| {
        config.protocol = Protocol::MongoDb;
        change(config);
    })
}

fn target(server: &TestServer) -> Target {
    Target::anonymous(Address::Socket(server.socket()))
}

fn session(server: &TestServer) -> MongoSession {
    MongoSession::connect(&target(server), &SessionOptions::to("db")).unwrap()
}

fn fetch(session: &mut MongoSession, command: Command<'_>) -> (Done, Vec<(i64, Vec<u8>)>) {
    let session: &mut dyn DocumentSession = session;
    let mut found = Vec::new();
    let mut visit =
        |document: Document<'_>| found.push((document.int("_id").unwrap(), document.blob("c").unwrap().to_vec()));
    let done = block_on(session.execute(command, &mut visit)).unwrap();
    (done, found)
}

#[test]
fn finds_give_the_documents_and_writes_their_numbers() {
    let columns: Vec<Column> = vec!["n:int".parse().unwrap(), "c".parse().unwrap()];
    let place = server(|config| (config.columns, config.rows, config.row_bytes) = (columns, 3, 5));
    let mut session = session(&place);
    let find = Command::Find { of: "t", find: Find::by(Document::EMPTY) };
    let expected: Vec<_> = [1, 2, 3].map(|id| (id, b"07418".to_vec())).into();
    assert_eq!(fetch(&mut session, find), (Done { documents: 3, ..Done::default() }, expected));
    let mut documents = Documents::default();
    (0..40).for_each(|id| documents.push(|of| of.int("_id", id)));
    let one = DocumentBuf::of(|of| of.int("_id", 1));
    let update = Update { filter: one.get(), update: one.get(), upsert: false };
    assert!(session.has_transactions());
    for _ in 0..3 {
        fetch(&mut session, Command::Begin);
        assert_eq!(fetch(&mut session, Command::Insert { into: "t", documents: &documents }).0.matched, 40);
        let done = fetch(&mut session, Command::Update { of: "t", update }).0;
        assert_eq!((done.matched, done.modified), (1, 1));
        assert_eq!(fetch(&mut session, Command::Delete { from: "t", filter: one.get(), all: true }).0.matched, 1);
        let (done, found) =
            fetch(&mut session, Command::FindAndModify { of: "t", update, projection: Document::EMPTY, new: true });
        assert_eq!((done.documents, found[0].0), (1, 1));
        fetch(&mut session, Command::Commit);
    }
    session.run(DocumentBuf::of(|of| of.text("create", "t")).get()).unwrap();
    session.run(DocumentBuf::of(|of| of.small("fsync", 1)).get()).unwrap();
    let mut admin = Admin::connect(&target(&place), Duration::from_secs(60)).unwrap();
    let status = admin.run("admin", DocumentBuf::of(|of| of.small("serverStatus", 1)).get()).unwrap();
    assert_eq!(status.get().int("pid").unwrap(), i64::from(std::process::id()), "it runs in this process");
    let error = session.run(DocumentBuf::of(|of| of.text("reIndex", "t")).get()).unwrap_err().to_string();
    assert!(error.contains("59") && error.contains("reIndex"), "{error}");
}

#[test]
fn an_answer_with_a_delay_never_comes_early() {
    const DELAY: Duration = Duration::from_millis(20);
    let place = server(|config| config.delay = Some(DELAY));
    let mut admin = Admin::connect(&target(&place), Duration::from_secs(30)).unwrap();
    for _ in 0..3 {
        let before = Instant::now();
        admin.run("db", DocumentBuf::of(|of| of.text("find", "t")).get()).unwrap();
        assert!(before.elapsed() >= DELAY);
    }
    let user = Target { user: "me".into(), password: Secret::new("x"), ..target(&place) };
    let error = Admin::connect(&user, Duration::from_secs(30)).err().unwrap().to_string();
    assert!(error.contains("without a user"), "{error}");
}

#[test]
fn invalid_input_closes_only_its_own_connection() {
    let place = server(|_| {});
    let message = |kind: u32, body: &[u8]| {
        let header = [16 + body.len() as u32, 7, 0, kind].map(u32::to_le_bytes).concat();
        [&header, body].concat()
    };
    for nonsense in [
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        message(2013, b""),
        message(2013, &[0; 5]),
        message(2013, &[0, 0, 0, 0, 0, 5, 0, 0, 0, 0]),
        message(2010, &[0; 30]),
    ] {
        assert_eq!(place.answer_to(&nonsense), b"", "{nonsense:?}");
    }
    // Older drivers send this greeting.
    let old = place.answer_to(&message(2004, b"\0\0\0\0admin.$cmd\0\0\0\0\0\xff\xff\xff\xff\x05\0\0\0\0"));
    assert_eq!((old[8], old[12]), (7, 1));
    assert!(Document::new(&old[36..]).unwrap().int("maxWireVersion").is_ok());
    let session = &mut session(&place);
    assert_eq!(fetch(session, Command::Find { of: "t", find: Find::by(Document::EMPTY) }).0.documents, 1);
}

#[test]
fn documents_that_no_message_holds_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = Config::new(Listen::Socket(dir.path().join("s")));
    (config.protocol, config.rows, config.row_bytes) = (Protocol::MongoDb, 1_000_000, 100);
    assert!(matches!(NullServer::start(&config), Err(ServerError::Answer(why)) if why.contains("one message")));
}
