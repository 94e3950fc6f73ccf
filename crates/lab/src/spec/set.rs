//! `--engine` and `--set`: the command line's part of an experiment.

use rumba_engine_api::setting::{Kind, Value};
use rumba_results::engine_name;

use super::engines::{self, COMMON_KEYS, ENGINE_KEYS};
use super::error::{Origin, SpecError};
use super::fleet::FLEET_KEYS;
use super::known;
use super::limits::LIMIT_KEYS;
use super::node::{Node, Table, Tree, from_value, list_at};
use super::run::RUN_KEYS;
use crate::registry::Registry;

/// Keeps the named engines of an experiment, or adds engines of that name: `rocksdb`, or `rocksdb.zstd` for one with
/// that compression. An engine with lists makes several. It is kept whole here if one of them is named, in full or in
/// short; the reader drops the others after expansion ([`keeps`]).
///
/// # Errors
/// A name that is neither in the experiment nor registered.
pub fn choose_engines(
    root: &mut Node,
    wanted: &[String],
    set: &[String],
    registry: &Registry,
) -> Result<(), SpecError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let Tree::Table(table) = &mut root.tree else { return Ok(()) };
    let present = list_at(table, "engine").to_vec();
    // Lists that all engines share expand each of them.
    let shared = ["common", "limits"].iter().any(|key| table.get(*key).is_some_and(has_list));
    let origin = option_of(wanted);
    let mut chosen: Vec<Node> = Vec::new();
    for name in wanted {
        let makes = |node: &&Node| {
            entry_name(node)
                .is_some_and(|base| belongs(name, base, shared || has_list(node) || is_set(set, base, name)))
        };
        let short = engine_name::short(name);
        let entry = match (present.iter().find(makes), short.split_once('.')) {
            (Some(node), _) => node.clone(),
            (None, Some((base, _))) if is_set(set, base, name) => registered_engine(base, &present, &origin, registry)?,
            (None, _) => registered_engine(name, &present, &origin, registry)?,
        };
        if !chosen.contains(&entry) {
            chosen.push(entry);
        }
    }
    table.insert("engine".to_owned(), Node::at(Tree::List(chosen), origin));
    Ok(())
}

/// The option as the user wrote it.
pub fn option_of(wanted: &[String]) -> Origin {
    Origin::Option(format!("--engine {}", wanted.join(",")))
}

/// Whether a wanted name is that of an engine's entry, or of an engine that its lists make.
fn belongs(wanted: &str, base: &str, has_lists: bool) -> bool {
    wanted == base || (has_lists && engine_name::is_of_list(wanted, base))
}

fn has_list(node: &Node) -> bool {
    match &node.tree {
        Tree::List(nodes) => nodes.len() > 1,
        Tree::Table(table) => table.values().any(has_list),
        Tree::Scalar(_) => false,
    }
}

/// Whether an engine's name comes from a list in `--set BASE.KEY=A,B`: `BASE[KEY=A]`, or `BASE.A`.
fn is_set(set: &[String], base: &str, name: &str) -> bool {
    let short = engine_name::short(name);
    let Some(rest) = short.strip_prefix(base).and_then(|rest| rest.strip_prefix('.')) else { return false };
    let rest = format!(".{rest}.");
    let lists = set.iter().filter_map(|option| option.strip_prefix(base)?.strip_prefix('.')?.split_once('='));
    let mut values = lists.flat_map(|(_, list)| list.trim_matches(['[', ']']).split(','));
    values.any(|value| rest.contains(&format!(".{}.", value.trim().trim_matches(['"', '\'']))))
}

pub fn keeps(wanted: &[String], base: &str, made: &str) -> bool {
    wanted.is_empty() || wanted.iter().any(|name| name == base || engine_name::is_called(made, name))
}

fn registered_engine(name: &str, present: &[Node], origin: &Origin, registry: &Registry) -> Result<Node, SpecError> {
    let (engine, compression) = match name.split_once('.') {
        Some((engine, compression)) => (engine, Some(compression)),
        None => (name, None),
    };
    if registry.engine(engine).is_none() {
        let own: Vec<&str> = present.iter().filter_map(entry_name).collect();
        return Err(engines::unknown_engine(name, &own, origin, registry));
    }
    let mut table =
        Table::from([("name".to_owned(), text_at(name, origin)), ("use".to_owned(), text_at(engine, origin))]);
    if let Some(compression) = compression {
        table.insert("compression".to_owned(), text_at(compression, origin));
    }
    Ok(Node::at(Tree::Table(table), origin.clone()))
}

fn entry_name(node: &Node) -> Option<&str> {
    node.get("name").or_else(|| node.get("use"))?.as_text()
}

/// Applies every `--set key=value`. Keys that every experiment has come first, then those that other settings of the
/// workload declare. `--set tables=4 --set script=mine.lua` therefore works in either order.
///
/// # Errors
/// A key that matches nothing or more than one thing.
pub fn apply(root: &mut Node, options: &[String], registry: &Registry) -> Result<(), SpecError> {
    let later: Vec<&String> = options.iter().filter(|option| one(root, option, registry, &[]).is_err()).collect();
    if later.is_empty() {
        return Ok(());
    }
    let declared = known::declared(root, registry)?;
    later.into_iter().try_for_each(|option| one(root, option, registry, &declared))
}

/// Applies one option; changes nothing if it is invalid.
fn one(root: &mut Node, option: &str, registry: &Registry, declared: &[String]) -> Result<(), SpecError> {
    let origin = Origin::Option(format!("--set {option}"));
    let (key, value) = engine_name::split_once(option, '=').ok_or_else(|| {
        SpecError::new(&origin, "there is no `=` in it", "write --set key=value, as in --set clients=1,8")
    })?;
    let path = resolve(root, key.trim(), &origin, registry, declared)?;
    let node = match value.trim() {
        list if is_bare_list(list) && takes_text(&path, registry) => text_at(list, &origin),
        value => parse_value(value, &origin)?,
    };
    insert(root, &path, node);
    Ok(())
}

/// Whether a value is several with commas between, without brackets or quotes.
fn is_bare_list(value: &str) -> bool {
    value.contains(',') && !value.starts_with(['[', '"', '\'', '{'])
}

/// Whether a key is a text setting of a workload, which may contain commas: `suite=read-write,point-query`.
fn takes_text(path: &[Step], registry: &Registry) -> bool {
    let [Step::Key(part), Step::Key(workload), Step::Key(key)] = path else { return false };
    let settings = registry.workload(workload).filter(|_| part == "workload").map(|workload| workload.settings());
    settings.is_some_and(|all| all.iter().any(|info| info.name == key && info.kind == Kind::Text))
}

fn text_at(text: &str, origin: &Origin) -> Node {
    Node::at(Tree::Scalar(Value::Text(text.to_owned())), origin.clone())
}

/// A TOML value, or a comma-separated list of them, or plain text.
fn parse_value(text: &str, origin: &Origin) -> Result<Node, SpecError> {
    let one = |text: &str| -> Result<Node, SpecError> {
        let mut node = match text.parse::<toml_edit::Value>() {
            Ok(value) => from_value(&value)?,
            Err(_) => text_at(text, origin),
        };
        set_origin(&mut node, origin);
        Ok(node)
    };
    if is_bare_list(text) {
        let nodes = text.split(',').map(|part| one(part.trim())).collect::<Result<_, _>>()?;
        return Ok(Node::at(Tree::List(nodes), origin.clone()));
    }
    one(text)
}

pub fn set_origin(node: &mut Node, origin: &Origin) {
    node.origin = origin.clone();
    node.key_origin = origin.clone();
    match &mut node.tree {
        Tree::List(nodes) => nodes.iter_mut().for_each(|node| set_origin(node, origin)),
        Tree::Table(table) => table.values_mut().for_each(|node| set_origin(node, origin)),
        Tree::Scalar(_) => {}
    }
}

enum Step {
    Key(String),
    Index(usize),
}

fn resolve(
    root: &Node,
    key: &str,
    origin: &Origin,
    registry: &Registry,
    declared: &[String],
) -> Result<Vec<Step>, SpecError> {
    let Tree::Table(table) = &root.tree else { return Ok(Vec::new()) };
    if let Some(path) = engine_path(table, key) {
        return Ok(path);
    }
    let steps = |parts: &[&str]| parts.iter().map(|part| Step::Key((*part).to_owned())).collect::<Vec<_>>();
    let mut found: Vec<Vec<&str>> = Vec::new();
    let bare = |prefix: &str| key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')).unwrap_or(key);
    if key == "name" || key == "source" {
        found.push(vec![key]);
    }
    if RUN_KEYS.contains(&bare("run")) {
        found.push(vec!["run", bare("run")]);
    }
    if let Some(own) = key.strip_prefix("fleet.").filter(|own| FLEET_KEYS.contains(own)) {
        found.push(vec!["fleet", own]);
    }
    if COMMON_KEYS.contains(&bare("common")) {
        found.push(vec!["common", bare("common")]);
    }
    // `limits.storage.size` changes one key of a storage given as a table.
    if LIMIT_KEYS.contains(&bare("limits").split('.').next().unwrap_or_default()) {
        found.push([vec!["limits"], bare("limits").split('.').collect()].concat());
    }
    let workload = workload_name(table);
    let of_fleet: Vec<String> = FLEET_KEYS.iter().map(|own| format!("fleet.{own}")).collect();
    let mut known: Vec<&str> = [RUN_KEYS, COMMON_KEYS, LIMIT_KEYS].concat();
    known.extend(of_fleet.iter().map(String::as_str));
    if let Some(workload) = workload.and_then(|name| registry.workload(name)) {
        let rest = key.strip_prefix("workload.").unwrap_or(key);
        let rest = rest.strip_prefix(workload.name()).and_then(|rest| rest.strip_prefix('.')).unwrap_or(rest);
        let own = workload.settings().iter().map(|info| info.name);
        let all = own.chain(declared.iter().map(String::as_str));
        // The workload that declares the settings gives the best error for an unknown one.
        let is_for_it = !declared.is_empty() && key.strip_prefix("workload.").is_some_and(|name| name != rest);
        if is_for_it || all.clone().any(|name| name == rest) {
            found.push(vec!["workload", workload.name(), rest]);
        }
        known.extend(all);
    }
    match found.as_slice() {
        [one] => Ok(steps(one)),
        [] => {
            let problem = format!("this experiment has no key `{key}`");
            Err(SpecError::new(origin, problem, likeliest(table, key, &known, registry)))
        }
        several => Err(SpecError::new(
            origin,
            format!("`{key}` may be {}", several.iter().map(|path| path.join(".")).collect::<Vec<_>>().join(" or ")),
            "write the longer name",
        )),
    }
}

/// The most likely intended name of a key: a key of the experiment, or an engine's setting with the engine's name as
/// prefix.
fn likeliest(table: &Table, key: &str, known: &[&str], registry: &Registry) -> String {
    let mut names: Vec<(String, String)> = known.iter().map(|name| ((*name).to_owned(), (*name).to_owned())).collect();
    let Tree::List(engines) = &table.get("engine").map_or(Tree::List(Vec::new()), |node| node.tree.clone()) else {
        return Registry::suggest(key, known);
    };
    for engine in engines {
        let Some(name) = entry_name(engine) else { continue };
        for setting in settings_of(engine, registry) {
            // With or without the engine's name, as a user may write it.
            names.push((setting.to_owned(), format!("{name}.{setting}")));
            names.push((format!("{name}.{setting}"), format!("{name}.{setting}")));
        }
    }
    let written = |likely: &str| names.iter().find(|(name, _)| name == likely).map(|(_, written)| written.clone());
    match rumba_engine_api::nearest(key, names.iter().map(|(name, _)| name.as_str())).and_then(written) {
        Some(name) => format!("did you mean `{name}`?"),
        None => {
            let engines = engines.iter().filter_map(entry_name).collect::<Vec<_>>().join(", ");
            format!("{}; an engine's setting is written ENGINE.setting ({engines})", Registry::suggest(key, known))
        }
    }
}

/// The names of an engine's own settings.
fn settings_of(engine: &Node, registry: &Registry) -> Vec<&'static str> {
    let used = engine.get("use").and_then(Node::as_text).or_else(|| entry_name(engine));
    let known = used.and_then(|used| registry.engine(used));
    known.map(|engine| engine.info().settings.iter().map(|info| info.name).collect()).unwrap_or_default()
}

/// `ENGINE.key`, where ENGINE is an engine of the experiment; the longest name wins.
fn engine_path(table: &Table, key: &str) -> Option<Vec<Step>> {
    let Tree::List(engines) = &table.get("engine")?.tree else { return None };
    let (index, rest) = engines
        .iter()
        .enumerate()
        .filter_map(|(index, node)| {
            let name = entry_name(node)?;
            Some((index, name.len(), key.strip_prefix(name)?.strip_prefix('.')?))
        })
        .max_by_key(|(_, length, _)| *length)
        .map(|(index, _, rest)| (index, rest))?;
    let mut path = vec![Step::Key("engine".to_owned()), Step::Index(index)];
    if ENGINE_KEYS.contains(&rest) {
        path.push(Step::Key(rest.to_owned()));
    } else {
        path.push(Step::Key("settings".to_owned()));
        path.push(Step::Key(rest.strip_prefix("settings.").unwrap_or(rest).to_owned()));
    }
    Some(path)
}

fn workload_name(table: &Table) -> Option<&str> {
    match &table.get("workload")?.tree {
        Tree::Table(workloads) => workloads.keys().next().map(String::as_str),
        _ => None,
    }
}

fn insert(node: &mut Node, path: &[Step], value: Node) {
    let Some((first, rest)) = path.split_first() else {
        *node = value;
        return;
    };
    let origin = value.origin.clone();
    match (first, &mut node.tree) {
        (Step::Key(key), Tree::Table(table)) => {
            let empty = Node::at(Tree::Table(Table::new()), origin);
            insert(table.entry(key.clone()).or_insert(empty), rest, value);
        }
        (Step::Index(index), Tree::List(nodes)) => {
            if let Some(node) = nodes.get_mut(*index) {
                insert(node, rest, value);
            }
        }
        // `storage = "slow-ssd"` is short for a table with a tier.
        (Step::Key(_), Tree::Scalar(Value::Text(_))) => {
            let tier = std::mem::replace(node, Node::at(Tree::Table(Table::new()), origin));
            if let Tree::Table(table) = &mut node.tree {
                table.insert("tier".to_owned(), tier);
            }
            insert(node, path, value);
        }
        // A value of the wrong type: the reader will report it at its place.
        _ => {}
    }
}
