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
pub type Entry = [u32; 14];

/// One line of a client's journal; a client has one transaction at a time. A kind is a number of the workload's own, below
/// 65,536.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A transaction of a kind begins, and will leave this, as far as it is known beforehand. Until it has ended it is in
    /// doubt, and for ever where the client begins another.
    Begun(u32, Entry),
    /// It has ended, and nothing of it is left.
    Undone,
    /// It has ended, and was acknowledged.
    Acknowledged(u32, Entry),
}

/// Takes down what a client is told, outside of the database and of the process that is about to die.
pub trait Journal: Send {
    /// Takes it down before it returns.
    ///
    /// # Errors
    /// What keeps it from being written; what follows would prove nothing.
    fn note(&mut self, note: &Note) -> Result<(), EngineError>;
}

/// The journals of all clients read back after the kill: what the database must still have, and what it may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journaled {
    /// What was acknowledged, by kind, in order.
    pub acknowledged: Vec<(u32, Entry)>,
    /// Of clients, what each had begun last and not ended.
    open: BTreeMap<u32, (u32, Entry)>,
    /// What was never ended by whoever went on.
    given_up: Vec<(u32, Entry)>,
}

impl Journaled {
    /// Takes over a client's note.
    pub fn take(&mut self, client: u32, note: Note) {
        match note {
            Note::Begun(kind, entry) => self.given_up.extend(self.open.insert(client, (kind, entry))),
            Note::Undone => drop(self.open.remove(&client)),
            Note::Acknowledged(kind, entry) => {
                self.open.remove(&client);
                self.acknowledged.push((kind, entry));
            }
        }
    }

    /// What had been begun, and not ended, by kind.
    pub fn in_doubt(&self) -> impl Iterator<Item = &(u32, Entry)> {
        self.given_up.iter().chain(self.open.values())
    }

    /// How many of a kind are in doubt.
    pub fn in_doubt_of(&self, kind: u32) -> u64 {
        self.in_doubt().filter(|(of, _)| *of == kind).count() as u64
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

    const FIRST: Entry = [1; 14];
    const SECOND: Entry = [2; 14];

    #[test]
    fn what_has_begun_and_not_ended_is_in_doubt() {
        let mut journaled = Journaled::default();
        let notes = [
            (0, Note::Begun(1, FIRST)),
            (7, Note::Begun(1, SECOND)),
            (0, Note::Acknowledged(1, FIRST)),
            (0, Note::Begun(2, FIRST)),
            (0, Note::Undone),
        ];
        notes.into_iter().for_each(|(client, note)| journaled.take(client, note));
        assert_eq!(journaled.acknowledged, [(1, FIRST)]);
        assert_eq!(journaled.in_doubt().collect::<Vec<_>>(), [&(1, SECOND)]);
        assert_eq!((journaled.in_doubt_of(1), journaled.in_doubt_of(2)), (1, 0));
    }

    #[test]
    fn what_a_client_gave_up_stays_in_doubt() {
        let mut journaled = Journaled::default();
        let notes = [Note::Begun(1, FIRST), Note::Begun(1, SECOND), Note::Acknowledged(1, SECOND)];
        notes.into_iter().for_each(|note| journaled.take(0, note));
        assert_eq!(journaled.acknowledged, [(1, SECOND)]);
        assert_eq!(journaled.in_doubt().collect::<Vec<_>>(), [&(1, FIRST)]);
    }
}
