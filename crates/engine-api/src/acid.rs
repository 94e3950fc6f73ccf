//! Tests of a database's transaction guarantees: atomicity, isolation, and durability of acknowledged transactions
//! after a kill.

use std::fs::File;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Check, keep_example};
use crate::engine::Session;
use crate::error::Result;
use crate::worker::{Client, ClientAddress};

/// Opens sessions of one instance; use each session only on the thread that opened it.
pub type Sessions<'a> = &'a (dyn Fn() -> Result<Session> + Sync);

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

/// The result of looking for a ledger's transactions.
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

impl Found {
    /// Counts one more missing transaction, with its description.
    pub fn lose(&mut self, words: impl FnOnce() -> String) {
        self.lost += 1;
        keep_example(&mut self.examples, words);
    }
}

/// A workload's test of its transaction guarantees.
pub trait Acid: Send + Sync {
    /// Tests atomicity and isolation with transactions that conflict on purpose. No other client may be at work. The
    /// default tests nothing.
    ///
    /// # Errors
    /// Any error from the engine; a violated guarantee is not an error.
    fn isolation(&self, _sessions: Sessions<'_>) -> Result<Vec<Promise>> {
        Ok(Vec::new())
    }

    /// A client of the operation mix that appends its commits to `ledger`, a file outside the data volume. Each commit
    /// is in the file before the client continues, and survives the death of the client's process.
    fn recorded(&self, session: Session, at: ClientAddress, seed: u64, ledger: &Arc<File>) -> Result<Box<dyn Client>>;

    /// Looks for every acknowledged transaction of the ledger and checks the data. Call
    /// [`crate::workload::Bound::restore`] first, with the state from before the ledger began.
    fn recovered(&self, sessions: Sessions<'_>, ledger: &File) -> Result<Found>;
}
