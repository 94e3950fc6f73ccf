//! Tests of a database's transaction guarantees: atomicity, isolation, and durability of acknowledged transactions
//! after a kill.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Check;
use crate::engine::Session;
use crate::error::EngineError;
use crate::worker::{Client, ClientAddress};

/// Opens sessions of one instance; use each session only on the thread that opened it.
pub type Sessions<'a> = &'a (dyn Fn() -> Result<Session, EngineError> + Sync);

/// The result of testing a guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Kept as specified, in every case tested.
    Kept,
    /// The engine allows this anomaly at the isolation level in force, and rumba names it.
    Anomaly,
    /// Violated, which no isolation level allows.
    Broken,
}

/// One transaction guarantee, such as that a read never returns an uncommitted row, and how the engine behaved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Promise {
    /// The guarantee, with the clause of the specification if there is one.
    pub name: String,
    /// The short name in tables: `i1`.
    pub short: String,
    /// Whether it was kept; an anomaly that the isolation in force allows is not a violation.
    pub outcome: Outcome,
    /// One word for a table: the name of the anomaly, or how the engine kept the guarantee, for example `waited`.
    pub how: String,
    /// One sentence with the rows that the test's clients saw and the order in which they were written and read.
    pub seen: String,
}

/// How many acknowledged transactions survived the kill of the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    /// Transactions that wrote and were acknowledged between the opening of the database and its end.
    pub acknowledged: u64,
    /// How many of them were missing afterwards.
    pub lost: u64,
    /// The first few that were lost, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    /// The checks that fail after the kill, in words. Filled only for a durability level that allows damage by a kill.
    /// At any other level such a check is one of the phase's checks and fails the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
    /// Seconds that the database took to open again.
    pub open_s: f64,
}

/// The rows that a transaction should have left, in the workload's own encoding.
pub type Entry = [u32; 14];

/// One entry of a client's journal; a client has one transaction at a time. A kind is a number below 65,536 that the
/// workload defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A transaction of this kind begins, with its expected result as far as it is known. It is in doubt until it ends,
    /// and for ever if the client begins another one first.
    Begun(u32, Entry),
    /// It was rolled back.
    Undone,
    /// It has ended, and was acknowledged.
    Acknowledged(u32, Entry),
}

/// Records a client's commits outside the database and outside the process that is about to be killed.
pub trait Journal: Send {
    /// Writes the note before it returns.
    ///
    /// # Errors
    /// The note could not be written; later notes would prove nothing.
    fn note(&mut self, note: &Note) -> Result<(), EngineError>;
}

/// The journals of all clients, read after the kill: transactions that the database must have, and ones that it may
/// have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journaled {
    /// Acknowledged transactions with their kind, in order.
    pub acknowledged: Vec<(u32, Entry)>,
    /// For each client, the transaction that it began last and that has not ended.
    open: BTreeMap<u32, (u32, Entry)>,
    /// Transactions that never ended although their client began another.
    given_up: Vec<(u32, Entry)>,
}

impl Journaled {
    /// Applies a client's note.
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

    /// Transactions that began and did not end, with their kind.
    pub fn in_doubt(&self) -> impl Iterator<Item = &(u32, Entry)> {
        self.given_up.iter().chain(self.open.values())
    }

    /// How many of a kind are in doubt.
    pub fn in_doubt_of(&self, kind: u32) -> u64 {
        self.in_doubt().filter(|(of, _)| *of == kind).count() as u64
    }
}

/// The result of looking for a journal's transactions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The number of transactions searched for.
    pub acknowledged: u64,
    /// The number of missing ones.
    pub lost: u64,
    /// The first few of those, in words.
    pub examples: Vec<String>,
    /// Checks of the current data; partly applied transactions fail them.
    pub checks: Vec<Check>,
}

/// A workload's test of its transaction guarantees.
pub trait Acid: Send + Sync {
    /// Tests atomicity and isolation with transactions that conflict on purpose. No other client may be at work.
    ///
    /// # Errors
    /// Any error from the engine; a violated guarantee is not an error.
    fn isolation(&self, sessions: Sessions<'_>) -> Result<Vec<Promise>, EngineError>;

    /// A client of the operation mix that records its commits in `journal`.
    ///
    /// # Errors
    /// Any error from the engine.
    fn journaled(
        &self,
        session: Session,
        at: ClientAddress,
        seed: u64,
        journal: Box<dyn Journal>,
    ) -> Result<Box<dyn Client>, EngineError>;

    /// Looks for every acknowledged transaction in the journal and checks the data. Call
    /// [`crate::workload::Bound::restore`] first, with the state from before the journal began.
    ///
    /// # Errors
    /// Any error from the engine.
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
