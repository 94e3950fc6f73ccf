//! The library: a directory of results, what is to be said of each in a list, and what users have noted of them.
//!
//! Of a year of results the list is there at once: what it says of one costs a look at two files' times, because it was
//! read before and is kept in a file beside the results. What was not read before is named, and read when there is time.

mod cache;
mod entry;
mod notes;
mod search;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rumba_lab::store;

pub use entry::{Details, Entry, EntryFigure};
pub use notes::Note;

use cache::{Cache, CachedResult};
use notes::Notes;

/// A directory of results.
pub struct Library {
    base: PathBuf,
    notes: Notes,
    cache: Mutex<Cache>,
}

impl Library {
    /// Of the results below this directory.
    pub fn new(base: &Path) -> Self {
        Self { base: base.to_owned(), notes: Notes::new(base), cache: Mutex::new(Cache::read(base)) }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        // Each change is whole by itself.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of the results of this name, if there are any, or what passes for results.
    pub fn directory(&self, name: &str) -> Option<PathBuf> {
        // One name, and nothing that leads elsewhere.
        let is_plain = !name.starts_with('.') && !name.contains(['/', '\0']) && !name.is_empty();
        let directory = self.base.join(name);
        (is_plain && store::has_results(&directory)).then_some(directory)
    }

    /// All results, the newest first.
    ///
    /// # Errors
    /// When the directory cannot be read, or what was noted of its results.
    pub fn list(&self) -> io::Result<Vec<Entry>> {
        let mut notes = self.notes.read()?;
        let mut cache = self.cache();
        cache.look(&self.base)?;
        let mut entries: Vec<Entry> = cache
            .results
            .iter()
            .map(|(name, kept)| {
                let note = notes.remove(name).unwrap_or_default();
                let may_run = kept.details.as_ref().is_none_or(|details| !details.is_settled());
                let is_running = may_run && store::is_being_written(&self.base.join(name));
                Entry::new(name, kept, note, is_running)
            })
            .collect();
        entries.sort_by(|one, other| (&other.started, &other.name).cmp(&(&one.started, &one.name)));
        Ok(entries)
    }

    /// Those that hold all words of a search; `#WORD` is a tag.
    pub fn matching<'a>(entries: &'a [Entry], search: &str) -> Vec<&'a Entry> {
        let words = search::words(search);
        entries.iter().filter(|entry| search::has(entry, &words)).collect()
    }

    /// Reads the details of one of the results that lack them, and says whether there are more; with the last, all that
    /// was read is kept beside the results.
    pub fn read_next(&self) -> bool {
        let next = {
            let mut cache = self.cache();
            cache.unread().or_else(|| {
                // Whoever lists finds what is new; here it is what nobody has listed.
                let _ = cache.look(&self.base);
                cache.unread()
            })
        };
        let Some(name) = next else {
            // A directory that cannot be written costs the next start its time.
            let _ = self.cache().write(&self.base);
            return false;
        };
        let details = Details::read(&self.base.join(&name));
        self.cache().put(&self.base, &name, details);
        true
    }

    /// Notes something of these results: tags, parted by spaces or commas, and a text.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_note(&self, name: &str, tags: &str, text: &str) -> io::Result<()> {
        self.notes.set(name, Note::new(tags, text))
    }
}

/// What is kept of results, by the names of their directories.
type Results = BTreeMap<String, CachedResult>;

#[cfg(test)]
mod tests;
