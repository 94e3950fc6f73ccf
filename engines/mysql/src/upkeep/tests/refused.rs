//! Statements that a server refuses, and waits without progress.

use std::time::Duration;

use rumba_engine_api::error::{Result, SqlState};
use rumba_protocol_mysql::{Rows, WireError};

use crate::counters::{Kind, Request, Server};
use crate::upkeep::{Patience, drain, existing};
use rumba_server_kit::wait::{BackgroundWork, WaitError, until_paid};

const SOON: Patience = Patience { poll: Duration::ZERO, stuck_after: Duration::ZERO };

/// A server with MySQL 8's variables and nothing to purge that refuses one statement.
struct Refusing {
    refused: &'static str,
    said: Vec<String>,
}

impl Request for Refusing {
    fn fetch(&mut self, sql: &str) -> Result<Rows, WireError> {
        self.said.push(sql.to_owned());
        if sql == self.refused {
            let message = "Access denied; you need (at least one of) the SUPER privilege(s)".into();
            return Err(WireError::Server { code: 1227, sqlstate: SqlState(*b"42000"), message });
        }
        let variables = [
            ("innodb_io_capacity", "200"),
            ("innodb_io_capacity_max", "2000"),
            ("innodb_max_dirty_pages_pct", "90.000000"),
            ("innodb_max_dirty_pages_pct_lwm", "10.000000"),
        ];
        let answer: &[(&str, &str)] = if sql.starts_with("SHOW GLOBAL VARIABLES") {
            &variables
        } else if sql.starts_with("SHOW GLOBAL STATUS") {
            &[("Innodb_history_list_length", "0")]
        } else {
            &[]
        };
        let rows =
            answer.iter().map(|(name, value)| vec![Some((*name).to_owned()), Some((*value).to_owned())]).collect();
        Ok(Rows { columns: Vec::new(), rows })
    }
}

/// After a failed settle an existing server must not keep the temporary variables.
#[test]
fn variables_are_restored_after_a_refusal() {
    let mut server = Refusing { refused: "SET GLOBAL innodb_max_dirty_pages_pct = 0", said: Vec::new() };
    let error = drain(&mut server, &Server::new(Kind::InnoDb, "8.0.36"), &SOON).expect_err("refused").to_string();
    assert!(error.contains("1227") && error.contains("grant"), "{error}");
    let back = &server.said[server.said.len() - 4..];
    assert_eq!(
        back,
        [
            // Set the limit before the low-water mark, which must not exceed it.
            "SET GLOBAL innodb_max_dirty_pages_pct = 90",
            "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 10",
            "SET GLOBAL innodb_io_capacity = 200",
            "SET GLOBAL innodb_io_capacity_max = 2000",
        ]
    );
}

/// Otherwise the next run would use settings that the user did not request.
#[test]
fn a_setting_that_cannot_be_set_back_is_named() {
    let mut server = Refusing { refused: "SET GLOBAL innodb_io_capacity = 200", said: Vec::new() };
    let error = drain(&mut server, &Server::new(Kind::InnoDb, "8.0.36"), &SOON).expect_err("refused").to_string();
    assert!(error.contains("could not be set back: innodb_io_capacity = 200"), "{error}");
}

/// A server without dirty pages whose change buffer loses a page between two samples.
struct Merging {
    pages: u32,
}

impl Request for Merging {
    fn fetch(&mut self, sql: &str) -> Result<Rows, WireError> {
        let answer = if sql.starts_with("SHOW GLOBAL STATUS") {
            vec![("Innodb_buffer_pool_pages_dirty", "0".to_owned())]
        } else if sql.contains("INNODB_METRICS") {
            let pages = self.pages;
            self.pages = pages.saturating_sub(1);
            // The empty buffer has a root page.
            vec![("ibuf_size", (pages + 1).to_string())]
        } else {
            Vec::new()
        };
        let rows = answer.into_iter().map(|(name, value)| vec![Some(name.to_owned()), Some(value)]).collect();
        Ok(Rows { columns: Vec::new(), rows })
    }
}

/// Otherwise the page writes that the change buffer defers are in no phase of the run.
#[test]
fn drain_waits_for_the_change_buffer_where_the_server_empties_it() {
    let patience = Patience { poll: Duration::ZERO, stuck_after: Duration::from_secs(60) };
    let left_by = |version: &str| {
        let mut server = Merging { pages: 5 };
        drain(&mut server, &Server::new(Kind::InnoDb, version), &patience).expect("drained");
        server.pages
    };
    assert_eq!(left_by("5.7.22"), 0);
    assert_eq!(left_by("10.11.19-MariaDB"), 4, "one sample, because MariaDB merges no page before it is read");
}

/// MySQL's right to flush tables is enough for InnoDB, but an engine with another log needs more.
#[test]
fn innodb_is_drained_without_the_right_to_flush_logs() {
    let drained = |kind: Kind| {
        let mut server = Refusing { refused: "FLUSH LOCAL ENGINE LOGS", said: Vec::new() };
        existing::drain(&mut server, &Server::new(kind, "8.0.36"), "lab", &SOON)
    };
    assert_eq!(drained(Kind::InnoDb), Ok(()));
    let error = drained(Kind::of("TokuDB")).expect_err("its log is flushed by this statement only").to_string();
    assert!(error.contains("FLUSH ENGINE LOGS") && error.contains("1227"), "{error}");
}

fn look(left: f64, work: f64) -> Result<BackgroundWork> {
    let mut look = BackgroundWork { work, ..BackgroundWork::default() };
    look.owe("pages", left, 0.0);
    Ok(look)
}

/// With zero patience, only samples that show progress are accepted.
#[test]
fn slow_progress_is_waited_for_and_swinging_is_not() {
    let patience = Patience { poll: Duration::from_millis(2), stuck_after: Duration::from_millis(1) };
    let mut falling = [5.0, 4.0, 3.0, 2.0, 1.0, 0.0].into_iter();
    until_paid(&patience, || look(falling.next().unwrap_or(0.0), 0.0)).expect("each look found less");
    let mut work = 0.0;
    let compacts = until_paid(&patience, || {
        work += 1.0;
        look(if work < 50.0 { 7.0 } else { 0.0 }, work)
    });
    compacts.expect("a long compaction writes, though its files are counted at its end only");
    let mut swing = [3.0, 4.0].into_iter().cycle();
    match until_paid(&patience, || look(swing.next().unwrap_or(0.0), 0.0)) {
        Err(WaitError::Stuck(words)) => assert!(words.contains("left: ") && words.contains("pages"), "{words}"),
        other => panic!("up and down is no progress: {other:?}"),
    }
}
