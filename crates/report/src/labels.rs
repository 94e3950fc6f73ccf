//! The names of engines on the page: what differs between them, with the versions that are compared.

use std::collections::{BTreeMap, BTreeSet};

use rumba_engine_api::workload::engine_in_test;
use rumba_results::comparison::Summary;
use rumba_results::engine_name::split_list;
use rumba_results::pair::{BASE, OTHER, with_side};
use rumba_results::record::Record;
use rumba_results::results::Results;

/// The prefixes of the two sides of a run with a base and another.
const SIDES: [&str; 2] = [BASE, OTHER];
/// The most differing settings in a name.
const MOST_SETTINGS: usize = 2;

/// The label of each engine, with its test, that is not called by its own name.
#[derive(Debug, Default)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// The labels of these results' engines; an engine keeps its name if its label would not be unique.
    pub fn of(results: &Results, summary: &Summary) -> Self {
        let mut engines: Vec<Named<'_>> = Vec::new();
        for row in &summary.rows {
            let name = row.engine_alone();
            let record = results.trials.iter().map(|trial| &trial.record).find(|it| it.plan.engine.name == row.engine);
            if let Some(record) = record.filter(|_| engines.iter().all(|known| known.name != name)) {
                engines.push(Named::of(name, record));
            }
        }
        let Some(labels) = labels(&engines) else { return Self::default() };
        let label = |name: &str| engines.iter().position(|engine| engine.name == name).map(|at| &labels[at]);
        let of_rows = summary.rows.iter().filter_map(|row| {
            let label = label(row.engine_alone())?;
            Some((row.engine.clone(), engine_in_test(label, row.test.as_deref())))
        });
        let alone = engines.iter().zip(&labels).map(|(engine, label)| (engine.name.to_owned(), label.clone()));
        Self(of_rows.chain(alone).filter(|(name, label)| name != label).collect())
    }

    /// By the engines' names.
    pub fn by_name(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// The summary with the labels in place of the names, for sentences about it.
    pub fn applied(&self, summary: &Summary) -> Summary {
        let mut labelled = summary.clone();
        let rename = |name: &mut String| {
            if let Some(label) = self.0.get(name) {
                name.clone_from(label);
            }
        };
        labelled.rows.iter_mut().for_each(|row| rename(&mut row.engine));
        labelled.remarks.iter_mut().for_each(|remark| rename(&mut remark.about.engine));
        labelled.searches.iter_mut().for_each(|search| rename(&mut search.engine));
        for relative in &mut labelled.relative {
            rename(&mut relative.baseline);
            relative.rows.iter_mut().for_each(|row| rename(&mut row.engine));
        }
        labelled
    }

    /// `NAME: mysql 5.6.24 against mysql 9.7.4`, if the results compare two sides, or two versions.
    pub fn title(&self, name: &str, summary: &Summary) -> String {
        let mut engines: Vec<&str> = summary.rows.iter().map(|row| row.engine_alone()).collect();
        engines.sort_by_key(|engine| engine.starts_with(OTHER));
        engines.dedup();
        let labels: Vec<&str> = engines.iter().filter_map(|engine| self.0.get(*engine).map(String::as_str)).collect();
        match labels[..] {
            [one, other] if engines.len() == 2 && !one.contains('=') => format!("{name}: {one} against {other}"),
            _ => name.to_owned(),
        }
    }
}

/// An engine with the parts of its name.
struct Named<'a> {
    name: &'a str,
    side: &'a str,
    base: &'a str,
    options: Vec<String>,
    record: &'a Record,
}

impl<'a> Named<'a> {
    fn of(name: &'a str, record: &'a Record) -> Self {
        let side = SIDES.into_iter().find(|side| name.starts_with(side)).unwrap_or("");
        let core = &name[side.len()..];
        let list = core.split_once('[').and_then(|(base, rest)| Some((base, rest.strip_suffix(']')?)));
        let (base, options) = list.map_or((core, Vec::new()), |(base, list)| (base, split_list(list)));
        Self { name, side, base, options, record }
    }

    /// `5.6.24` of `5.6.24-2 from Debian`.
    fn version(&self) -> Option<&str> {
        let version = self.record.version.as_deref()?;
        let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
        Some(version[..end].trim_end_matches('.')).filter(|version| !version.is_empty())
    }

    /// The software whose version it is: the server, or else the name, without a version at its end.
    fn software(&self) -> &str {
        let server = self.record.plan.engine.server.as_deref().map(|server| server.split('@').next().unwrap_or(server));
        let is_version = |end: &str| self.version().is_some_and(|version| version.starts_with(end));
        let name = self.base.rsplit_once('-').filter(|(_, end)| is_version(end)).map_or(self.base, |(name, _)| name);
        server.filter(|server| !server.is_empty()).unwrap_or(name)
    }

    /// The settings that two sides can differ in.
    fn settings(&self) -> BTreeMap<String, String> {
        let plan = &self.record.plan;
        let common = [("cache", plan.given_cache().reported), ("durability", plan.given_durability().reported)];
        let own = plan.engine.settings.0.iter().map(|(name, value)| (name.clone(), value.to_string()));
        let compression = plan.engine.compression.iter().map(|value| ("compression".to_owned(), value.clone()));
        common.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(own).chain(compression).collect()
    }
}

/// A way to name an engine among others.
type Way = fn(&Named<'_>, &[Named<'_>]) -> Option<String>;

/// The first of these ways to name all engines that distinguishes them.
fn labels(engines: &[Named<'_>]) -> Option<Vec<String>> {
    let ways: [Way; 5] = [by_version, by_name_and_version, by_setting, by_side, by_option];
    let all = ways.into_iter().map(|way| engines.iter().map(|engine| way(engine, engines)).collect::<Option<Vec<_>>>());
    all.flatten().find(|labels| labels.iter().collect::<BTreeSet<_>>().len() == labels.len())
}

/// Whether the engines compare versions: some differ in nothing else.
fn compares_versions(engines: &[Named<'_>]) -> bool {
    let alike = |one: &Named<'_>, other: &Named<'_>| one.record.plan.engine.engine == other.record.plan.engine.engine;
    engines.iter().any(|one| engines.iter().any(|other| alike(one, other) && one.version() != other.version()))
}

fn by_version(engine: &Named<'_>, engines: &[Named<'_>]) -> Option<String> {
    let version = engine.version().filter(|_| compares_versions(engines))?;
    Some(format!("{} {version}", engine.software()))
}

fn by_name_and_version(engine: &Named<'_>, engines: &[Named<'_>]) -> Option<String> {
    let version = engine.version().filter(|_| compares_versions(engines))?;
    Some(format!("{} {version}", &engine.name[engine.side.len()..]))
}

fn by_setting(engine: &Named<'_>, engines: &[Named<'_>]) -> Option<String> {
    let core = &engine.name[engine.side.len()..];
    let other = engines.iter().find(|other| other.side != engine.side && other.name.ends_with(core))?.settings();
    let differs = engine.settings().into_iter().filter(|(name, value)| other.get(name) != Some(value));
    let differs: Vec<String> = differs.map(|(name, value)| format!("{name} {value}")).collect();
    let is_short = !engine.side.is_empty() && (1..=MOST_SETTINGS).contains(&differs.len());
    is_short.then(|| format!("{core}, {}", differs.join(", ")))
}

fn by_side(engine: &Named<'_>, _: &[Named<'_>]) -> Option<String> {
    (!engine.side.is_empty()).then(|| with_side(engine.name))
}

/// Without the options that all engines share, and without the name if it is the same for all.
fn by_option(engine: &Named<'_>, engines: &[Named<'_>]) -> Option<String> {
    let own: Vec<&str> = engine
        .options
        .iter()
        .filter(|option| !engines.iter().all(|other| other.options.contains(option)))
        .map(String::as_str)
        .collect();
    let is_one_engine = engines.iter().all(|other| other.base == engine.base);
    match (is_one_engine, own.is_empty()) {
        (_, true) => Some(engine.base.to_owned()),
        (true, false) => Some(own.join(", ")),
        (false, false) => Some(format!("{}, {}", engine.base, own.join(", "))),
    }
}
