//! `[limits]`: memory, CPUs and storage for every trial. An engine's own `limits` override the experiment's, key by key; a
//! list makes trials.

use rumba_engine_api::cpus::{CpuSet, parse_cpus};
use rumba_engine_api::engine::{EngineInfo, Form};
use rumba_engine_api::limits::{Limits, StorageLimit, parse_memory};
use rumba_engine_api::setting::{SettingError, Settings, Value};
use rumba_engine_api::units::show_bytes;

use super::error::SpecError;
use super::node::{Node, Table, Tree};
use super::take;
use crate::host::{allowed_cpus, usable_memory};

pub const LIMIT_KEYS: &[&str] = &["memory", "storage", "cpus", "client_cpus"];

/// The limits of an engine: the experiment's, overridden by its own.
///
/// # Errors
/// Limits that are not a table.
pub fn of_engine(everyones: Option<&Node>, own: Option<&Node>) -> Result<Option<Node>, SpecError> {
    let Some(whole) = own.or(everyones) else { return Ok(None) };
    let mut merged = Table::new();
    for node in [everyones, own].into_iter().flatten() {
        let table = node.table("limits")?;
        take::only(table, "[limits]", LIMIT_KEYS)?;
        merged.extend(table.iter().map(|(key, node)| (key.clone(), node.clone())));
    }
    Ok(Some(Node { tree: Tree::Table(merged), ..whole.clone() }))
}

/// The limits of one engine, after every list is replaced by one of its values.
///
/// # Errors
/// The first invalid value.
pub fn limits(node: &Node, engine: &EngineInfo, data_bytes: u64) -> Result<Limits, SpecError> {
    let table = node.table("limits")?;
    if let Some(node) = table.get("client_cpus").filter(|_| engine.form != Form::Server) {
        return Err(SpecError::new(
            &node.key_origin,
            format!("{} runs in one process with its clients, so client_cpus cannot restrict them alone", engine.name),
            "set limits.cpus, which restricts both, or write limits.client_cpus in the [[engine]]s that are servers",
        ));
    }
    let cpus = |key: &str| table.get(key).map(|node| cpus(&format!("limits.{key}"), node)).transpose();
    Ok(Limits {
        memory_bytes: table.get("memory").map(|node| memory(node, data_bytes)).transpose()?,
        storage: table.get("storage").map(|node| storage(node, data_bytes)).transpose()?,
        cpus: cpus("cpus")?,
        client_cpus: cpus("client_cpus")?,
    })
}

/// CPUs that this process may use; its servers and trials inherit that.
fn cpus(key: &str, node: &Node) -> Result<CpuSet, SpecError> {
    let cpus = parse_cpus(key, take::scalar(key, node)?).map_err(|error| at(node, error))?;
    let Ok(allowed) = allowed_cpus() else { return Ok(cpus) };
    match cpus.without(&allowed) {
        None => Ok(cpus),
        Some(others) => Err(SpecError::new(
            &node.origin,
            format!("{key} = {cpus} has CPUs that rumba may not use here: {others}"),
            format!("name CPUs of {allowed}, or start rumba where it may use the others (taskset -p $$, cpuset)"),
        )),
    }
}

fn memory(node: &Node, data_bytes: u64) -> Result<u64, SpecError> {
    let bytes = take::bytes("limits.memory", node, data_bytes)?;
    let bytes = parse_memory(&whole(bytes)).map_err(|error| at(node, error))?;
    match usable_memory() {
        Some(host) if bytes > host => Err(SpecError::new(
            &node.origin,
            format!(
                "limits.memory = {} is more than this host's memory, {}, so it would limit nothing",
                show_bytes(bytes as f64),
                show_bytes(host as f64)
            ),
            format!("set memory to \"{}MiB\" or less, or run it on a larger host", host >> 20),
        )),
        _ => Ok(bytes),
    }
}

fn storage(node: &Node, data_bytes: u64) -> Result<StorageLimit, SpecError> {
    let table = match &node.tree {
        Tree::Scalar(Value::Text(tier)) => return StorageLimit::tier(tier).map_err(|error| at(node, error)),
        _ => node.table("limits.storage")?,
    };
    let mut settings = Settings::default();
    for (key, node) in table {
        let value = match key.as_str() {
            "size" => whole(take::bytes("limits.storage.size", node, data_bytes)?),
            _ => take::scalar(key, node)?.clone(),
        };
        settings.0.insert(key.clone(), value);
    }
    StorageLimit::from_settings(&settings).map_err(|error| {
        let key = error.key.rsplit('.').next().and_then(|key| table.get(key));
        at(key.unwrap_or(node), error)
    })
}

fn whole(bytes: u64) -> Value {
    Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX))
}

fn at(node: &Node, error: SettingError) -> SpecError {
    SpecError::new(&node.origin, error.to_string(), error.remedy)
}
