//! What records say of an engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::Overruled;
use crate::parity::Reads;
use crate::sql::Dialect;

/// The family of sessions that an engine hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Ordered keys and values with transactions.
    KeyValue,
    /// Prepared SQL statements of one dialect.
    Sql(Dialect),
    /// Documents in collections, found by their fields.
    Document,
}

/// As an error says it: `SQL of SQLite`.
impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Family::KeyValue => f.write_str("keys and values"),
            Family::Sql(dialect) => write!(f, "SQL of {dialect}"),
            Family::Document => f.write_str("documents"),
        }
    }
}

/// How an engine is had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// It is part of this program.
    BuiltIn,
    /// A shared library, loaded at run time: `library` may name it.
    Library,
    /// A server with processes of its own: `server` may name it.
    Server,
}

/// What a reader of an engine's figures needs to know of it beside its name and
/// settings; each is told in `EngineInfo`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    /// What its sessions speak: a workload without an adapter for it is refused.
    pub family: Family,
    /// Whether it is in this program, in a library or in a server: `library` and `server` are for those.
    pub form: Form,
    /// Whether written data can be read back.
    pub keeps_data: bool,
    /// Whether it has a cache of its own.
    pub has_cache: bool,
    /// Whether its clients ask for the durability with each write, so that an existing server keeps it too.
    #[serde(default)]
    pub clients_ask_durability: bool,
    /// Whether `buffered` is a durability of its own. Absent in older results, whose `no-sync` may be either.
    #[serde(default)]
    pub has_buffered_level: bool,
    /// The common settings that its own overrule.
    #[serde(default, skip_serializing_if = "Overruled::is_none")]
    pub overruled: Overruled,
    /// How it reads its files; absent where that is not known, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
    /// What its data is compressed with, `none` if it is not; the engine's default where the experiment names none. Absent
    /// where that is not known, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<String>,
}

impl EngineFacts {
    /// Of an engine that keeps its data and has a cache, and of which nothing else is known.
    pub fn new(family: Family, form: Form) -> Self {
        Self {
            family,
            form,
            keeps_data: true,
            has_cache: true,
            clients_ask_durability: false,
            has_buffered_level: true,
            overruled: Overruled::default(),
            reads: None,
            compression: None,
        }
    }
}
