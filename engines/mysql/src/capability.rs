//! A server's variables and engines, read from the server itself once per build.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::setting::{SettingError, Value};
use rumba_engine_api::units::parse_bytes;
use rumba_protocol_mysql::{Admin, WireError};
use serde::{Deserialize, Serialize};

use crate::initialise;
use crate::launch::Launch;
use crate::plan::Line;
use rumba_server_kit::cache::{self, Draft};
use rumba_server_kit::failure::last_lines;
use rumba_server_kit::host::{Data, Layout};
use rumba_server_kit::readback::as_switch;
use rumba_server_kit::version::Version;

use crate::software::{Brand, Software};
use crate::sql::firsts;

/// A server's variable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// Its default value.
    pub value: String,
    /// The type, if the server reports it: `BIGINT UNSIGNED`, `ENUM`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The smallest number it accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<String>,
    /// The largest number it accepts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<String>,
    /// The values of an enumeration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

/// A server's version, variables and engines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The server's brand.
    pub brand: Brand,
    /// Its version.
    pub version: Version,
    /// The version as the server prints it.
    pub version_text: String,
    /// Its variables by name.
    pub variables: BTreeMap<String, Variable>,
    /// Its engines by its own names, the default one first.
    pub engines: Vec<String>,
    /// The lines of the server's log about an engine whose plugin is here but did not load.
    #[serde(skip)]
    pub refusal: Option<String>,
}

impl Capabilities {
    /// Reads the capabilities of an installed server. Unless they are cached, this starts the server briefly.
    ///
    /// # Errors
    /// The server cannot be started or queried.
    pub fn of(software: &Software) -> Result<Self> {
        let name = format!("{}-{:016x}.json", software.short_name(), cache::number_of(&(software.build() + FORM)));
        let place = cache::root()?.join("capabilities").join(name);
        if let Some(known) = fs::read(&place).ok().and_then(|json| serde_json::from_slice(&json).ok()) {
            return Ok(known);
        }
        let requested = Self::request_software(software, &place)?;
        if requested.refusal.is_some() {
            // The reason may be a setting of this host, which its owner can change.
            return Ok(requested);
        }
        // A failed write only means that the next run queries the server again.
        if let Ok(json) = serde_json::to_vec_pretty(&requested) {
            let _ = Draft::new(&place).and_then(|draft| {
                let whole = draft.path().join("json");
                fs::write(&whole, json).and_then(|()| fs::rename(&whole, &place))
            });
        }
        Ok(requested)
    }

    fn request_software(software: &Software, place: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| EngineError::failed("cache", error.to_string());
        let draft = Draft::new(place).map_err(failed)?;
        let layout = Layout::new(draft.path());
        initialise::provide(software, &[], &layout.data())?;
        let line = |name: &str, value: &str| Line { name: name.into(), value: Some(value.into()), must_hold: false };
        let mut lines = vec![line("innodb_buffer_pool_size", "24M")];
        lines.extend(engine_plugins(software).map(|plugin| line("plugin_load_add", plugin)));
        let launch = Launch { software, layout: &layout, lines: &lines, tcp: None, data: Data::New };
        let running = launch.start()?;
        let mut admin = Admin::connect(&running.target, Duration::from_secs(60)).map_err(requesting)?;
        let found = Self::fetch(&mut admin).map_err(requesting)?;
        let is_whole = ENGINES.iter().all(|(engine, library)| !software.has_plugin(library) || found.has(engine));
        Ok(Self { refusal: (!is_whole).then(|| refusal_in(&running.watch.log())), ..found })
        // The server is killed here, and its data, a copy, is deleted with the draft.
    }

    /// Reads the capabilities of a running server.
    pub fn fetch(admin: &mut Admin) -> Result<Self, WireError> {
        let version_text = firsts(admin, "SELECT VERSION()")?.into_iter().next().unwrap_or_default();
        let brand = if version_text.to_ascii_lowercase().contains("mariadb") { Brand::MariaDb } else { Brand::MySql };
        let version = Version::find(&version_text).unwrap_or(Version(0, 0, 0));
        let mut variables: BTreeMap<String, Variable> = global_variables(admin)?
            .into_iter()
            .map(|(name, value)| (name, Variable { value, ..Variable::default() }))
            .collect();
        if brand == Brand::MariaDb {
            add_kinds(admin, &mut variables)?;
        }
        let mut engines: Vec<(bool, String)> = admin
            .query("SHOW ENGINES")?
            .rows
            .into_iter()
            .filter_map(|row| {
                let mut cells = row.into_iter();
                let (name, support) = (cells.next()??, cells.next()??);
                matches!(support.as_str(), "YES" | "DEFAULT").then_some((support != "DEFAULT", name))
            })
            .collect();
        engines.sort();
        let engines = engines.into_iter().map(|(_, name)| name).collect();
        Ok(Self { brand, version, version_text, variables, engines, refusal: None })
    }

    /// The server's name for people: `MariaDB 10.11.14`.
    pub fn name(&self) -> String {
        format!("{} {}", self.brand.name(), self.version)
    }

    /// The server's own name for an engine, or why the engine is unavailable.
    ///
    /// # Errors
    /// An engine that the server lacks, with the engines it has.
    pub fn engine(&self, key: &str, requested: &str) -> Result<&str, SettingError> {
        let found = self.engines.iter().find(|name| name.eq_ignore_ascii_case(requested));
        found.map(String::as_str).ok_or_else(|| {
            let is_plugin = ENGINES.iter().any(|(engine, _)| engine.eq_ignore_ascii_case(requested));
            if let Some(refusal) = self.refusal.as_ref().filter(|_| is_plugin) {
                let problem = format!("{} does not load {requested}; its log has:\n{refusal}", self.name());
                return SettingError::new(key, problem, "remove the cause, or use another engine");
            }
            let remedy = format!("it has {}; name a server that has it in `server`", self.engines.join(", "));
            SettingError::new(key, format!("{} has no engine {requested}", self.name()), remedy)
        })
    }

    fn has(&self, engine: &str) -> bool {
        self.engines.iter().any(|name| name.eq_ignore_ascii_case(engine))
    }

    /// Resolves an experiment's name to a server variable: by its own name, or without the engine's prefix.
    ///
    /// # Errors
    /// A name that the server does not know, with the nearest one.
    pub fn resolve(&self, name: &str, prefix: &str) -> Result<String, SettingError> {
        let prefixed = format!("{prefix}_{name}");
        let known = |name: &str| self.variables.contains_key(name) || UNLISTED.contains(&name);
        match () {
            () if known(name) => Ok(name.to_owned()),
            () if known(&prefixed) => Ok(prefixed),
            () => {
                let names = self.variables.keys().map(String::as_str);
                Err(SettingError::unknown(name, &self.name(), names))
            }
        }
    }

    /// Converts a value to the syntax of the server's option file.
    ///
    /// # Errors
    /// A value whose type or size the server refuses, as far as it reports its limits.
    pub fn value(&self, name: &str, value: &Value) -> Result<String, SettingError> {
        let variable = self.variables.get(name);
        let text = match value {
            Value::Bool(true) => "ON".to_owned(),
            Value::Bool(false) => "OFF".to_owned(),
            Value::Text(text) if variable.is_some_and(Variable::is_number) => match parse_bytes(text) {
                Ok(bytes) if !text.trim().is_empty() => bytes.to_string(),
                _ => text.clone(),
            },
            other => other.to_string(),
        };
        if text.contains(['\n', '\r', '\0']) {
            return Err(SettingError::new(name, "its value has a line break", "write it on one line"));
        }
        if name == PAGE_SIZE {
            self.check_page_size(value, &text)?;
        }
        if let Some(variable) = variable {
            variable.check(name, &text)?;
        }
        Ok(text)
    }

    /// Refuses a size that InnoDB does not have. The bounds that a server reports include such sizes, and MySQL reports
    /// none.
    fn check_page_size(&self, value: &Value, text: &str) -> Result<(), SettingError> {
        let has_large_pages = match self.brand {
            Brand::MariaDb => self.version >= Version(10, 1, 0),
            Brand::MySql => self.version >= Version(5, 7, 6),
        };
        let sizes = if has_large_pages { &PAGE_SIZES[..] } else { &PAGE_SIZES[..3] };
        if parse_bytes(text).is_ok_and(|bytes| sizes.contains(&bytes)) {
            return Ok(());
        }
        let sizes: Vec<String> = sizes.iter().map(|bytes| format!("{}k", bytes >> 10)).collect();
        let problem = format!("`{value}` is not a page size of {}", self.name());
        Err(SettingError::new(PAGE_SIZE, problem, format!("expected one of {}", sizes.join(", "))))
    }
}

/// The variable with the size of InnoDB's pages.
const PAGE_SIZE: &str = "innodb_page_size";

/// Its values in bytes. Old servers have the first three.
const PAGE_SIZES: [u64; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// Version of the cached JSON; change it when its format changes.
const FORM: &str = "\nform 1";

/// Server options that are not variables.
const UNLISTED: &[&str] =
    &["plugin_load_add", "plugin_load", "transaction_isolation", "binlog_do_db", "binlog_ignore_db"];

fn requesting(error: WireError) -> EngineError {
    EngineError::failed("requesting the server's capabilities", error.to_string())
}

/// Engines in plugins, and their libraries.
const ENGINES: [(&str, &str); 2] = [("rocksdb", "ha_rocksdb"), ("tokudb", "ha_tokudb")];

fn engine_plugins(software: &Software) -> impl Iterator<Item = &'static str> + use<> {
    let brand = software.brand;
    let here: Vec<_> = ENGINES.into_iter().filter(|(_, library)| software.has_plugin(library)).collect();
    here.into_iter().map(move |(engine, _)| plugin(engine, brand))
}

/// The lines of a log about an engine that did not load.
fn refusal_in(log: &str) -> String {
    let names = ["rocksdb", "tokudb", "huge pages"];
    let about = |line: &&str| names.iter().any(|name| line.to_ascii_lowercase().contains(name));
    let lines: Vec<&str> = log.lines().filter(about).collect();
    last_lines(&lines.join("\n"), 8)
}

/// The option that loads an engine's plugin.
pub fn plugin(engine: &str, brand: Brand) -> &'static str {
    match (engine, brand) {
        ("rocksdb", Brand::MariaDb) => "ha_rocksdb",
        ("rocksdb", Brand::MySql) => "rocksdb=ha_rocksdb.so",
        (_, Brand::MariaDb) => "ha_tokudb",
        (_, Brand::MySql) => "tokudb=ha_tokudb.so",
    }
}

/// The global variables and their values.
pub fn global_variables(admin: &mut Admin) -> Result<BTreeMap<String, String>, WireError> {
    let rows = admin.query("SHOW GLOBAL VARIABLES")?.rows;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let mut cells = row.into_iter();
            Some((cells.next()??.to_ascii_lowercase(), cells.next()?.unwrap_or_default()))
        })
        .collect())
}

fn add_kinds(admin: &mut Admin, variables: &mut BTreeMap<String, Variable>) -> Result<(), WireError> {
    let sql = "SELECT LOWER(VARIABLE_NAME), VARIABLE_TYPE, NUMERIC_MIN_VALUE, NUMERIC_MAX_VALUE, ENUM_VALUE_LIST, \
               DEFAULT_VALUE FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_SCOPE <> 'SESSION ONLY'";
    for row in admin.query(sql)?.rows {
        let [Some(name), kind, least, most, words, default] = &row[..] else { continue };
        let variable = variables.entry(name.clone()).or_default();
        if variable.value.is_empty() {
            variable.value = default.clone().unwrap_or_default();
        }
        (variable.kind, variable.least) = (kind.clone(), least.clone());
        (variable.most, variable.words) = (most.clone(), words.clone());
    }
    Ok(())
}

impl Variable {
    /// Whether the variable is a number, as far as the server reports it.
    pub fn is_number(&self) -> bool {
        match self.kind.as_deref() {
            Some(kind) => kind.contains("INT") || kind == "DOUBLE",
            None => self.value.parse::<f64>().is_ok(),
        }
    }

    fn check(&self, name: &str, text: &str) -> Result<(), SettingError> {
        let wrong = |expected: String| {
            Err(SettingError::new(name, format!("`{text}` does not fit"), format!("expected {expected}")))
        };
        match self.kind.as_deref() {
            Some("BOOLEAN") if as_switch(text).is_none() => wrong("true or false".into()),
            Some(kind) if kind.contains("INT") => match text.parse::<i128>() {
                Ok(number) if !self.holds(number) => {
                    wrong(format!("a number from {} to {}", show(&self.least), show(&self.most)))
                }
                Ok(_) => Ok(()),
                // Some of these accept words as well. innodb_flush_log_at_trx_commit does not, and the server reports
                // that.
                Err(_) if as_switch(text).is_some() => Ok(()),
                Err(_) => wrong("a whole number, or a size such as 64MiB".into()),
            },
            Some("DOUBLE") if text.parse::<f64>().is_err() => wrong("a number".into()),
            // For some variables the server lists no words, for example for MariaDB's character sets. It then reports a
            // wrong one itself.
            Some("ENUM") if self.words.as_deref().is_none_or(str::is_empty) => Ok(()),
            Some("ENUM") => {
                let words: Vec<&str> = self.words.as_deref().unwrap_or_default().split(',').collect();
                let by_number = text.parse::<usize>().is_ok_and(|number| number < words.len());
                let by_name = words.iter().any(|word| word.eq_ignore_ascii_case(text));
                let is_known = by_number || by_name || as_switch(text).is_some();
                if is_known { Ok(()) } else { wrong(format!("one of {}", words.join(", "))) }
            }
            _ => Ok(()),
        }
    }

    fn holds(&self, number: i128) -> bool {
        let bound = |text: &Option<String>| text.as_ref().and_then(|text| text.parse::<i128>().ok());
        // The server does not refuse a number out of bounds, but silently changes it to the bound.
        bound(&self.least).is_none_or(|least| number >= least) && bound(&self.most).is_none_or(|most| number <= most)
    }
}

fn show(bound: &Option<String>) -> &str {
    bound.as_deref().unwrap_or("any")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capabilities() -> Capabilities {
        let number = Variable {
            value: "16384".into(),
            kind: Some("BIGINT UNSIGNED".into()),
            least: Some("4096".into()),
            most: Some("65536".into()),
            words: None,
        };
        let word = Variable { kind: Some("ENUM".into()), words: Some("fsync,O_DIRECT".into()), ..Variable::default() };
        let unreported = Variable { kind: Some("ENUM".into()), words: Some(String::new()), ..Variable::default() };
        Capabilities {
            refusal: None,
            brand: Brand::MariaDb,
            version: Version(10, 11, 14),
            version_text: "10.11.14-MariaDB".into(),
            variables: [
                ("innodb_page_size", number),
                ("innodb_flush_method", word),
                ("character_set_server", unreported),
            ]
            .map(|(name, variable)| (name.to_owned(), variable))
            .into(),
            engines: vec!["InnoDB".into(), "ROCKSDB".into()],
        }
    }

    #[test]
    fn an_engine_that_the_server_lacks_is_refused_with_those_it_has() {
        let error = capabilities().engine("use", "TokuDB").unwrap_err();
        assert_eq!(error.problem, "MariaDB 10.11.14 has no engine TokuDB");
        assert!(error.remedy.contains("InnoDB, ROCKSDB"), "{}", error.remedy);
        assert_eq!(capabilities().engine("use", "RocksDB"), Ok("ROCKSDB"));
    }

    #[test]
    fn a_variable_is_known_with_and_without_its_engines_prefix() {
        let known = capabilities();
        assert_eq!(known.resolve("page_size", "innodb").as_deref(), Ok("innodb_page_size"));
        let error = known.resolve("innodb_pagesize", "innodb").unwrap_err();
        assert_eq!(error.remedy, "did you mean `innodb_page_size`?");
    }

    #[test]
    fn values_are_checked_where_the_server_lists_allowed_values() {
        let known = capabilities();
        let error = known.value("innodb_flush_method", &Value::Text("O_DIRCT".into())).unwrap_err();
        assert!(error.remedy.contains("O_DIRECT"), "{}", error.remedy);
        let charset = known.value("character_set_server", &Value::Text("latin1".into()));
        assert_eq!(charset.as_deref(), Ok("latin1"));
    }

    /// The dry run accepted 7k, and the server ended with it. MySQL reports neither type nor bounds.
    #[test]
    fn only_page_sizes_of_innodb_are_accepted() {
        let mariadb = capabilities();
        let mut old = Capabilities { brand: Brand::MySql, version: Version(5, 6, 24), ..capabilities() };
        old.variables.insert("innodb_page_size".into(), Variable { value: "16384".into(), ..Variable::default() });
        let text = |text: &str| Value::Text(text.to_owned());
        for wrong in [text("7k"), text("7KiB"), Value::Int(7168), text("4097"), text("128k"), text("page")] {
            for server in [&mariadb, &old] {
                let error = server.value("innodb_page_size", &wrong).unwrap_err();
                assert!(error.remedy.starts_with("expected one of 4k, 8k, 16k"), "{error:?}");
            }
        }
        let error = mariadb.value("innodb_page_size", &text("7k")).unwrap_err();
        assert_eq!(error.problem, "`7k` is not a page size of MariaDB 10.11.14");
        assert_eq!(error.remedy, "expected one of 4k, 8k, 16k, 32k, 64k");
        for (right, bytes) in [(text("8k"), "8192"), (text("32KiB"), "32768"), (Value::Int(65536), "65536")] {
            assert_eq!(mariadb.value("innodb_page_size", &right).as_deref(), Ok(bytes));
        }
        let error = old.value("innodb_page_size", &text("32k")).unwrap_err();
        assert_eq!(error.remedy, "expected one of 4k, 8k, 16k", "MySQL has larger pages since 5.7.6");
    }
}
