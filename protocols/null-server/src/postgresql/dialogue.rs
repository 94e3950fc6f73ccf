//! The dialogue with one client, from messages to answers, without I/O.

use std::collections::HashMap;

use super::VERSION;
use super::answers::{Answers, Format, INT8};
use super::message::{First, first, pass_value, put, put_error, put_tag, put_text, startup, take_text, take_u16};
use crate::sql::{self, Statement, find_word, first_word, skip_blank, split};
use crate::taken::{ENOUGH, Taken};

/// Codes in place of a version in the first message: a cancel request, and two kinds of encryption requests.
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waiting for the first message.
    Startup,
    /// Waiting for statements.
    Ready,
    /// After an error: messages up to Sync are skipped.
    Skipping,
    /// Waiting for rows of a COPY.
    Copy {
        /// Whether the statement was sent as text, so that no Sync follows the rows.
        as_text: bool,
    },
}

/// The answer to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The fixed result set.
    Rows,
    /// One changed row, with this tag.
    Changed(&'static str),
    /// Only this tag.
    Done(&'static str),
    Begin,
    /// A transaction ends.
    End(&'static str),
    /// A request for rows.
    Copy,
    Empty,
}

/// The dialogue with one client.
#[derive(Debug)]
pub struct Dialogue {
    id: u32,
    phase: Phase,
    in_transaction: bool,
    /// The prepared statements by name, with the number of their parameters.
    statements: HashMap<Vec<u8>, (Act, u16)>,
    /// The bound statement of the unnamed portal, which is the only one supported.
    bound: Option<(Act, Format)>,
}

impl Dialogue {
    /// A new dialogue without a greeting, because the client speaks first.
    pub fn new(id: u32) -> Self {
        Self { id, phase: Phase::Startup, in_transaction: false, statements: HashMap::new(), bound: None }
    }

    /// Handles complete messages and appends their answers.
    pub fn take(&mut self, input: &[u8], answers: &Answers, out: &mut Vec<u8>) -> Taken {
        let (mut rest, mut taken) = (input, Taken::default());
        while !taken.ended {
            if out.len() >= ENOUGH {
                taken.full = true;
                break;
            }
            let found = if self.phase == Phase::Startup { startup(rest) } else { first(rest) };
            match found {
                First::Part => break,
                First::Nonsense => {
                    put_error(out, "FATAL", "08P01", "invalid length of message");
                    taken.ended = true;
                }
                First::Whole { kind, body, rest: more } => {
                    rest = more;
                    taken.commands |= self.phase != Phase::Startup;
                    taken.ended = match self.phase {
                        Phase::Startup => self.start(body, out),
                        Phase::Ready => self.message(kind, body, answers, out),
                        Phase::Skipping => self.skip(kind, out),
                        Phase::Copy { as_text } => self.rows(kind, as_text, out),
                    };
                }
            }
        }
        taken.bytes = input.len() - rest.len();
        taken
    }

    /// Handles the first message; true at the end of the dialogue.
    fn start(&mut self, body: &[u8], out: &mut Vec<u8>) -> bool {
        let code = body.first_chunk::<4>().map_or(0, |&code| u32::from_be_bytes(code));
        match code {
            // Encryption is not supported.
            TLS | GSS => out.push(b'N'),
            CANCEL => return true,
            _ if code >> 16 == 3 => self.welcome(out),
            _ => {
                put_error(out, "FATAL", "0A000", "unsupported frontend protocol: the null server speaks 3.0");
                return true;
            }
        }
        false
    }

    fn welcome(&mut self, out: &mut Vec<u8>) {
        self.phase = Phase::Ready;
        put(out, b'R', |out| out.extend_from_slice(&[0; 4]));
        for (name, value) in [
            ("server_version", VERSION),
            ("server_encoding", "UTF8"),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO, MDY"),
            ("integer_datetimes", "on"),
            ("standard_conforming_strings", "on"),
        ] {
            put(out, b'S', |out| {
                put_text(out, name);
                put_text(out, value);
            });
        }
        put(out, b'K', |out| {
            out.extend_from_slice(&self.id.to_be_bytes());
            out.extend_from_slice(&[0; 4]);
        });
        self.ready(out);
    }

    #[inline]
    fn ready(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[b'Z', 0, 0, 0, 5, if self.in_transaction { b'T' } else { b'I' }]);
    }

    /// Handles a message; true at the end of the dialogue.
    #[inline]
    fn message(&mut self, kind: u8, body: &[u8], answers: &Answers, out: &mut Vec<u8>) -> bool {
        let taken = match kind {
            b'B' => self.bind(body, out),
            b'E' => self.execute(answers, out),
            b'S' => {
                self.ready(out);
                Some(())
            }
            b'Q' => self.query(body, answers, out),
            b'P' => self.parse(body, out),
            b'D' => self.describe(body, answers, out),
            b'C' => self.close(body, out),
            // Flush needs no action, because everything is sent immediately; the others are remaining rows of a refused
            // COPY.
            b'H' | b'd' | b'c' | b'f' => Some(()),
            b'X' => return true,
            _ => None,
        };
        if taken.is_none() {
            put_error(out, "ERROR", "08P01", &format!("invalid message {:?}", char::from(kind)));
            // No Sync follows a statement as text.
            if kind == b'Q' { self.ready(out) } else { self.phase = Phase::Skipping }
        }
        false
    }

    fn skip(&mut self, kind: u8, out: &mut Vec<u8>) -> bool {
        if kind == b'S' {
            self.phase = Phase::Ready;
            self.ready(out);
        }
        kind == b'X'
    }

    /// Skips the rows of a COPY.
    fn rows(&mut self, kind: u8, as_text: bool, out: &mut Vec<u8>) -> bool {
        match kind {
            b'c' => put_tag(out, "COPY 1"),
            b'f' => put_error(out, "ERROR", "57014", "COPY from stdin failed"),
            b'X' => return true,
            // Rows, and other messages that may come at any time.
            _ => return false,
        }
        self.phase = Phase::Ready;
        if as_text {
            self.ready(out);
        }
        false
    }

    fn parse(&mut self, mut body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (name, text) = (take_text(&mut body)?, take_text(&mut body)?);
        self.statements.insert(name.to_vec(), (act(text), parameters(text)));
        out.extend_from_slice(&[b'1', 0, 0, 0, 4]);
        Some(())
    }

    fn describe(&mut self, mut body: &[u8], answers: &Answers, out: &mut Vec<u8>) -> Option<()> {
        let (&kind, rest) = body.split_first()?;
        body = rest;
        let name = take_text(&mut body)?;
        let (act, format) = if kind == b'S' {
            let &(act, parameters) = self.statements.get(name)?;
            put(out, b't', |out| {
                out.extend_from_slice(&parameters.to_be_bytes());
                (0..parameters).for_each(|_| out.extend_from_slice(&INT8.to_be_bytes()));
            });
            (act, Format::Text)
        } else {
            self.bound?
        };
        match act {
            Act::Rows => out.extend_from_slice(answers.described(format)),
            _ => out.extend_from_slice(&[b'n', 0, 0, 0, 4]),
        }
        Some(())
    }

    #[inline]
    fn bind(&mut self, mut body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let _portal = take_text(&mut body)?;
        let &(act, _) = self.statements.get(take_text(&mut body)?)?;
        for _ in 0..take_u16(&mut body)? {
            take_u16(&mut body)?;
        }
        for _ in 0..take_u16(&mut body)? {
            pass_value(&mut body)?;
        }
        // One format for all columns, or one for each, of which the first is used for all.
        let is_binary = take_u16(&mut body)? > 0 && take_u16(&mut body)? == 1;
        self.bound = Some((act, if is_binary { Format::Binary } else { Format::Text }));
        out.extend_from_slice(&[b'2', 0, 0, 0, 4]);
        Some(())
    }

    #[inline]
    fn execute(&mut self, answers: &Answers, out: &mut Vec<u8>) -> Option<()> {
        let (act, format) = self.bound?;
        self.answer(act, format, answers, out);
        Some(())
    }

    fn close(&mut self, mut body: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let (&kind, rest) = body.split_first()?;
        body = rest;
        let name = take_text(&mut body)?;
        if kind == b'S' {
            self.statements.remove(name);
        }
        out.extend_from_slice(&[b'3', 0, 0, 0, 4]);
        Some(())
    }

    fn query(&mut self, mut body: &[u8], answers: &Answers, out: &mut Vec<u8>) -> Option<()> {
        let text = take_text(&mut body)?;
        let mut parts = split(text).peekable();
        if parts.peek().is_none() {
            self.answer(Act::Empty, Format::Text, answers, out);
        }
        for part in parts {
            let act = act(part);
            if act == Act::Rows {
                out.extend_from_slice(answers.described(Format::Text));
            }
            self.answer(act, Format::Text, answers, out);
            if let Phase::Copy { as_text } = &mut self.phase {
                *as_text = true;
                // Statements after a COPY in one text are ignored.
                return Some(());
            }
        }
        self.ready(out);
        Some(())
    }

    #[inline]
    fn answer(&mut self, act: Act, format: Format, answers: &Answers, out: &mut Vec<u8>) {
        match act {
            Act::Rows => out.extend_from_slice(answers.rows(format)),
            Act::Changed(tag) | Act::Done(tag) => put_tag(out, tag),
            Act::Begin => {
                self.in_transaction = true;
                put_tag(out, "BEGIN");
            }
            Act::End(tag) => {
                self.in_transaction = false;
                put_tag(out, tag);
            }
            Act::Copy => {
                self.phase = Phase::Copy { as_text: false };
                // Accept any format; report no columns.
                put(out, b'G', |out| out.extend_from_slice(&[0; 3]));
            }
            Act::Empty => out.extend_from_slice(&[b'I', 0, 0, 0, 4]),
        }
    }
}

/// The answer to a statement.
fn act(text: &[u8]) -> Act {
    let text = skip_blank(text);
    let (word, rest) = first_word(text);
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    if text.is_empty() {
        return Act::Empty;
    }
    if is("copy") && find_word(rest, b"stdin").is_some() {
        return Act::Copy;
    }
    match sql::statement(text) {
        Statement::Rows | Statement::Requesting => Act::Rows,
        // A statement with RETURNING returns rows.
        Statement::Changed if find_word(rest, b"returning").is_some() => Act::Rows,
        Statement::Changed if is("insert") => Act::Changed("INSERT 0 1"),
        Statement::Changed if is("delete") => Act::Changed("DELETE 1"),
        Statement::Changed => Act::Changed("UPDATE 1"),
        Statement::Begin => Act::Begin,
        Statement::End if is("rollback") => Act::End("ROLLBACK"),
        Statement::End => Act::End("COMMIT"),
        _ if is("end") => Act::End("COMMIT"),
        _ if is("set") => Act::Done("SET"),
        _ => Act::Done("DONE"),
    }
}

/// The number of parameters of a statement: the largest number after a dollar sign.
fn parameters(text: &[u8]) -> u16 {
    let digits = |part: &[u8]| {
        let end = part.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(part.len());
        std::str::from_utf8(&part[..end]).ok()?.parse::<u16>().ok()
    };
    text.split(|&byte| byte == b'$').skip(1).filter_map(digits).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_answered_by_their_kind() {
        for (text, expected) in [
            ("SELECT c FROM t WHERE id = $1", Act::Rows),
            ("select 1", Act::Rows),
            ("insert into t values ($1, $2)", Act::Changed("INSERT 0 1")),
            ("INSERT INTO t VALUES (1) RETURNING id", Act::Rows),
            ("UPDATE t SET a = 1", Act::Changed("UPDATE 1")),
            ("COPY t (a) FROM STDIN (FORMAT binary)", Act::Copy),
            ("begin", Act::Begin),
            ("END", Act::End("COMMIT")),
            ("ROLLBACK", Act::End("ROLLBACK")),
            ("SET lock_timeout = 0", Act::Done("SET")),
            ("CREATE TABLE t (a int)", Act::Done("DONE")),
            (" -- nothing\n", Act::Empty),
        ] {
            assert_eq!(act(text.as_bytes()), expected, "{text}");
        }
        assert_eq!((parameters(b"SELECT $2, $10, $1"), parameters(b"SELECT '$'")), (10, 0));
    }
}
