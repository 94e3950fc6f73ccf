//! Facts about an engine that records store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::common::OverriddenSettings;
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

/// The form in error messages: `SQL of SQLite`.
impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Family::KeyValue => f.write_str("keys and values"),
            Family::Sql(dialect) => write!(f, "SQL of {dialect}"),
            Family::Document => f.write_str("documents"),
        }
    }
}

/// How an engine is deployed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// It is part of this program.
    BuiltIn,
    /// A shared library, loaded at run time: `library` may name it.
    Library,
    /// A server with its own processes; `server` may name it.
    Server,
}

/// The facts about an engine that a reader of its figures needs in addition to its name and settings. `EngineInfo`
/// documents each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineFacts {
    /// The family of its sessions; a workload without an adapter for it is refused.
    pub family: Family,
    /// Whether it is part of this program, a library or a server; `library` and `server` apply to the latter two.
    pub form: Form,
    /// Whether written data can be read back.
    pub keeps_data: bool,
    /// Whether it has its own cache.
    pub has_cache: bool,
    /// Whether its clients request the durability with each write, so that an existing server provides it too.
    #[serde(default, rename = "clients_ask_durability")]
    pub clients_request_durability: bool,
    /// Whether `buffered` is a separate durability level. Absent in older results, whose `no-sync` may be either.
    #[serde(default)]
    pub has_buffered_level: bool,
    /// The common settings that its own settings override.
    #[serde(default, skip_serializing_if = "OverriddenSettings::is_none")]
    pub overruled: OverriddenSettings,
    /// How it reads its files; absent if it is not known, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
    /// The compression of its data, or `none`; the engine's default if the experiment names none. Absent if it is not
    /// known, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<String>,
}

impl EngineFacts {
    /// The facts of an engine that keeps its data and has a cache, with everything else unknown.
    pub fn new(family: Family, form: Form) -> Self {
        Self {
            family,
            form,
            keeps_data: true,
            has_cache: true,
            clients_request_durability: false,
            has_buffered_level: true,
            overruled: OverriddenSettings::default(),
            reads: None,
            compression: None,
        }
    }
}
