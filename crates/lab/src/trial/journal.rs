//! What clients of a database that is about to be killed were told, in a file: a line of fixed length for each note,
//! appended by one system call, which the death of the process that made it cannot take back.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

use rumba_core::acid::{Entry, Journal, Journaled, Note};
use rumba_core::error::EngineError;

const WORDS: usize = 16;
const BYTES: usize = 4 * WORDS;
/// The number of a note's form is in the upper half of its first word, its kind in the lower.
const BEGUN: u32 = 1 << 16;
const UNDONE: u32 = 2 << 16;
const ACKNOWLEDGED: u32 = 3 << 16;
const KIND: u32 = (1 << 16) - 1;

/// A journal in a file, which all clients share: what one appends is whole.
#[derive(Clone)]
pub(super) struct FileJournal(Arc<File>);

impl FileJournal {
    /// A new, empty one.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        // What an attempt before this one has left is not this one's.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        Ok(Self(Arc::new(OpenOptions::new().append(true).create_new(true).open(path)?)))
    }
}

impl Journal for FileJournal {
    fn note(&mut self, note: &Note) -> Result<(), EngineError> {
        let failed = |words: String| EngineError::failed("the journal of what was acknowledged", words);
        match (&*self.0).write(&encoded(note)) {
            Ok(BYTES) => Ok(()),
            Ok(less) => Err(failed(format!("{less} of {BYTES} bytes were written"))),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

fn encoded(note: &Note) -> [u8; BYTES] {
    let nothing: Entry = Default::default();
    let (first, entry) = match note {
        Note::Begun(kind) => (BEGUN | kind, &nothing),
        Note::Undone(kind) => (UNDONE | kind, &nothing),
        Note::Acknowledged(kind, entry) => (ACKNOWLEDGED | kind, entry),
    };
    let mut bytes = [0; BYTES];
    for (place, word) in bytes.chunks_exact_mut(4).zip(std::iter::once(&first).chain(entry)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn decoded(bytes: &[u8; BYTES]) -> Option<Note> {
    let mut words = [0; WORDS];
    for (word, place) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes(place.try_into().ok()?);
    }
    let (first, kind) = (words[0] & !KIND, words[0] & KIND);
    let mut entry: Entry = Default::default();
    entry.copy_from_slice(&words[1..]);
    match first {
        BEGUN => Some(Note::Begun(kind)),
        UNDONE => Some(Note::Undone(kind)),
        ACKNOWLEDGED => Some(Note::Acknowledged(kind, entry)),
        _ => None,
    }
}

/// Reads a journal back. A last line that was cut short was never acknowledged to anybody.
///
/// # Errors
/// The system's words; a line that is none.
pub(super) fn read(path: &Path) -> io::Result<Journaled> {
    let mut file = io::BufReader::new(File::open(path)?);
    let (mut journaled, mut line) = (Journaled::default(), [0; BYTES]);
    loop {
        match file.read_exact(&mut line) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(journaled),
            read => read?,
        }
        let note = decoded(&line).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "a line is no note"))?;
        journaled.take(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_read_back_and_a_line_that_was_cut_short_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let mut journal = FileJournal::create(&path).unwrap();
        let mut entry = Entry::default();
        (1..).zip(&mut entry).for_each(|(number, word)| *word = number * 0x0101_0101);
        for note in [Note::Begun(3), Note::Acknowledged(3, entry), Note::Begun(0xffff), Note::Begun(5), Note::Undone(5)]
        {
            journal.note(&note).unwrap();
        }
        let whole = read(&path).unwrap();
        assert_eq!(whole.acknowledged, [(3, entry)]);
        assert_eq!((whole.in_doubt[&3], whole.in_doubt[&0xffff], whole.in_doubt[&5]), (0, 1, 0));
        OpenOptions::new().append(true).open(&path).unwrap().write_all(&[1; BYTES - 1]).unwrap();
        assert_eq!(read(&path).unwrap(), whole);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(&[1]).unwrap();
        assert!(read(&path).is_err(), "a line that nobody wrote");
        drop(FileJournal::create(&path).unwrap());
        assert_eq!(read(&path).unwrap(), Journaled::default(), "an attempt begins anew");
    }
}
