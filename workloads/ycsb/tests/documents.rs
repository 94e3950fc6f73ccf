//! The document adapter over a real server of MongoDB's protocol answers as the oracle does: with transactions, and on
//! a server without them.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

use rumba_engine_api::engine::Session;
use rumba_protocol_mongodb::{Address, MongoSession, SessionOptions, Target};
use rumba_testkit::secantusdb::SecantusDb;
use rumba_workload_ycsb::conformance;

#[test]
#[needs(SecantusDb)]
fn documents_answer_as_the_oracle_does() {
    for (arguments, seeds) in [(&[][..], 1..3), (&["--standalone"][..], 3..4)] {
        let server = SecantusDb::start(arguments);
        let target = Target::anonymous(Address::Tcp { host: "127.0.0.1".into(), port: server.port() });
        for seed in seeds {
            let options = SessionOptions::to(format!("ycsb_{seed}"));
            let mut open = || Session::Document(Box::new(MongoSession::connect(&target, &options).unwrap()));
            conformance(&mut open, seed, 1000).unwrap();
        }
    }
}
