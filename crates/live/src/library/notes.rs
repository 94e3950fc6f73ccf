//! Users' notes on results: tags and a text. They are stored in a separate file next to the results; measured data is
//! never changed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rumba_lab::store;
use rumba_results::distinct;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

const FILE: &str = "library.json";
const FORMAT: u32 = 1;
/// The longest tag, in characters.
const LONGEST_TAG: usize = 40;
const LONGEST_TEXT: usize = 10_000;
/// The longest wait for another change.
const PATIENCE: Duration = Duration::from_secs(3);

static TURN: Mutex<()> = Mutex::new(());

/// The note on one result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Tags, in lower case.
    #[serde(default)]
    pub tags: Vec<String>,
    /// A free text.
    #[serde(default)]
    pub note: String,
}

impl Note {
    /// Tags are separated by spaces or commas, without duplicates.
    pub fn new(tags: &str, text: &str) -> Self {
        let tags = tags.split([',', ' ', '\n', '\t']).map(|tag| tag.trim_start_matches('#').to_lowercase());
        let tags = tags.map(|tag| tag.chars().take(LONGEST_TAG).collect::<String>()).filter(|tag| !tag.is_empty());
        Self { tags: distinct(tags), note: text.trim().chars().take(LONGEST_TEXT).collect() }
    }

    fn is_empty(&self) -> bool {
        self.tags.is_empty() && self.note.is_empty()
    }
}

#[derive(Default, Serialize, Deserialize)]
struct File {
    format: u32,
    results: BTreeMap<String, Note>,
}

/// The file of a directory of results.
pub struct Notes {
    base: PathBuf,
}

impl Notes {
    /// The notes next to these results.
    pub fn new(base: &Path) -> Self {
        Self { base: base.to_owned() }
    }

    /// All notes, by the names of the results' directories.
    ///
    /// # Errors
    /// The file exists and cannot be read, so it must not be overwritten.
    pub fn read(&self) -> io::Result<BTreeMap<String, Note>> {
        let bytes = match store::read_plain(&self.base, FILE.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            bytes => bytes.map_err(|error| self.named(error))?,
        };
        let file: File = serde_json::from_slice(&bytes).map_err(|error| self.named(error.into()))?;
        if file.format != FORMAT {
            let what = format!("it was written in format {}; this version reads format {FORMAT}", file.format);
            return Err(self.named(io::Error::other(what)));
        }
        Ok(file.results)
    }

    /// Replaces a note.
    ///
    /// # Errors
    /// The notes cannot be read or written.
    pub fn set(&self, name: &str, note: Note) -> io::Result<()> {
        // Threads of this process take turns here, because a poll for the file lock gives no fair turn.
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let _alone = self.alone().map_err(|error| self.named(error))?;
        let mut results = self.read()?;
        match note.is_empty() {
            true => results.remove(name),
            false => results.insert(name.to_owned(), note),
        };
        let text = serde_json::to_string_pretty(&File { format: FORMAT, results })?;
        store::replace_plain(&self.base.join(FILE), &text).map_err(|error| self.named(error))
    }

    /// Locks the notes until the guard is dropped, against other processes that serve the same results. Otherwise a change
    /// between this one's read and write would be lost.
    fn alone(&self) -> io::Result<std::fs::File> {
        let (base, last) = (std::fs::File::open(&self.base)?, Instant::now() + PATIENCE);
        loop {
            match flock(&base, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(base),
                Err(Errno::WOULDBLOCK) if Instant::now() < last => std::thread::sleep(Duration::from_millis(5)),
                Err(Errno::WOULDBLOCK) => {
                    let what = "another process keeps its directory locked; the note was not saved, try again";
                    return Err(io::Error::new(io::ErrorKind::ResourceBusy, what));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.base.join(FILE).display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_notes_lose_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        std::thread::scope(|scope| {
            for who in ["a", "b"] {
                let notes = Notes::new(dir.path());
                scope.spawn(move || {
                    for number in 0..40 {
                        notes.set(&format!("{who}-{number}"), Note::new(who, "seen")).expect("noted");
                    }
                });
            }
        });
        assert_eq!(Notes::new(dir.path()).read().expect("read").len(), 80);
    }
}
