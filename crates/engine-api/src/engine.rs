//! The interface of a storage engine: rumba checks, opens, settles, drains and closes it, and it hands out sessions.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::common::{Given, OverriddenSettings};
use crate::document::DocumentSession;
use crate::error::{EngineError, Result};
use crate::kv::{KeySpace, KvSession};
use crate::limits::{Backing, Limits};
use crate::memory::{AdvisedCache, MemoryNeed};
use crate::parity::EngineTraits;
use crate::setting::{SettingError, SettingInfo, Settings};
use crate::sql::SqlSession;
use crate::units::show_bytes;

pub use crate::common::Durability;
pub use crate::facts::{EngineFacts, Family, Form};
pub use crate::most_clients::MostClients;

/// One engine as configured in an experiment: the common settings that every engine maps to its own, and the engine's
/// own settings by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineConfig {
    /// The name in tables, unique in the experiment: `rocksdb.zstd`.
    pub name: String,
    /// The engine's registered name: `rocksdb`.
    pub engine: String,
    /// The database's own cache in bytes.
    pub cache: u64,
    /// Whether `cache` was derived from `limits.memory`, so that the memory limit is the common condition of the
    /// engines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache_is_derived: bool,
    /// Durability of a commit.
    pub durability: Durability,
    /// Compression by name, `none` if off; `None` takes the engine's default.
    pub compression: Option<String>,
    /// The shared library to load, for engines loaded at run time.
    pub library: Option<PathBuf>,
    /// The server to run or to connect to, for engines that are servers: a release from a catalogue (`mariadb@10.11`),
    /// a base directory, or a DSN without its password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The host resources that it may use.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// The engine's own settings.
    pub settings: Settings,
}

impl EngineConfig {
    /// The engine with this registered name, with defaults for everything else.
    pub fn new(engine: impl Into<String>) -> Self {
        let engine = engine.into();
        Self {
            name: engine.clone(),
            engine,
            cache: 64 << 20,
            cache_is_derived: false,
            durability: Durability::default(),
            compression: None,
            library: None,
            server: None,
            limits: Limits::default(),
            settings: Settings::default(),
        }
    }

    /// Whether its server runs already and is not managed by rumba.
    pub fn is_existing(&self) -> bool {
        self.server.as_deref().is_some_and(is_dsn)
    }

    /// The effective cache size in bytes: the engine's own setting, or else `cache`. For an existing server it is
    /// unknown unless a setting of the engine's own gives it; `cache` has no effect there.
    pub fn given_cache(&self, facts: Option<&EngineFacts>) -> Given<u64> {
        let own = facts.and_then(|facts| facts.overruled.cache.as_ref());
        let all = (!self.is_existing()).then_some(self.cache);
        Given::of(own, all, &self.settings, |bytes| show_bytes(bytes as f64))
    }

    /// The effective durability: the engine's own settings, or else `durability`. For an existing server it is unknown
    /// unless clients request it ([`Engine::clients_request_durability`]) or a setting of the engine's own gives it.
    pub fn given_durability(&self, facts: Option<&EngineFacts>) -> Given<Durability> {
        let own = facts.and_then(|facts| facts.overruled.durability.as_ref());
        let clients_request = facts.is_some_and(|facts| facts.clients_request_durability);
        let all = (clients_request || !self.is_existing()).then_some(self.durability);
        let is_in_memory = self.limits.storage.as_ref().is_some_and(|storage| storage.backing == Backing::Tmpfs);
        Given::of(own, all, &self.settings, |durability| match durability {
            Durability::Sync if is_in_memory => format!("{} (on a RAM disk)", durability.name()),
            _ => durability.name().to_owned(),
        })
    }
}

/// Whether a server is named by a DSN, so that it runs already.
pub fn is_dsn(server: &str) -> bool {
    server.contains("://")
}

/// Selects one of several builds of an engine; the usual one by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildSelector<'a> {
    /// See [`EngineConfig::library`].
    pub library: Option<&'a Path>,
    /// See [`EngineConfig::server`].
    pub server: Option<&'a str>,
}

impl<'a> From<&'a EngineConfig> for BuildSelector<'a> {
    fn from(config: &'a EngineConfig) -> Self {
        Self { library: config.library.as_deref(), server: config.server.as_deref() }
    }
}

/// Whether and where an engine is installed on this machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Availability {
    /// The version found, if one was.
    pub version: Option<String>,
    /// The origin: a library's path, or `built in`.
    pub source: String,
    /// Further files that it loads: a server's plugins, a library's extensions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjacent: Vec<PathBuf>,
    /// The missing part and the one command that installs it; `None` when the engine can run.
    pub missing: Option<Missing>,
}

impl Availability {
    /// An engine that can run.
    pub fn here(version: Option<String>, source: impl Into<String>) -> Self {
        Self { version, source: source.into(), adjacent: Vec::new(), missing: None }
    }

    /// An engine that is built into this version of rumba.
    pub fn built_in(version: impl Into<String>) -> Self {
        Self::here(Some(version.into()), "built in")
    }

    /// An engine that this machine lacks: the place searched, the missing part and the command that installs it.
    pub fn lacking(source: impl Into<String>, what: impl Into<String>, install: impl Into<String>) -> Self {
        let missing = Missing { what: what.into(), install: install.into() };
        Self { missing: Some(missing), ..Self::here(None, source) }
    }
}

/// A part that an engine needs and this machine lacks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// A library, a server or a plugin, by its name.
    pub what: String,
    /// One shell command.
    pub install: String,
}

/// A library that rumba neither contains nor installs, so that the user must provide it, because no package exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExternalLibrary {
    /// The environment variable with its path: `RUMBA_NAME`.
    pub variable: &'static str,
    /// The page with its origin and build instructions, from the repository's root: `docs/engines/NAME.md`.
    pub page: &'static str,
}

/// The properties of an engine that do not depend on its configuration.
#[derive(Clone, Copy, Debug)]
pub struct EngineInfo {
    /// The name in experiments: `rocksdb`.
    pub name: &'static str,
    /// One line for `rumba engines`.
    pub about: &'static str,
    /// The family of its sessions; a workload without an adapter for it is refused.
    pub family: Family,
    /// Whether it is part of this program, a library or a server; `library` and `server` apply to the latter two.
    pub form: Form,
    /// The library that the user must provide; without it, the tests over every engine skip this one. `None` for an
    /// engine that is part of this program or that one command installs.
    pub brought: Option<ExternalLibrary>,
    /// Whether written data can be read back. An engine that keeps no data measures the cost of the harness.
    pub keeps_data: bool,
    /// Whether it has its own cache that `cache` bounds. An engine without one depends on the page cache, and reports
    /// mention that.
    pub has_cache: bool,
    /// Whether the writes between begin and commit are one transaction, even over several keys. A session of an engine
    /// without transactions may write one key there: it locks this key, and a second key is refused. Workloads that
    /// need more refuse the engine ([`crate::workload::Workload::needs_transactions`]).
    pub has_transactions: bool,
    /// The compressions that it supports, including `none`.
    pub compressions: &'static [&'static str],
    /// Its own settings worth listing. An engine with an open set of names lists the common ones here and decides in
    /// [`Engine::check`].
    pub settings: &'static [SettingInfo],
}

/// The schema of an instance, in the terms of its engine's family.
#[derive(Clone, Copy, Debug)]
pub enum Schema<'a> {
    /// Key spaces, which the engine creates or finds when it opens; sessions identify them by their position.
    KeyValue(&'a [KeySpace]),
    /// The workload creates it through a session, in [`crate::workload::Bound::create_schema`]: SQL tables, document
    /// collections.
    BySession,
}

impl<'a> Schema<'a> {
    /// The key spaces.
    ///
    /// # Errors
    /// The workload defines none, although it claims to support keys and values.
    pub fn key_spaces(self) -> Result<&'a [KeySpace]> {
        match self {
            Schema::KeyValue(spaces) => Ok(spaces),
            Schema::BySession => Err(EngineError::failed(
                "open",
                "the workload has no key spaces, which an engine of keys and values needs",
            )),
        }
    }
}

/// One client's session with an instance.
pub enum Session {
    /// Ordered keys and values.
    Kv(Box<dyn KvSession>),
    /// Prepared SQL statements.
    Sql(Box<dyn SqlSession>),
    /// Documents in collections.
    Document(Box<dyn DocumentSession>),
}

impl Session {
    /// The kind of session, as error messages name it.
    pub fn reported(&self) -> &'static str {
        match self {
            Session::Kv(_) => "a session over keys and values",
            Session::Sql(_) => "an SQL session",
            Session::Document(_) => "a session over documents",
        }
    }

    /// The error of a workload that does not support this session. It should never occur, because engines of
    /// unsupported families are refused when the experiment is read.
    pub fn unserved(&self, workload: &'static str) -> EngineError {
        EngineError::failed(workload, format!("{} is not served", self.reported()))
    }
}

/// An entry of the effective settings: whether the build checks assertions, `true` or `false`. Verdicts on rates, times
/// and CPU ignore such a build.
pub const WITH_ASSERTIONS: &str = "built_with_assertions";

/// Whether a build checks assertions. Its effective settings report that, or, for MariaDB and MySQL, only its version.
pub fn checks_assertions(version: Option<&str>, in_force: &[(String, String)]) -> bool {
    let is_reported = in_force.iter().any(|(name, value)| name == WITH_ASSERTIONS && value == "true");
    is_reported || version.is_some_and(|version| version.ends_with("-debug"))
}

/// An entry of the effective settings: the names of those that the experiment or a profile sets to the engine's own
/// default, separated by `, `. They have the same value in an engine that leaves them out.
pub const AT_DEFAULT: &str = "set_to_the_default";

/// The directory inside an instance's own whose files are stored with the results.
pub const KEPT: &str = "kept";

/// The process in which an instance works, which decides the meters that observe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessLocation {
    /// In this process: threads separate its CPU from that of the clients.
    Embedded,
    /// In a server, whose processes and data are metered separately if they are on this host.
    Server {
        /// The server's process, if it runs on this host and its id is known.
        pid: Option<u32>,
        /// The directory of its data, if it is on this host and readable.
        data_dir: Option<PathBuf>,
    },
}

/// A storage engine: its properties, its settings, and how to open it.
pub trait Engine: Send + Sync {
    /// Its properties, the same for every configuration.
    fn info(&self) -> &EngineInfo;

    /// The measured memory need of the selected build; `None` if it is not known, or if the server runs in another
    /// host's memory.
    fn memory_need(&self, config: &EngineConfig) -> Option<MemoryNeed> {
        let _ = config;
        None
    }

    /// The recommended cache of the engine under a memory limit that it shares with the page cache. `None` means as
    /// much as fits, which is right for engines that bypass the page cache.
    fn advised_cache(&self, config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        let _ = (config, memory_bytes);
        None
    }

    /// The compression of the data under these settings, or `none`; `None` if it is not known.
    fn compression(&self, config: &EngineConfig) -> Option<String> {
        let never = self.info().compressions == ["none"];
        config.compression.clone().or_else(|| never.then(|| "none".to_owned()))
    }

    /// Bytes that it allocates on the device in advance, as servers do for a log of fixed size.
    fn allocates_bytes(&self, config: &EngineConfig) -> u64 {
        let _ = config;
        0
    }

    /// Traits of the engine, with these settings, that affect its figures and are not decided by `[common]`.
    fn nature(&self, _config: &EngineConfig) -> EngineTraits {
        EngineTraits::default()
    }

    /// Adds settings that follow from the sizes of data and memory, unless `config` sets them. Returns what was added
    /// and why.
    fn fit_to_data(&self, _config: &mut EngineConfig, _data_bytes: u64, _memory_bytes: u64) -> Option<String> {
        None
    }

    /// Whether it has transactions ([`EngineInfo::has_transactions`]) with these settings; a server of several storage
    /// engines has them in some.
    fn has_transactions(&self, _config: &EngineConfig) -> bool {
        self.info().has_transactions
    }

    /// Whether it has its own cache ([`EngineInfo::has_cache`]) with these settings; some storage engines of a server
    /// have none.
    fn has_cache(&self, _config: &EngineConfig) -> bool {
        self.info().has_cache
    }

    /// Whether clients request `durability` with each write, so that it is known for an existing server too. Otherwise
    /// a server receives it at startup, and an existing server's durability is unknown.
    fn clients_request_durability(&self) -> bool {
        false
    }

    /// The common settings that the engine's own settings override, so that rumba reports and compares the values in
    /// force.
    fn overruled(&self, _config: &EngineConfig) -> OverriddenSettings {
        OverriddenSettings::default()
    }

    /// The facts that a record stores about it, with these settings.
    fn facts(&self, config: &EngineConfig) -> EngineFacts {
        let EngineInfo { family, form, keeps_data, .. } = *self.info();
        let (has_cache, clients_request_durability) = (self.has_cache(config), self.clients_request_durability());
        let overruled = self.overruled(config);
        let (reads, compression) = (self.nature(config).reads, self.compression(config));
        let has_buffered_level = true;
        EngineFacts {
            family,
            form,
            keeps_data,
            has_cache,
            clients_request_durability,
            has_buffered_level,
            overruled,
            reads,
            compression,
        }
    }

    /// Whether the selected build is available on this machine.
    fn availability(&self, requested: BuildSelector<'_>) -> Availability;

    /// Refuses a configuration that cannot run, before anything is created.
    ///
    /// # Errors
    /// The offending setting, and what would be accepted.
    fn check(&self, config: &EngineConfig) -> Result<(), SettingError>;

    /// The settings that the engine will start with, by the engine's names, as far as they are known in advance.
    /// [`AT_DEFAULT`] lists those that have the engine's own default. A run uses them to find engines that differ only
    /// in name. Called after [`Engine::check`] has accepted the configuration.
    fn planned_settings(&self, config: &EngineConfig) -> Vec<(String, String)> {
        let default = |name: &str| self.info().settings.iter().find(|info| info.name == name).map(|info| info.default);
        let settings = config.settings.0.iter().map(|(name, value)| (name.clone(), value.to_string()));
        let mut settings: Vec<(String, String)> = settings.collect();
        let at_default = settings.iter().filter(|(name, value)| default(name) == Some(value));
        let at_default: Vec<String> = at_default.map(|(name, _)| name.clone()).collect();
        settings.extend((!at_default.is_empty()).then(|| (AT_DEFAULT.to_owned(), at_default.join(", "))));
        settings
    }

    /// The most clients that an instance of this configuration supports, as far as it is known before opening; `None`
    /// for no limit. Called after [`Engine::check`] has accepted the configuration.
    ///
    /// # Errors
    /// As [`Engine::check`].
    fn most_clients(&self, _config: &EngineConfig) -> Result<Option<MostClients>, SettingError> {
        Ok(None)
    }

    /// Creates a new instance in an existing, empty directory. At the end, the files in its directory [`KEPT`] are
    /// copied to the results even if the trial failed. These are a server's configuration and log, never a password.
    fn open(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>>;

    /// Whether clients on other hosts can open sessions with an instance of this configuration, by [`Engine::attach`].
    ///
    /// # Errors
    /// Why they cannot, and what would be accepted.
    fn check_attachable(&self, _config: &EngineConfig) -> Result<(), SettingError> {
        let EngineInfo { name, form, .. } = self.info();
        let problem = match form {
            Form::Server => format!("{name} takes no clients of other hosts yet"),
            _ => format!(
                "{name} is embedded: its clients are threads of the trial's process, so they cannot run on another host"
            ),
        };
        Err(SettingError::new("use", problem, "take [fleet] out, or choose the engine of a server"))
    }

    /// Another host's access to an instance that a trial elsewhere has opened and will close. It only hands out
    /// sessions.
    ///
    /// # Errors
    /// Any error from the engine.
    fn attach(&self, config: &EngineConfig) -> Result<Box<dyn Instance>, EngineError> {
        Err(self.check_attachable(config).err().map_or_else(
            || EngineError::failed("attach", format!("{} hands out no sessions to other hosts", self.info().name)),
            |error| EngineError::failed("attach", format!("{error}; {}", error.remedy)),
        ))
    }

    /// Removes what a killed trial has left on an existing server, if it has left anything. The password is where a run
    /// takes it from.
    ///
    /// # Errors
    /// A server that cannot be reached or is in use by another trial; what could not be removed.
    fn clean_server(&self, server: &str) -> Result<()> {
        Err(EngineError::failed("clean-up", format!("rumba cannot clean {server}; remove its tables yourself")))
    }

    /// Whether the directory of a cleanly closed instance of this configuration can be copied and opened with
    /// [`Engine::reopen`]. Otherwise every trial loads its own data.
    fn reopens(&self, _config: &EngineConfig) -> bool {
        false
    }

    /// Opens a copy of what an instance of the same configuration and the same
    /// schema has left in its directory when it was closed cleanly. It never makes
    /// a new database where it finds none.
    ///
    /// # Errors
    /// Any error from the engine; that there is no database.
    fn reopen(&self, dir: &Path, _config: &EngineConfig, _schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        let message = format!("{} cannot open {} again", self.info().name, dir.display());
        Err(EngineError::failed("reopen", message))
    }
}

/// Refuses to reopen a missing database; `file` exists in every database.
///
/// # Errors
/// The file does not exist.
pub fn require_database(dir: &Path, file: &str) -> Result<()> {
    if dir.join(file).exists() {
        return Ok(());
    }
    Err(EngineError::failed("reopen", format!("no database in {}: {file} is missing", dir.display())))
}

/// A provisioned engine: an open handle and its data directory.
///
/// All sessions are dropped before [`Instance::close`].
pub trait Instance: Send + Sync {
    /// A new session.
    fn session(&self) -> Result<Session>;

    /// The most sessions that clients can have now; `None` for no limit.
    fn most_clients(&self) -> Option<MostClients> {
        None
    }

    /// Brings the instance to the state in which reads after a load are
    /// representative (facts: compaction waited for, memtable flushed,
    /// checkpoint written, statistics gathered). May take minutes, and may do more than [`Instance::drain`].
    fn settle(&self) -> Result<()>;

    /// Completes the engine's deferred work and no more: it writes dirty pages and finishes what the engine's own
    /// triggers demand. [`Instance::debt`] reports the rest below the triggers, and [`DEFERRED_BYTES`] estimates it.
    fn drain(&self) -> Result<()>;

    /// Deferred work so far, as gauges. An empty list means that the engine defers nothing or does not count it
    /// ([`Instance::unpaid`]). Like [`Instance::counters`], a thread that serves no client calls it at the ends of
    /// phases, and about once a second while clients work.
    fn debt(&self) -> Vec<Gauge>;

    /// Deferred work that the drain does not complete, in words that continue "after the drain"; `None` if there is
    /// none. Bytes written including deferred work then lack it.
    fn unpaid(&self) -> Option<String> {
        None
    }

    /// The engine's own counters (cumulative) and gauges, by its own names.
    fn counters(&self) -> Vec<Gauge>;

    /// The version that the running engine reports, if it does; otherwise use that of [`Engine::availability`].
    fn version(&self) -> Option<String> {
        None
    }

    /// The effective settings as the engine reports them, by its own names. [`WITH_ASSERTIONS`] = `true` among them
    /// causes a warning.
    fn effective_settings(&self) -> Vec<(String, String)>;

    /// Whether a file of the data directory is a log, which is reported separately.
    fn is_log(&self, file: &Path) -> bool;

    /// The process in which it works.
    fn place(&self) -> ProcessLocation {
        ProcessLocation::Embedded
    }

    /// How a person connects to its server with the server's own client; `None` if rumba runs no server. Any file named
    /// there is in the instance's directory and is deleted with it.
    fn access(&self) -> Option<Access> {
        None
    }

    /// Ends the sessions that clients of another host have with the server, because that host is lost: their open
    /// transactions hold locks. `names` are the host's address and name.
    ///
    /// # Errors
    /// Any error from the engine.
    fn end_sessions_of(&self, _names: &[String]) -> Result<(), EngineError> {
        Ok(())
    }

    /// Kills all processes of its server without warning, so that nothing is flushed. An embedded engine dies when the
    /// caller kills its process. Called only if [`Engine::reopens`] returns true.
    ///
    /// # Errors
    /// The server is not managed by rumba.
    fn kill(&self) -> Result<()> {
        Ok(())
    }

    /// Closes it cleanly.
    fn close(self: Box<Self>) -> Result<()>;
}

/// The gauge with the engine's estimate of bytes that it will write for work below its own triggers. The estimate is in
/// proportion to how near each trigger is: half of a compaction for two files where four start one. No drain does that
/// work.
pub const DEFERRED_BYTES: &str = "deferred_bytes";

/// A number that an engine reports about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gauge {
    /// The engine's own name for it, with the unit last: `pending_compaction_bytes`.
    pub name: String,
    /// Its value when it was read, in the unit that ends its name.
    pub value: f64,
}

impl Gauge {
    /// A gauge with this name and value.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), value }
    }
}
