//! A file of the commits that were acknowledged to clients before the database is killed. Each note is a line of fixed
//! length. It is appended by one system call, so it survives the death of its process.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rumba_engine_api::acid::{Entry, Journal, Journaled, Note};
use rumba_engine_api::error::EngineError;

const WORDS: usize = 16;
const BYTES: usize = 4 * WORDS;
/// The first word has the form of a note in its upper half and the kind in its lower half; the second word is the
/// client's number.
const BEGUN: u32 = 1 << 16;
const UNDONE: u32 = 2 << 16;
const ACKNOWLEDGED: u32 = 3 << 16;
const KIND: u32 = (1 << 16) - 1;

/// A file to which all clients append; each append is atomic.
pub(super) struct FileJournal {
    file: Arc<File>,
    /// The number of clients with a journal.
    clients: AtomicU32,
}

impl FileJournal {
    /// Makes a new, empty journal.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        // Remove the journal of an earlier attempt.
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = Arc::new(OpenOptions::new().append(true).create_new(true).open(path)?);
        Ok(Self { file, clients: AtomicU32::new(0) })
    }

    /// The journal of a new client.
    pub(super) fn of_client(&self) -> Box<dyn Journal> {
        Box::new(ClientJournal { file: self.file.clone(), client: self.clients.fetch_add(1, Relaxed) })
    }
}

/// One client's lines in the file.
struct ClientJournal {
    file: Arc<File>,
    client: u32,
}

impl Journal for ClientJournal {
    fn note(&mut self, note: &Note) -> Result<(), EngineError> {
        let failed = |words: String| EngineError::failed("the journal of what was acknowledged", words);
        match (&*self.file).write(&encoded(self.client, note)) {
            Ok(BYTES) => Ok(()),
            Ok(less) => Err(failed(format!("{less} of {BYTES} bytes were written"))),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

fn encoded(client: u32, note: &Note) -> [u8; BYTES] {
    let nothing: Entry = Default::default();
    let (first, entry) = match note {
        Note::Begun(kind, entry) => (BEGUN | kind, entry),
        Note::Undone => (UNDONE, &nothing),
        Note::Acknowledged(kind, entry) => (ACKNOWLEDGED | kind, entry),
    };
    let mut bytes = [0; BYTES];
    for (place, word) in bytes.chunks_exact_mut(4).zip([first, client].iter().chain(entry)) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The client of a line, and its note.
fn decoded(bytes: &[u8; BYTES]) -> Option<(u32, Note)> {
    let mut words = [0; WORDS];
    for (word, place) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes(place.try_into().ok()?);
    }
    let (first, kind, client) = (words[0] & !KIND, words[0] & KIND, words[1]);
    let mut entry: Entry = Default::default();
    entry.copy_from_slice(&words[2..]);
    let note = match first {
        BEGUN => Note::Begun(kind, entry),
        UNDONE => Note::Undone,
        ACKNOWLEDGED => Note::Acknowledged(kind, entry),
        _ => return None,
    };
    Some((client, note))
}

/// Reads a journal. A truncated last line was never acknowledged.
///
/// # Errors
/// The system's error; an invalid line.
pub(super) fn read(path: &Path) -> io::Result<Journaled> {
    let mut file = io::BufReader::new(File::open(path)?);
    let (mut journaled, mut line) = (Journaled::default(), [0; BYTES]);
    loop {
        match file.read_exact(&mut line) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(journaled),
            read => read?,
        }
        let line = decoded(&line).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "a line is no note"))?;
        journaled.take(line.0, line.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_notes_are_read_back_except_a_truncated_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let journal = FileJournal::create(&path).unwrap();
        let (mut one, mut other) = (journal.of_client(), journal.of_client());
        let mut entry = Entry::default();
        (1..).zip(&mut entry).for_each(|(number, word)| *word = number * 0x0101_0101);
        let nothing = Entry::default();
        for note in [Note::Begun(3, nothing), Note::Acknowledged(3, entry), Note::Begun(0xffff, entry)] {
            one.note(&note).unwrap();
        }
        for note in [Note::Begun(5, entry), Note::Undone, Note::Begun(6, nothing)] {
            other.note(&note).unwrap();
        }
        let whole = read(&path).unwrap();
        assert_eq!(whole.acknowledged, [(3, entry)]);
        assert_eq!(whole.in_doubt().collect::<Vec<_>>(), [&(0xffff, entry), &(6, nothing)]);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(&[1; BYTES - 1]).unwrap();
        assert_eq!(read(&path).unwrap(), whole);
        OpenOptions::new().append(true).open(&path).unwrap().write_all(&[1]).unwrap();
        assert!(read(&path).is_err(), "a line that nobody wrote");
        drop(FileJournal::create(&path).unwrap());
        assert_eq!(read(&path).unwrap(), Journaled::default(), "an attempt begins anew");
    }
}
