//! The dialogue with one client, from messages to answers, without I/O.

use rumba_engine_api::bson::{Document, Value};

use super::answers::{Answers, counted, refused};
use super::message::{First, OP_MSG, OP_QUERY, append, first};
use crate::taken::{ENOUGH, Taken};

/// Flag: the message ends with a checksum of four bytes.
const CHECKSUM: u32 = 1;
/// Flag: no answer is wanted.
const UNANSWERED: u32 = 1 << 1;

/// The dialogue with one client, which needs no state.
#[derive(Debug, Default)]
pub struct Dialogue;

impl Dialogue {
    /// Handles complete messages and appends their answers.
    pub fn take(&mut self, input: &[u8], answers: &Answers, out: &mut Vec<u8>) -> Taken {
        let (mut rest, mut taken) = (input, Taken::default());
        while !taken.ended {
            if out.len() >= ENOUGH {
                taken.full = true;
                break;
            }
            match first(rest) {
                First::Part => break,
                First::Nonsense => taken.ended = true,
                First::Whole { number, kind, body, rest: more } => {
                    rest = more;
                    let answered = match kind {
                        OP_MSG => message(body, number, answers, out),
                        OP_QUERY => {
                            append(out, &answers.hello[1], number);
                            Some(false)
                        }
                        _ => None,
                    };
                    taken.commands |= answered == Some(true);
                    taken.ended = answered.is_none();
                }
            }
        }
        taken.bytes = input.len() - rest.len();
        taken
    }
}

/// Answers a message. Returns whether it was a command instead of a greeting; `None` if it is invalid.
#[inline]
fn message(body: &[u8], number: u32, answers: &Answers, out: &mut Vec<u8>) -> Option<bool> {
    let (&flags, mut sections) = body.split_first_chunk::<4>()?;
    let flags = u32::from_le_bytes(flags);
    if flags & CHECKSUM != 0 {
        sections = sections.get(..sections.len().checked_sub(4)?)?;
    }
    let (&0, document) = sections.split_first()? else { return None };
    let (document, more) = Document::first(document).ok()?;
    if flags & UNANSWERED != 0 {
        return Some(true);
    }
    let (command, _) = document.iter().next()?.ok()?;
    let answer = match command {
        b"find" | b"aggregate" => &answers.found,
        b"getMore" | b"listCollections" | b"listIndexes" => &answers.no_more,
        b"update" | b"delete" => &answers.changed,
        b"insert" => {
            append(out, &inserted(document, more)?, number);
            return Some(true);
        }
        b"findAndModify" | b"findandmodify" => &answers.shown,
        b"count" => &answers.counted,
        b"hello" | b"isMaster" | b"ismaster" => &answers.hello[0],
        b"buildInfo" | b"buildinfo" => &answers.version,
        b"serverStatus" => &answers.status,
        b"ping" | b"fsync" | b"create" | b"createIndexes" | b"drop" | b"dropDatabase" | b"dropIndexes"
        | b"commitTransaction" | b"abortTransaction" | b"endSessions" | b"killCursors" => &answers.done,
        b"saslStart" => {
            let words = "the null server knows no passwords; connect without a user";
            append(out, &refused(18, "AuthenticationFailed", words), number);
            return Some(false);
        }
        other => {
            let words = format!("no such command: '{}'", other.escape_ascii());
            append(out, &refused(59, "CommandNotFound", &words), number);
            return Some(true);
        }
    };
    append(out, answer, number);
    Some(!matches!(command, b"hello" | b"isMaster" | b"ismaster"))
}

/// The answer to an insert of the documents in its list, or in a section after it.
fn inserted(command: Document<'_>, more: &[u8]) -> Option<Vec<u8>> {
    let Some((&1, section)) = more.split_first() else {
        let Value::Array(list) = command.get("documents").ok()?? else { return None };
        return Some(counted(list.iter().count()));
    };
    let length = u32::from_le_bytes(*section.first_chunk()?) as usize;
    let section = section.get(4..length)?;
    let name = section.iter().position(|&byte| byte == 0)?;
    let (mut documents, mut count) = (&section[name + 1..], 0);
    while !documents.is_empty() {
        (_, documents) = Document::first(documents).ok()?;
        count += 1;
    }
    Some(counted(count))
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::bson::{DocumentBuf, write};

    use super::*;

    #[test]
    fn inserted_documents_are_counted_in_a_list_or_a_section() {
        let command = DocumentBuf::of(|of| {
            of.text("insert", "t");
            of.array("documents", |of| (0..2).for_each(|id| of.document(|of| of.int("_id", id))));
        });
        assert_eq!(inserted(command.get(), &[]), Some(counted(2)));
        let mut section = b"\x01\0\0\0\0documents\0".to_vec();
        (0..3).for_each(|id| write(&mut section, |of| of.int("_id", id)));
        let length = section.len() as u32 - 1;
        section[1..5].copy_from_slice(&length.to_le_bytes());
        assert_eq!(inserted(command.get(), &section), Some(counted(3)));
        let last = section.len() - 1;
        assert_eq!(inserted(command.get(), &section[..last]), None, "it is cut off");
        assert_eq!(inserted(Document::EMPTY, &[]), None);
    }
}
