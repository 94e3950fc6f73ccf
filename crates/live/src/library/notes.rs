//! What users note of results: tags and a text. It stands in a file of its own beside the results; what was measured is
//! never touched.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rumba_lab::store;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

const FILE: &str = "library.json";
const FORMAT: u32 = 1;
/// Longer ones are no words to search by, characters.
const LONGEST_TAG: usize = 40;
const LONGEST_TEXT: usize = 10_000;
/// How long another change may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was noted of one of the results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Words to find it by, small letters.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whatever is to be said.
    #[serde(default)]
    pub note: String,
}

impl Note {
    /// Tags are parted by spaces or commas, each once.
    pub fn new(tags: &str, text: &str) -> Self {
        let mut seen: Vec<String> = Vec::new();
        for tag in tags.split([',', ' ', '\n', '\t']).map(|tag| tag.trim_start_matches('#')) {
            let tag: String = tag.to_lowercase().chars().take(LONGEST_TAG).collect();
            if !tag.is_empty() && !seen.contains(&tag) {
                seen.push(tag);
            }
        }
        Self { tags: seen, note: text.trim().chars().take(LONGEST_TEXT).collect() }
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
    /// Beside these results.
    pub fn new(base: &Path) -> Self {
        Self { base: base.to_owned() }
    }

    /// All that was noted, by the names of the results' directories.
    ///
    /// # Errors
    /// When there is a file and it cannot be read: it is not overwritten then.
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

    /// Notes something, in the place of what was noted before.
    ///
    /// # Errors
    /// When what was noted cannot be read, or not be written.
    pub fn set(&self, name: &str, note: Note) -> io::Result<()> {
        let _alone = self.alone().map_err(|error| self.named(error))?;
        let mut results = self.read()?;
        match note.is_empty() {
            true => results.remove(name),
            false => results.insert(name.to_owned(), note),
        };
        let text = serde_json::to_string_pretty(&File { format: FORMAT, results })?;
        store::replace_plain(&self.base.join(FILE), &text).map_err(|error| self.named(error))
    }

    /// Keeps others out, of this process or of another that serves the same results, until it is dropped: what they note
    /// while this one has read and not yet written would be lost.
    fn alone(&self) -> io::Result<std::fs::File> {
        let (base, last) = (std::fs::File::open(&self.base)?, Instant::now() + PATIENCE);
        loop {
            match flock(&base, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(base),
                Err(Errno::WOULDBLOCK) if Instant::now() < last => std::thread::sleep(Duration::from_millis(5)),
                Err(Errno::WOULDBLOCK) => {
                    let what = "another process keeps its directory locked; nothing was noted, try again";
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
    fn two_who_note_at_once_lose_nothing() {
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
