//! Tests the client with a real server of this protocol, SecantusDB, which the tests start and stop. The tests of rumba
//! run MongoDB itself.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::path::Path;
use std::time::Duration;

use rumba_engine_api::bson::{Document, DocumentBuf, Documents};
use rumba_engine_api::document::{Command, DocumentSession, Done, Find, Update};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::worker::block_on;
use rumba_protocol_mongodb::{Address, Admin, MongoSession, Secret, SessionOptions, Target, Tls};
use rumba_testkit::certificate;
use rumba_testkit::secantusdb::SecantusDb;

const TIMEOUT: Duration = Duration::from_secs(30);

fn target(server: &SecantusDb) -> Target {
    Target::anonymous(Address::Tcp { host: "127.0.0.1".into(), port: server.port() })
}

fn session(server: &SecantusDb) -> MongoSession {
    MongoSession::connect(&target(server), &SessionOptions::to("lab")).unwrap()
}

/// Runs a command and returns its documents' ids.
fn fetch(session: &mut MongoSession, command: Command<'_>) -> Result<(Done, Vec<i64>)> {
    let session: &mut dyn DocumentSession = session;
    let mut ids = Vec::new();
    let done = block_on(session.execute(command, &mut |document| ids.push(document.int("_id").unwrap())))?;
    Ok((done, ids))
}

fn of_id(id: i64) -> DocumentBuf {
    DocumentBuf::of(|of| of.int("_id", id))
}

/// Inserts this many documents of a kilobyte each.
fn fill(session: &mut MongoSession, count: i64) {
    let mut documents = Documents::default();
    for id in 0..count {
        documents.push(|of| {
            of.int("_id", id);
            of.int("half", id / 2);
            of.binary("data", &[7; 1000]);
        });
    }
    let done = fetch(session, Command::Insert { into: "t", documents: &documents }).unwrap().0;
    assert_eq!(done.matched, count as u64);
}

fn all() -> Command<'static> {
    Command::Find { of: "t", find: Find::by(Document::EMPTY) }
}

#[test]
#[needs(SecantusDb)]
fn documents_round_trip_and_writes_say_what_they_did() {
    let server = SecantusDb::start(&[]);
    documents_round_trip_across_several_batches(&server);
    writes_say_what_they_did_and_a_key_is_taken_once(&server);
}

fn documents_round_trip_across_several_batches(server: &SecantusDb) {
    let mut session = session(server);
    fill(&mut session, 5000);
    let down = DocumentBuf::of(|of| of.small("_id", -1));
    let find = Find { sort: down.get(), skip: 10, limit: 3000, ..Find::by(Document::EMPTY) };
    for _ in 0..2 {
        let (done, ids) = fetch(&mut session, Command::Find { of: "t", find }).unwrap();
        assert_eq!(done.documents, 3000);
        assert!(ids.iter().copied().eq((1990..4990).rev()));
    }
    let half = DocumentBuf::of(|of| of.int("half", 7));
    let (_, mut ids) = fetch(&mut session, Command::Find { of: "t", find: Find::by(half.get()) }).unwrap();
    ids.sort_unstable();
    assert_eq!(ids, [14, 15]);
    let count = |filter| Command::Count { of: "t", filter };
    assert_eq!(fetch(&mut session, count(half.get())).unwrap().0.matched, 2);
    assert_eq!(fetch(&mut session, count(of_id(-1).get())).unwrap().0.matched, 0);
    let mut admin = Admin::connect(&target(server), TIMEOUT).unwrap();
    let documents = admin.all("lab", DocumentBuf::of(|of| of.text("find", "t")).get()).unwrap();
    assert_eq!(documents.len(), 5000);
    assert!(!admin.server_version().unwrap().is_empty() && admin.hello().in_replica_set);
}

fn writes_say_what_they_did_and_a_key_is_taken_once(server: &SecantusDb) {
    let mut session = MongoSession::connect(&target(server), &SessionOptions::to("writes")).unwrap();
    fill(&mut session, 3);
    let (first, other) = (of_id(1), of_id(9));
    let set = DocumentBuf::of(|of| of.document("$set", |of| of.int("half", 7)));
    let update = |filter, upsert| Update { filter, update: set.get(), upsert };
    let changed = |session: &mut _, update| fetch(session, Command::Update { of: "t", update }).unwrap().0;
    let done = |matched, modified, upserted| Done { matched, modified, upserted, ..Done::default() };
    assert_eq!(changed(&mut session, update(first.get(), false)), done(1, 1, 0));
    assert_eq!(changed(&mut session, update(first.get(), false)), done(1, 0, 0), "it holds that already");
    assert_eq!(changed(&mut session, update(other.get(), false)), done(0, 0, 0));
    assert_eq!(changed(&mut session, update(other.get(), true)).upserted, 1);
    let modify = |filter, new| Command::FindAndModify {
        of: "t",
        update: update(filter, false),
        projection: Document::EMPTY,
        new,
    };
    let (shown, ids) = fetch(&mut session, modify(first.get(), true)).unwrap();
    assert_eq!((shown.documents, ids), (1, vec![1]));
    assert_eq!(fetch(&mut session, modify(of_id(77).get(), false)).unwrap().0.documents, 0);
    let mut documents = Documents::default();
    [20, 1, 21].into_iter().for_each(|id| documents.push(|of| of.int("_id", id)));
    let error = fetch(&mut session, Command::Insert { into: "t", documents: &documents }).unwrap_err();
    assert!(matches!(error, EngineError::Duplicate(code) if code.vendor == 11000), "{error}");
    let delete = |filter, all| Command::Delete { from: "t", filter, all };
    assert_eq!(fetch(&mut session, delete(first.get(), false)).unwrap().0.matched, 1);
    // These are 0, 2, 9, and 20, the document at which the insert ended.
    assert_eq!(fetch(&mut session, delete(Document::EMPTY, true)).unwrap().0.matched, 4);
    let error = session.run(DocumentBuf::of(|of| of.text("nonsense", "t")).get()).unwrap_err().to_string();
    assert!(error.contains("CommandNotFound") && error.contains("in: { \"nonsense\""), "{error}");
}

#[test]
#[needs(SecantusDb)]
fn a_password_is_proven() {
    let dir = tempfile::tempdir().unwrap();
    {
        let open = SecantusDb::start_in(dir.path(), &[]);
        let mut admin = Admin::connect(&target(&open), TIMEOUT).unwrap();
        let user = DocumentBuf::of(|of| {
            of.text("createUser", "me");
            of.text("pwd", "open sesame");
            of.array("roles", |of| of.text("root"));
        });
        admin.run("admin", user.get()).unwrap();
        open.stop();
    }
    let server = SecantusDb::start_in(dir.path(), &["--auth"]);
    let login = |password: &str| Target { user: "me".into(), password: Secret::new(password), ..target(&server) };
    let mut session = MongoSession::connect(&login("open sesame"), &SessionOptions::to("lab")).unwrap();
    fill(&mut session, 2);
    let refused = |target: &Target| Admin::connect(target, TIMEOUT).err().unwrap().to_string();
    let error = refused(&login("wrong"));
    assert!(error.contains("18") && error.contains("check the user's name"), "{error}");
    assert!(refused(&login("")).contains("no password"));
    // Anonymous users can connect, but may not run any command.
    let mut no_user = MongoSession::connect(&target(&server), &SessionOptions::to("lab")).unwrap();
    let error = fetch(&mut no_user, all()).unwrap_err().to_string();
    assert!(error.contains("13") && error.contains("log in"), "{error}");
}

#[test]
#[needs(SecantusDb, Openssl)]
fn tls_connection_works_and_is_verified_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let [certificate, key] = certificate::of_server(dir.path());
    let path = |path: &Path| path.display().to_string();
    let server = SecantusDb::start(&["--tls-cert-file", &path(&certificate), "--tls-key-file", &path(&key)]);
    let ca = Some(certificate);
    for tls in [Tls::Required, Tls::Signed { ca: ca.clone() }, Tls::Verified { ca }] {
        let target = Target { tls, ..target(&server) };
        let mut session = MongoSession::connect(&target, &SessionOptions::to("lab")).unwrap();
        fill(&mut session, 1000);
        assert_eq!(fetch(&mut session, all()).unwrap().0.documents, 1000);
        fetch(&mut session, Command::Delete { from: "t", filter: Document::EMPTY, all: true }).unwrap();
    }
    let outsider = Target { tls: Tls::Verified { ca: None }, ..target(&server) };
    let error = Admin::connect(&outsider, TIMEOUT).err().unwrap().to_string();
    assert!(error.contains("TLS: "), "{error}");
    assert!(Admin::connect(&target(&server), TIMEOUT).is_err(), "unencrypted logins are refused");
}
