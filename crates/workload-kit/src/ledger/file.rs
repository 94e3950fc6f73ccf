//! The file of a ledger.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Write as _};

use rumba_engine_api::error::{EngineError, Result};

/// The expected content of a write, in the workload's own encoding.
pub type Entry = [u32; 14];

/// Numbers that an entry has room for.
const NUMBERS: usize = size_of::<Entry>() / size_of::<u64>();
const WORDS: usize = 20;
const BYTES: usize = 4 * WORDS;
/// The words before the entry: the form and the kind, the client, and two times.
const HEAD: usize = 6;
const KIND: u32 = (1 << 16) - 1;

/// Stores numbers in an entry, the lower half of each first.
pub fn entry_of<const N: usize>(numbers: [u64; N]) -> Entry {
    const { assert!(N <= NUMBERS) };
    let mut entry = Entry::default();
    for (halves, number) in entry.chunks_exact_mut(2).zip(numbers) {
        halves.copy_from_slice(&[number as u32, (number >> 32) as u32]);
    }
    entry
}

/// The numbers of an entry; missing ones are 0.
pub fn numbers_of(entry: &Entry) -> [u64; NUMBERS] {
    std::array::from_fn(|at| u64::from(entry[2 * at]) | u64::from(entry[2 * at + 1]) << 32)
}

/// A client's write. Times are nanoseconds since the ledger began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The kind, a number below 65,536 that the workload defines.
    pub kind: u32,
    /// The content that it leaves, as far as it is known.
    pub entry: Entry,
    /// When it began.
    pub began_ns: u64,
    /// When it was acknowledged; `None` if it is in doubt.
    pub ended_ns: Option<u64>,
}

/// The form of a line, in the upper half of its first word; the kind is in the lower half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Begun = 1 << 16,
    Undone = 2 << 16,
    Acknowledged = 3 << 16,
}

fn failed(words: String) -> EngineError {
    EngineError::failed("the ledger of acknowledged writes", words)
}

/// Appends a line.
pub(super) fn append(mut file: &File, client: u32, form: Form, write: &Write) -> Result<()> {
    match file.write(&encoded(client, form, write)) {
        Ok(BYTES) => Ok(()),
        Ok(less) => Err(failed(format!("{less} of {BYTES} bytes were written"))),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn encoded(client: u32, form: Form, write: &Write) -> [u8; BYTES] {
    let mut words = [0; WORDS];
    (words[0], words[1]) = (form as u32 | write.kind & KIND, client);
    let times = entry_of([write.began_ns, write.ended_ns.unwrap_or(0)]);
    words[2..HEAD].copy_from_slice(&times[..HEAD - 2]);
    words[HEAD..].copy_from_slice(&write.entry);
    let mut bytes = [0; BYTES];
    bytes.chunks_exact_mut(4).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_le_bytes()));
    bytes
}

fn decoded(bytes: &[u8; BYTES]) -> Option<(u32, Form, Write)> {
    let mut words = [0; WORDS];
    for (word, place) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes(place.try_into().ok()?);
    }
    let form =
        [Form::Begun, Form::Undone, Form::Acknowledged].into_iter().find(|form| *form as u32 == words[0] & !KIND)?;
    let number = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
    let ended_ns = (form == Form::Acknowledged).then(|| number(4));
    let entry = words[HEAD..].try_into().ok()?;
    Some((words[1], form, Write { kind: words[0] & KIND, entry, began_ns: number(2), ended_ns }))
}

/// The writes of all clients, read after the kill: those that the database must have, and those that it may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Acknowledged writes, in order.
    pub acknowledged: Vec<Write>,
    /// Writes that began and did not end. Some of their clients began another.
    pub in_doubt: Vec<Write>,
}

impl Entries {
    /// Reads a ledger's file. A truncated last line was never acknowledged.
    ///
    /// # Errors
    /// The system's error; an invalid line.
    pub fn read(file: &File) -> Result<Self> {
        let mut file = BufReader::new(file);
        let (mut entries, mut open, mut line) = (Self::default(), BTreeMap::new(), [0; BYTES]);
        loop {
            match file.read_exact(&mut line) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                read => read.map_err(|error| failed(error.to_string()))?,
            }
            let (client, form, write) = decoded(&line).ok_or_else(|| failed("a line is damaged".to_owned()))?;
            let before = match form {
                Form::Begun => open.insert(client, write),
                Form::Undone | Form::Acknowledged => open.remove(&client).and(None),
            };
            entries.in_doubt.extend(before);
            entries.acknowledged.extend((form == Form::Acknowledged).then_some(write));
        }
        entries.in_doubt.extend(open.into_values());
        Ok(entries)
    }

    /// How many of a kind are in doubt.
    pub fn in_doubt_of(&self, kind: u32) -> u64 {
        self.in_doubt.iter().filter(|write| write.kind == kind).count() as u64
    }

    /// Acknowledged writes, and then those in doubt.
    pub fn all(&self) -> impl Iterator<Item = &Write> {
        self.acknowledged.iter().chain(&self.in_doubt)
    }
}
