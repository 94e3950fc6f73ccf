//! What a database promises of transactions, put to the test: that each is whole, that they stand apart, and that what
//! was acknowledged stays when the database dies without warning.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::engine::Session;
use crate::error::EngineError;
use crate::worker::{Client, ClientAddress};

/// Makes sessions of one instance; each must be used on the thread that asked for it.
pub type Sessions<'a> = &'a (dyn Fn() -> Result<Session, EngineError> + Sync);

/// How a promise was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// As it is worded, in every case that was tried.
    Kept,
    /// Not in full: the engine allows this anomaly at the isolation that it ran with, and it is named.
    Anomaly,
    /// It was not, and no isolation allows that.
    Broken,
}

/// What transactions are promised in one respect, such as that a read is never of an uncommitted row, and what the
/// engine did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// What it says, with the clause of a specification where there is one.
    pub name: String,
    /// What a table calls it: `i1`.
    pub short: String,
    /// Whether it was kept; an anomaly that the isolation in force allows is no breach.
    pub outcome: Outcome,
    /// What the anomaly is called, or, of a promise that was kept, how: `waited`. One word, for a table.
    pub how: String,
    /// What the clients of the test saw, in a sentence: the rows, and in which order they were written and read.
    pub seen: String,
}

/// What became of acknowledged transactions when the database was killed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    /// Transactions that wrote and were acknowledged between the opening of the database and its end.
    pub acknowledged: u64,
    /// How many of them were not there afterwards.
    pub lost: u64,
    /// The first few that were lost, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// What of the proof of the data does not hold any more, in words. Only with a durability that lets a kill damage the
    /// data; with any other such a check is among the phase's, and fails the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
    /// Seconds that the database took to open again.
    pub open_s: f64,
}

/// What a transaction should have left, in the workload's own terms.
pub type Entry = [u32; 15];

/// One line of a journal. A kind is a number of the workload's own, below 65,536.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A transaction of a kind begins; until it has ended it is in doubt.
    Begun(u32),
    /// One of a kind has ended, and nothing of it is left.
    Undone(u32),
    /// One of a kind has ended, and was acknowledged.
    Acknowledged(u32, Entry),
}

/// Takes down what clients are told, outside of the database and of the process that is about to die.
pub trait Journal: Send {
    /// Takes it down before it returns.
    ///
    /// # Errors
    /// What keeps it from being written; what follows would prove nothing.
    fn note(&mut self, note: &Note) -> Result<(), EngineError>;
}

/// A journal read back after the kill: what the database must still have, and what it may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journaled {
    /// What was acknowledged, by kind, in order.
    pub acknowledged: Vec<(u32, Entry)>,
    /// How many of each kind had been begun, and not ended.
    pub in_doubt: BTreeMap<u32, u64>,
}

impl Journaled {
    /// Takes over a note.
    pub fn take(&mut self, note: Note) {
        match note {
            Note::Begun(kind) => *self.in_doubt.entry(kind).or_default() += 1,
            Note::Undone(kind) => self.ended(kind),
            Note::Acknowledged(kind, entry) => {
                self.ended(kind);
                self.acknowledged.push((kind, entry));
            }
        }
    }

    fn ended(&mut self, kind: u32) {
        if let Some(open) = self.in_doubt.get_mut(&kind) {
            *open = open.saturating_sub(1);
        }
    }
}

/// What was found of a journal's transactions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// How many were looked for.
    pub acknowledged: u64,
    /// How many of them were not there.
    pub lost: u64,
    /// The first few of those, in words.
    pub examples: Vec<String>,
    /// What is proven of the data as it is now: what is half there fails.
    pub checks: Vec<Check>,
}

/// A workload's proof of what its transactions are promised.
pub trait Acid: Send + Sync {
    /// Atomicity and isolation: transactions that are made to meet. Nobody else is at work.
    ///
    /// # Errors
    /// Whatever the engine said; a promise that is not kept is no error.
    fn isolation(&self, sessions: Sessions<'_>) -> Result<Vec<Promise>, EngineError>;

    /// A client of the operation mix that takes down what it is told.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn journaled(
        &self,
        session: Session,
        at: ClientAddress,
        seed: u64,
        journal: Box<dyn Journal>,
    ) -> Result<Box<dyn Client>, EngineError>;

    /// Looks for everything that a journal says was acknowledged, and proves the data.
    /// [`crate::workload::Bound::restore`] has been told what was known of the data before the journal began.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn recovered(&self, sessions: Sessions<'_>, journaled: &Journaled) -> Result<Found, EngineError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_begun_and_not_ended_is_in_doubt() {
        let mut journaled = Journaled::default();
        let notes = [Note::Begun(1), Note::Begun(1), Note::Acknowledged(1, [7; 15]), Note::Begun(2), Note::Undone(2)];
        notes.into_iter().for_each(|note| journaled.take(note));
        assert_eq!(journaled.acknowledged, [(1, [7; 15])]);
        assert_eq!(journaled.in_doubt, BTreeMap::from([(1, 1), (2, 0)]));
    }
}
