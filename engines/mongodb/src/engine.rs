//! The engines: names, settings and opening.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rumba_engine_api::common::{OverriddenSettings, Own};
use rumba_engine_api::engine::{
    Availability, BuildSelector, Durability, Engine, EngineConfig, EngineInfo, Instance, Schema, is_dsn,
    require_database,
};
use rumba_engine_api::error::Result;
use rumba_engine_api::memory::AdvisedCache;
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::SettingError;
use rumba_protocol_mongodb::{Admin, MongoCounts, OnLost, SessionOptions, Target};
use rumba_server_kit::dsn::{DATABASE, Dsn};
use rumba_server_kit::host::{Data, Layout};
use rumba_server_kit::install::Release;
use rumba_server_kit::selected;

use crate::brand::Brand;
use crate::catalogue::RELEASES;
use crate::control::Control;
use crate::instance::{Host, ServerInstance};
use crate::launch::{self, ANSWER};
use crate::options::Options;
use crate::plan::{self, Plan};
use crate::software::Software;
use crate::{dsn, existing, readback};

/// A server that speaks MongoDB's protocol.
#[derive(Clone, Copy, Debug)]
pub struct MongoEngine {
    brand: Brand,
}

impl MongoEngine {
    /// MongoDB.
    pub const MONGODB: Self = Self { brand: Brand::MongoDb };
    /// SecantusDB.
    pub const SECANTUSDB: Self = Self { brand: Brand::SecantusDb };
}

enum Server {
    Software(Software),
    Existing(Dsn),
}

impl Server {
    fn of(brand: Brand, server: Option<&str>) -> Result<Self, SettingError> {
        let Some(name) = server else {
            let installed = || releases(brand).iter().find_map(Release::software::<Software>);
            return Software::on_path(brand).or_else(installed).map(Server::Software).ok_or_else(|| {
                SettingError::new("server", format!("{} is not installed", brand.name()), brand.install())
            });
        };
        if is_dsn(name) {
            return dsn::parse(name).map(Server::Existing);
        }
        if let Some(release) = releases(brand).iter().find(|release| release.name == name) {
            return release.software().map(Server::Software).ok_or_else(|| {
                SettingError::new("server", format!("{} is not installed", release.about), release.install_command())
            });
        }
        dsn::FORM.refuse_without_scheme(name)?;
        Software::at(brand, &PathBuf::from(name))
            .map(Server::Software)
            .map_err(|words| SettingError::new("server", words, brand.install()))
    }

    /// The address of a server that clients of other hosts can reach.
    fn reachable(&self) -> Result<(&Dsn, Target), SettingError> {
        let existing = if let Self::Existing(dsn) = self { Some(dsn) } else { None };
        selected::reachable(existing, &dsn::FORM, dsn::target)
    }
}

fn releases(brand: Brand) -> &'static [Release] {
    match brand {
        Brand::MongoDb => RELEASES.all(),
        Brand::SecantusDb => &[],
    }
}

/// Whether the server memory-maps its files, as MMAPv1 does.
fn is_mapped(options: &Options) -> bool {
    options.arguments.get("storageEngine").is_some_and(|engine| engine == "mmapv1")
}

fn is_wired_tiger(options: &Options) -> bool {
    options.arguments.get("storageEngine").is_none_or(|engine| engine == "wiredTiger")
}

fn session_options(database: String, options: &Options, plan: &Plan, transactions: bool) -> SessionOptions {
    SessionOptions {
        write_concern: Some(plan.write_concern.clone()),
        read_concern: options.read_concern.clone(),
        transactions,
        on_lost: options.on_lost,
        counts: Arc::<MongoCounts>::default(),
        ..SessionOptions::to(database)
    }
}

impl MongoEngine {
    fn planned(&self, config: &EngineConfig, server: &Server) -> Result<(Options, Plan), SettingError> {
        let options = Options::read(self.brand, config)?;
        let plan = match server {
            Server::Software(software) => plan::for_own(config, &options, software)?,
            Server::Existing(_) => plan::for_existing(self.brand, config, &options)?,
        };
        Ok((options, plan))
    }

    fn open_any(&self, dir: &Path, config: &EngineConfig, data: Data) -> Result<ServerInstance> {
        let server = Server::of(self.brand, config.server.as_deref())?;
        let (options, plan) = self.planned(config, &server)?;
        let (host, target, database, reported) = match &server {
            Server::Software(software) => {
                let layout = Layout::new(dir);
                if data == Data::Left {
                    require_database(&layout.data(), "WiredTiger")?;
                }
                let running = launch::start(software, &layout, &plan, data)?;
                let target = running.target.clone();
                (Some((running, layout.data())), target, DATABASE.to_owned(), software.described())
            }
            Server::Existing(dsn) => {
                let target = dsn::target(dsn)?;
                let reported = "run by others: `cache` and compression are what it was given".to_owned();
                (None, target, dsn.database.clone(), reported)
            }
        };
        let admin = Admin::connect(&target, ANSWER).map_err(|error| error.during("connection to the server"))?;
        let mut control = Control::new(admin, options.on_lost);
        let flushes = !matches!(&server, Server::Existing(Dsn { without_flush: true, .. }));
        let host = match host {
            Some((running, data)) => Host::Own { running, data },
            None => {
                existing::check(&mut control, &database)?;
                let held = existing::take(&target, &mut control, &database)?;
                existing::make_ready(&mut control, &database)?;
                let (pid, data) = existing::place(&target, &mut control);
                Host::Existing { pid, data, taken: Some(held), flushes }
            }
        };
        let mut settings = vec![("server".to_owned(), reported)];
        let mut transactions = options.transactions;
        if matches!(server, Server::Existing(_)) {
            let lacking = existing::lacks_transactions(&mut control);
            transactions = lacking.is_none();
            let reported = lacking.map_or_else(|| "of a replica set".to_owned(), |why| format!("none: {why}"));
            settings.push(("transactions".to_owned(), reported));
        }
        settings.extend(readback::settings_in_force(&mut control, &plan, config)?);
        let session = session_options(database, &options, &plan, transactions);
        Ok(ServerInstance { brand: self.brand, host, target, session, settings, control: Mutex::new(control) })
    }
}

impl Engine for MongoEngine {
    fn info(&self) -> &EngineInfo {
        self.brand.info()
    }

    /// For an existing server, the record holds the server's own answer.
    fn has_transactions(&self, config: &EngineConfig) -> bool {
        Options::read(self.brand, config).unwrap_or_default().transactions
    }

    /// MMAPv1 has no cache: it uses the page cache and ignores `cache`.
    fn has_cache(&self, config: &EngineConfig) -> bool {
        !is_mapped(&Options::read(self.brand, config).unwrap_or_default())
    }

    /// Clients request durability with the write concern. SecantusDB syncs only if it was started with that option.
    fn clients_request_durability(&self) -> bool {
        self.brand == Brand::MongoDb
    }

    /// A WiredTiger transaction reads a snapshot, regardless of its read concern. Without transactions only single
    /// documents are isolated. For an existing server these traits are unknown before it answers: it may use any
    /// storage engine and may keep no log.
    fn nature(&self, config: &EngineConfig) -> EngineTraits {
        if config.is_existing() {
            return EngineTraits::default();
        }
        let options = Options::read(self.brand, config).unwrap_or_default();
        let isolation = if options.transactions { "SNAPSHOT" } else { "none, each document by itself" };
        EngineTraits {
            isolation: Some(isolation.to_owned()),
            has_log: Some(config.durability != Durability::None),
            reads: Some(if is_mapped(&options) { Reads::Mapped } else { Reads::Buffered }),
        }
    }

    /// WiredTiger's default cache size. MongoRocks has no such rule, and MMAPv1 has no cache.
    fn advised_cache(&self, config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        let rule = "half of what is beyond 1 GiB and 256 MiB at least, its default";
        let bytes = (memory_bytes.saturating_sub(1 << 30) / 2).max(256 << 20);
        let options = Options::read(self.brand, config).unwrap_or_default();
        (self.brand == Brand::MongoDb && is_wired_tiger(&options)).then_some(AdvisedCache { bytes, rule })
    }

    fn compression(&self, config: &EngineConfig) -> Option<String> {
        let options = Options::read(self.brand, config).unwrap_or_default();
        let default = match self.brand {
            _ if config.is_existing() => None,
            Brand::MongoDb if is_mapped(&options) => Some("none"),
            Brand::MongoDb if is_wired_tiger(&options) => Some("snappy"),
            // The default compression of MongoRocks and SecantusDB depends on their version.
            _ => None,
        };
        config.compression.clone().or(default.map(str::to_owned))
    }

    /// `no-sync` becomes `buffered`, because without `j` the server writes its log every 100 ms, and with it the server
    /// also syncs.
    fn overruled(&self, config: &EngineConfig) -> OverriddenSettings {
        let is_weaker = self.brand == Brand::MongoDb && config.durability == Durability::NoSync;
        let durability = is_weaker.then(|| Own::new("writeConcern j: false", Some(Durability::Buffered)));
        OverriddenSettings { cache: None, durability }
    }

    fn availability(&self, requested: BuildSelector<'_>) -> Availability {
        match Server::of(self.brand, requested.server) {
            Ok(Server::Existing(dsn)) => {
                Availability::here(None, format!("a server run by others, database {}", dsn.database))
            }
            Ok(Server::Software(software)) => {
                Availability::here(software.version.clone(), software.program.display().to_string())
            }
            // `check` reports errors in a DSN, because it can point at the setting.
            Err(_) if requested.server.is_some_and(is_dsn) => Availability::here(None, "a server"),
            Err(error) => Availability::lacking("a server", &*error.problem, &*error.remedy),
        }
    }

    fn check_attachable(&self, config: &EngineConfig) -> Result<(), SettingError> {
        Server::of(self.brand, config.server.as_deref())?.reachable().map(drop)
    }

    fn attach(&self, config: &EngineConfig) -> Result<Box<dyn Instance>> {
        let server = Server::of(self.brand, config.server.as_deref())?;
        let (dsn, target) = server.reachable()?;
        let (options, plan) = self.planned(config, &server)?;
        let mut control = Control::new(existing::connect(&target)?, options.on_lost);
        let transactions = existing::lacks_transactions(&mut control).is_none();
        let session = session_options(dsn.database.clone(), &options, &plan, transactions);
        let host = Host::Existing { pid: None, data: None, taken: None, flushes: false };
        let (settings, control) = (Vec::new(), Mutex::new(control));
        Ok(Box::new(ServerInstance { brand: self.brand, host, target, session, settings, control }))
    }

    fn clean_server(&self, server: &str) -> Result<()> {
        let dsn = dsn::parse(server)?;
        let target = dsn::target(&dsn)?;
        let mut control = Control::new(existing::connect(&target)?, OnLost::Reconnect);
        existing::clean(&target, &mut control, &dsn.database)
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        let server = Server::of(self.brand, config.server.as_deref())?;
        let (options, _) = self.planned(config, &server)?;
        let Server::Existing(dsn) = server else { return Ok(()) };
        let mut control = Control::new(existing::connect(&dsn::target(&dsn)?)?, options.on_lost);
        existing::check(&mut control, &dsn.database)?;
        if dsn.without_flush { Ok(()) } else { existing::check_rights(&mut control) }
    }

    fn open(&self, dir: &Path, config: &EngineConfig, _schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        Ok(Box::new(self.open_any(dir, config, Data::New)?))
    }

    /// An existing server keeps its data, and rumba does not know the files of other storage engines than WiredTiger.
    fn reopens(&self, config: &EngineConfig) -> bool {
        let server = Server::of(self.brand, config.server.as_deref());
        let options = Options::read(self.brand, config).unwrap_or_default();
        matches!(server, Ok(Server::Software(_))) && is_wired_tiger(&options)
    }

    fn reopen(&self, dir: &Path, config: &EngineConfig, _schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        Ok(Box::new(self.open_any(dir, config, Data::Left)?))
    }
}
