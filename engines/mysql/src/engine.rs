//! The engines: names, settings and opening.

use std::path::Path;
use std::time::Duration;

use rumba_engine_api::common::OverriddenSettings;
use rumba_engine_api::engine::{
    Availability, BuildSelector, Engine, EngineConfig, EngineInfo, Family, Form, Instance, MostClients, Schema,
    require_database,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::memory::{AdvisedCache, MemoryNeed};
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::{Kind as SettingKind, SettingError, SettingInfo, info};
use rumba_engine_api::sql::Dialect;
use rumba_protocol_mysql::Admin;

use rumba_server_kit::dsn::Dsn;
use rumba_server_kit::host::{Data, Layout};
use rumba_server_kit::install::Software as _;
use rumba_server_kit::selected::{Selected as Server, reachable};

use crate::capability::Capabilities;
use crate::catalogue::RELEASES;
use crate::compression;
use crate::connections;
use crate::control::Control;
use crate::counters::{self, Kind};
use crate::dsn;
use crate::existing;
use crate::initialise;
use crate::instance::{Host, Parts, ServerInstance};
use crate::launch::{Launch, SCHEMA};
use crate::memory;
use crate::options::{OWN, Options};
use crate::overruled;
use crate::plan::{self, Plan};
use crate::readback;
use crate::redo;
use crate::rehearsal;
use crate::requested::RequestedEngine;
use crate::software::Software;

/// An engine of the MySQL family.
#[derive(Clone, Copy, Debug)]
pub struct MySqlEngine {
    info: EngineInfo,
    /// The engine's name in the servers; `None` uses the setting `storage_engine`.
    storage: Option<&'static str>,
}

impl MySqlEngine {
    /// InnoDB.
    pub const INNODB: Self = Self {
        info: EngineInfo {
            name: "innodb",
            about: "InnoDB of MySQL and MariaDB: a B-tree that updates in place, with undo and redo",
            compressions: compression::INNODB,
            settings: INNODB_SETTINGS,
            ..ANY
        },
        storage: Some("InnoDB"),
    };
    /// MyRocks.
    pub const MYROCKS: Self = Self {
        info: EngineInfo {
            name: "myrocks",
            about: "MyRocks: RocksDB's leveled LSM tree below MariaDB or Percona Server",
            compressions: compression::MYROCKS,
            settings: MYROCKS_SETTINGS,
            ..ANY
        },
        storage: Some("ROCKSDB"),
    };
    /// TokuDB.
    pub const TOKUDB: Self = Self {
        info: EngineInfo {
            name: "tokudb",
            about: "TokuDB: a tree with message buffers, below MariaDB 10.5 (`rumba engines build tokudb`)",
            compressions: compression::TOKUDB,
            settings: TOKUDB_SETTINGS,
            ..ANY
        },
        storage: Some("TokuDB"),
    };
    /// Any other engine, named by `storage_engine`.
    pub const ANY: Self = Self { info: ANY, storage: None };
}

const ANY: EngineInfo = EngineInfo {
    name: "mysql",
    about: "any engine of a MySQL or MariaDB server, by settings.storage_engine = \"Aria\"",
    family: Family::Sql(Dialect::MySql),
    form: Form::Server,
    brought: None,
    keeps_data: true,
    has_cache: true,
    has_transactions: true,
    compressions: compression::OTHER,
    settings: OWN,
};

const INNODB_SETTINGS: &[SettingInfo] = &with_own::<6, { OWN.len() + 6 }>([
    info("innodb_page_size", SettingKind::Bytes, "16KiB", "bytes of a page: 4k, 8k, 16k, 32k, 64k"),
    info("innodb_doublewrite", SettingKind::Bool, "true", "write pages twice, so that half a page can be repaired"),
    info("innodb_flush_method", SettingKind::Text, "O_DIRECT", "how files are opened and synced"),
    info("innodb_adaptive_hash_index", SettingKind::Bool, "the server's", "index hot pages by hash"),
    info("innodb_io_capacity", SettingKind::Int(100, i64::MAX), "2000", "background writes per second"),
    info("performance_schema", SettingKind::Bool, "false", "the server's instrumentation"),
]);

const MYROCKS_SETTINGS: &[SettingInfo] = &with_own::<6, { OWN.len() + 6 }>([
    info(
        "rocksdb_default_cf_options",
        SettingKind::Text,
        "by the profile",
        "options of every column family, as RocksDB writes them; replaces the profile's",
    ),
    info("rocksdb_override_cf_options", SettingKind::Text, "none", "single options: default={write_buffer_size=8m}"),
    info(
        "rocksdb_max_background_jobs",
        SettingKind::Int(1, 64),
        "the cores, 2 to 16",
        "threads for flush and compaction",
    ),
    info(
        "rocksdb_allow_concurrent_memtable_write",
        SettingKind::Bool,
        "the server's",
        "several writers insert into a memtable at the same time",
    ),
    info("rocksdb_use_direct_reads", SettingKind::Bool, "true", "reads bypass the page cache"),
    info("performance_schema", SettingKind::Bool, "false", "the server's instrumentation"),
]);

const TOKUDB_SETTINGS: &[SettingInfo] = &with_own::<7, { OWN.len() + 7 }>([
    info(
        "tokudb_block_size",
        SettingKind::Bytes,
        "4MiB",
        "bytes of a node before compression; 1MiB suits small caches",
    ),
    info("tokudb_read_block_size", SettingKind::Bytes, "64KiB", "bytes of a part of a leaf that a read fetches"),
    info("tokudb_fanout", SettingKind::Int(2, 16384), "16", "children of an inner node"),
    info("tokudb_directio", SettingKind::Bool, "true", "I/O bypasses the page cache"),
    info("tokudb_checkpointing_period", SettingKind::Int(0, 4_294_967_295), "60", "seconds between checkpoints"),
    info(
        "tokudb_loader_memory_size",
        SettingKind::Bytes,
        "the server's",
        "memory that builds an index or loads a table",
    ),
    info("performance_schema", SettingKind::Bool, "false", "the server's instrumentation"),
]);

/// Appends server settings to rumba's own.
const fn with_own<const N: usize, const ALL: usize>(more: [SettingInfo; N]) -> [SettingInfo; ALL] {
    let mut all = [more[0]; ALL];
    let mut at = 0;
    while at < ALL {
        all[at] = if at < OWN.len() { OWN[at] } else { more[at - OWN.len()] };
        at += 1;
    }
    all
}

/// Storage engines without rollback, by their names in `SHOW ENGINES`.
const WITHOUT_TRANSACTIONS: [&str; 7] = ["Aria", "MyISAM", "MRG_MyISAM", "MEMORY", "CSV", "ARCHIVE", "BLACKHOLE"];

impl MySqlEngine {
    fn storage<'a>(&self, options: &'a Options) -> Result<Option<&'a str>, SettingError> {
        match (self.storage, options.storage_engine.as_deref()) {
            (Some(own), None) => Ok(Some(own)),
            (Some(own), Some(given)) if given.eq_ignore_ascii_case(own) => Ok(Some(own)),
            (Some(own), Some(_)) => {
                let remedy = "leave it out, or use the engine `mysql`, which takes any";
                Err(SettingError::new("storage_engine", format!("`{}` is always {own}", self.info.name), remedy))
            }
            (None, given) => Ok(given),
        }
    }

    /// The server that the experiment names, or the first release with this engine.
    fn server(&self, name: Option<&str>) -> Result<Server, SettingError> {
        let usual = || RELEASES.all().iter().find(|release| release.has(self.info.name));
        match (name, usual()) {
            (None, Some(release)) => Ok(Server::Release(release)),
            (name, _) => Server::of::<Software>(name),
        }
    }

    fn plan_own(&self, config: &EngineConfig, server: &Server) -> Result<Ready, SettingError> {
        let options = Options::read(config)?;
        let software: Software = server.software()?;
        let capabilities = Capabilities::of(&software).map_err(|error| {
            SettingError::new("server", error.to_string(), "see that the server can be started by hand")
        })?;
        let requested =
            RequestedEngine { config, options: &options, storage: self.storage(&options)?, server: &capabilities };
        let plan = plan::for_own(&requested, &software)?;
        Ok(Ready { options, software, plan, capabilities })
    }

    /// The storage engine, if it is known before connecting.
    fn kind(&self, config: &EngineConfig) -> Option<Kind> {
        let storage = self.storage.or(config.settings.text("storage_engine"));
        storage.map(Kind::of).or((!config.is_existing()).then_some(Kind::InnoDb))
    }

    fn plan_existing(
        &self,
        config: &EngineConfig,
        admin: &mut Admin,
    ) -> Result<(Options, Plan, Capabilities), SettingError> {
        let options = Options::read(config)?;
        let capabilities = Capabilities::fetch(admin).map_err(|error| {
            SettingError::new("server", error.to_string(), "use a user that may run SHOW VARIABLES and SHOW ENGINES")
        })?;
        let of_own_server = [
            ("binlog", options.binlog),
            ("contention", options.contention),
            ("wait_events", options.wait_events),
            ("tcp", options.tcp),
        ];
        for (name, is_set) in of_own_server {
            if is_set {
                let remedy = "leave it out; it is the server's own affair";
                return Err(SettingError::new(name, "an existing server is not configured by rumba", remedy));
            }
        }
        let requested =
            RequestedEngine { config, options: &options, storage: self.storage(&options)?, server: &capabilities };
        let plan = plan::for_existing(&requested)?;
        Ok((options, plan, capabilities))
    }

    /// Starts a server on a new data directory, or on a copy of an earlier server's.
    fn open_own(&self, dir: &Path, config: &EngineConfig, server: &Server, data: Data) -> Result<ServerInstance> {
        let Ready { options, software, plan, capabilities } = self.plan_own(config, server)?;
        let layout = Layout::new(dir);
        match data {
            Data::New => initialise::provide(&software, &plan.at_install(), &layout.data())?,
            // Create the system tables, which every engine needs.
            Data::Left => require_database(&layout.data(), "mysql")?,
        }
        let launch = Launch { software: &software, layout: &layout, lines: &plan.lines, tcp: plan.tcp, data };
        let running = launch.start()?;
        let mut admin = connect(&running.target)?;
        let mut settings = facts(&software, &plan, &capabilities, running.watch.pid());
        settings.extend(readback::settings_in_force(&mut admin, &plan)?);
        settings.extend(plan.at_default(&capabilities));
        let parts = Parts {
            target: running.target.clone(),
            host: Host::Own { running, data: layout.data() },
            data,
            schema: SCHEMA.into(),
            control: Control::new(admin, options.on_lost, None),
            settings,
            version: capabilities.version_text,
        };
        ServerInstance::new(parts, &plan, &options)
    }

    fn open_existing(&self, config: &EngineConfig, dsn: &Dsn) -> Result<ServerInstance> {
        let target = dsn::target(dsn)?;
        let mut admin = existing::connect(&target)?;
        let (options, plan, capabilities) = self.plan_existing(config, &mut admin)?;
        let mut settings = vec![
            (
                "server".to_owned(),
                format!("{}, an existing server: `cache` and `durability` are what it was given", capabilities.name()),
            ),
            ("table_options".to_owned(), plan.table_options.clone()),
        ];
        settings.extend(readback::settings_in_force(&mut admin, &plan)?);
        let (pid, data) = existing::place(&target, &mut admin);
        let schema = dsn.database.clone();
        let taken = existing::take(&mut admin, &schema)?;
        let version = capabilities.version_text;
        let mut control = Control::new(admin, options.on_lost, Some(schema.clone()));
        control.set_timeout(None);
        let server = counters::Server::new(plan.kind.clone(), &version);
        let flushes = !dsn.without_flush;
        let rehearsed = rehearsal::rehearse(&mut control, &server, &schema, &plan.table_options, flushes);
        if let Err(error) = rehearsed {
            // Returns the schema to its earlier state. Tables that cannot be removed stay marked as rumba's.
            let _ = taken.give_back(&mut control);
            return Err(error);
        }
        control.set_timeout(Some(existing::PATIENCE));
        let host = Host::Existing { pid, data, taken: Some(taken), flushes };
        ServerInstance::new(
            Parts { host, data: Data::Left, target, schema, control, settings, version },
            &plan,
            &options,
        )
    }
}

/// A checked server, ready to start with the experiment's configuration.
struct Ready {
    options: Options,
    software: Software,
    plan: Plan,
    capabilities: Capabilities,
}

fn connect(target: &rumba_protocol_mysql::Target) -> Result<Admin> {
    let connected = Admin::connect(target, Duration::from_secs(60));
    connected.map_err(|error| error.during("connection to the server"))
}

/// Facts for the record in addition to the variables.
fn facts(software: &Software, plan: &Plan, capabilities: &Capabilities, pid: u32) -> Vec<(String, String)> {
    let mapped = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let allocators = ["jemalloc", "tcmalloc", "mimalloc"];
    let allocator = allocators.into_iter().find(|name| mapped.contains(name)).unwrap_or("the C library's");
    vec![
        ("server".to_owned(), format!("{} from {}", capabilities.name(), software.program.display())),
        ("allocator".to_owned(), allocator.to_owned()),
        ("table_options".to_owned(), plan.table_options.clone()),
        ("session_setup".to_owned(), plan.setup.join("; ")),
    ]
}

impl Engine for MySqlEngine {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    /// rumba does not limit the memory of an existing server.
    fn memory_need(&self, config: &EngineConfig) -> Option<MemoryNeed> {
        let server = self.server(config.server.as_deref()).ok()?;
        if matches!(server, Server::Existing(_)) {
            return None;
        }
        let software: Software = server.software().ok()?;
        let storage = self.storage.or(config.settings.text("storage_engine")).unwrap_or("InnoDB");
        memory::need(&Kind::of(storage), software.brand, software.version)
    }

    fn allocates_bytes(&self, config: &EngineConfig) -> u64 {
        let storage = self.storage.or(config.settings.text("storage_engine")).unwrap_or("InnoDB");
        let server = self.server(config.server.as_deref()).ok();
        server.and_then(|server| redo::bytes(&Kind::of(storage), &server, config)).unwrap_or_default()
    }

    fn has_transactions(&self, config: &EngineConfig) -> bool {
        let storage = self.storage.or(config.settings.text("storage_engine"));
        !storage.is_some_and(|storage| WITHOUT_TRANSACTIONS.iter().any(|name| name.eq_ignore_ascii_case(storage)))
    }

    /// For an existing server, settings that the experiment does not set are unknown before connecting, and so is its
    /// default engine. The record holds them. The isolation level is known because rumba sets it in every session.
    fn nature(&self, config: &EngineConfig) -> EngineTraits {
        let kind = self.kind(config);
        let isolation = config.settings.text("isolation").map(|level| level.to_ascii_uppercase().replace('-', " "));
        let usual = || kind.as_ref().map(|kind| plan::usual_isolation(kind).to_owned());
        let set = |name: &str| config.settings.0.get(name).map(|value| value.to_string().to_ascii_lowercase());
        let of_own = (!config.is_existing()).then_some(true);
        let is_on = |value: &str| ["true", "on", "1"].contains(&value);
        let is_direct = match &kind {
            Some(Kind::InnoDb) => set("innodb_flush_method").map(|method| method.contains("direct")).or(of_own),
            Some(Kind::RocksDb) => set("rocksdb_use_direct_reads").map(|on| is_on(&on)).or(of_own),
            Some(Kind::TokuDb) => set("tokudb_directio").map(|on| is_on(&on)).or(of_own),
            Some(Kind::Other(_)) | None => None,
        };
        let has_log = matches!(kind, Some(Kind::InnoDb | Kind::RocksDb | Kind::TokuDb));
        EngineTraits {
            isolation: isolation.or_else(usual),
            // This crate does not know what other engines write.
            has_log: has_log.then_some(true),
            reads: is_direct.map(|is_direct| if is_direct { Reads::Direct } else { Reads::Buffered }),
        }
    }

    /// The largest cache that fits for InnoDB, as its manual advises. MyRocks and TokuDB get the same, unless they share
    /// the memory with the page cache.
    fn advised_cache(&self, config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        if self.nature(config).reads != Some(Reads::Buffered) {
            return None;
        }
        let (share, rule) = match self.kind(config)? {
            Kind::RocksDb => (3, "a third of it, as RocksDB's makers advise"),
            Kind::TokuDb => (2, "half of it, TokuDB's default"),
            Kind::InnoDb | Kind::Other(_) => return None,
        };
        Some(AdvisedCache { bytes: memory_bytes / share, rule })
    }

    fn compression(&self, config: &EngineConfig) -> Option<String> {
        compression::in_force(&self.kind(config)?, config)
    }

    fn overruled(&self, config: &EngineConfig) -> OverriddenSettings {
        self.kind(config).map(|kind| overruled::by_variables(&kind, config)).unwrap_or_default()
    }

    fn availability(&self, requested: BuildSelector<'_>) -> Availability {
        let server = self.server(requested.server);
        if let Ok(Server::Release(release)) = &server
            && release.has(self.info.name)
            && release.software::<Software>().is_some_and(|software| !software.holds(self.info.name))
        {
            let what = format!("{} is here without the plugin of {}", release.about, self.info.name);
            return Availability::lacking("a server", what, release.install_command());
        }
        Server::availability::<Software>(server, "schema")
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        match self.server(config.server.as_deref())? {
            Server::Existing(dsn) => {
                let mut admin = existing::connect(&dsn::target(&dsn)?)?;
                let (_, plan, capabilities) = self.plan_existing(config, &mut admin)?;
                existing::check(&mut admin, &dsn.database)?;
                let server = counters::Server::new(plan.kind, &capabilities.version_text);
                if dsn.without_flush {
                    return Ok(());
                }
                rehearsal::check(&mut admin, &server, &dsn.database)
            }
            server => self.plan_own(config, &server).map(drop),
        }
    }

    fn check_attachable(&self, config: &EngineConfig) -> Result<(), SettingError> {
        reachable(self.server(config.server.as_deref())?.existing(), &dsn::FORM, dsn::target).map(drop)
    }

    fn attach(&self, config: &EngineConfig) -> Result<Box<dyn Instance>> {
        let server = self.server(config.server.as_deref())?;
        let (dsn, target) = reachable(server.existing(), &dsn::FORM, dsn::target)?;
        let mut admin = existing::connect(&target)?;
        let (options, plan, capabilities) = self.plan_existing(config, &mut admin)?;
        let control = Control::new(admin, options.on_lost, None);
        let host = Host::Existing { taken: None, pid: None, data: None, flushes: false };
        let (schema, version, settings) = (dsn.database.clone(), capabilities.version_text, Vec::new());
        let parts = Parts { host, data: Data::Left, target, schema, control, settings, version };
        Ok(Box::new(ServerInstance::new(parts, &plan, &options)?))
    }

    fn clean_server(&self, server: &str) -> Result<()> {
        let dsn = dsn::FORM.parse(server)?;
        let target = dsn::target(&dsn)?;
        existing::clean(&mut existing::connect(&target)?, &dsn.database)
    }

    fn planned_settings(&self, config: &EngineConfig) -> Vec<(String, String)> {
        let requested = || config.settings.0.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let server = self.server(config.server.as_deref()).ok().filter(|server| !matches!(server, Server::Existing(_)));
        let ready = server.and_then(|server| self.plan_own(config, &server).ok());
        ready.map_or_else(requested, |Ready { plan, capabilities, .. }| plan.settings(&capabilities))
    }

    fn most_clients(&self, config: &EngineConfig) -> Result<Option<MostClients>, SettingError> {
        match self.server(config.server.as_deref())? {
            Server::Existing(dsn) => Ok(connections::of_server_at_rest(&mut existing::connect(&dsn::target(&dsn)?)?)),
            server => {
                let Ready { plan, capabilities, .. } = self.plan_own(config, &server)?;
                Ok(connections::of_plan(&plan, &capabilities))
            }
        }
    }

    fn open(&self, dir: &Path, config: &EngineConfig, _schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        let server = self.server(config.server.as_deref())?;
        Ok(Box::new(match &server {
            Server::Existing(dsn) => self.open_existing(config, dsn)?,
            server => self.open_own(dir, config, server, Data::New)?,
        }))
    }

    /// An existing server keeps its data.
    fn reopens(&self, config: &EngineConfig) -> bool {
        !matches!(self.server(config.server.as_deref()), Ok(Server::Existing(_)) | Err(_))
    }

    fn reopen(&self, dir: &Path, config: &EngineConfig, _schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        match self.server(config.server.as_deref())? {
            Server::Existing(_) => Err(EngineError::failed("reopen", "the data of an existing server is not kept")),
            server => Ok(Box::new(self.open_own(dir, config, &server, Data::Left)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;

    use super::*;

    fn nature(engine: MySqlEngine, settings: &[(&str, &str)]) -> EngineTraits {
        let settings = settings.iter().map(|(name, value)| (*name, Value::Text((*value).to_owned()))).collect();
        engine.nature(&EngineConfig { settings, ..EngineConfig::new(engine.info.name) })
    }

    #[test]
    fn both_bypass_the_page_cache_on_reads_by_default() {
        let reads = |engine, settings: &[(&str, &str)]| nature(engine, settings).reads;
        assert_eq!(reads(MySqlEngine::INNODB, &[]), Some(Reads::Direct));
        assert_eq!(reads(MySqlEngine::MYROCKS, &[]), Some(Reads::Direct));
        assert_eq!(reads(MySqlEngine::TOKUDB, &[]), Some(Reads::Direct));
        assert_eq!(reads(MySqlEngine::TOKUDB, &[("tokudb_directio", "OFF")]), Some(Reads::Buffered));
        assert_eq!(reads(MySqlEngine::INNODB, &[("innodb_flush_method", "fsync")]), Some(Reads::Buffered));
        assert_eq!(reads(MySqlEngine::MYROCKS, &[("rocksdb_use_direct_reads", "OFF")]), Some(Reads::Buffered));
    }

    /// rumba treated an existing server as if it had rumba's configuration.
    #[test]
    fn existing_server_traits_include_only_configured_settings() {
        let of = |engine: MySqlEngine, settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(name, value)| (*name, Value::Text((*value).to_owned()))).collect();
            let server = Some("mysql://me@host/db".to_owned());
            engine.nature(&EngineConfig { server, settings, ..EngineConfig::new(engine.info.name) })
        };
        let unreported =
            |isolation: &str| EngineTraits { reads: None, ..EngineTraits::new(isolation, true, Reads::Direct) };
        assert_eq!(of(MySqlEngine::INNODB, &[]), unreported("REPEATABLE READ"));
        assert_eq!(of(MySqlEngine::MYROCKS, &[]), unreported("READ COMMITTED"));
        let set = of(MySqlEngine::INNODB, &[("innodb_flush_method", "O_DIRECT"), ("isolation", "serializable")]);
        assert_eq!(set, EngineTraits::new("SERIALIZABLE", true, Reads::Direct));
        assert_eq!(of(MySqlEngine::ANY, &[]), EngineTraits::default(), "its default engine may be any");
        assert_eq!(of(MySqlEngine::ANY, &[("storage_engine", "InnoDB")]), unreported("REPEATABLE READ"));
    }
}
