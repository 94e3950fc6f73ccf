//! The entry points of the fuzz targets and of the test without a fuzzer. The input is a server's bytes: the first byte
//! says how to parse them, the rest are frames.

use rumba_engine_api::sql::Row;
use rumba_protocol_mysql::WireError;
use rumba_protocol_mysql::codec::answer::{self, Capabilities, Head, MORE_RESULTS, Next};
use rumba_protocol_mysql::codec::column;
use rumba_protocol_mysql::codec::row::{self, BinaryRow, Column, TextRow};
use rumba_protocol_mysql::codec::{Malformed, frame};
use rumba_protocol_mysql::handshake::{Agreed, Caller, Login, Step, greeting};

/// The flags in the first byte of an input.
const DEPRECATE_EOF: u8 = 1;
const CACHE_METADATA: u8 = 2;
const BINARY: u8 = 4;
const PREPARED: u8 = 8;
const TLS: u8 = 16;
const LOCAL: u8 = 32;

/// Answers to statements, or to preparing one.
pub fn answers(input: &[u8]) {
    let Some((&how, frames)) = input.split_first() else { return };
    let wording = Capabilities { deprecate_eof: how & DEPRECATE_EOF != 0, cache_metadata: how & CACHE_METADATA != 0 };
    let mut packets = Packets(frames.to_vec()).into_iter();
    // A malformed packet must be refused with an error.
    let _ = if how & PREPARED != 0 {
        packets.next().map_or(Ok(()), |packet| prepared(&packet, &mut packets))
    } else {
        answer_by_answer(&mut packets, wording, how & BINARY != 0)
    };
}

/// A greeting, and the packets until the login is complete.
pub fn handshake(input: &[u8]) {
    let Some((&how, frames)) = input.split_first() else { return };
    let _ = enter(Packets(frames.to_vec()), how & TLS != 0, how & LOCAL != 0);
}

fn enter(packets: Packets, tls: bool, local: bool) -> Result<(), WireError> {
    let mut packets = packets.into_iter();
    let Some(first) = packets.next() else { return Ok(()) };
    let greeting = greeting(&first)?;
    let agreed = Agreed::with(&greeting, tls, true);
    let caller = Caller { user: "user", password: "sesame", database: Some("test"), collation: 8, tls, local };
    let (mut login, _) = Login::start(caller, &greeting, agreed)?;
    for packet in packets {
        if let Step::In { .. } = login.step(&packet)? {
            break;
        }
    }
    Ok(())
}

fn prepared(first: &[u8], packets: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), Malformed> {
    column::prepared(first)?;
    for packet in packets {
        // Parse with the slow and the fast function.
        column::column(&packet)?;
        column::layout(&packet)?;
    }
    Ok(())
}

fn answer_by_answer(
    packets: &mut dyn Iterator<Item = Vec<u8>>,
    wording: Capabilities,
    binary: bool,
) -> Result<(), Malformed> {
    let mut columns: Vec<Column> = Vec::new();
    while let Some(packet) = packets.next() {
        let status = match answer::head(&packet, wording)? {
            Head::Done(done) => {
                for name in [&b"Rows matched: "[..], b"Skipped: "] {
                    answer::counted(done.info, name);
                }
                done.status
            }
            Head::Refused(_) | Head::WantsFile => return Ok(()),
            Head::Rows { columns: count, defined } => {
                if defined {
                    columns.clear();
                    for packet in packets.take(count) {
                        column::column(&packet)?;
                        columns.push(column::layout(&packet)?.into());
                    }
                    if !wording.deprecate_eof {
                        packets.next();
                    }
                }
                if columns.len() != count {
                    return Ok(());
                }
                rows(packets, wording, &mut columns, binary)?
            }
        };
        if status & MORE_RESULTS == 0 {
            break;
        }
    }
    Ok(())
}

/// Reads rows to their end; returns the status flags that end them.
fn rows(
    packets: &mut dyn Iterator<Item = Vec<u8>>,
    wording: Capabilities,
    columns: &mut [Column],
    binary: bool,
) -> Result<u16, Malformed> {
    let mut places = Vec::new();
    for packet in packets {
        match answer::next(&packet, wording)? {
            Next::End { status } => {
                let plain = answer::plain_end(&packet, wording);
                assert!(plain.is_none_or(|plain| plain == status), "two readings of one end");
                return Ok(status);
            }
            Next::Refused(_) => break,
            Next::Row if binary => {
                row::find_binary(&packet, columns)?;
                visit(&BinaryRow { packet: &packet, columns }, columns.len(), packet.len());
            }
            Next::Row => {
                row::find_text(&packet, columns.len(), &mut places)?;
                visit(&TextRow { packet: &packet, places: &places }, columns.len(), packet.len());
            }
        }
    }
    Ok(0)
}

/// Reads every column, and one that does not exist.
fn visit(row: &dyn Row, columns: usize, length: usize) {
    let bytes: usize = (0..=columns).map(|column| row.bytes(column).len()).sum();
    assert!(bytes <= length, "columns overlap: {bytes} bytes in a row of {length}");
    for column in 0..=columns {
        std::hint::black_box(row.int(column));
    }
}

/// Splits the input into frames.
struct Packets(Vec<u8>);

impl IntoIterator for Packets {
    type Item = Vec<u8>;
    type IntoIter = Box<dyn Iterator<Item = Vec<u8>>>;

    fn into_iter(self) -> Self::IntoIter {
        let mut bytes = self.0;
        let mut start = 0;
        Box::new(std::iter::from_fn(move || {
            let here = &mut bytes[start..];
            let mut rest = &*here;
            let quick = frame::next(&mut rest).map(<[u8]>::to_vec);
            let (packet, span) = match frame::framed(here) {
                frame::Framed::Whole { length, .. } => {
                    (here[frame::HEADER..frame::HEADER + length].to_vec(), frame::HEADER + length)
                }
                frame::Framed::Split { span, .. } => {
                    let length = frame::join(&mut here[..span]);
                    (here[frame::HEADER..frame::HEADER + length].to_vec(), span)
                }
                frame::Framed::Short(needed) => {
                    assert!(needed > here.len() && quick.is_none(), "what is there is not short");
                    return None;
                }
            };
            assert!(quick.is_none_or(|quick| quick == packet), "two readings of one frame");
            start += span;
            Some(packet)
        }))
    }
}
