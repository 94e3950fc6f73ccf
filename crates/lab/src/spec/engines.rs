//! The `[[engine]]`s: lists become engines, each merged with `[common]` and `[limits]`, and checked against its library
//! or server.

use std::path::PathBuf;

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, EngineInfo, Family, Form, Missing};
use rumba_engine_api::memory::MemoryUse;
use rumba_engine_api::setting::{Settings, Value};
use rumba_results::engine_name;
use rumba_results::warning::Warning;

use super::error::{Origin, SpecError};
use super::memory::{self, Fitted};
use super::node::{Node, Table, Tree};
use super::{expand, limits, names, set, take};
use crate::host::usable_memory;
use crate::probe::{Refusal, probe};
use crate::registry::Registry;

/// The keys of `[common]`, which are also keys of each `[[engine]]`.
pub const COMMON_KEYS: &[&str] = &["cache", "durability", "compression", "server"];
pub const ENGINE_KEYS: &[&str] =
    &["name", "use", "optional", "cache", "durability", "compression", "library", "server", "limits", "settings"];

/// The line to add if no engine is given.
const ADD_ENGINE: &str = "[[engine]] with a line use = \"NAME\", one of those that `rumba engines` lists";

/// The context for reading every engine of an experiment.
pub struct EngineContext<'a> {
    /// The engines that the command line names; all of the experiment if it is empty.
    pub wanted: &'a [String],
    /// The workload's name.
    pub workload: &'a str,
    /// The work that needs memory; the workload's data is [`rumba_engine_api::workload::Bound::expected_logical_bytes`].
    pub work: MemoryUse,
    /// The known engines and workloads.
    pub registry: &'a Registry,
}

/// An engine that does not run because a requirement is missing: its name, and the warning.
pub type LeftOut = (String, Warning);

pub struct Engines {
    /// Engines that run.
    pub fitted: Vec<Fitted>,
    /// Engines that do not.
    pub left_out: Vec<LeftOut>,
    /// The `[[engine]]`s that make these and no others.
    pub entries: Vec<Node>,
}

/// An `[[engine]]` merged with `[common]` and `[limits]`.
///
/// # Errors
/// A key or a table in the wrong place.
pub fn whole_engine(experiment: &Table, own: &Table, registry: &Registry) -> Result<Table, SpecError> {
    let mut whole = match experiment.get("common") {
        Some(node) => node.table("common")?.clone(),
        None => Table::new(),
    };
    refuse_setting(&whole, registry)?;
    take::only(&whole, "[common]", COMMON_KEYS)?;
    refuse_bare_setting(own, registry)?;
    take::only(own, "an [[engine]]", ENGINE_KEYS)?;
    if !own_engine(own, registry).is_none_or(|engine| engine.info().form == Form::Server) {
        // A list that all servers share makes no variants of an embedded engine.
        whole.remove("server");
    }
    whole.extend(own.iter().map(|(key, node)| (key.clone(), node.clone())));
    if let Some(limits) = limits::of_engine(experiment.get("limits"), own.get("limits"))? {
        whole.insert("limits".to_owned(), limits);
    }
    Ok(whole)
}

fn refuse_setting(common: &Table, registry: &Registry) -> Result<(), SpecError> {
    let keys = common.iter().filter(|(key, _)| !COMMON_KEYS.contains(&key.as_str()));
    for (key, node) in keys {
        let has = |engine: &&dyn Engine| engine.info().settings.iter().any(|info| info.name == key.as_str());
        if let Some(engine) = registry.engines.iter().map(AsRef::as_ref).find(has) {
            let problem = format!("[common] has no key `{key}`: it is a setting of {}", engine.info().name);
            return Err(SpecError::new(&node.key_origin, problem, format!("write settings.{key} in its [[engine]]")));
        }
    }
    Ok(())
}

/// Refuses an engine's setting written as a key of its `[[engine]]`, with its correct name there.
fn refuse_bare_setting(own: &Table, registry: &Registry) -> Result<(), SpecError> {
    let settings = own_engine(own, registry).map(|engine| engine.info().settings).unwrap_or_default();
    for (key, node) in own.iter().filter(|(key, _)| !ENGINE_KEYS.contains(&key.as_str())) {
        let names = ENGINE_KEYS.iter().copied().chain(settings.iter().map(|info| info.name));
        let likely = rumba_engine_api::nearest(key, names).filter(|name| !ENGINE_KEYS.contains(name));
        if let Some(name) = likely {
            let problem = format!("an [[engine]] has no key `{key}`");
            return Err(SpecError::new(&node.key_origin, problem, format!("did you mean `settings.{name}`?")));
        }
    }
    Ok(())
}

/// The `[[engine]]` that makes only this variant.
fn alone(variant: &expand::Variant, name: &str, at: &Node) -> Node {
    let mut table = variant.table.clone();
    let used = table.get("use").or_else(|| table.get("name")).cloned();
    table.extend(used.map(|used| ("use".to_owned(), used)));
    let name = Node::at(Tree::Scalar(Value::Text(name.to_owned())), at.origin.clone());
    table.insert("name".to_owned(), name);
    Node { tree: Tree::Table(table), ..at.clone() }
}

/// The engines of an experiment, with lists expanded and unwanted engines left out.
pub fn engines(table: &Table, root: &Node, context: &EngineContext<'_>) -> Result<Engines, SpecError> {
    let EngineContext { wanted, registry, .. } = *context;
    let node = take::required(table, "engine", root, ADD_ENGINE)?;
    let Tree::List(nodes) = &node.tree else {
        return Err(SpecError::new(&node.origin, "engine is a single table", "write [[engine]] with two brackets"));
    };
    let (mut engines, mut left_out, mut entries): (Vec<Fitted>, Vec<LeftOut>, Vec<Node>) = Default::default();
    let mut known: Vec<String> = Vec::new();
    for node in nodes {
        let own = node.table("engine")?;
        let variants = expand::expand(&whole_engine(table, own, registry)?)?;
        let mut kept = Vec::new();
        for variant in &variants {
            let (base, name) = name_of(variant, node, &registry.engine_names())?;
            known.push(name.clone());
            if set::keeps(wanted, &base, &name) {
                kept.push((variant, name));
            }
        }
        if kept.len() == variants.len() {
            entries.push(node.clone());
        } else {
            entries.extend(kept.iter().map(|(variant, name)| alone(variant, name, node)));
        }
        for (variant, name) in kept {
            let fitted = match engine(variant, name, node, context)? {
                Made::Runs(fitted) => *fitted,
                Made::LeftOut(engine) => {
                    left_out.push(engine);
                    continue;
                }
            };
            if engines.iter().any(|known| known.config.name == fitted.config.name) {
                return Err(SpecError::new(
                    own.get("name").map_or(&node.origin, |name| &name.origin),
                    format!("two engines are called `{}`", fitted.config.name),
                    "give each [[engine]] its own name",
                ));
            }
            engines.push(fitted);
        }
    }
    let made = || engines.iter().map(|fitted| &fitted.config.name).chain(left_out.iter().map(|(name, _)| name));
    let missed = wanted.iter().find(|wanted| !made().any(|name| names(name, wanted)));
    if let Some(name) = missed {
        return Err(SpecError::new(
            &set::option_of(wanted),
            format!("the experiment has no engine `{name}`"),
            format!("its lists make: {}", known.join(", ")),
        ));
    }
    match (engines.is_empty(), left_out.first()) {
        (false, _) => Ok(Engines { fitted: engines, left_out, entries }),
        (true, Some((_, warning))) => Err(SpecError::new(&node.origin, &warning.message, &warning.remedy)),
        (true, None) => Err(SpecError::new(&node.origin, "there is no engine", format!("add {ADD_ENGINE}"))),
    }
}

/// The engine of an entry, if it is known.
fn own_engine<'a>(own: &Table, registry: &'a Registry) -> Option<&'a dyn Engine> {
    registry.engine(own.get("use").or_else(|| own.get("name"))?.as_text()?)
}

/// The error for a name that is neither registered nor one of the experiment's `own`, with the nearest of both.
pub fn unknown_engine(name: &str, own: &[&str], origin: &Origin, registry: &Registry) -> SpecError {
    let known = [own, &registry.engine_names()].concat();
    let remedy = match rumba_engine_api::nearest(name, known.iter().copied()) {
        None if !own.is_empty() => format!("the experiment has {}; `rumba engines` lists others", own.join(", ")),
        _ => format!("{} (`rumba engines` lists them)", Registry::suggest(name, &known)),
    };
    SpecError::new(origin, format!("unknown engine `{name}`"), remedy)
}

/// Whether a wanted name is this engine's, or that of its entry.
fn names(engine: &str, wanted: &str) -> bool {
    engine_name::is_called(engine, wanted) || engine_name::is_of_list(engine, wanted)
}

fn name_of(variant: &expand::Variant, node: &Node, engines: &[&str]) -> Result<(String, String), SpecError> {
    let named = variant.table.get("name").or_else(|| variant.table.get("use")).ok_or_else(|| unnamed(node))?;
    let base = take::text("name", named)?.to_owned();
    let name = engine_name::of_list(&base, &names::distinct(&variant.differs, engines));
    names::of_engine(if base.is_empty() { &base } else { &name }, &named.origin)?;
    Ok((base, name))
}

/// The error for an `[[engine]]` without `name` and `use`.
pub fn unnamed(node: &Node) -> SpecError {
    SpecError::new(
        &node.origin,
        "an [[engine]] does not say which it is",
        "add a line use = \"NAME\": `rumba engines` lists them",
    )
}

/// The result of an `[[engine]]`.
enum Made {
    Runs(Box<Fitted>),
    LeftOut(LeftOut),
}

fn engine(
    variant: &expand::Variant,
    name: String,
    node: &Node,
    context: &EngineContext<'_>,
) -> Result<Made, SpecError> {
    let EngineContext { workload, work, registry, .. } = *context;
    let data_bytes = work.data_bytes;
    let table = &variant.table;
    let used = table.get("use").or_else(|| table.get("name")).ok_or_else(|| unnamed(node))?;
    let registered = take::text("use", used)?;
    let engine = registry.engine(registered).ok_or_else(|| unknown_engine(registered, &[], &used.origin, registry))?;
    let own = match table.get("settings") {
        Some(node) => take::settings(node.table("settings")?)?.as_described(engine.info().settings),
        None => Settings::default(),
    };
    let plain = EngineConfig::new(registered);
    let mut config = EngineConfig {
        name,
        engine: plain.engine,
        cache: match table.get("cache").filter(|node| !memory::is_auto(node)) {
            Some(node) => take::bytes("cache", node, data_bytes)?,
            None => plain.cache,
        },
        cache_is_derived: plain.cache_is_derived,
        durability: take::one_of(table, "durability", &Durability::NAMES, plain.durability)?,
        compression: table.get("compression").map(|node| compression(engine, node)).transpose()?,
        library: table.get("library").map(|node| library(engine, node)).transpose()?,
        server: table.get("server").map(|node| server(engine, node)).transpose()?,
        limits: table.get("limits").map_or(Ok(plain.limits), |node| limits::limits(node, engine.info(), data_bytes))?,
        settings: own,
    };
    has_adapter(engine, &config, workload, used, registry)?;
    let mut fit = memory::fit(engine, &mut config, table, work);
    let memory = config.limits.memory_bytes.or_else(usable_memory);
    fit.by_data = memory.and_then(|memory| engine.fit_to_data(&mut config, data_bytes, memory));
    let optional = table.get("optional").map_or(Ok(false), |node| take::bool("optional", node))?;
    match probe(engine, &config, registry.process) {
        Ok(()) => Ok(Made::Runs(Box::new(Fitted { config, fit }))),
        Err(Refusal::Missing(missing)) if optional => Ok(Made::LeftOut(left_out(config.name, missing))),
        Err(Refusal::Missing(missing)) => {
            Err(at_missing(&missing, &config, table.get("library").or(table.get("server")).unwrap_or(used)))
        }
        Err(Refusal::Setting(error)) => Err(take::at_setting(error, table, node)),
    }
}

fn left_out(name: String, missing: Missing) -> LeftOut {
    let warning = Warning::new(
        "engine-left-out",
        format!("{name} is left out, and the claims about it: {}", missing.what),
        format!("install it to have it compared: {}", missing.install),
    );
    (name, warning)
}

fn compression(engine: &dyn Engine, node: &Node) -> Result<String, SpecError> {
    let text = take::text("compression", node)?;
    let info = engine.info();
    if info.compressions.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(SpecError::new(
        &node.origin,
        format!("{} cannot compress with `{text}`", info.name),
        format!("it knows: {}", info.compressions.join(", ")),
    ))
}

fn library(engine: &dyn Engine, node: &Node) -> Result<PathBuf, SpecError> {
    if engine.info().form == Form::Library {
        return take::text("library", node).map(PathBuf::from);
    }
    Err(SpecError::new(&node.origin, format!("{} loads no library", engine.info().name), "take the line out"))
}

fn server(engine: &dyn Engine, node: &Node) -> Result<String, SpecError> {
    if engine.info().form == Form::Server {
        return take::text("server", node).map(str::to_owned);
    }
    Err(SpecError::new(&node.origin, format!("{} is no server", engine.info().name), "take the line out"))
}

fn at_missing(missing: &Missing, config: &EngineConfig, at: &Node) -> SpecError {
    let remedy = match config.library {
        Some(_) => format!("correct the path, or leave library out and install the usual one: {}", missing.install),
        None => format!("install it: {}", missing.install),
    };
    SpecError::new(&at.origin, format!("{} cannot run here: {}", config.name, missing.what), remedy)
}

fn without_transactions(info: &EngineInfo, workload: &str, at: &Node, registry: &Registry) -> SpecError {
    let others = registry.workloads.iter().filter(|other| !other.needs_transactions(info.family));
    let others: Vec<&str> =
        others.filter(|other| other.families().contains(&info.family)).map(|other| other.name()).collect();
    let remedy = match others.as_slice() {
        [] => "take the engine out".to_owned(),
        others => format!("take the engine out, or run a workload that does without: {}", others.join(", ")),
    };
    SpecError::new(
        &at.origin,
        format!("{workload} needs transactions of several keys, which {} does not have", info.name),
        remedy,
    )
}

/// Refuses an engine whose sessions the workload cannot use.
fn has_adapter(
    engine: &dyn Engine,
    config: &EngineConfig,
    workload: &str,
    at: &Node,
    registry: &Registry,
) -> Result<(), SpecError> {
    let requested = registry.workload(workload);
    let families = requested.map_or(&[][..], |workload| workload.families());
    let info = engine.info();
    if families.contains(&info.family) {
        let needs = requested.is_some_and(|workload| workload.needs_transactions(info.family));
        return if needs && !engine.has_transactions(config) {
            Err(without_transactions(info, workload, at, registry))
        } else {
            Ok(())
        };
    }
    let served: Vec<String> = families.iter().map(Family::to_string).collect();
    Err(SpecError::new(
        &at.origin,
        format!("{workload} does not support {}, whose sessions use {}", info.name, info.family),
        format!("take the engine out, or choose one of those that {workload} serves: {}", served.join(", ")),
    ))
}
