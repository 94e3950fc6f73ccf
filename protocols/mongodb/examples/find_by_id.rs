//! Finds documents by id, one after the other, for `scripts/instructions` to count the client's instructions.
//!
//! ```text
//! find_by_id SOCKET|HOST:PORT FINDS
//! ```
//!
//! Uses the collection `usertable` of the database `ycsb`, without a user.

use std::hint::black_box;
use std::process::ExitCode;

use rumba_engine_api::bson::{Document, DocumentBuf};
use rumba_engine_api::document::{Command, DocumentSession, Find};
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::block_on;
use rumba_protocol_mongodb::{Address, MongoSession, SessionOptions, Target};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, finds] = &arguments[..] else { return mistake("usage: find_by_id SOCKET|HOST:PORT FINDS") };
    let Ok(finds) = finds.parse() else { return mistake("FINDS is a number") };
    match run(address_of(address), finds) {
        Ok(documents) => {
            println!("{documents} documents");
            ExitCode::SUCCESS
        }
        Err(error) => mistake(&error.to_string()),
    }
}

fn mistake(what: &str) -> ExitCode {
    eprintln!("find_by_id: {what}");
    ExitCode::FAILURE
}

fn address_of(text: &str) -> Address {
    match text.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => Address::Tcp { host: host.to_owned(), port },
        _ => Address::Socket(text.into()),
    }
}

fn run(address: Address, finds: i64) -> Result<u64, EngineError> {
    let target = Target::anonymous(address);
    let mut session = MongoSession::connect(&target, &SessionOptions::to("ycsb"))?;
    let session: &mut dyn DocumentSession = &mut session;
    let mut filter = DocumentBuf::default();
    block_on(async {
        let mut documents = 0;
        for id in 0..finds {
            let find = Find { limit: 1, ..Find::by(filter.write(|of| of.int("_id", id))) };
            let mut visit = |document: Document<'_>| {
                black_box(document.bytes());
            };
            documents += session.execute(Command::Find { of: "usertable", find }, &mut visit).await?.documents;
        }
        Ok(documents)
    })
}
