//! `[ab]`: the pairs of engines that are compared, alternating within one run. Also combines two files into one
//! experiment.

use std::path::Path;

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::Value;
use rumba_results::engine_name;
use rumba_results::pair::{self, Pair};
use rumba_statistics::LEAST_REPEATS;

use super::engines;
use super::error::{Origin, SpecError};
use super::known::Known;
use super::node::{self, Node, Table, Tree};
use super::run::{self, RUN_KEYS};
use super::{Experiment, Overrides, build_text, take};
use crate::registry::Registry;

const KEYS: &[&str] = &["base", "other"];

/// The pairs of an experiment as it was run; none if it does not compare its engines with each other.
pub fn pairs_of(experiment: &str) -> Vec<Pair> {
    let Ok(Node { tree: Tree::Table(root), .. }) = node::parse(experiment) else { return Vec::new() };
    let pairs = root.get("ab").and_then(|node| written(node).ok()).unwrap_or_default();
    pairs.into_iter().map(|(_, pair)| pair).collect()
}

/// The pairs as written, the n-th of each list together, each with the place of its other engine.
fn written(node: &Node) -> Result<Vec<(&Node, Pair)>, SpecError> {
    let table = node.table("ab")?;
    take::only(table, "[ab]", KEYS)?;
    let names = |key: &str| table.get(key).map(take::list).unwrap_or_default();
    let (base, other) = (names("base"), names("other"));
    if base.len() != other.len() {
        return Err(SpecError::new(
            &node.origin,
            format!("[ab] has {} engines as base and {} as other", base.len(), other.len()),
            "name them in pairs: the first of base goes with the first of other, and so on",
        ));
    }
    let pair = |(base, other): (&Node, &'_ Node)| -> Result<Pair, SpecError> {
        Ok(Pair { base: take::text("base", base)?.to_owned(), other: take::text("other", other)?.to_owned() })
    };
    base.into_iter().zip(other).map(|(base, other)| Ok((other, pair((base, other))?))).collect()
}

/// Reads the pairs. A pair with an engine that is `excused` cannot be compared and is left out.
///
/// # Errors
/// The first pair that names no engine of the experiment, or one engine twice.
pub fn pairs(table: &Table, engines: &[EngineConfig], excused: &dyn Fn(&str) -> bool) -> Result<Vec<Pair>, SpecError> {
    let Some(node) = table.get("ab") else { return Ok(Vec::new()) };
    let names = || engines.iter().map(|engine| engine.name.as_str());
    let mut pairs = Vec::new();
    for (at, written) in written(node)? {
        let found = [&written.base, &written.other].map(|name| engine_name::meant(names(), name).ok_or(name));
        match found {
            [Ok(base), Ok(other)] if base == other => {
                let problem = format!("{base} is to be compared with itself");
                return Err(SpecError::new(&at.origin, problem, "name two engines, base and other"));
            }
            // A record has engines under their full names.
            [Ok(base), Ok(other)] => pairs.push(Pair { base: base.to_owned(), other: other.to_owned() }),
            [Err(name), _] | [_, Err(name)] if excused(name) => {}
            [Err(name), _] | [_, Err(name)] => {
                return Err(SpecError::new(
                    &at.origin,
                    format!("no engine that runs here is called `{name}`"),
                    format!("these are: {}", names().collect::<Vec<_>>().join(", ")),
                ));
            }
        }
    }
    Ok(pairs)
}

pub fn table(pairs: &[Pair]) -> Node {
    let names = |of: fn(&Pair) -> &String| list(pairs.iter().map(|pair| text(of(pair))).collect());
    let entries = [("base", names(|pair| &pair.base)), ("other", names(|pair| &pair.other))];
    plain(Tree::Table(entries.map(|(key, node)| (key.to_owned(), node)).into()))
}

/// Writes the pairs of `--engine` and `--against` into the experiment. If engines are compared and the experiment gives
/// no number of repeats, it sets the least number for a verdict.
///
/// # Errors
/// When there are neither as many of one as of the other nor a single base for all.
pub fn apply(root: &mut Node, overrides: &Overrides) -> Result<(), SpecError> {
    let Tree::Table(experiment) = &mut root.tree else { return Ok(()) };
    let Overrides { engines, against, .. } = overrides;
    if !against.is_empty() {
        let origin = Origin::Option(format!("--against {}", against.join(",")));
        if against.len() != 1 && against.len() != engines.len() {
            return Err(SpecError::new(
                &origin,
                format!("{} engines against {}", engines.len(), against.len()),
                "name one engine for all of --engine, or one for each of them in their order",
            ));
        }
        let pairs: Vec<Pair> = engines
            .iter()
            .zip(against.iter().cycle())
            .map(|(other, base)| Pair { base: base.clone(), other: other.clone() })
            .collect();
        let mut node = table(&pairs);
        super::set::set_origin(&mut node, &origin);
        experiment.insert("ab".to_owned(), node);
    }
    if experiment.contains_key("ab") {
        let run = experiment.entry("run".to_owned()).or_insert_with(|| plain(Tree::Table(Table::new())));
        if let Tree::Table(run) = &mut run.tree {
            let least = || plain(Tree::Scalar(Value::Int(LEAST_REPEATS.into())));
            run.entry("repeats".to_owned()).or_insert_with(least);
        }
    }
    Ok(())
}

/// The experiment of one file.
struct Side {
    file: String,
    experiment: Experiment,
    root: Table,
}

/// Makes one experiment of two files: engines of the first become `base/NAME`, those of the second `other/NAME`. Claims
/// are left out, because they use other names for engines. Options hold for both files; those that begin with `base/`
/// or `other/` hold for one.
///
/// # Errors
/// The first mistake in one of them; a difference other than of engines; an engine without a counterpart.
pub fn of_files(
    base: &Path,
    other: &Path,
    overrides: &Overrides,
    registry: &Registry,
) -> Result<Experiment, SpecError> {
    let base = side(base, &for_side(overrides, pair::BASE, pair::OTHER), registry)?;
    let other = side(other, &for_side(overrides, pair::OTHER, pair::BASE), registry)?;
    let files = Origin::Option(format!("{} and {}", base.file, other.file));
    refuse_other_work(&base, &other, &files, registry)?;
    refuse_other_run(&base, &other, &files)?;
    let pairs = match_up(&base.experiment, &other.experiment, &files)?;
    let text = build_text::write(&combine(&base, &other, &pairs, registry)?);
    super::read_text(&format!("{} + {}", base.file, other.file), &text, &Overrides::default(), registry)
}

fn side(path: &Path, overrides: &Overrides, registry: &Registry) -> Result<Side, SpecError> {
    let experiment = super::read_file(path, overrides, registry)?;
    let root = match node::parse(&experiment.as_run)?.tree {
        Tree::Table(root) => root,
        _ => Table::new(),
    };
    Ok(Side { file: super::source::name(path), experiment, root })
}

/// The options for this side, without its prefix.
fn for_side(overrides: &Overrides, own: &str, others: &str) -> Overrides {
    let of_side = |options: &[String]| -> Vec<String> {
        let own_or_both = options.iter().filter(|option| !option.starts_with(others));
        own_or_both.map(|option| option.strip_prefix(own).unwrap_or(option).to_owned()).collect()
    };
    Overrides { engines: of_side(&overrides.engines), against: Vec::new(), set: of_side(&overrides.set) }
}

fn refuse_other_work(base: &Side, other: &Side, files: &Origin, registry: &Registry) -> Result<(), SpecError> {
    let (one, two) = (&base.experiment, &other.experiment);
    if one.workload != two.workload {
        return Err(differs(files, "the workload", (base, &one.workload), (other, &two.workload)));
    }
    let known = registry.workload(&one.workload).and_then(|workload| Known::of(workload, &one.workload_settings).ok());
    for info in known.iter().flat_map(Known::all) {
        let value = |side: &Side| {
            let given = side.experiment.workload_settings.0.get(info.name);
            given.map_or_else(|| info.default.to_owned(), ToString::to_string)
        };
        if value(base) != value(other) {
            let key = format!("workload.{}.{}", one.workload, info.name);
            return Err(differs(files, &key, (base, &value(base)), (other, &value(other))));
        }
    }
    Ok(())
}

fn refuse_other_run(base: &Side, other: &Side, files: &Origin) -> Result<(), SpecError> {
    if base.experiment.run == other.experiment.run {
        return Ok(());
    }
    for key in RUN_KEYS {
        let (one, two) = (run_key(base, key), run_key(other, key));
        // Would the base be another run with the other's value of this key?
        let mut run = base.root.get("run").cloned().unwrap_or_else(|| plain(Tree::Table(Table::new())));
        if let Tree::Table(table) = &mut run.tree {
            table.remove(*key);
            table.extend(two.map(|node| ((*key).to_owned(), node.clone())));
        }
        if run::run(Some(&run)).is_ok_and(|run| run == base.experiment.run) {
            continue;
        }
        return Err(differs(files, &format!("run.{key}"), (base, &shown(one)), (other, &shown(two))));
    }
    Ok(())
}

fn run_key<'a>(side: &'a Side, key: &str) -> Option<&'a Node> {
    side.root.get("run")?.get(key)
}

fn shown(node: Option<&Node>) -> String {
    match node.map(|node| &node.tree) {
        Some(Tree::Scalar(value)) => value.to_string(),
        Some(Tree::List(nodes)) => nodes.iter().map(|node| shown(Some(node))).collect::<Vec<_>>().join(", "),
        _ => "not given".to_owned(),
    }
}

fn differs(files: &Origin, what: &str, base: (&Side, &str), other: (&Side, &str)) -> SpecError {
    let key = what.rsplit('.').next().unwrap_or(what);
    let remedy = match what {
        "the workload" => "only engines, [common] and [limits] may differ".to_owned(),
        _ => format!("only engines, [common] and [limits] may differ; --set {key}=VALUE sets it for both"),
    };
    let problem = format!("{what} is {} in {}, and {} in {}", base.1, base.0.file, other.1, other.0.file);
    SpecError::new(files, problem, remedy)
}

/// Pairs engines of the same name; or the two engines, if each file has one.
fn match_up(base: &Experiment, other: &Experiment, files: &Origin) -> Result<Vec<Pair>, SpecError> {
    let names = |experiment: &Experiment| -> Vec<String> {
        experiment.engines.iter().map(|engine| engine.name.clone()).collect()
    };
    let (base, other) = (names(base), names(other));
    let pair = |base: &String, name: &String| Pair {
        base: format!("{}{base}", pair::BASE),
        other: format!("{}{name}", pair::OTHER),
    };
    if let ([base], [other]) = (base.as_slice(), other.as_slice()) {
        return Ok(vec![pair(base, other)]);
    }
    let alone_in_base = base.iter().find(|name| !other.contains(name)).map(|name| (name, "first"));
    let alone = alone_in_base.or_else(|| other.iter().find(|name| !base.contains(name)).map(|name| (name, "second")));
    match alone {
        None => Ok(base.iter().map(|name| pair(name, name)).collect()),
        Some((name, which)) => Err(SpecError::new(
            files,
            format!("{name} is only in the {which} file, so it has no counterpart"),
            "give engines that belong together the same name, or choose those that both have: --engine A,B",
        )),
    }
}

/// The tree of the combined experiment: everything shared, and each engine with the common settings of its file.
fn combine(base: &Side, other: &Side, pairs: &[Pair], registry: &Registry) -> Result<Node, SpecError> {
    let mut others = entries(other, pair::OTHER, registry)?;
    let mut engines = Vec::new();
    // Compared engines are adjacent in time.
    for (name, entry) in entries(base, pair::BASE, registry)? {
        engines.push(entry);
        if let Some(at) = others.iter().position(|(other, _)| *other == name) {
            engines.push(others.remove(at).1);
        }
    }
    engines.extend(others.into_iter().map(|(_, entry)| entry));
    let (one, two) = (&base.experiment, &other.experiment);
    let name = if one.name == two.name { one.name.clone() } else { format!("{}-over-{}", two.name, one.name) };
    let mut root = Table::from([
        ("name".to_owned(), text(&name)),
        ("ab".to_owned(), table(pairs)),
        ("engine".to_owned(), list(engines)),
    ]);
    if let Some(source) = one.source.as_ref().filter(|_| one.source == two.source) {
        root.insert("source".to_owned(), text(source));
    }
    for key in ["workload", "run"] {
        root.extend(base.root.get(key).map(|node| (key.to_owned(), node.clone())));
    }
    Ok(plain(Tree::Table(root)))
}

/// The `[[engine]]`s of a file under their new names, with `[common]` and `[limits]` merged into each; with their old
/// names.
fn entries(side: &Side, prefix: &str, registry: &Registry) -> Result<Vec<(String, Node)>, SpecError> {
    let nodes = side.root.get("engine").map(take::list).unwrap_or_default();
    let entry = |node: &Node| {
        let mut own = engines::whole_engine(&side.root, node.table("engine")?, registry)?;
        let (Some(name), Some(used)) =
            (own.get("name").or_else(|| own.get("use")).cloned(), own.get("use").or_else(|| own.get("name")).cloned())
        else {
            return Err(engines::unnamed(node));
        };
        let name = take::text("name", &name)?.to_owned();
        own.insert("name".to_owned(), text(&format!("{prefix}{name}")));
        own.insert("use".to_owned(), used);
        Ok((name, plain(Tree::Table(own))))
    };
    nodes.into_iter().map(entry).collect()
}

fn plain(tree: Tree) -> Node {
    Node::at(tree, Origin::Default)
}

fn text(text: &str) -> Node {
    plain(Tree::Scalar(Value::Text(text.to_owned())))
}

fn list(nodes: Vec<Node>) -> Node {
    plain(Tree::List(nodes))
}
