//! Translates an experiment's configuration to server variables, table options and session setup.

use rumba_engine_api::engine::{AT_DEFAULT, Durability};
use rumba_engine_api::setting::SettingError;
use rumba_engine_api::units::parse_bytes;
use rumba_server_kit::readback::{Match, as_switch, compare};

use crate::capability::{Capabilities, plugin};
use crate::compression::{self, Compressed};
use crate::counters::Kind;
use crate::initialise;
use crate::places;
use crate::profile;
use crate::requested::RequestedEngine;
use rumba_server_kit::profile::Levels;
use rumba_server_kit::version::Version;

use crate::software::{Brand, Software};

/// A line of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The variable or option.
    pub name: String,
    /// The value; a switch has none.
    pub value: Option<String>,
    /// Whether the experiment requests this value, so that any other value invalidates the trial.
    pub must_hold: bool,
}

impl Line {
    /// Whether the value is the server's default. The buffer pool is excluded, because rumba shrank it when it read the
    /// defaults.
    fn is_default_of(&self, server: &Capabilities) -> bool {
        let default = server.variables.get(&self.name).filter(|_| self.name != "innodb_buffer_pool_size");
        let value = self.value.as_deref();
        default.zip(value).is_some_and(|(default, value)| compare(value, &default.value) == Match::Same)
    }
}

/// Lists the lines whose value is the server's own default.
fn at_default<'a>(lines: impl Iterator<Item = &'a Line>, server: &Capabilities) -> Option<(String, String)> {
    let names: Vec<&str> = lines.filter(|line| line.is_default_of(server)).map(|line| line.name.as_str()).collect();
    (!names.is_empty()).then(|| (AT_DEFAULT.to_owned(), names.join(", ")))
}

/// Normalizes a value: sizes in bytes, switches as `ON` and `OFF`. `1M` and 1048576 are one value.
fn in_one_spelling(value: &str) -> String {
    match (parse_bytes(value), as_switch(value)) {
        (Ok(bytes), _) if !value.trim().is_empty() => bytes.to_string(),
        (_, Some(on)) => if on { "ON" } else { "OFF" }.to_owned(),
        _ => value.to_ascii_lowercase(),
    }
}

/// The configuration of a server.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The engine that holds the tables.
    pub kind: Kind,
    /// The configuration.
    pub lines: Vec<Line>,
    /// Options at the end of each table definition.
    pub table_options: String,
    /// Statements that every session runs first.
    pub setup: Vec<String>,
    /// The TCP port on loopback, 0 for any, if sessions use TCP.
    pub tcp: Option<u16>,
}

impl Plan {
    /// The variables that take effect when the data directory is created.
    pub fn at_install(&self) -> Vec<(String, String)> {
        let shaping = self.lines.iter().filter(|line| initialise::is_at_install(&line.name));
        shaping.filter_map(|line| Some((line.name.clone(), line.value.clone()?))).collect()
    }

    /// The server's configuration in normalized values, the table and session options, and the variables that equal the
    /// server's default.
    pub fn settings(&self, server: &Capabilities) -> Vec<(String, String)> {
        let lines = self
            .lines
            .iter()
            .map(|line| (line.name.clone(), in_one_spelling(line.value.as_deref().unwrap_or_default())));
        let own = [("table_options", self.table_options.clone()), ("session_setup", self.setup.join("; "))];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        let tcp = self.tcp.map(|_| ("tcp".to_owned(), "true".to_owned()));
        lines.chain(own).chain(tcp).chain(at_default(self.lines.iter(), server)).collect()
    }

    /// Requested variables that equal the server's default, so that an engine without them compares as equal.
    pub fn at_default(&self, server: &Capabilities) -> Option<(String, String)> {
        at_default(self.lines.iter().filter(|line| line.must_hold), server)
    }

    fn set(&mut self, name: &str, value: impl Into<String>, must_hold: bool) {
        // Plugins and instruments may occur on several lines.
        if !["plugin_load_add", INSTRUMENT].contains(&name) {
            self.lines.retain(|line| line.name != name);
        }
        self.lines.push(Line { name: name.into(), value: Some(value.into()), must_hold });
    }
}

/// The plan for an existing server, whose configuration is never changed.
///
/// # Errors
/// A request that does not fit the server.
pub fn for_existing(requested: &RequestedEngine<'_>) -> Result<Plan, SettingError> {
    let kind = requested.kind()?;
    let variables = requested.variables()?;
    let compressed = compression::plan(requested, &kind, None, &variables)?;
    let mut plan = begin(requested, kind, &compressed);
    for (name, value) in variables {
        plan.set(&name, value, true);
    }
    Ok(plan)
}

/// The plan for a server that rumba runs.
///
/// # Errors
/// A request that does not fit the server.
pub fn for_own(requested: &RequestedEngine<'_>, software: &Software) -> Result<Plan, SettingError> {
    let kind = requested.kind()?;
    let variables = requested.variables()?;
    variables.iter().try_for_each(|(name, value)| places::require_within(name, value))?;
    let compressed = compression::plan(requested, &kind, Some(software), &variables)?;
    let mut plan = begin(requested, kind, &compressed);
    load_engine(&mut plan, software.brand);
    fill(&mut plan, requested, &compressed)?;
    binlog(&mut plan, requested);
    match (requested.options.wait_events, requested.options.contention) {
        (true, _) => time_waits(&mut plan, &crate::counters::WAITS),
        (false, true) => time_waits(&mut plan, &crate::counters::LATCHES),
        (false, false) => {}
    }
    if let Some(isolation) = isolation(requested, &plan.kind) {
        plan.set("transaction_isolation", isolation.replace(' ', "-"), true);
    }
    for plugin in &compressed.plugins {
        plan.set("plugin_load_add", plugin.clone(), false);
    }
    for (name, value) in &compressed.variables {
        plan.set(name, value.clone(), true);
    }
    for (name, value) in variables {
        plan.set(&name, value, true);
    }
    Ok(plan)
}

fn begin(requested: &RequestedEngine<'_>, kind: Kind, compressed: &Compressed) -> Plan {
    let named = |name: &str| requested.options.variables.get(name).map(ToString::to_string);
    // Published runs use latin1, one byte a character. Clients use the tables' character set, so no conversion takes
    // place.
    let charset = named("character_set_server").unwrap_or_else(|| "latin1".to_owned());
    let mut setup = vec![format!("SET NAMES {charset}")];
    setup.extend(isolation(requested, &kind).map(|level| format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")));
    let mut parts = Vec::new();
    parts.extend(
        requested
            .storage
            .map(|storage| format!("ENGINE={}", requested.server.engine("engine", storage).unwrap_or(storage))),
    );
    parts.extend(compressed.table.iter().cloned());
    parts.push(format!("DEFAULT CHARSET={charset}"));
    match named("collation_server") {
        Some(collation) => parts.push(format!("COLLATE {collation}")),
        // MyRocks can read a key back from an index only with a binary collation.
        None if kind == Kind::RocksDb => parts.push(format!("COLLATE {charset}_bin")),
        None => {}
    }
    let port = requested.options.variables.get("port").and_then(|port| port.to_string().parse().ok());
    let tcp = (requested.options.tcp || port.is_some()).then(|| port.unwrap_or(0));
    Plan { kind, lines: Vec::new(), table_options: parts.join(" "), setup, tcp }
}

/// The isolation level of every session. MyRocks works best with a snapshot for each statement. With a snapshot for
/// each transaction, writing a row that changed since is a conflict.
fn isolation(requested: &RequestedEngine<'_>, kind: &Kind) -> Option<String> {
    Some(requested.options.isolation.clone().unwrap_or_else(|| usual_isolation(kind).to_owned()))
}

/// The default isolation level of an engine.
pub fn usual_isolation(kind: &Kind) -> &'static str {
    match kind {
        Kind::RocksDb => "READ COMMITTED",
        _ => "REPEATABLE READ",
    }
}

fn load_engine(plan: &mut Plan, brand: Brand) {
    let engine = match &plan.kind {
        Kind::RocksDb => "rocksdb",
        Kind::TokuDb => "tokudb",
        _ => return,
    };
    plan.set("plugin_load_add", plugin(engine, brand), false);
    // Otherwise a server whose engine refuses an option would start without the engine.
    plan.set(engine, "FORCE", false);
}

fn fill(plan: &mut Plan, requested: &RequestedEngine<'_>, compressed: &Compressed) -> Result<(), SettingError> {
    let engine = requested.config.engine.as_str();
    let durability = profile::kept_durability(&plan.kind, requested.config.durability);
    profile::promises(&plan.kind).require(engine, durability)?;
    let filled = profile::fill(&profile::For {
        kind: &plan.kind,
        brand: requested.server.brand,
        version: requested.server.version,
        cache: requested.config.cache,
        durability: requested.config.durability,
    })?;
    for line in filled.lines.iter().filter(|line| requested.server.variables.contains_key(&line.name)) {
        plan.set(&line.name, line.value.clone(), line.is_promise);
    }
    if plan.kind == Kind::RocksDb {
        let families = filled.families.iter().chain(&compressed.families);
        let families: Vec<String> = families.map(|(name, value)| format!("{name}={value}")).collect();
        plan.set("rocksdb_default_cf_options", families.join(";"), true);
    }
    Ok(())
}

/// The option that enables an instrument of the performance schema.
const INSTRUMENT: &str = "performance_schema_instrument";

/// Enables timing of waits that [`crate::counters`] reports.
fn time_waits(plan: &mut Plan, instruments: &[&str]) {
    plan.set("performance_schema", "ON", true);
    for instrument in instruments {
        plan.set(INSTRUMENT, format!("{instrument}=ON"), false);
    }
}

/// Whether a commit waits for the binary log, where there is one.
pub const SYNC_BINLOG: &str = "sync_binlog";
/// The values for each durability. With 0, a commit writes the log to the kernel only.
pub fn syncs_of_binlog() -> Levels {
    let levels = Durability::NAMES.map(|(_, level)| level);
    levels.map(|level| (level, if level == Durability::Sync { "1" } else { "0" }.to_owned())).into()
}

fn binlog(plan: &mut Plan, requested: &RequestedEngine<'_>) {
    let has = |name: &str| requested.server.variables.contains_key(name);
    if requested.options.binlog {
        plan.set("log_bin", "binlog", false);
        plan.set("server_id", "1", false);
        // MyRocks supports only the row format, which is also the default elsewhere.
        if has("binlog_format") {
            plan.set("binlog_format", "ROW", true);
        }
        plan.set(SYNC_BINLOG, syncs_of_binlog()[&requested.config.durability].clone(), true);
    } else if requested.server.brand == Brand::MySql && requested.server.version >= Version(8, 0, 0) {
        plan.lines.push(Line { name: "disable_log_bin".into(), value: None, must_hold: false });
    }
}
