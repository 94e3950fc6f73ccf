//! The statements that servers receive: the published ones, in as few round trips as is safe.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::{Arc, Mutex};

use rumba_engine_api::worker::StatementCounts;
use support::memory::Memory;
use support::server::Server;
use support::{address, bind, drive};

/// The statements that a server receives for one operation of a type.
fn reported(profile: &str, only: &'static str, server: Server, pipeline: usize) -> Vec<String> {
    let profile = [("profile", profile), ("maxid1", "100"), ("max_retries", "0")];
    let settings: Vec<_> = profile.into_iter().chain(support::only(only)).collect();
    let server = Arc::new(Mutex::new(server));
    let mut client = bind(&settings).client(Server::session(&server, pipeline), address(0, 1), 7).unwrap();
    let counted = drive(client.as_mut(), 1).statements;
    let reported = std::mem::take(&mut server.lock().unwrap().reported);
    let begins = |words: &[&str]| {
        let is_one = |reported: &&String| words.iter().any(|word| reported.trim_start_matches('+').starts_with(word));
        reported.iter().filter(is_one).count() as u32
    };
    let all = StatementCounts {
        reads: begins(&["SELECT"]),
        writes: begins(&["INSERT", "UPDATE", "DELETE"]),
        others: begins(&["BEGIN", "COMMIT", "ROLLBACK"]),
    };
    assert_eq!(counted, all, "the counts are those of the statements sent: {reported:?}");
    reported
}

fn there() -> Server {
    Server { has_link: true, ..Server::default() }
}

fn missing() -> Server {
    Server::default()
}

#[test]
fn links_of_2017_are_written_as_published() {
    let reported = |only, server| reported("2017", only, server, 2);
    let inserts = ["BEGIN", "+INSERT linktable", "INSERT counttable (upsert)", "COMMIT"];
    let overwrites = ["BEGIN", "+SELECT linktable (lock)", "UPDATE linktable", "COMMIT"];
    assert_eq!(reported("addlink", missing()), inserts);
    assert_eq!(reported("updatelink", there()), overwrites);
    // A statement with an unexpected result ends its transaction, as in the original.
    let instead = ["BEGIN", "+INSERT linktable", "ROLLBACK"];
    assert_eq!(reported("addlink", there()), [&instead[..], &overwrites].concat());
    let instead = ["BEGIN", "+SELECT linktable (lock)", "ROLLBACK"];
    assert_eq!(reported("updatelink", missing()), [&instead[..], &inserts].concat());
    let hides = ["BEGIN", "+SELECT linktable (lock)", "UPDATE linktable", "UPDATE counttable", "COMMIT"];
    assert_eq!(reported("deletelink", there()), hides);
    assert_eq!(reported("deletelink", missing()), ["BEGIN", "+SELECT linktable (lock)", "ROLLBACK"]);
}

#[test]
fn calls_over_keys_and_values_are_counted() {
    let memory = Memory::default();
    let counted = |only: &'static str| {
        let settings: Vec<_> = [("maxid1", "100")].into_iter().chain(support::only(only)).collect();
        let mut client = bind(&settings).client(memory.session(), address(0, 1), 7).unwrap();
        let StatementCounts { reads, writes, others } = drive(client.as_mut(), 1).statements;
        (reads, writes, others)
    };
    assert_eq!(counted("getnode"), (1, 0, 0));
    assert_eq!(counted("getlinklist"), (1, 0, 0));
    // It looks up the link and its count, and writes both and the index entry, in a transaction.
    assert_eq!(counted("addlink"), (2, 3, 2));
    assert_eq!(counted("addnode"), (0, 1, 2));
}

#[test]
fn links_of_2011_are_written_as_published() {
    let reported = |only, server| reported("2011", only, server, 2);
    for only in ["addlink", "updatelink"] {
        let upsert = ["BEGIN", "+INSERT linktable (upsert)"];
        assert_eq!(reported(only, missing()), [&upsert[..], &["INSERT counttable (upsert)", "COMMIT"]].concat());
        assert_eq!(reported(only, there()), [&upsert[..], &["UPDATE linktable", "COMMIT"]].concat());
    }
    let hides = ["BEGIN", "+SELECT linktable (lock)", "UPDATE linktable", "INSERT counttable (upsert)", "COMMIT"];
    assert_eq!(reported("deletelink", there()), hides);
}

#[test]
fn single_statements_open_no_transaction() {
    for profile in ["2011", "2017"] {
        for only in ["getlinklist", "getnode", "getlink", "countlink", "addnode", "updatenode", "deletenode"] {
            assert_eq!(reported(profile, only, there(), 2).len(), 1, "{profile} {only}");
        }
    }
}

#[test]
fn session_without_pipelining_gets_one_statement_at_a_time() {
    let overwrites = ["BEGIN", "SELECT linktable (lock)", "UPDATE linktable", "COMMIT"];
    assert_eq!(reported("2017", "updatelink", there(), 1), overwrites);
}

#[test]
fn deadlocked_operation_sends_only_its_rollback() {
    let after = |conflicts, only, has_link| {
        let server = Server { conflicts: Some(conflicts), has_link, ..Server::default() };
        reported("2017", only, server, 2)
    };
    let count = ["BEGIN", "+INSERT linktable", "INSERT counttable (upsert)", "ROLLBACK"];
    assert_eq!(after("INSERT counttable", "addlink", false), count);
    assert_eq!(after("UPDATE linktable", "deletelink", true)[2..], ["UPDATE linktable", "ROLLBACK"]);
    assert_eq!(after("SELECT linktable (lock)", "updatelink", true)[1..], ["+SELECT linktable (lock)", "ROLLBACK"]);
    // It is unknown whether the conflicting commit has ended the transaction.
    assert_eq!(after("COMMIT", "updatelink", true)[3..], ["COMMIT", "ROLLBACK"]);
}

#[test]
fn a_batch_of_the_load_is_one_transaction_of_two_round_trips() {
    let server = Arc::new(Mutex::new(Server::default()));
    let bound = bind(&[("maxid1", "1001"), ("partitions", "16"), ("index", "after")]);
    bound.create_schema(&mut Server::session(&server, 2)).unwrap();
    let schema = std::mem::take(&mut server.lock().unwrap().reported);
    assert_eq!(schema.len(), 3, "the index comes after the load");
    assert!(schema.iter().all(|table| table.contains(") ENGINE=InnoDB")));
    let partitioned: Vec<&String> = schema.iter().filter(|table| table.contains("PARTITION")).collect();
    assert!(partitioned.len() == 1 && partitioned[0].ends_with("PARTITION BY KEY (id1) PARTITIONS 16"), "{schema:?}");
    let mut loader = bound.loader(0, Server::session(&server, 2), address(0, 1), 7).unwrap();
    drive(loader.as_mut(), 1);
    assert_eq!(std::mem::take(&mut server.lock().unwrap().reported), ["BEGIN", "+ROWS nodetable", "COMMIT"]);
    let mut index = bound.loader(1, Server::session(&server, 2), address(0, 1), 7).unwrap();
    drive(index.as_mut(), u64::MAX);
    let reported = std::mem::take(&mut server.lock().unwrap().reported);
    assert!(reported.len() == 1 && reported[0].starts_with("ALTER TABLE linktable ADD KEY id1_type"), "{reported:?}");
}
