//! The cost of a session in memory, allocations and instructions, with the null server, so that only the client is
//! measured.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::path::Path;

use rumba_engine_api::bson::{Document, DocumentBuf, Documents};
use rumba_engine_api::document::{Command, DocumentSession, Find, Update};
use rumba_engine_api::worker::block_on;
use rumba_null_server::{Config, Listen, NullServer, Protocol};
use rumba_protocol_mongodb::{Address, MongoSession, SessionOptions, Target};
use rumba_testkit::allocations::Counting;
use rumba_testkit::cost;
use rumba_testkit::instructions::{self, Work};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn server(dir: &Path) -> NullServer {
    let mut config = Config::new(Listen::Socket(dir.join("s")));
    config.protocol = Protocol::MongoDb;
    NullServer::start(&config).unwrap()
}

fn session(dir: &Path) -> MongoSession {
    let address = Address::Socket(dir.join("s"));
    let target = Target::anonymous(address);
    MongoSession::connect(&target, &SessionOptions::to("db")).unwrap()
}

fn find(session: &mut MongoSession, filter: &mut DocumentBuf, id: i64) {
    let session: &mut dyn DocumentSession = session;
    let mut seen = 0;
    let mut visit = |document: Document<'_>| seen = document.blob("c").unwrap().len();
    let filter = filter.write(|of| of.int("_id", id));
    let find = Find { limit: 1, ..Find::by(filter) };
    let done = block_on(session.execute(Command::Find { of: "t", find }, &mut visit)).unwrap();
    assert_eq!((done.documents, seen), (1, 119));
}

#[test]
fn a_find_by_id_allocates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let (mut session, mut filter) = (session(dir.path()), DocumentBuf::default());
    cost::allocates_nothing(1, |id| find(&mut session, &mut filter, id as i64));
}

#[test]
fn a_transaction_of_writes_allocates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let mut session = session(dir.path());
    let (mut filter, mut change, mut documents) =
        (DocumentBuf::default(), DocumentBuf::default(), Documents::default());
    cost::allocates_nothing(6, |id| {
        let session: &mut dyn DocumentSession = &mut session;
        let filter = filter.write(|of| of.int("_id", id as i64));
        let update = change.write(|of| of.document("$inc", |of| of.small("count", 1)));
        documents.clear();
        (0..10).for_each(|_| documents.push(|of| of.binary("data", &[7; 100])));
        let update = Update { filter, update, upsert: true };
        for command in [
            Command::Begin,
            Command::Insert { into: "links", documents: &documents },
            Command::Update { of: "counts", update },
            Command::FindAndModify { of: "nodes", update, projection: Document::EMPTY, new: false },
            Command::Delete { from: "nodes", filter, all: true },
            Command::Commit,
        ] {
            block_on(session.execute(command, &mut |_| {})).unwrap();
        }
    });
}

#[test]
fn a_session_at_rest_is_small() {
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    cost::is_small_at_rest(|| {
        let (mut session, mut filter) = (session(dir.path()), DocumentBuf::default());
        (0..10).for_each(|id| find(&mut session, &mut filter, id));
        session
    });
}

/// Counts in the test build; `scripts/instructions` counts in a release build.
#[test]
#[needs(Valgrind)]
fn a_find_by_id_takes_no_more_instructions_than_allowed() {
    // The count is 2477 in a debug build with the counting allocator.
    const MOST: u64 = 2600;
    let dir = tempfile::tempdir().unwrap();
    let _server = server(dir.path());
    let finds = Work { test: "finds", directory: dir.path(), but_for: None };
    finds.takes_at_most(MOST, 1_000..11_000, 1);
}

#[test]
#[ignore = "run by the test above, under valgrind"]
fn finds() {
    let Some(requested) = instructions::requested() else { return };
    let (mut session, mut filter) = (session(&requested.directory), DocumentBuf::default());
    for id in 0..requested.operations {
        find(&mut session, &mut filter, id as i64);
    }
}
