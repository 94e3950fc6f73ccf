//! The engine: name, settings and opening.

use std::path::Path;
use std::time::Duration;

use rumba_engine_api::common::{Durability, OverriddenSettings};
use rumba_engine_api::engine::{
    Availability, BuildSelector, Engine, EngineConfig, EngineInfo, Family, Form, Instance, MostClients, Schema,
    require_database,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::memory::{AdvisedCache, MemoryNeed};
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::SettingError;
use rumba_engine_api::sql::Dialect;
use rumba_protocol_postgresql::Admin;
use rumba_server_kit::cache::Draft;
use rumba_server_kit::dsn::Dsn;
use rumba_server_kit::host::{Data, Layout};
use rumba_server_kit::identity::Identity;
use rumba_server_kit::selected::{Selected as Server, reachable};

use crate::control::Control;
use crate::instance::{Host, ServerInstance, Taken, most_clients, most_clients_planned};
use crate::launch::Launch;
use crate::options::{Options, SETTINGS};
use crate::plan::{self, COMPRESSIONS, Plan};
use crate::software::{Software, command};
use crate::{dsn, existing, initialise, memory, readback};

/// The user that the server's packages create.
const PACKAGED_USER: &str = "postgres";

const INFO: EngineInfo = EngineInfo {
    name: "postgresql",
    about: "PostgreSQL: heap tables that keep old versions until vacuum, and separate B-tree indexes",
    family: Family::Sql(Dialect::PostgreSql),
    form: Form::Server,
    brought: None,
    keeps_data: true,
    has_cache: true,
    has_transactions: true,
    compressions: COMPRESSIONS,
    settings: SETTINGS,
};

/// PostgreSQL.
#[derive(Clone, Copy, Debug, Default)]
pub struct PostgreSql;

/// A checked server, ready to start with the experiment's configuration.
struct Ready {
    options: Options,
    software: Software,
    plan: Plan,
    identity: Option<Identity>,
}

fn plan_own(config: &EngineConfig, server: &Server) -> Result<Ready, SettingError> {
    let options = Options::read(config)?;
    let software: Software = server.software()?;
    let known = software.settings().map_err(|error| {
        SettingError::new("server", error.to_string(), "see that the server can be started by hand")
    })?;
    let plan = plan::for_own(config, &options, &software, &known)?;
    let identity = Identity::choose(options.os_user.as_deref(), PACKAGED_USER)?;
    if let Some(identity) = &identity {
        identity.require_way_to(&software.program)?;
    }
    Ok(Ready { options, software, plan, identity })
}

/// Lets the server itself check the settings, and one by one if it refuses them. It exits before it touches any data.
fn try_settings(ready: &Ready) -> Result<(), SettingError> {
    let adjacent = rumba_server_kit::cache::root().map(|root| root.join("settings"));
    let draft = adjacent.ok().and_then(|place| Draft::new(&place).ok());
    let Some(draft) = draft else { return Ok(()) };
    let file = draft.path().join("postgresql.conf");
    std::fs::write(&file, "")
        .map_err(|error| SettingError::new("server", error.to_string(), "make room for the cache"))?;
    let refuses = |lines: &mut dyn Iterator<Item = &plan::Line>| {
        let mut command = command(&ready.software.program);
        command.args(["-C", "max_connections", "-D"]).arg(draft.path());
        lines.for_each(|line| _ = command.arg("-c").arg(format!("{}={}", line.name, line.value)));
        let output = command.output().ok()?;
        (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
    };
    if refuses(&mut ready.plan.lines.iter()).is_none() {
        return Ok(());
    }
    for line in &ready.plan.lines {
        if let Some(words) = refuses(&mut std::iter::once(line)) {
            return Err(refused(line, &words, ready));
        }
    }
    Ok(())
}

fn refused(line: &plan::Line, words: &str, ready: &Ready) -> SettingError {
    if words.contains("unrecognized configuration parameter") {
        let known = ready.software.settings().unwrap_or_default();
        let whose = format!("PostgreSQL {}", ready.software.version_text);
        return SettingError::unknown(&line.name, &whose, known.iter().map(String::as_str));
    }
    // Strip `postgres: ` or a time, then the level, and keep the server's message.
    let reported: Vec<&str> =
        words.lines().map(|line| line.split_once(":  ").map_or(line, |(_, words)| words)).collect();
    let key = if ready.options.settings.contains_key(&line.name) { &line.name } else { common_name(&line.name) };
    SettingError::new(key, reported.join("; "), "write a value that this server takes")
}

/// The experiment's setting from which the profile derives a server setting.
fn common_name(name: &str) -> &str {
    match name {
        "wal_compression" | "default_toast_compression" => "compression",
        "shared_buffers" => "cache",
        "fsync" | "synchronous_commit" => "durability",
        "default_transaction_isolation" => "isolation",
        other => other,
    }
}

fn plan_existing(config: &EngineConfig) -> Result<(Options, Plan), SettingError> {
    let options = Options::read(config)?;
    let own = [
        ("tcp", options.tcp),
        ("data_checksums", options.data_checksums.is_some()),
        ("os_user", options.os_user.is_some()),
    ];
    for (name, is_set) in own {
        if is_set {
            let remedy = "leave it out; it is the server's own affair";
            return Err(SettingError::new(name, "an existing server is not configured by rumba", remedy));
        }
    }
    let plan = plan::for_existing(&options);
    Ok((options, plan))
}

/// Starts a server on a new data directory, or on a copy of an earlier server's.
fn open_own(dir: &Path, config: &EngineConfig, server: &Server, data: Data) -> Result<ServerInstance> {
    let Ready { options, software, mut plan, identity } = plan_own(config, server)?;
    plan.fit_wal(file_system_bytes(dir)?);
    let layout = Layout::new(dir);
    match data {
        Data::New => initialise::provide(&software, plan.data_checksums, identity.as_ref(), &layout.data())?,
        Data::Left => require_database(&layout.data(), "PG_VERSION")?,
    }
    let launch = Launch { software: &software, layout: &layout, plan: &plan, identity: identity.as_ref(), data };
    let running = launch.start()?;
    let target = running.server.target.clone();
    let admin =
        Admin::connect(&target, Duration::from_secs(60)).map_err(|error| error.during("connection to the server"))?;
    let mut control = Control::new(admin, options.on_lost, false);
    let mut settings = facts(&software, &plan, identity.as_ref());
    settings.extend(readback::settings_in_force(&mut control, &plan)?);
    let host = Host::Own { running, data: layout.data() };
    Ok(ServerInstance::new(host, target, control, settings, &plan, &options))
}

/// The size of the file system that holds a directory.
fn file_system_bytes(dir: &Path) -> Result<u64> {
    let stat = rustix::fs::statvfs(dir)
        .map_err(|errno| EngineError::failed("statvfs", format!("{}: {errno}", dir.display())))?;
    Ok(stat.f_blocks.saturating_mul(stat.f_frsize))
}

/// Facts for the record in addition to the settings.
fn facts(software: &Software, plan: &Plan, identity: Option<&Identity>) -> Vec<(String, String)> {
    let server = format!("PostgreSQL {} from {}", software.version_text, software.program.display());
    let mut facts = vec![("server".to_owned(), server)];
    facts.extend(identity.map(|identity| ("os_user".to_owned(), identity.name.clone())));
    facts.push(("table_options".to_owned(), plan.table_options.clone()));
    facts.push(("session_setup".to_owned(), plan.setup.join("; ")));
    facts
}

fn open_existing(config: &EngineConfig, dsn: &Dsn) -> Result<ServerInstance> {
    let target = dsn::target(dsn)?;
    let (options, mut plan) = plan_existing(config)?;
    let mut admin = existing::connect(&target)?;
    existing::take(&mut admin, &dsn.database)?;
    let mut control = Control::new(admin, options.on_lost, true);
    existing::check(&mut control, dsn)?;
    let reported = format!(
        "PostgreSQL {}, an existing server: `cache` and `durability` are what it was given",
        control.server_version()
    );
    let mut settings = vec![("server".to_owned(), reported), ("table_options".to_owned(), plan.table_options.clone())];
    settings.extend(readback::settings_in_force(&mut control, &plan)?);
    let (pid, data) = existing::place(&target, &mut control);
    let schema = existing::make_ready(&mut control, &dsn.database)?;
    plan.startup = existing::startup(&mut control)?;
    // The user's own path may change, and then later sessions would not find the tables.
    plan.setup.push(format!("SET search_path TO {}", schema.search_path));
    settings.extend(plan.startup.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    settings.push(("search_path".to_owned(), schema.search_path));
    let host =
        Host::Existing { pid, data, taken: Taken { schema: schema.name, is_own: true }, flushes: !dsn.without_flush };
    Ok(ServerInstance::new(host, target, control, settings, &plan, &options))
}

impl Engine for PostgreSql {
    fn info(&self) -> &EngineInfo {
        &INFO
    }

    /// rumba does not limit the memory of an existing server.
    fn memory_need(&self, config: &EngineConfig) -> Option<MemoryNeed> {
        let server = Server::of::<Software>(config.server.as_deref()).ok()?;
        if matches!(server, Server::Existing(_)) {
            return None;
        }
        memory::need(server.software::<Software>().ok()?.version)
    }

    /// The default isolation is the server's. For an existing server it is unknown before connecting, and the record
    /// holds it.
    fn nature(&self, config: &EngineConfig) -> EngineTraits {
        let is_existing = config.is_existing();
        let level = config.settings.text("isolation").or((!is_existing).then_some("read-committed"));
        let isolation = level.map(|level| level.to_ascii_uppercase().replace('-', " "));
        // Without fsync, pages may reach the device before the WAL does, so the WAL cannot repair them.
        let level = match self.overruled(config).durability {
            Some(own) => own.value,
            None => (!is_existing).then_some(config.durability),
        };
        let is_synced = |level| matches!(level, Durability::Sync | Durability::Buffered);
        EngineTraits { isolation, has_log: level.map(is_synced), reads: Some(Reads::Buffered) }
    }

    fn advised_cache(&self, _config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        Some(AdvisedCache { bytes: memory_bytes / 4, rule: "a quarter of it, as PostgreSQL's manual advises" })
    }

    /// Pages are never compressed; the setting compresses the WAL and long values.
    fn compression(&self, config: &EngineConfig) -> Option<String> {
        config.compression.clone().or_else(|| (!config.is_existing()).then(|| "none".to_owned()))
    }

    fn overruled(&self, config: &EngineConfig) -> OverriddenSettings {
        plan::overruled(config)
    }

    fn availability(&self, requested: BuildSelector<'_>) -> Availability {
        Server::availability::<Software>(Server::of::<Software>(requested.server), "database")
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        match Server::of::<Software>(config.server.as_deref())? {
            Server::Existing(dsn) => {
                let (options, plan) = plan_existing(config)?;
                let admin = existing::connect(&dsn::target(&dsn)?)?;
                let mut control = Control::new(admin, options.on_lost, false);
                existing::check(&mut control, &dsn)?;
                let remedy = "set it on the server, or leave it out";
                let held = readback::settings_in_force(&mut control, &plan);
                held.map(drop).map_err(|error| SettingError::new("settings", error.to_string(), remedy))
            }
            server => try_settings(&plan_own(config, &server)?),
        }
    }

    fn check_attachable(&self, config: &EngineConfig) -> Result<(), SettingError> {
        let server = Server::of::<Software>(config.server.as_deref())?;
        reachable(server.existing(), &dsn::FORM, dsn::target).map(drop)
    }

    fn attach(&self, config: &EngineConfig) -> Result<Box<dyn Instance>> {
        let server = Server::of::<Software>(config.server.as_deref())?;
        let (_, target) = reachable(server.existing(), &dsn::FORM, dsn::target)?;
        let (options, mut plan) = plan_existing(config)?;
        let admin = existing::connect(&target)?;
        let mut control = Control::new(admin, options.on_lost, false);
        let schema = existing::trial_schema(&mut control)?;
        plan.startup = existing::startup(&mut control)?;
        plan.setup.push(format!("SET search_path TO {}", schema.search_path));
        let taken = Taken { schema: schema.name, is_own: false };
        let host = Host::Existing { pid: None, data: None, taken, flushes: false };
        Ok(Box::new(ServerInstance::new(host, target, control, Vec::new(), &plan, &options)))
    }

    fn clean_server(&self, server: &str) -> Result<()> {
        let dsn = dsn::FORM.parse(server)?;
        let target = dsn::target(&dsn)?;
        existing::clean(existing::connect(&target)?, &dsn.database)
    }

    fn planned_settings(&self, config: &EngineConfig) -> Vec<(String, String)> {
        let requested = || config.settings.0.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        let server = Server::of::<Software>(config.server.as_deref()).ok().filter(|server| server.existing().is_none());
        let ready = server.and_then(|server| plan_own(config, &server).ok());
        ready.map_or_else(requested, |Ready { plan, .. }| {
            let own = [("table_options", plan.table_options.clone()), ("session_setup", plan.setup.join("; "))];
            let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
            let tcp = plan.tcp.map(|_| ("tcp".to_owned(), "true".to_owned()));
            let checksums = plan.data_checksums.map(|on| ("data_checksums".to_owned(), on.to_string()));
            plan.lines.into_iter().map(|line| (line.name, line.value)).chain(own).chain(tcp).chain(checksums).collect()
        })
    }

    fn most_clients(&self, config: &EngineConfig) -> Result<Option<MostClients>, SettingError> {
        match Server::of::<Software>(config.server.as_deref())? {
            Server::Existing(dsn) => {
                let admin = existing::connect(&dsn::target(&dsn)?)?;
                Ok(most_clients(&mut Control::new(admin, Default::default(), false)))
            }
            server => Ok(most_clients_planned(&plan_own(config, &server)?.plan)),
        }
    }

    fn open(&self, dir: &Path, config: &EngineConfig, _schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        Ok(Box::new(match &Server::of::<Software>(config.server.as_deref())? {
            Server::Existing(dsn) => open_existing(config, dsn)?,
            server => open_own(dir, config, server, Data::New)?,
        }))
    }

    /// An existing server keeps its data.
    fn reopens(&self, config: &EngineConfig) -> bool {
        !matches!(Server::of::<Software>(config.server.as_deref()), Ok(Server::Existing(_)) | Err(_))
    }

    fn reopen(&self, dir: &Path, config: &EngineConfig, _schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        match Server::of::<Software>(config.server.as_deref())? {
            Server::Existing(_) => Err(EngineError::failed("reopen", "the data of an existing server is not kept")),
            server => Ok(Box::new(open_own(dir, config, &server, Data::Left)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;

    use super::*;

    /// rumba assumed the default isolation level for an existing server.
    #[test]
    fn existing_server_isolation_is_known_if_sessions_set_it() {
        let isolation = |server: Option<&str>, level: Option<&str>| {
            let mut config = EngineConfig { server: server.map(str::to_owned), ..EngineConfig::new("postgresql") };
            config.settings.0.extend(level.map(|level| ("isolation".to_owned(), Value::Text(level.to_owned()))));
            PostgreSql.nature(&config).isolation
        };
        let others = Some("postgresql://me@host/db");
        assert_eq!(isolation(None, None).as_deref(), Some("READ COMMITTED"));
        assert_eq!(isolation(Some("postgresql@15"), None).as_deref(), Some("READ COMMITTED"));
        assert_eq!(isolation(others, None), None);
        assert_eq!(isolation(others, Some("repeatable-read")).as_deref(), Some("REPEATABLE READ"));
    }
}
