//! An open database: sessions, checkpoints, statistics, effective settings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rumba_engine_api::engine::{Gauge, Instance, Session as AnySession};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::KeySpace;

use crate::config::{Configs, creating, dotted, nested};
use crate::raw::{Connection, Library, Session, Statistic};
use crate::session::WiredTigerSession;
use crate::statistics::{CACHE_BYTES_MAX, COUNTED, DIRTY_BYTES, waited};

/// The most checkpoints that a drain writes. Without writers, the first one leaves dirty only what the checkpoint
/// itself has changed.
const CHECKPOINTS_MAX: usize = 8;

/// Metadata that the library stores for a table in addition to its settings.
const BOOKKEEPING: [&str; 8] =
    ["app_metadata", "assert", "checkpoint", "checkpoint_lsn", "id", "log", "version", "columns"];

/// An open database and its tables.
pub struct WiredTigerInstance {
    connection: Arc<Connection>,
    tables: Vec<String>,
    /// A separate session for counters, so that reading them disturbs no client.
    observer: Mutex<Observer>,
    effective: Vec<(String, String)>,
}

struct Observer {
    session: Session,
    counted: Vec<Statistic>,
}

impl WiredTigerInstance {
    /// Creates a database with a table for each space, or opens one that was created with the same settings and spaces.
    ///
    /// # Errors
    /// The engine's error; a setting that did not take effect.
    pub fn open(
        library: &Arc<Library>,
        dir: &Path,
        configs: Configs,
        spaces: &[KeySpace],
        is_new: bool,
    ) -> Result<Self> {
        let open = if is_new { creating(configs.open.clone()) } else { nested(&configs.open) };
        let connection = Connection::open(library, dir, &open)?;
        let mut session = Session::open(&connection)?;
        let table_config = nested(&configs.create);
        let tables: Vec<String> = spaces.iter().map(|space| format!("table:{}", space.name)).collect();
        for table in &tables {
            session.create(table, &table_config)?;
        }
        let every = session.statistics()?;
        let counted = COUNTED.iter().filter_map(|name| every.iter().find(|found| found.description == *name)).cloned();
        let mut observer = Observer { counted: counted.collect(), session };
        let effective = settings_in_force(&mut observer, dir, &configs, spaces)?;
        Ok(Self { connection, tables, observer: Mutex::new(observer), effective })
    }

    fn values(&self) -> Vec<(String, f64)> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner).values()
    }

    fn dirty_bytes(&self) -> Option<f64> {
        self.values().into_iter().find(|(name, _)| name == DIRTY_BYTES).map(|(_, value)| value)
    }
}

impl Observer {
    /// The statistics that can currently be read.
    fn values(&mut self) -> Vec<(String, f64)> {
        let Ok(values) = self.session.statistic_values(&self.counted) else { return Vec::new() };
        let named = self.counted.iter().zip(values);
        named.filter_map(|(statistic, value)| Some((statistic.description.clone(), value? as f64))).collect()
    }
}

/// Reads the effective settings from the library and compares them with the requested ones.
fn settings_in_force(
    observer: &mut Observer,
    dir: &Path,
    requested: &Configs,
    spaces: &[KeySpace],
) -> Result<Vec<(String, String)>> {
    let base = std::fs::read_to_string(dir.join("WiredTiger.basecfg"))
        .map_err(|error| EngineError::failed("wiredtiger_open", format!("WiredTiger.basecfg: {error}")))?;
    let lines: Vec<&str> = base.lines().filter(|line| !line.starts_with('#')).collect();
    let mut open = dotted(&lines.join(","));
    open.retain(|name, _| !name.starts_with("version"));
    require("wiredtiger_open", &requested.open, &open)?;
    let cache = observer.values().into_iter().find(|(name, _)| name == CACHE_BYTES_MAX);
    if let (Some((_, cache)), Some(wanted)) = (cache, requested.open.get("cache_size"))
        && wanted.parse() != Ok(cache)
    {
        return Err(EngineError::failed(
            "wiredtiger_open",
            format!("cache_size={wanted} was requested, {cache} is in force"),
        ));
    }
    let mut in_force: Vec<(String, String)> = open.into_iter().collect();
    // All tables are created alike, so one of them represents all.
    if let Some(space) = spaces.first() {
        let mut create = dotted(&observer.session.metadata(&format!("file:{}.wt", space.name))?);
        require("WT_SESSION.create", &requested.create, &create)?;
        create.retain(|name, value| {
            let group = name.split('.').next().unwrap_or(name);
            !value.is_empty() && !BOOKKEEPING.contains(&group)
        });
        in_force.extend(create);
    }
    Ok(in_force)
}

/// # Errors
/// A setting that differs from the requested value.
fn require(
    call: &'static str,
    requested: &BTreeMap<String, String>,
    in_force: &BTreeMap<String, String>,
) -> Result<()> {
    for (name, wanted) in requested {
        // Its paths come back with other quotes. A missing compressor makes the create fail, so this needs no check.
        if name == "extensions" {
            continue;
        }
        let found = in_force.get(name).map(String::as_str).unwrap_or("nothing");
        if bare(found) != bare(wanted) {
            return Err(EngineError::failed(call, format!("{name}={wanted} was requested, {found} is in force")));
        }
    }
    Ok(())
}

/// A list without its brackets, because the library formats lists differently.
fn bare(value: &str) -> &str {
    value.trim_matches(['(', ')', '[', ']'])
}

impl Instance for WiredTigerInstance {
    fn session(&self) -> Result<AnySession> {
        let session = WiredTigerSession::new(Session::open(&self.connection)?, &self.tables)?;
        Ok(AnySession::Kv(Box::new(session)))
    }

    fn settle(&self) -> Result<()> {
        self.drain()
    }

    /// Writes checkpoints until one of them no longer reduces the dirty bytes.
    fn drain(&self) -> Result<()> {
        let mut session = Session::open(&self.connection)?;
        let mut before = f64::INFINITY;
        for _ in 0..CHECKPOINTS_MAX {
            session.checkpoint()?;
            match self.dirty_bytes() {
                Some(dirty) if dirty > 0.0 && dirty < before => before = dirty,
                _ => break,
            }
        }
        Ok(())
    }

    fn debt(&self) -> Vec<Gauge> {
        self.dirty_bytes().map(|dirty| Gauge::new(DIRTY_BYTES, dirty)).into_iter().collect()
    }

    fn counters(&self) -> Vec<Gauge> {
        let values = self.values();
        let waited = waited(&values);
        values.into_iter().map(|(name, value)| Gauge::new(name, value)).chain(waited).collect()
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        self.effective.clone()
    }

    fn is_log(&self, file: &Path) -> bool {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        ["WiredTigerLog.", "WiredTigerPreplog.", "WiredTigerTmplog."].iter().any(|start| name.starts_with(start))
    }

    fn close(self: Box<Self>) -> Result<()> {
        let Self { connection, observer, .. } = *self;
        drop(observer);
        connection.close()
    }
}
