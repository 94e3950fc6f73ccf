//! Results of a comparison's gates: the condition `ops_per_s < 0.95` holds, does not hold, or is undecided.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::starts::Scope;

/// The verdict of a gate for one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// The condition holds, beyond the noise and the allowed drift of the host: the gate closes.
    Holds,
    /// The condition does not hold, beyond both. For `worse`, no headline was found to be worse.
    Fails,
    /// The repeats do not decide, or the change is within the allowed drift of the host.
    Undecided,
    /// One side has one repeat.
    #[serde(alias = "seen-once")]
    SingleRun,
    /// The base has figures and the other has none, or a repeat's data failed its verification. The gate closes because
    /// the absence of a regression is not shown.
    NotJudged,
    /// Both sides are the same engine with the same settings: the gate tests nothing, so it closes.
    Void,
}

impl Found {
    /// Whether the comparison fails.
    pub fn closes(self) -> bool {
        matches!(self, Found::Holds | Found::NotJudged | Found::Void)
    }
}

/// The result of a gate for one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gated {
    /// The gate as written.
    pub gate: String,
    /// The engine.
    pub engine: String,
    /// Its number of clients.
    pub clients: u32,
    /// - `holds`: the condition holds, beyond the noise and the allowed drift of the host.
    /// - `fails`: it does not hold.
    /// - `not-judged`: the other run does not show it.
    pub verdict: Found,
    /// The scope of the verdict: other loads too, or this load only. A gate closes on both, because a regression is
    /// possible.
    #[serde(default)]
    pub scope: Scope,
    /// The figures and the test, or the reason why there is no verdict.
    pub reason: String,
    /// The allowed drift of the host alone in the ratio, percent, if the verdict depends on it. Absent otherwise, for
    /// example for sizes and for runs that took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_drift_percent: Option<f64>,
}

impl Gated {
    /// The gate and its result, on a line.
    pub fn line(&self) -> String {
        let Gated { gate, engine, clients, reason, .. } = self;
        let verdict = match self.verdict {
            Found::Holds => format!("IS SO{}", self.scope.words()),
            Found::Fails => format!("is not so{}", self.scope.words()),
            Found::Undecided => "undecided".to_owned(),
            Found::SingleRun => "single run, no failure".to_owned(),
            Found::Void => "void".to_owned(),
            Found::NotJudged => return format!("fail-if {gate}: {engine}, {clients} clients: not judged: {reason}"),
        };
        format!("fail-if {gate}: {engine}, {clients} clients: {verdict} ({reason})")
    }
}
