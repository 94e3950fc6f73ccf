//! The entry points of the fuzz targets and of the test without a fuzzer. The input is a sequence of a server's
//! messages.

use rumba_engine_api::sql::Row;
use rumba_protocol_postgresql::PgError;
use rumba_protocol_postgresql::codec::message::{self, Transaction};
use rumba_protocol_postgresql::codec::row::{self, Column, PgRow};
use rumba_protocol_postgresql::codec::types::Layout;
use rumba_protocol_postgresql::codec::{Malformed, frame};
use rumba_protocol_postgresql::startup::{Login, Step};

/// Answers to statements, or to preparing one.
pub fn answers(input: &[u8]) {
    // A malformed message must be refused with an error.
    for as_text in [false, true] {
        let _ = read(input, as_text);
    }
}

/// The messages after the first one until the login is complete.
pub fn startup(input: &[u8]) {
    let _ = enter(input);
}

fn enter(input: &[u8]) -> Result<(), PgError> {
    let mut login = Login::new("user", "sesame");
    for (kind, body) in Messages(input) {
        if login.step(kind, body)? == Step::In {
            break;
        }
    }
    Ok(())
}

fn read(input: &[u8], as_text: bool) -> Result<(), Malformed> {
    let mut columns: Vec<Column> = Vec::new();
    for (kind, body) in Messages(input) {
        match kind {
            b'T' => {
                let mut oids = Vec::new();
                message::columns(body, |column| oids.push(column.oid))?;
                let layout = if as_text { Layout::of_text } else { Layout::of };
                columns = oids.into_iter().map(|oid| layout(oid).into()).collect();
            }
            b't' => drop(message::parameters(body)?),
            b'D' => show(body, &mut columns)?,
            b'C' => drop(message::counted(body)),
            b'E' | b'N' => drop(message::refusal(body)?),
            b'Z' => drop(Transaction::of(body)?),
            _ => {}
        }
    }
    Ok(())
}

/// Reads every column of a row, and one that does not exist.
fn show(body: &[u8], columns: &mut [Column]) -> Result<(), Malformed> {
    let mut body = body.to_vec();
    row::find(&body, columns)?;
    row::decode(&mut body, columns)?;
    let row = PgRow { body: &body, columns };
    let bytes: usize = (0..=columns.len()).map(|column| row.bytes(column).len()).sum();
    assert!(bytes <= body.len(), "columns overlap: {bytes} bytes in a row of {}", body.len());
    for column in 0..=columns.len() {
        std::hint::black_box(row.int(column));
    }
    Ok(())
}

/// Splits the input into messages with both functions.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = self.0;
        let quick = frame::next(&mut rest);
        match frame::framed(self.0) {
            Ok(frame::Framed::Whole { kind, length }) => {
                let body = &self.0[frame::HEADER..frame::HEADER + length];
                assert_eq!(quick, Some((kind, body)), "two readings of one message");
                self.0 = rest;
                quick
            }
            Ok(frame::Framed::Short(needed)) => {
                assert!(needed > self.0.len() && quick.is_none(), "what is there is not short");
                None
            }
            Err(_) => None,
        }
    }
}
