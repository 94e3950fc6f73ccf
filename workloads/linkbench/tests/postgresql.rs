//! The SQL adapter over a real PostgreSQL: statements as text, and verification by the index. Prepared statements are
//! tested with all other servers.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod support;

use std::time::Duration;

use rumba_engine_api::engine::Session;
use rumba_engine_api::worker::block_on;
use rumba_protocol_postgresql::{Address, Admin, PgSession, Secret, SessionOptions, Target, Tls};
use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};
use rumba_workload_linkbench::conformance;
use support::{Count, address, bind};

fn target(server: &PostgreSql, database: &str) -> Target {
    Target {
        address: Address::Socket(server.socket()),
        user: SUPERUSER.into(),
        password: Secret::default(),
        database: Some(database.into()),
        tls: Tls::Off,
    }
}

#[test]
#[needs(PostgreSql)]
fn statements_as_text_answer_as_the_oracle_does() {
    let server = PostgreSql::start(&[], &[]);
    let mut admin = Admin::connect(&target(&server, "postgres"), Duration::from_secs(30)).unwrap();
    // The published character set: any byte but zero is a character.
    admin.query("CREATE DATABASE linkbench ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0").unwrap();
    let options = SessionOptions { text: true, ..SessionOptions::default() };
    let mut open = || Session::Sql(Box::new(PgSession::connect(&target(&server, "linkbench"), &options).unwrap()));
    conformance(&mut open, 1, 2000).unwrap();
}

/// Guards against a false pass: the scan of the index once named no index. If the server found a table scan cheaper,
/// verification compared the table with itself and missed a lost index entry.
#[test]
#[needs(PostgreSql)]
fn missing_index_entry_is_found_despite_table_scan_plans() {
    let server = PostgreSql::start(&["random_page_cost=10000"], &[]);
    let mut admin = Admin::connect(&target(&server, "postgres"), Duration::from_secs(30)).unwrap();
    admin.query("CREATE DATABASE linkbench ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0").unwrap();
    let at = target(&server, "linkbench");
    let open = || Session::Sql(Box::new(PgSession::connect(&at, &SessionOptions::default()).unwrap()));
    let bound = bind(&[("maxid1", "100")]);
    bound.create_schema(&mut open()).unwrap();
    let mut loader = bound.loader(0, open(), address(0, 1), 7).unwrap();
    block_on(loader.run(&mut Count::of(u64::MAX))).unwrap();
    let wrong = || {
        let checks = bound.verify(open()).unwrap();
        checks.into_iter().find(|check| check.name.starts_with("the index entries")).unwrap().wrong
    };
    assert_eq!(wrong(), 0);
    // From here on the server does not maintain the index, and considers it complete.
    let mut admin = Admin::connect(&at, Duration::from_secs(30)).unwrap();
    admin.query("UPDATE pg_index SET indisready = false WHERE indexrelid = 'id1_type'::regclass").unwrap();
    admin.query("INSERT INTO linktable (id1, id2, link_type, visibility) VALUES (7, 5000, 123456789, 1)").unwrap();
    assert_eq!(wrong(), 1);
}
