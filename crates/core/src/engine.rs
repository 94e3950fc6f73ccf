//! What a storage engine is to rumba: something that can be checked, opened,
//! settled, drained and closed, and that hands out sessions.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::common::{Given, Overruled};
use crate::document::DocumentSession;
use crate::error::EngineError;
use crate::kv::{KeySpace, KvSession};
use crate::limits::{Backing, Limits};
use crate::memory::{AdvisedCache, MemoryNeed};
use crate::parity::Nature;
use crate::setting::{SettingError, SettingInfo, Settings};
use crate::sql::SqlSession;
use crate::units::show_bytes;

pub use crate::common::Durability;
pub use crate::facts::{EngineFacts, Family, Form};
pub use crate::most_clients::MostClients;

/// One engine as an experiment asks for it: the settings every engine maps to
/// its own, and its own by their own names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EngineConfig {
    /// The name in tables, unique in the experiment: `rocksdb.zstd`.
    pub name: String,
    /// The engine's registered name: `rocksdb`.
    pub engine: String,
    /// The database's own cache in bytes.
    pub cache: u64,
    /// Whether `cache` was derived from `limits.memory`: then the memory is what engines have in common.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache_is_derived: bool,
    /// What a commit promises.
    pub durability: Durability,
    /// Compression by name, `none` if off; `None` takes the engine's default.
    pub compression: Option<String>,
    /// The shared library to load, for engines loaded at run time.
    pub library: Option<PathBuf>,
    /// The server to run or to go to, for engines that are servers: a release
    /// from a catalogue (`mariadb@10.11`), a base directory, or a DSN without its password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What of the host it may use.
    #[serde(default, skip_serializing_if = "Limits::is_none")]
    pub limits: Limits,
    /// The engine's own settings.
    pub settings: Settings,
}

impl EngineConfig {
    /// The engine of this registered name as an experiment asks for it that says no more of it.
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

    /// Whether its server runs already, and is others' to start and stop.
    pub fn is_existing(&self) -> bool {
        self.server.as_deref().is_some_and(is_dsn)
    }

    /// The cache that its database is given, in bytes: that of a setting of its own, else `cache`. An existing server has
    /// the one that others gave it, whatever `cache` says.
    pub fn given_cache(&self, facts: Option<&EngineFacts>) -> Given<u64> {
        let own = facts.and_then(|facts| facts.overruled.cache.as_ref());
        let all = (!self.is_existing()).then_some(self.cache);
        Given::of(own, all, &self.settings, |bytes| show_bytes(bytes as f64))
    }

    /// What a commit promises: by settings of its own, else as `durability` says. An existing server promises what others
    /// have it promise, unless clients ask for it ([`Engine::clients_ask_durability`]).
    pub fn given_durability(&self, facts: Option<&EngineFacts>) -> Given<Durability> {
        let own = facts.and_then(|facts| facts.overruled.durability.as_ref());
        let clients_ask = facts.is_some_and(|facts| facts.clients_ask_durability);
        let all = (clients_ask || !self.is_existing()).then_some(self.durability);
        let is_in_memory = self.limits.storage.as_ref().is_some_and(|storage| storage.backing == Backing::Tmpfs);
        Given::of(own, all, &self.settings, |durability| match durability {
            Durability::Sync if is_in_memory => format!("{} (on a RAM disk)", durability.name()),
            _ => durability.name().to_owned(),
        })
    }
}

/// Whether a server is named by a DSN: it runs already.
pub fn is_dsn(server: &str) -> bool {
    server.contains("://")
}

/// Which of several builds of an engine is meant; its usual one when nothing is named.
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

/// What an engine is on this machine.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Availability {
    /// The version found, if one was.
    pub version: Option<String>,
    /// Where it comes from: a library's path, or `built in`.
    pub source: String,
    /// What it runs from beside its source: the plugins of a server, the extensions of a library.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<PathBuf>,
    /// What is missing and the one command that installs it; `None` when the engine can run.
    pub missing: Option<Missing>,
}

impl Availability {
    /// An engine that can run.
    pub fn here(version: Option<String>, source: impl Into<String>) -> Self {
        Self { version, source: source.into(), beside: Vec::new(), missing: None }
    }

    /// An engine that this version of rumba holds.
    pub fn built_in(version: impl Into<String>) -> Self {
        Self::here(Some(version.into()), "built in")
    }

    /// An engine that this machine lacks: where it was looked for, what is missing there and the command that installs it.
    pub fn lacking(source: impl Into<String>, what: impl Into<String>, install: impl Into<String>) -> Self {
        let missing = Missing { what: what.into(), install: install.into() };
        Self { missing: Some(missing), ..Self::here(None, source) }
    }
}

/// Something an engine needs and this machine lacks.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// A library, a server or a plugin, by its name.
    pub what: String,
    /// One command, as it is pasted into a shell.
    pub install: String,
}

/// What rumba neither holds nor installs, so that whoever wants it has to bring it: a library of which there is no package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Brought {
    /// The variable of the environment that names where it is: `RUMBA_NAME`.
    pub variable: &'static str,
    /// The page that says where it comes from and how it is made, from the repository's root: `docs/engines/NAME.md`.
    pub page: &'static str,
}

/// What an engine is, whatever it is told.
#[derive(Clone, Copy, Debug)]
pub struct EngineInfo {
    /// The name in experiments: `rocksdb`.
    pub name: &'static str,
    /// One line for `rumba engines`.
    pub about: &'static str,
    /// What its sessions speak: a workload without an adapter for it is refused.
    pub family: Family,
    /// Whether it is in this program, in a library or in a server: `library` and `server` are for those.
    pub form: Form,
    /// Its library, where somebody has to bring it: tests over every engine are ignored for this one where nobody has.
    /// `None` for what is in this program, or what one command installs.
    pub brought: Option<Brought>,
    /// Whether written data can be read back. One that keeps nothing shows what the harness costs.
    pub keeps_data: bool,
    /// Whether it has a cache of its own that `cache` bounds. One that has none
    /// lives off the page cache, and the reader of its figures must know.
    pub has_cache: bool,
    /// Whether what a session writes between begin and commit is one, whichever keys it is of. A session of an engine
    /// that has no transactions may write one key there, which it keeps others from changing, and is refused a second;
    /// workloads that need more refuse the engine ([`crate::workload::Workload::needs_transactions`]).
    pub has_transactions: bool,
    /// The compressions it knows, `none` among them.
    pub compressions: &'static [&'static str],
    /// Its own settings that are worth listing; an engine with an open set of
    /// names lists the common ones here and decides in [`Engine::check`].
    pub settings: &'static [SettingInfo],
}

/// What an instance is to hold, in the terms of its engine's family.
#[derive(Clone, Copy, Debug)]
pub enum Schema<'a> {
    /// Key spaces, which the engine makes or finds as it opens; sessions know them by their position.
    KeyValue(&'a [KeySpace]),
    /// What the workload makes by itself, through a session, in
    /// [`crate::workload::Bound::create_schema`]: the tables of SQL, the collections of documents.
    BySession,
}

impl<'a> Schema<'a> {
    /// The key spaces.
    ///
    /// # Errors
    /// That the workload has given none, though it claims to serve keys and values.
    pub fn key_spaces(self) -> Result<&'a [KeySpace], EngineError> {
        match self {
            Schema::KeyValue(spaces) => Ok(spaces),
            Schema::BySession => Err(EngineError::failed(
                "open",
                "the workload has no key spaces, which an engine of keys and values needs",
            )),
        }
    }
}

/// One client's way to an instance.
pub enum Session {
    /// Ordered keys and values.
    Kv(Box<dyn KvSession>),
    /// Prepared SQL statements.
    Sql(Box<dyn SqlSession>),
    /// Documents in collections.
    Document(Box<dyn DocumentSession>),
}

impl Session {
    /// What it is, as an error says it.
    pub fn told(&self) -> &'static str {
        match self {
            Session::Kv(_) => "a session over keys and values",
            Session::Sql(_) => "an SQL session",
            Session::Document(_) => "a session over documents",
        }
    }

    /// What a workload says of a session that it does not serve. It meets none: engines of a family that it does not list
    /// are refused when the experiment is read.
    pub fn unserved(&self, workload: &'static str) -> EngineError {
        EngineError::failed(workload, format!("{} is not served", self.told()))
    }
}

/// Among the settings in force: whether the build checks assertions, `true` or `false`. Such a build decides nothing about
/// rates, times and CPU.
pub const WITH_ASSERTIONS: &str = "built_with_assertions";

/// Whether a build checks assertions: it says so among its settings in force, or, as MariaDB and MySQL, by its version alone.
pub fn checks_assertions(version: Option<&str>, in_force: &[(String, String)]) -> bool {
    let is_reported = in_force.iter().any(|(name, value)| name == WITH_ASSERTIONS && value == "true");
    is_reported || version.is_some_and(|version| version.ends_with("-debug"))
}

/// Among the settings in force: the names of those that the experiment or a profile sets to what is the engine's own
/// default, separated by `, `. An engine that leaves them out has them too.
pub const AT_DEFAULT: &str = "set_to_the_default";

/// The directory below an instance's own whose files are kept beside the results.
pub const KEPT: &str = "kept";

/// Where an instance does its work, and so which meters see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessLocation {
    /// In this process: its CPU is told from the clients' by thread.
    Embedded,
    /// In a server, whose processes and data are metered apart if they are on this host.
    Server {
        /// The server's process, if it runs on this host and can be told.
        pid: Option<u32>,
        /// The directory of its data, if it is on this host and may be read.
        data_dir: Option<PathBuf>,
    },
}

/// A storage engine: what it is, what it can be told, how it is opened.
pub trait Engine: Send + Sync {
    /// What it is and can be told, the same for every configuration.
    fn info(&self) -> &EngineInfo;

    /// What the build that is asked for was measured to need of memory; `None`
    /// where that is not known, or the memory is another host's.
    fn memory_need(&self, config: &EngineConfig) -> Option<MemoryNeed> {
        let _ = config;
        None
    }

    /// The cache that suits the engine under a limit of memory that it shares with the page cache. `None`: as much as fits,
    /// which is right for engines that read past the page cache.
    fn advised_cache(&self, config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        let _ = (config, memory_bytes);
        None
    }

    /// What the data is compressed with under these settings, `none` if it is not; `None` where that is not known.
    fn compression(&self, config: &EngineConfig) -> Option<String> {
        let never = self.info().compressions == ["none"];
        config.compression.clone().or_else(|| never.then(|| "none".to_owned()))
    }

    /// Bytes of the device that it allocates before anything is in them, as servers do for a log of fixed size.
    fn allocates_bytes(&self, config: &EngineConfig) -> u64 {
        let _ = config;
        0
    }

    /// How it works, with these settings, in what its figures depend on and `[common]` does not decide.
    fn nature(&self, _config: &EngineConfig) -> Nature {
        Nature::default()
    }

    /// Adds settings that follow from the sizes of data and memory, where `config` has none of its own; what and why.
    fn fit_to_data(&self, _config: &mut EngineConfig, _data_bytes: u64, _memory_bytes: u64) -> Option<String> {
        None
    }

    /// Whether it has transactions ([`EngineInfo::has_transactions`]) with these settings: a server of several storage engines
    /// has them in some.
    fn has_transactions(&self, _config: &EngineConfig) -> bool {
        self.info().has_transactions
    }

    /// Whether it has a cache of its own ([`EngineInfo::has_cache`]) with these settings: of a server's storage engines one
    /// may have none.
    fn has_cache(&self, _config: &EngineConfig) -> bool {
        self.info().has_cache
    }

    /// Whether its clients ask for `durability` with each write: an existing server then promises that too. Otherwise a
    /// server is told it as it is started, and of an existing one it is not known.
    fn clients_ask_durability(&self) -> bool {
        false
    }

    /// The common settings in whose place these settings of its own are in force, so that what is told and compared is what
    /// they ask for.
    fn overruled(&self, _config: &EngineConfig) -> Overruled {
        Overruled::default()
    }

    /// What of it goes into a record, with these settings.
    fn facts(&self, config: &EngineConfig) -> EngineFacts {
        let EngineInfo { family, form, keeps_data, .. } = *self.info();
        let (has_cache, clients_ask_durability) = (self.has_cache(config), self.clients_ask_durability());
        let overruled = self.overruled(config);
        let (reads, compression) = (self.nature(config).reads, self.compression(config));
        let has_buffered_level = true;
        EngineFacts {
            family,
            form,
            keeps_data,
            has_cache,
            clients_ask_durability,
            has_buffered_level,
            overruled,
            reads,
            compression,
        }
    }

    /// What is here of the build that is asked for.
    fn availability(&self, asked: BuildSelector<'_>) -> Availability;

    /// Refuses a configuration that cannot run, before anything is created.
    ///
    /// # Errors
    /// The offending setting, and what would be accepted.
    fn check(&self, config: &EngineConfig) -> Result<(), SettingError>;

    /// The settings that it will start with, by the engine's names, as far as they are known before; [`AT_DEFAULT`] among them
    /// names those that have the engine's own default. By these a run finds engines that differ in their names alone. Asked
    /// after [`Engine::check`] has accepted the configuration.
    fn planned_settings(&self, config: &EngineConfig) -> Vec<(String, String)> {
        let default = |name: &str| self.info().settings.iter().find(|info| info.name == name).map(|info| info.default);
        let settings = config.settings.0.iter().map(|(name, value)| (name.clone(), value.to_string()));
        let mut settings: Vec<(String, String)> = settings.collect();
        let at_default = settings.iter().filter(|(name, value)| default(name) == Some(value));
        let at_default: Vec<String> = at_default.map(|(name, _)| name.clone()).collect();
        settings.extend((!at_default.is_empty()).then(|| (AT_DEFAULT.to_owned(), at_default.join(", "))));
        settings
    }

    /// How many clients an instance of this configuration could have, as far as it can be told before it is opened;
    /// `None` where nothing bounds them. Asked after [`Engine::check`] has accepted the configuration.
    ///
    /// # Errors
    /// As [`Engine::check`].
    fn most_clients(&self, _config: &EngineConfig) -> Result<Option<MostClients>, SettingError> {
        Ok(None)
    }

    /// Creates a new instance in an existing, empty directory. What it puts into
    /// a directory [`KEPT`] inside (a server's configuration and log, never a
    /// password) is copied beside the results at the end, whatever that is.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn open(&self, dir: &Path, config: &EngineConfig, schema: Schema<'_>) -> Result<Box<dyn Instance>, EngineError>;

    /// Whether the directory of an instance of this configuration that was closed
    /// cleanly can be copied and opened with [`Engine::reopen`]. Without it every
    /// trial loads its own data.
    fn reopens(&self, _config: &EngineConfig) -> bool {
        false
    }

    /// Opens a copy of what an instance of the same configuration and the same
    /// schema has left in its directory when it was closed cleanly. It never makes
    /// a new database where it finds none.
    ///
    /// # Errors
    /// Whatever the engine said; that there is no database.
    fn reopen(
        &self,
        dir: &Path,
        _config: &EngineConfig,
        _schema: Schema<'_>,
    ) -> Result<Box<dyn Instance>, EngineError> {
        let message = format!("{} cannot open {} again", self.info().name, dir.display());
        Err(EngineError::failed("reopen", message))
    }
}

/// Refuses to open again what is not there: of a database that exists, `file` does.
///
/// # Errors
/// When it does not.
pub fn require_database(dir: &Path, file: &str) -> Result<(), EngineError> {
    if dir.join(file).exists() {
        return Ok(());
    }
    Err(EngineError::failed("reopen", format!("there is no database in {}: {file} is missing", dir.display())))
}

/// A provisioned engine: an open handle and its data directory.
///
/// All sessions are dropped before [`Instance::close`].
pub trait Instance: Send + Sync {
    /// A new session.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn session(&self) -> Result<Session, EngineError>;

    /// How many sessions clients can have now; `None` where nothing bounds them.
    fn most_clients(&self) -> Option<MostClients> {
        None
    }

    /// Brings the instance to the state in which reads after a load are
    /// representative (facts: compaction waited for, memtable flushed,
    /// checkpoint written, statistics gathered). May take minutes, and may do more than [`Instance::drain`].
    ///
    /// # Errors
    /// Whatever the engine said.
    fn settle(&self) -> Result<(), EngineError>;

    /// Does the work that the engine owes, and no more: writes what is dirty, and finishes what the engine's own triggers
    /// demand. [`Instance::debt`] has what is left below them, [`DEFERRED_BYTES`] an estimate of it.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn drain(&self) -> Result<(), EngineError>;

    /// Work put off so far, as gauges; an empty list says that the engine puts nothing off, or that it does not count it
    /// ([`Instance::unpaid`]). Like [`Instance::counters`] it
    /// is asked at the ends of phases, and about once a second while clients work, by a thread that is none of theirs.
    fn debt(&self) -> Vec<Gauge>;

    /// What the engine puts off and does not pay when it is drained, in words that go on from "after the drain"; `None` if
    /// there is nothing of the kind. Bytes written, debt charged, then lack it.
    fn unpaid(&self) -> Option<String> {
        None
    }

    /// The engine's own counters (cumulative) and gauges, by its own names.
    fn counters(&self) -> Vec<Gauge>;

    /// The version that the running engine says it is, where it says so;
    /// otherwise that of [`Engine::availability`] holds.
    fn version(&self) -> Option<String> {
        None
    }

    /// The settings in force as the engine reports them, by its own names.
    /// [`WITH_ASSERTIONS`] = `true` among them causes a warning.
    fn effective_settings(&self) -> Vec<(String, String)>;

    /// Whether a file of the data directory is a log (reported apart from data).
    fn is_log(&self, file: &Path) -> bool;

    /// Where it does its work.
    fn place(&self) -> ProcessLocation {
        ProcessLocation::Embedded
    }

    /// How a person comes to its server, with a client of the server's own; `None` where there is none that rumba runs.
    /// Whatever file is named is in the instance's directory and goes with it.
    fn access(&self) -> Option<Access> {
        None
    }

    /// Kills its server without warning, all of its processes: nothing is flushed or told. What is embedded dies with
    /// its process, which is the caller's to kill. Asked only where [`Engine::reopens`] says that it opens again.
    ///
    /// # Errors
    /// That it is not rumba's to kill.
    fn kill(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Closes it cleanly.
    ///
    /// # Errors
    /// Whatever the engine said.
    fn close(self: Box<Self>) -> Result<(), EngineError>;
}

/// The debt by which an engine estimates the bytes that it will write for work below its own triggers, in proportion to how
/// near each trigger is: half of a compaction for two files where four start one. No drain does that work.
pub const DEFERRED_BYTES: &str = "deferred_bytes";

/// A number that an engine reports about itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gauge {
    /// The engine's own name for it, with the unit last: `pending_compaction_bytes`.
    pub name: String,
    /// Its value when it was asked, in the unit that ends its name.
    pub value: f64,
}

impl Gauge {
    /// A gauge of this name and value.
    pub fn new(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), value }
    }
}
