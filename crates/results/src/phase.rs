//! The phases of a trial, and their names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A phase of a trial, by its name in records: `load`, `loop 1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseKind {
    /// The instance is created and opened.
    #[default]
    Provision,
    /// Writes rows and builds indexes.
    Load,
    /// The engine is brought to a state in which reads are representative.
    Settle,
    /// Verifies the loaded data before the first client uses it.
    VerifyLoad,
    /// The mix runs until the data resembles that of a database in use; then it is settled again.
    Age,
    /// Operations that are not measured.
    Warmup,
    /// Measured operations; numbered from 1.
    Loop(u32),
    /// All loops together, with histograms merged; their sum, not a separate span.
    Loops,
    /// Operations that began or were due in the last loop are served to their end.
    Backlog,
    /// Deferred work is completed.
    Drain,
    /// The data is verified.
    Verify,
    /// Conflicting transactions test atomicity and isolation.
    Isolation,
    /// Clients work until the database is killed.
    Crash,
    /// The database is reopened, and acknowledged transactions are searched for.
    Recovery,
}

/// The names of all phases except the numbered loops.
const NAMES: [(&str, PhaseKind); 13] = [
    ("provision", PhaseKind::Provision),
    ("load", PhaseKind::Load),
    ("settle", PhaseKind::Settle),
    ("verify load", PhaseKind::VerifyLoad),
    ("age", PhaseKind::Age),
    ("warmup", PhaseKind::Warmup),
    ("loops", PhaseKind::Loops),
    ("backlog", PhaseKind::Backlog),
    ("drain", PhaseKind::Drain),
    ("verify", PhaseKind::Verify),
    ("isolation", PhaseKind::Isolation),
    ("crash", PhaseKind::Crash),
    ("recovery", PhaseKind::Recovery),
];

impl std::fmt::Display for PhaseKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PhaseKind::Loop(number) => write!(f, "loop {number}"),
            _ => f.write_str(NAMES.iter().find(|(_, kind)| kind == self).map_or("", |(name, _)| name)),
        }
    }
}

impl std::str::FromStr for PhaseKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = NAMES.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind);
        let numbered = || Some(PhaseKind::Loop(text.strip_prefix("loop ")?.parse().ok()?));
        named.or_else(numbered).ok_or_else(|| format!("`{text}` is not a phase"))
    }
}

impl PhaseKind {
    /// Whether its figures rest on time that passes while operations run, so that an interruption of the measurement
    /// spoils them. Ageing is excluded because its figures are in no table. It ends by bytes written and the trend, not
    /// by the clock; if an interruption shortens it, the warning `not-aged` reports that.
    pub fn is_timed(self) -> bool {
        matches!(self, PhaseKind::Load | PhaseKind::Warmup | PhaseKind::Loop(_) | PhaseKind::Backlog)
    }
}

impl Serialize for PhaseKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PhaseKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for PhaseKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PhaseKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A phase of a trial: provision, load, settle, verify load, age, warmup, loop N, loops (all of them together), backlog, drain, verify, isolation, crash or recovery.",
            "pattern": "^(provision|load|settle|verify load|age|warmup|loop [0-9]+|loops|backlog|drain|verify|isolation|crash|recovery)$"
        })
    }
}
