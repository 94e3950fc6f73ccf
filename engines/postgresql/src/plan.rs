//! Translates an experiment's configuration to server settings, table options and session setup.

use std::collections::BTreeSet;

use rumba_engine_api::common::OverriddenSettings;
use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::SettingError;
use rumba_server_kit::profile::{self, Needs};

use crate::options::Options;
use crate::quantity::quantity;
use crate::software::Software;

/// A line of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The setting.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether the experiment requests this value, so that any other value invalidates the trial.
    pub must_hold: bool,
}

/// The configuration of a server.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The configuration.
    pub lines: Vec<Line>,
    /// Options at the end of each table definition.
    pub table_options: String,
    /// Parameters of the first message of every session.
    pub startup: Vec<(&'static str, String)>,
    /// Statements that every session runs first.
    pub setup: Vec<String>,
    /// The TCP port on loopback, 0 for any, if sessions use TCP.
    pub tcp: Option<u16>,
    /// Whether a new data directory has checksums; `None` uses the release's default.
    pub data_checksums: Option<bool>,
}

impl Plan {
    fn set(&mut self, name: &str, value: impl Into<String>, must_hold: bool) {
        self.lines.retain(|line| line.name != name);
        self.lines.push(Line { name: name.to_owned(), value: value.into(), must_hold });
    }

    /// Limits the WAL between two checkpoints to a quarter of the file system's size, unless the experiment sets it.
    pub fn fit_wal(&mut self, file_system: u64) {
        let ours = self.lines.iter_mut().find(|line| line.name == "max_wal_size" && !line.must_hold);
        if let Some(line) = ours {
            line.value = format!("{}MB", (file_system / WAL_SHARE / MIB).max(WAL_MIN_MIB));
        }
    }

    /// The configuration's value of a setting.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.lines.iter().find(|line| line.name == name).map(|line| line.value.as_str())
    }
}

/// The share of a file system that the WAL between two checkpoints may take, and its minimum. The server refuses less
/// than two WAL files.
const WAL_SHARE: u64 = 4;
const WAL_MIN_MIB: u64 = 64;
const MIB: u64 = 1 << 20;

/// The compression methods. They apply to values too long for a page (TOAST) and to full pages in the WAL. The server
/// never compresses table pages.
pub const COMPRESSIONS: &[&str] = &["none", "pglz", "lz4"];

const ENGINE: &str = "postgresql";
const PROFILE: &str = include_str!("../profiles/postgresql.toml");

/// The common settings that the experiment's own server settings override.
pub fn overruled(config: &EngineConfig) -> OverriddenSettings {
    let promises = profile::promises(&[PROFILE], ENGINE);
    let is = |setting: &str, of_server: &str| setting.eq_ignore_ascii_case(of_server);
    // Without a unit the number counts pages, which are 8 kB in every package.
    promises.overruled(config, is, |size| quantity(size, Some("8kB")).map(|bytes| bytes as u64))
}

/// The plan for an existing server, whose configuration is never changed.
pub fn for_existing(options: &Options) -> Plan {
    let mut plan = begin(options);
    if let Some(level) = &options.isolation {
        plan.setup.push(format!("SET default_transaction_isolation TO '{level}'"));
    }
    for (name, value) in &options.settings {
        plan.set(name, value.clone(), true);
    }
    plan
}

/// The plan for a server that rumba runs, which has the settings `known`.
///
/// # Errors
/// An invalid profile.
pub fn for_own(
    config: &EngineConfig,
    options: &Options,
    software: &Software,
    known: &BTreeSet<String>,
) -> Result<Plan, SettingError> {
    let mut plan = begin(options);
    let needs = Needs {
        engine: ENGINE,
        brand: "postgresql",
        version: software.version,
        cache: config.cache,
        durability: config.durability,
        cpus: std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64),
    };
    let filled = profile::fill(&[PROFILE], &needs)?;
    for line in filled.lines.iter().filter(|line| known.contains(&line.name)) {
        plan.set(&line.name, line.value.clone(), line.is_promise);
    }
    if let Some(level) = &options.isolation {
        plan.set("default_transaction_isolation", level.clone(), true);
    }
    compress(&mut plan, config.compression.as_deref(), software);
    for (name, value) in &options.settings {
        plan.set(name, value.clone(), true);
    }
    Ok(plan)
}

fn begin(options: &Options) -> Plan {
    let port = options.settings.get("port").and_then(|port| port.parse().ok());
    // The client reads timestamps from text in this format. Those of prepared statements are binary.
    let format_of_text = options.text.then(|| "SET DateStyle TO 'ISO'".to_owned());
    Plan {
        setup: format_of_text.into_iter().collect(),
        table_options: options.fillfactor.map(|percent| format!("WITH (fillfactor = {percent})")).unwrap_or_default(),
        tcp: (options.tcp || port.is_some()).then(|| port.unwrap_or(0)),
        data_checksums: options.data_checksums,
        ..Plan::default()
    }
}

/// Sets the compression methods. The WAL method can be chosen since release 15, that of long values since 14.
fn compress(plan: &mut Plan, compression: Option<&str>, software: &Software) {
    let Some(name) = compression else { return };
    let of_wal = match name {
        "none" => "off",
        _ if software.version.0 < 15 => "on",
        name => name,
    };
    plan.set("wal_compression", of_wal, true);
    if name != "none" && software.version.0 >= 14 {
        plan.set("default_toast_compression", name, true);
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::common::{Durability, Own};
    use rumba_engine_api::setting::Value;

    use super::*;

    fn with(durability: Durability, set: &[(&str, Value)]) -> OverriddenSettings {
        overruled(&EngineConfig { durability, settings: set.iter().cloned().collect(), ..EngineConfig::new(ENGINE) })
    }

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    #[test]
    fn max_wal_size_defaults_to_a_quarter_of_the_file_system() {
        let of = |must_hold, file_system: u64| {
            let line = Line { name: "max_wal_size".to_owned(), value: "1TB".to_owned(), must_hold };
            let mut plan = Plan { lines: vec![line], ..Plan::default() };
            plan.fit_wal(file_system);
            plan.value("max_wal_size").map(str::to_owned)
        };
        assert_eq!(of(false, 8 << 30).as_deref(), Some("2048MB"));
        assert_eq!(of(false, 64 << 20).as_deref(), Some("64MB"));
        assert_eq!(of(true, 8 << 30).as_deref(), Some("1TB"));
    }

    /// The format was in the first message of every connection, which poolers refuse.
    #[test]
    fn only_sessions_that_read_text_set_its_format() {
        let setup = |text| for_existing(&Options { text, ..Options::default() }).setup;
        assert_eq!(setup(false), [""; 0]);
        assert_eq!(setup(true), ["SET DateStyle TO 'ISO'"]);
    }

    #[test]
    fn buffers_of_its_own_are_the_cache_in_the_servers_units() {
        let cache = |setting: &str, size| with(Durability::Sync, &[(setting, size)]).cache;
        for (setting, size) in [
            ("shared_buffers", text("1GB")),
            ("Shared_Buffers", text("1048576kB")),
            ("shared_buffers", Value::Int(131_072)),
            ("shared_buffers", text("131072")),
        ] {
            assert_eq!(cache(setting, size), Some(Own::new(setting, Some(1 << 30))));
        }
        assert_eq!(cache("work_mem", text("1GB")), None);
    }

    #[test]
    fn every_setting_of_the_profile_has_a_reason() {
        assert_eq!(profile::without_reason(PROFILE), [""; 0]);
    }

    #[test]
    fn the_durability_is_what_both_settings_come_to_together() {
        let of = |durability, set: &[(&str, Value)]| with(durability, set).durability;
        let asynchronous = [("synchronous_commit", Value::Bool(false))];
        let own = |name, level| Some(Own::new(name, Some(level)));
        assert_eq!(of(Durability::Sync, &asynchronous), own("synchronous_commit", Durability::Buffered));
        assert_eq!(of(Durability::Buffered, &asynchronous), None, "the profile has it so");
        assert_eq!(of(Durability::NoSync, &asynchronous), own("synchronous_commit", Durability::None));
        let unsynced = [("fsync", text("off"))];
        assert_eq!(of(Durability::NoSync, &unsynced), None, "the profile has it so");
        assert_eq!(of(Durability::Sync, &unsynced), own("fsync", Durability::NoSync));
        assert_eq!(of(Durability::Buffered, &unsynced), own("fsync", Durability::None));
    }
}
