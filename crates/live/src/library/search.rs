//! Searches results: a result must have all words of the query.

use super::Entry;

/// The words of a search, in lower case.
pub fn words(search: &str) -> Vec<String> {
    search.split_whitespace().map(str::to_lowercase).collect()
}

/// Whether a result has all of these words in its names, its workload, engines, ending, tags or note. A word that
/// begins with `#` must match a whole tag.
pub fn has(entry: &Entry, words: &[String]) -> bool {
    words.is_empty() || {
        let text = text(entry);
        words.iter().all(|word| match word.strip_prefix('#') {
            Some(tag) => entry.note.tags.iter().any(|own| own == tag),
            None => text.contains(word.as_str()),
        })
    }
}

fn text(entry: &Entry) -> String {
    let mut parts: Vec<&str> = vec![&entry.name, &entry.kept.experiment, &entry.kept.started, &entry.note.note];
    parts.extend(entry.kept.source.as_deref());
    parts.extend(entry.note.tags.iter().map(String::as_str));
    if let Some(details) = &entry.kept.details {
        parts.push(&details.workload);
        parts.extend(details.figures.iter().map(|figure| figure.engine.as_str()));
    }
    let ending = entry.ending();
    parts.push(&ending);
    parts.join("\n").to_lowercase()
}
