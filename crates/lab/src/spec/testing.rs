//! Fake engines and a fake workload, for tests of the steps before anything runs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rumba_engine_api::check::Check;
use rumba_engine_api::common::{Durability, OverriddenSettings, Own};
use rumba_engine_api::engine::{
    Availability, BuildSelector, Engine, EngineConfig, EngineInfo, Family, Form, Instance, Missing, Schema, Session,
};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::memory::{AdvisedCache, MemoryNeed};
use rumba_engine_api::parity::{EngineTraits, Reads};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Settings, info};
use rumba_engine_api::sql::Dialect;
use rumba_engine_api::worker::{Client, ClientAddress};
use rumba_engine_api::workload::{Bound, LoadStage, Ops, State, Test, Workload};

use crate::registry::Registry;

/// An engine that only checks its settings.
struct Paper {
    info: EngineInfo,
    missing: bool,
}

const ENGINE_SETTINGS: &[SettingInfo] = &[
    info("page_size", Kind::Bytes, "16k", ""),
    info("log.file_max", Kind::Bytes, "100MB", ""),
    info("mapped", Kind::Bool, "false", ""),
    info("use_direct_reads", Kind::Bool, "false", ""),
    info("own_cache", Kind::Text, "by `cache`", ""),
    info("own_durability", Kind::Text, "by `durability`", ""),
];

impl Engine for Paper {
    fn info(&self) -> &EngineInfo {
        &self.info
    }
    fn availability(&self, _requested: BuildSelector<'_>) -> Availability {
        let missing =
            self.missing.then(|| Missing { what: "libpaper.so".into(), install: "apt-get install libpaper".into() });
        Availability { missing, ..Availability::here(Some("1".into()), "paper") }
    }
    fn has_cache(&self, config: &EngineConfig) -> bool {
        config.settings.bool("mapped") != Some(true)
    }
    fn memory_need(&self, _: &EngineConfig) -> Option<MemoryNeed> {
        // Base 100 MiB, 1.5 times the cache, 1 MiB for each client.
        (self.info.name == "rocksdb").then(|| MemoryNeed::of("rocksdb 100 1.5 0 2 1", "rocksdb")).flatten()
    }
    /// It has no known traits, except direct reads if they are set.
    fn nature(&self, config: &EngineConfig) -> EngineTraits {
        let is_direct = config.settings.bool("use_direct_reads") == Some(true);
        EngineTraits { reads: is_direct.then_some(Reads::Direct), ..EngineTraits::default() }
    }
    fn compression(&self, config: &EngineConfig) -> Option<String> {
        config.compression.clone().or_else(|| (self.info.name == "sqlite").then(|| "none".to_owned()))
    }
    fn advised_cache(&self, config: &EngineConfig, memory_bytes: u64) -> Option<AdvisedCache> {
        let is_buffered = config.settings.bool("use_direct_reads") != Some(true) && self.info.name == "sqlite";
        is_buffered.then_some(AdvisedCache { bytes: memory_bytes / 4, rule: "a quarter, as paper advises" })
    }
    /// Both settings are taken as written, in any form.
    fn overruled(&self, config: &EngineConfig) -> OverriddenSettings {
        let (cache, durability) = ("own_cache", "own_durability");
        let settings = &config.settings;
        let level = |name: &str| Durability::NAMES.iter().find(|(known, _)| *known == name).map(|(_, level)| *level);
        OverriddenSettings {
            cache: settings.get(cache).map(|_| Own::new(cache, settings.bytes(cache))),
            durability: settings.text(durability).map(|name| Own::new(durability, level(name))),
        }
    }
    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        config.settings.check(self.info.name, ENGINE_SETTINGS)
    }
    fn open(&self, _: &Path, _: &EngineConfig, _: Schema<'_>) -> Result<Box<dyn Instance>> {
        Err(EngineError::failed("open", "paper does not open"))
    }
    fn reopens(&self, _: &EngineConfig) -> bool {
        self.info.name == "rocksdb"
    }
}

/// A workload that is only planned; it counts how often it is bound.
#[derive(Clone, Default)]
pub struct PaperLoad {
    /// The number of times it was bound.
    pub bound: Arc<AtomicUsize>,
}

const WORKLOAD_SETTINGS: &[SettingInfo] = &[
    info("maxid1", Kind::Int(1, 1_000_000_000), "1000", ""),
    info("suite", Kind::Bool, "false", ""),
    info("suite_again", Kind::Bool, "false", ""),
    info("tests", Kind::Text, "none", ""),
];

impl Workload for PaperLoad {
    fn name(&self) -> &'static str {
        "linkbench"
    }
    fn about(&self) -> &'static str {
        "on paper"
    }
    fn settings(&self) -> &'static [SettingInfo] {
        WORKLOAD_SETTINGS
    }
    fn families(&self) -> &'static [Family] {
        &[Family::KeyValue, Family::Sql(Dialect::Sqlite)]
    }
    fn tests(&self, settings: &Settings) -> Result<Vec<Test>, SettingError> {
        let test = |name: &str| Test { name: name.to_owned(), settings: settings.clone(), loads: false };
        let is_set = |setting: &str| settings.bool(setting) == Some(true);
        let names: &[&str] = match (is_set("suite"), is_set("suite_again")) {
            (true, _) => &["reads", "writes"],
            (_, true) => &["reads", "reads"],
            _ => &[],
        };
        Ok(names.iter().map(|name| test(name)).collect())
    }
    fn bind(&self, _: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        self.bound.fetch_add(1, Relaxed);
        Ok(Box::new(self.clone()))
    }
}

impl Bound for PaperLoad {
    fn schema(&self, _: Family) -> Schema<'_> {
        Schema::BySession
    }
    fn ops(&self) -> Ops {
        Ops::from([])
    }
    fn load_stages(&self) -> Vec<LoadStage> {
        Vec::new()
    }
    fn expected_rows(&self) -> u64 {
        0
    }
    fn expected_logical_bytes(&self) -> u64 {
        1 << 30
    }
    fn conditions(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    fn create_schema(&self, _: &mut Session) -> Result<()> {
        Ok(())
    }
    fn loader(&self, _: usize, _: Session, _: ClientAddress, _: u64) -> Result<Box<dyn Client>> {
        Err(EngineError::failed("loader", "paper does not load"))
    }
    fn logical_bytes(&self) -> u64 {
        0
    }
    fn state(&self) -> State {
        State::new()
    }
    fn restore(&self, _: &State) -> Result<()> {
        Ok(())
    }
    fn client(&self, _: Session, _: ClientAddress, _: u64) -> Result<Box<dyn Client>> {
        Err(EngineError::failed("client", "paper does not run"))
    }
    fn verify(&self, _: Session) -> Result<Vec<Check>> {
        Ok(Vec::new())
    }
}

/// Fake engines and a fake workload.
pub fn registry() -> Registry {
    with_load(PaperLoad::default())
}

/// The same with this workload.
pub fn with_load(load: PaperLoad) -> Registry {
    let paper = |name, family, form| {
        let info = EngineInfo {
            name,
            about: "on paper",
            family,
            form,
            brought: None,
            keeps_data: true,
            has_cache: true,
            has_transactions: name != "plain",
            compressions: &["none", "zstd"],
            settings: ENGINE_SETTINGS,
        };
        Box::new(Paper { info, missing: name == "absent" }) as Box<dyn Engine>
    };
    Registry {
        build: Default::default(),
        engines: vec![
            paper("rocksdb", Family::KeyValue, Form::Library),
            paper("sqlite", Family::Sql(Dialect::Sqlite), Form::BuiltIn),
            paper("innodb", Family::Sql(Dialect::MySql), Form::Server),
            paper("myrocks", Family::KeyValue, Form::Server),
            paper("absent", Family::KeyValue, Form::BuiltIn),
            paper("plain", Family::KeyValue, Form::BuiltIn),
        ],
        workloads: vec![Box::new(load)],
        catalogues: Vec::new(),
        process: None,
    }
}
