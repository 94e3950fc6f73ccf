//! The library: a directory of results, a summary of each for the list, and users' notes on them.
//!
//! The list of a year of results opens at once. Each entry costs two `stat` calls, because its summary is cached in a
//! file next to the results. Results without a cached summary are listed by name and read later in the background.

mod cache;
mod entry;
mod notes;
mod search;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rumba_lab::store;

pub use entry::{Details, Entry};

use cache::Cache;
use entry::CachedResult;
use notes::{Note, Notes};

/// A directory of results.
pub struct Library {
    base: PathBuf,
    notes: Notes,
    cache: Mutex<Cache>,
}

impl Library {
    /// The library of the results in this directory.
    pub fn new(base: &Path) -> Self {
        Self { base: base.to_owned(), notes: Notes::new(base), cache: Mutex::new(Cache::read(base)) }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        // Each change is complete on its own, so a poisoned lock is safe to use.
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The directory of the results with this name, if it contains results.
    pub(crate) fn directory(&self, name: &str) -> Option<PathBuf> {
        // A single path component that cannot lead outside.
        let is_plain = !name.starts_with('.') && !name.contains(['/', '\0']) && !name.is_empty();
        let directory = self.base.join(name);
        (is_plain && store::has_results(&directory)).then_some(directory)
    }

    /// All results, the newest first.
    ///
    /// # Errors
    /// The directory or its notes cannot be read.
    pub(crate) fn list(&self) -> io::Result<Vec<Entry>> {
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
                Entry { name: name.clone(), kept: kept.clone(), note, is_running }
            })
            .collect();
        entries.sort_by(|one, other| (&other.kept.started, &other.name).cmp(&(&one.kept.started, &one.name)));
        Ok(entries)
    }

    /// The results with all words of a search; `#WORD` is a tag.
    pub(crate) fn matching<'a>(entries: &'a [Entry], search: &str) -> Vec<&'a Entry> {
        let words = search::words(search);
        entries.iter().filter(|entry| search::has(entry, &words)).collect()
    }

    /// Reads the details of one result that lacks them, and returns whether there are more. After the last one,
    /// everything read is cached next to the results.
    pub(crate) fn read_next(&self) -> bool {
        let next = {
            let mut cache = self.cache();
            cache.unread().or_else(|| {
                // Listing finds new results; this finds those that have not been listed.
                let _ = cache.look(&self.base);
                cache.unread()
            })
        };
        let Some(name) = next else {
            // An unwritable directory only makes the next start slower.
            let _ = self.cache().write(&self.base);
            return false;
        };
        let details = Details::read(&self.base.join(&name));
        self.cache().put(&self.base, &name, details);
        true
    }

    /// Stores a note on these results: tags, separated by spaces or commas, and a text.
    ///
    /// # Errors
    /// The note cannot be written.
    pub(crate) fn set_note(&self, name: &str, tags: &str, text: &str) -> io::Result<()> {
        self.notes.set(name, Note::new(tags, text))
    }
}

/// Cached results by the names of their directories.
type Results = BTreeMap<String, CachedResult>;

#[cfg(test)]
mod tests;
