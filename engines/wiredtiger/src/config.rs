//! Translates an experiment's configuration to WiredTiger's configuration strings, and parses the strings that
//! WiredTiger keeps.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::engine::{Durability, EngineConfig};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, Value};

use crate::raw::{Connection, INSTALL, Library, Session};
use crate::settings::{Call, DECIDED_ELSEWHERE, SETTINGS, call_of, default_of};

/// The compression methods, as the extensions name them.
pub const COMPRESSIONS: &[&str] = &["none", "snappy", "zlib"];

/// The environment variable from which the library reads additional settings.
const ENVIRONMENT: &str = "WIREDTIGER_CONFIG";

/// The settings for the two calls, by dotted name: `log.file_max` → `104857600`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configs {
    /// For `wiredtiger_open`.
    pub open: BTreeMap<String, String>,
    /// For `WT_SESSION.create`, the same for every table.
    pub create: BTreeMap<String, String>,
}

/// Writes a configuration string: `log=(enabled=true,file_max=104857600),mmap=false`.
pub fn nested(dotted: &BTreeMap<String, String>) -> String {
    let mut groups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut parts = Vec::new();
    for (name, value) in dotted {
        match name.split_once('.') {
            Some((group, member)) => groups.entry(group).or_default().push(format!("{member}={value}")),
            None => parts.push(format!("{name}={value}")),
        }
    }
    parts.extend(groups.iter().map(|(group, members)| format!("{group}=({})", members.join(","))));
    parts.join(",")
}

/// The dotted names and values of a configuration string; lists stay whole.
pub fn dotted(config: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in split_outside_brackets(config) {
        let (name, value) = item.split_once('=').unwrap_or((item, "true"));
        let inner = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
        match inner.filter(|inner| inner.contains('=')) {
            Some(inner) => found.extend(dotted(inner).into_iter().map(|(member, v)| (format!("{name}.{member}"), v))),
            None => drop(found.insert(name.to_owned(), value.to_owned())),
        }
    }
    found
}

fn split_outside_brackets(config: &str) -> Vec<&str> {
    let (mut items, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, letter) in config.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' | '\n' if depth == 0 => {
                items.push(&config[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(&config[start..]);
    items.retain(|item| !item.trim().is_empty());
    items
}

/// A value as WiredTiger writes it; sizes in bytes.
///
/// # Errors
/// An invalid list.
pub fn literal(info: &SettingInfo, value: &Value) -> Result<String, SettingError> {
    let text = value.to_string();
    match info.kind {
        Kind::Bytes => Ok(match value {
            Value::Text(text) => rumba_engine_api::units::parse_bytes(text)
                .map_err(|why| SettingError::new(info.name, why, "a size such as 64MiB"))?
                .to_string(),
            _ => text,
        }),
        Kind::Text => {
            let inner = text.strip_prefix(['[', '(']).and_then(|rest| rest.strip_suffix([']', ')']));
            let plain = |inner: &str| inner.chars().all(|c| c.is_ascii_alphanumeric() || "_,=".contains(c));
            if inner.is_some_and(plain) {
                return Ok(text);
            }
            Err(SettingError::new(info.name, format!("`{text}` is not a list"), "write it as \"[one,two]\""))
        }
        // The only choice that the library expects as a list.
        Kind::Choice(_) if info.name == "statistics" => Ok(format!("({text})")),
        _ => Ok(text),
    }
}

/// Maps a configuration without using the library.
///
/// # Errors
/// The offending setting.
pub fn map(config: &EngineConfig) -> Result<Configs, SettingError> {
    refuse(config)?;
    let mut configs = defaults(config);
    for (name, value) in &config.settings.0 {
        let Some(info) = SETTINGS.iter().find(|info| info.name == name) else { continue };
        if name == "zlib.compression_level" {
            continue; // part of `extensions`, which the library's place decides
        }
        let value = literal(info, value)?;
        match call_of(name) {
            Call::Open => configs.open.insert(name.clone(), value),
            Call::Create => configs.create.insert(name.clone(), value),
        };
    }
    Ok(configs)
}

/// Refuses mistakes that can be found without the library.
fn refuse(config: &EngineConfig) -> Result<(), SettingError> {
    for name in config.settings.0.keys() {
        if let Some((name, remedy)) = DECIDED_ELSEWHERE.iter().find(|(elsewhere, _)| elsewhere == name) {
            return Err(SettingError::new(*name, "is not set here", *remedy));
        }
    }
    config.settings.check("wiredtiger", SETTINGS)?;
    if let Some(name) = &config.compression
        && !COMPRESSIONS.contains(&name.as_str())
    {
        let remedy = format!("it has: {}", COMPRESSIONS.join(", "));
        return Err(SettingError::new("compression", format!("wiredtiger has no `{name}`"), remedy));
    }
    let level = config.settings.get("zlib.compression_level");
    if level.is_some() && !compressors(config).contains(&"zlib".to_owned()) {
        return Err(SettingError::new("zlib.compression_level", "zlib is not in use", "set `compression = \"zlib\"`"));
    }
    refuse_broken_promise(config)
}

/// Refuses a setting that weakens the requested durability, or that has no effect under it.
fn refuse_broken_promise(config: &EngineConfig) -> Result<(), SettingError> {
    let settings = &config.settings;
    let off = |name: &str| settings.bool(name) == Some(false);
    let (name, problem, remedy) = match config.durability {
        Durability::None => return refuse_without_log(config),
        _ if off("log.enabled") => {
            ("log.enabled", "without a log a crash of the process loses commits", "set `durability = \"none\"`")
        }
        Durability::Buffered if settings.bool("transaction_sync.enabled") == Some(true) => (
            "transaction_sync.enabled",
            "a commit that writes its log record is more than `buffered`",
            "set `durability = \"no-sync\"` or `\"sync\"`",
        ),
        Durability::Buffered if settings.get("transaction_sync.method").is_some() => (
            "transaction_sync.method",
            "durability `buffered` does not write the log at commit",
            "set `durability = \"no-sync\"` or `\"sync\"`",
        ),
        Durability::NoSync if off("transaction_sync.enabled") => (
            "transaction_sync.enabled",
            "commits in the process's memory are lost when it is killed, and `no-sync` loses none then",
            "leave it out, or set `durability = \"buffered\"`",
        ),
        Durability::NoSync if settings.get("transaction_sync.method").is_some() => {
            ("transaction_sync.method", "durability `no-sync` does not sync the log", "set `durability = \"sync\"`")
        }
        Durability::Sync if off("transaction_sync.enabled") => {
            ("transaction_sync.enabled", "durability `sync` syncs the log at commit", "set `durability = \"no-sync\"`")
        }
        Durability::Sync if off("checkpoint_sync") => (
            "checkpoint_sync",
            "a checkpoint that is not synced still removes the log it covers, so a crash of the host loses commits",
            "leave it out, or set `durability = \"no-sync\"`",
        ),
        _ => return Ok(()),
    };
    Err(SettingError::new(name, problem, remedy))
}

/// Under `none` there is a log only if requested, and it guarantees nothing.
fn refuse_without_log(config: &EngineConfig) -> Result<(), SettingError> {
    let settings = &config.settings;
    let writes_out = match settings.bool("transaction_sync.enabled") {
        Some(true) => Some("transaction_sync.enabled"),
        _ => settings.get("transaction_sync.method").map(|_| "transaction_sync.method"),
    };
    if let Some(name) = writes_out {
        let remedy = "set `durability` to `no-sync` or `sync`";
        return Err(SettingError::new(name, "durability `none` writes no commit out", remedy));
    }
    let groups = ["log.", "transaction_sync.", "checkpoint.log_size"];
    let of_log = |name: &&String| *name != "log.enabled" && groups.iter().any(|group| name.starts_with(group));
    match settings.0.keys().find(of_log) {
        Some(name) if settings.bool("log.enabled") != Some(true) => {
            let remedy = "set `log.enabled = true` too, or `durability` to `no-sync` or `sync`";
            Err(SettingError::new(name, "durability `none` has no log", remedy))
        }
        _ => Ok(()),
    }
}

/// The common settings, and this engine's own defaults.
fn defaults(config: &EngineConfig) -> Configs {
    let writes_at_commit = config.durability >= Durability::NoSync;
    let logged = config.durability != Durability::None || config.settings.bool("log.enabled") == Some(true);
    let mut open: BTreeMap<String, String> = [
        ("cache_size", config.cache.to_string()),
        // A session per client, as MongoDB sets it; unused ones cost address space, not memory.
        ("session_max", default_of("session_max").into()),
        ("statistics", format!("({})", default_of("statistics"))),
        // MongoDB's interval.
        ("checkpoint.wait", default_of("checkpoint.wait").into()),
        ("log.enabled", logged.to_string()),
        // With method `none` a commit writes its log record to the system without a sync, so a killed process loses
        // nothing. If not enabled, the record stays in a buffer of the process, which a library thread writes out every
        // 50 ms.
        ("transaction_sync.enabled", writes_at_commit.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if writes_at_commit {
        let method = "transaction_sync.method";
        let synced = if config.durability == Durability::Sync { default_of(method) } else { "none" };
        open.insert(method.into(), synced.into());
    }
    if logged {
        // MongoDB's limit, which is also the library's largest.
        let size = "checkpoint.log_size";
        let bytes = rumba_engine_api::units::parse_bytes(default_of(size)).unwrap_or_default();
        open.insert(size.into(), bytes.to_string());
    }
    let create = [
        ("key_format", "u"),
        ("value_format", "u"),
        ("block_compressor", config.compression.as_deref().unwrap_or("none")),
    ];
    Configs { open, create: create.map(|(name, value)| (name.to_owned(), value.to_owned())).into() }
}

/// The compressors in use, by name.
fn compressors(config: &EngineConfig) -> Vec<String> {
    let table = config.compression.as_deref();
    let log = config.settings.text("log.compressor");
    let mut names: Vec<String> =
        table.into_iter().chain(log).filter(|name| *name != "none").map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Maps a configuration for this library, with the paths of its compressors.
///
/// # Errors
/// The offending setting, or a missing compressor.
pub fn map_for(library: &Library, config: &EngineConfig) -> Result<Configs, SettingError> {
    // The library's own `use_environment=false` leaves a database that it cannot open again.
    if std::env::var_os(ENVIRONMENT).is_some() {
        let problem = "this environment variable changes the settings behind the experiment's back";
        return Err(SettingError::new(ENVIRONMENT, problem, format!("unset {ENVIRONMENT}")));
    }
    let mut configs = map(config)?;
    let mut extensions = Vec::new();
    for name in compressors(config) {
        let path = library
            .compressor(&name)
            .map_err(|why| SettingError::new("compression", why, format!("install it: {INSTALL}")))?;
        let level = config.settings.int("zlib.compression_level").filter(|_| name == "zlib");
        let arguments = level.map(|level| format!("={{config={{compression_level={level}}}}}")).unwrap_or_default();
        extensions.push(format!("\"{}\"{arguments}", path.display()));
    }
    if !extensions.is_empty() {
        configs.open.insert("extensions".into(), format!("[{}]", extensions.join(",")));
    }
    Ok(configs)
}

/// Lets the library itself check a configuration. It checks each value alone, so that the error names the setting, and
/// then all together by opening an in-memory database.
///
/// # Errors
/// The offending setting, with the library's message.
pub fn rehearse(library: &Arc<Library>, config: &EngineConfig) -> Result<(), SettingError> {
    let configs = map_for(library, config)?;
    for (call, all) in [(Call::Open, &configs.open), (Call::Create, &configs.create)] {
        for (name, value) in all {
            let alone = nested(&BTreeMap::from([(name.clone(), value.clone())]));
            library.validate(call.name(), &alone).map_err(|why| refused(name, call, why))?;
        }
    }
    let mut open = configs.open;
    // Settings that touch files or start threads, which an empty database does not need.
    let bystanders = ["log.", "checkpoint", "statistics_log.", "transaction_sync.", "verbose", "direct_io"];
    open.retain(|name, _| !bystanders.iter().any(|start| name.starts_with(start)));
    open.insert("in_memory".into(), "true".into());
    let whole = |call: Call| {
        move |error: rumba_engine_api::error::EngineError| {
            let requested: Vec<&str> =
                config.settings.0.keys().filter(|name| call_of(name) == call).map(String::as_str).collect();
            let key = if requested.is_empty() { "settings".to_owned() } else { requested.join(", ") };
            SettingError::new(key, error.to_string(), "change one of them")
        }
    };
    // A process can open a database only once, in memory or not. This one uses the working directory as its home, and
    // writes nothing there.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let connection = Connection::open(library, Path::new("."), &creating(open)).map_err(whole(Call::Open))?;
    let mut session = Session::open(&connection).map_err(whole(Call::Open))?;
    session.create("table:rehearsal", &nested(&configs.create)).map_err(whole(Call::Create))
}

/// The configuration string that creates a database and fails if one exists.
pub fn creating(mut open: BTreeMap<String, String>) -> String {
    open.insert("create".into(), "true".into());
    open.insert("exclusive".into(), "true".into());
    nested(&open)
}

fn refused(name: &str, call: Call, why: String) -> SettingError {
    let key = match name {
        "cache_size" => "cache",
        "block_compressor" | "extensions" => "compression",
        name => name,
    };
    SettingError::new(key, why, format!("see {} in WiredTiger's reference guide", call.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_cannot_smuggle_in_another_setting() {
        let info = SETTINGS.iter().find(|info| info.name == "verbose").unwrap();
        assert!(literal(info, &Value::Text("[evict,read]".into())).is_ok());
        assert!(literal(info, &Value::Text("[evict],in_memory=true".into())).is_err());
        assert!(literal(info, &Value::Text("evict".into())).is_err());
    }
}
