//! Answers that are made once and copied for every request.

use rumba_engine_api::bson::{Items, Writer};

use super::message::{LONGEST, answer, old_answer};
use crate::config::{ColumnKind, Config};
use crate::text::groups_of_digits;

/// The server's answers, made at its start.
#[derive(Debug)]
pub struct Answers {
    /// The fixed documents, all in one batch.
    pub found: Vec<u8>,
    /// The end of a cursor.
    pub no_more: Vec<u8>,
    /// One document modified.
    pub changed: Vec<u8>,
    /// One document modified and returned.
    pub shown: Vec<u8>,
    /// The number of documents.
    pub counted: Vec<u8>,
    /// Success.
    pub done: Vec<u8>,
    /// The server's greeting, for OP_MSG and for OP_QUERY.
    pub hello: [Vec<u8>; 2],
    /// The server's version.
    pub version: Vec<u8>,
    /// The server's status, without any counters.
    pub status: Vec<u8>,
}

impl Answers {
    /// The answers of a server with this configuration.
    pub fn new(config: &Config) -> Self {
        let text = groups_of_digits(config.row_bytes);
        let found = answer(|of| {
            cursor(of, "firstBatch", |of| {
                for number in 1..=config.rows {
                    of.document(|of| document(of, config, number, &text));
                }
            });
        });
        let shown = answer(|of| {
            of.document("lastErrorObject", |of| {
                of.small("n", 1);
                of.bool("updatedExisting", true);
            });
            of.document("value", |of| document(of, config, 1, &text));
            of.double("ok", 1.0);
        });
        Self {
            found,
            no_more: answer(|of| cursor(of, "nextBatch", |_| {})),
            changed: answer(|of| {
                of.small("n", 1);
                of.small("nModified", 1);
                of.double("ok", 1.0);
            }),
            shown,
            counted: counted(config.rows as usize),
            done: answer(|of| of.double("ok", 1.0)),
            hello: [answer(hello), old_answer(hello)],
            version: answer(|of| {
                of.text("version", super::VERSION);
                of.double("ok", 1.0);
            }),
            status: answer(|of| {
                of.text("version", super::VERSION);
                of.int("pid", i64::from(std::process::id()));
                of.double("ok", 1.0);
            }),
        }
    }
}

/// An answer with the number of inserted or counted documents.
pub fn counted(documents: usize) -> Vec<u8> {
    answer(|of| {
        of.small("n", i32::try_from(documents).unwrap_or(i32::MAX));
        of.double("ok", 1.0);
    })
}

/// An error.
pub fn refused(code: i32, name: &str, words: &str) -> Vec<u8> {
    answer(|of| {
        of.double("ok", 0.0);
        of.text("errmsg", words);
        of.small("code", code);
        of.text("codeName", name);
    })
}

fn cursor(of: &mut Writer<'_>, batch: &str, documents: impl FnOnce(&mut Items<'_, '_>)) {
    of.document("cursor", |of| {
        of.array(batch, documents);
        of.int("id", 0);
        of.text("ns", "null.server");
    });
    of.double("ok", 1.0);
}

fn document(of: &mut Writer<'_>, config: &Config, number: u32, text: &str) {
    of.int("_id", i64::from(number));
    for column in &config.columns {
        match column.kind {
            ColumnKind::Int => of.int(&column.name, i64::from(number)),
            ColumnKind::Text => of.text(&column.name, text),
        }
    }
}

/// A router, which supports transactions and names no other servers.
fn hello(of: &mut Writer<'_>) {
    of.bool("ismaster", true);
    of.bool("isWritablePrimary", true);
    of.bool("helloOk", true);
    of.text("msg", "isdbgrid");
    of.small("maxBsonObjectSize", 16 << 20);
    of.small("maxMessageSizeBytes", LONGEST as i32);
    of.small("maxWriteBatchSize", 100_000);
    of.small("logicalSessionTimeoutMinutes", 30);
    of.small("minWireVersion", 0);
    of.small("maxWireVersion", 21);
    of.bool("readOnly", false);
    of.double("ok", 1.0);
}
