//! Tables that a trial could not remove from an existing server.

use rumba_engine_api::error::{EngineError, Result};

/// An error names at most this many objects.
const MOST_NAMES: usize = 10;

/// A table of a trial that cannot be dropped.
pub struct KeptTable {
    /// Its name with its schema, quoted.
    pub table: String,
    /// The server's error.
    pub reason: String,
}

/// The container that a trial took, and the words of its errors.
pub struct Container {
    /// The call that an error names.
    pub call: &'static str,
    /// The server's word for the container: `schema` or `database`.
    pub noun: &'static str,
    /// The remedy, as an imperative clause: it lets the next trial drop the tables.
    pub remedy: &'static str,
}

impl Container {
    /// Checks that a trial left nothing behind.
    ///
    /// # Errors
    /// The tables that could not be dropped, and the objects that rumba did not create, because the next trial needs an
    /// empty container.
    pub fn left_behind(&self, kept: &[KeptTable], others: &[String]) -> Result<()> {
        let Self { call, noun, remedy } = self;
        let mut problems = Vec::new();
        if !kept.is_empty() {
            let kept: Vec<String> = kept.iter().map(|kept| format!("{} ({})", kept.table, kept.reason)).collect();
            problems.push(format!(
                "rumba could not drop its tables {}; {remedy}, and the next trial drops them",
                listed(&kept)
            ));
        }
        if !others.is_empty() {
            problems.push(format!(
                "rumba did not create {} and has left them in place; the next trial needs a {noun} without them",
                listed(others)
            ));
        }
        if problems.is_empty() { Ok(()) } else { Err(EngineError::failed(call, problems.join("; "))) }
    }
}

/// Joins names, and counts those beyond a few.
fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(MOST_NAMES)].join(", ");
    if names.len() > MOST_NAMES { format!("{shown} and {} more", names.len() - MOST_NAMES) } else { shown }
}
