//! The SQL adapter over a real PostgreSQL answers as the oracle does.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use std::time::Duration;

use rumba_core::engine::Session;
use rumba_protocol_postgresql::{Address, Admin, PgSession, Secret, SessionOptions, Target, Tls};
use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};
use rumba_workload_linkbench::conformance;

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
fn prepared_statements_and_text_answer_as_the_oracle_does() {
    let server = PostgreSql::start(&[], &[]);
    let mut admin = Admin::connect(&target(&server, "postgres"), Duration::from_secs(30)).unwrap();
    for (seed, text) in [(0, false), (1, false), (2, true)] {
        let database = format!("linkbench_{seed}");
        // The published character set: any byte but zero is a character.
        admin.query(&format!("CREATE DATABASE {database} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")).unwrap();
        let options = SessionOptions { text, ..SessionOptions::default() };
        let mut open = || Session::Sql(Box::new(PgSession::connect(&target(&server, &database), &options).unwrap()));
        conformance(&mut open, seed, 2000).unwrap();
    }
}
