//! Point selects over one session, as a worker sends them, for `scripts/instructions` to count the client's
//! instructions.
//!
//! ```text
//! point_select SOCKET|HOST:PORT SELECTS [STATEMENT]
//! ```
//!
//! The user is root without a password; the statement has one parameter, an integer.

use std::hint::black_box;
use std::process::ExitCode;

use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::{Param, SqlSession};
use rumba_engine_api::worker::block_on;
use rumba_protocol_mysql::{Address, Secret, SessionOptions, Target, Tls, WireSession};

/// sysbench's point select.
const POINT_SELECT: &str = "SELECT c FROM sbtest1 WHERE id=?";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (address, selects, statement) = match &arguments[..] {
        [address, selects] => (address, selects, POINT_SELECT),
        [address, selects, statement] => (address, selects, statement.as_str()),
        _ => return mistake("usage: point_select SOCKET|HOST:PORT SELECTS [STATEMENT]"),
    };
    let Ok(selects) = selects.parse() else { return mistake("SELECTS is a number") };
    match run(address_of(address), selects, statement) {
        Ok(rows) => {
            println!("{rows} rows");
            ExitCode::SUCCESS
        }
        Err(error) => mistake(&error.to_string()),
    }
}

fn mistake(what: &str) -> ExitCode {
    eprintln!("point_select: {what}");
    ExitCode::FAILURE
}

fn address_of(text: &str) -> Address {
    match text.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => Address::Tcp { host: host.to_owned(), port },
        _ => Address::Socket(text.into()),
    }
}

fn run(address: Address, selects: i64, sql: &str) -> Result<u64, EngineError> {
    let target = Target { address, user: "root".into(), password: Secret::default(), database: None, tls: Tls::Off };
    let mut session = WireSession::connect(&target, &SessionOptions::default())?;
    let statement = session.prepare(sql)?;
    let session: &mut dyn SqlSession = &mut session;
    block_on(async {
        let mut rows = 0;
        for id in 0..selects {
            let mut visit = |row: &dyn rumba_engine_api::sql::Row| {
                black_box(row.bytes(0));
            };
            rows += session.execute(statement, &[Param::Int(id)], &mut visit).await?.rows;
        }
        Ok(rows)
    })
}
