//! spec: turns an experiment's file and options into an [`Experiment`], fully checked before anything is created.

mod ab;
mod build;
mod build_text;
mod claim;
mod client_steps;
mod clients;
mod engines;
mod error;
mod expand;
mod fleet;
mod known;
mod ladder;
mod limits;
mod memory;
mod names;
mod node;
mod prices;
mod rate;
mod run;
mod same_engine;
mod set;
mod source;
mod take;
#[cfg(test)]
pub(crate) mod testing;

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rumba_engine_api::engine::EngineConfig;
use rumba_engine_api::setting::Settings;
use rumba_engine_api::workload::{Bound, Test};
use rumba_results::claim::Claim;
use rumba_results::pair::Pair;
use rumba_results::prices::Prices;
use rumba_results::record::RunPlan;
use rumba_results::warning::Warning;

pub use ab::{of_files, pairs_of};
pub use claim::{claims_of, source_of, without_claims};
pub use error::{Origin, SpecError, without_passwords};
pub use memory::Shortage;
pub use run::{RUN_KEYS, SHORTEST_INTERVAL_S};
pub use source::is_standard_input;

use crate::registry::Registry;
use node::{Node, Table, Tree};
use rumba_engine_api::setting::Value;

/// A checked experiment, with lists expanded and defaults filled in. No resource is made yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name; the results directory is named after it.
    pub name: String,
    /// The publication that it reproduces.
    pub source: Option<String>,
    /// The workload's name.
    pub workload: String,
    pub workload_settings: Settings,
    pub bound: BoundWorkload,
    /// The tests of a suite, which each engine runs over its load; none for a single workload.
    pub tests: Vec<Test>,
    /// The settings of the test that ages the data of a suite.
    pub aged_by: Option<Settings>,
    /// The engines, lists expanded, in order.
    pub engines: Vec<EngineConfig>,
    /// A warning for each optional engine that cannot run here.
    pub left_out: Vec<Warning>,
    /// Engines for which `limits.memory` is too small or tight.
    pub shortages: Vec<Shortage>,
    /// A claim that this number of repeats can never decide, at its place.
    pub never_decided: Option<SpecError>,
    /// Warnings about engines that differ only in their names.
    pub same_engines: Vec<Warning>,
    /// A warning for each engine that leaves much of `limits.memory` unused.
    pub unused_memory: Vec<Warning>,
    /// The measured memory needs of its engines, as conditions by name.
    pub memory_needs: Vec<(String, String)>,
    /// Clients, times and repeats, the same for all engines.
    pub run: RunSpec,
    /// Engines that are compared with each other; with any, the run compares a base with another.
    pub pairs: Vec<Pair>,
    /// Inequalities that are judged when the results are read.
    pub claims: Vec<Claim>,
    /// The whole experiment as TOML, command-line options merged in.
    pub as_run: String,
}

/// A workload bound to its settings, shared within this process.
#[derive(Clone)]
pub struct BoundWorkload(Arc<dyn Bound>);

impl Deref for BoundWorkload {
    type Target = dyn Bound;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

impl fmt::Debug for BoundWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a workload of {} rows", self.expected_rows())
    }
}

/// Compares the data sizes; the name and the settings are compared separately.
impl PartialEq for BoundWorkload {
    fn eq(&self, other: &Self) -> bool {
        let data = |bound: &Self| (bound.expected_rows(), bound.expected_logical_bytes());
        data(self) == data(other)
    }
}

/// The data that the repeats of an engine start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatsFrom {
    /// Copies of one load: every repeat is a start of it, and verdicts hold only for this load.
    Kept,
    /// A separate load for each, so that repeats are independent.
    Load,
}

impl RepeatsFrom {
    /// Each variant with its name in an experiment.
    pub const NAMES: [(&'static str, RepeatsFrom); 2] = [("kept", RepeatsFrom::Kept), ("load", RepeatsFrom::Load)];
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunSpec {
    /// Numbers of clients; each makes separate trials.
    pub clients: Vec<u32>,
    /// The test of a suite that ages the data which all tests share.
    pub age_by: Option<String>,
    pub repeats: u32,
    /// Whether the run ends once every headline is decided; `repeats` is then the most that it may have.
    pub until_decided: bool,
    /// The data that repeats start from.
    pub repeats_from: RepeatsFrom,
    /// The parent of data directories; the results directory if absent.
    pub data_dir: Option<PathBuf>,
    /// The settings that all trials have in common.
    pub trial: RunPlan,
}

impl Deref for RunSpec {
    type Target = RunPlan;

    fn deref(&self) -> &Self::Target {
        &self.trial
    }
}

/// The command line's changes to an experiment.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--engine`: keep only these engines, or add them.
    pub engines: Vec<String>,
    /// `--against`: the engine that each of `engines` is compared with.
    pub against: Vec<String>,
    /// `--set key=value`, as written.
    pub set: Vec<String>,
}

/// Reads an experiment's file, or standard input if the path is `-`.
pub fn read_file(path: &Path, overrides: &Overrides, registry: &Registry) -> Result<Experiment, SpecError> {
    read_text(&source::name(path), &source::read(path)?, overrides, registry)
}

/// Reads an experiment from text; `name` is the file's name in messages.
pub fn read_text(name: &str, text: &str, overrides: &Overrides, registry: &Registry) -> Result<Experiment, SpecError> {
    let file = Some((name.to_owned(), text.to_owned()));
    match node::parse(text).and_then(|root| finish(root, overrides, registry)) {
        Ok(mut experiment) => {
            experiment.shortages.iter_mut().for_each(|shortage| shortage.mistake.file.clone_from(&file));
            experiment.never_decided.iter_mut().for_each(|mistake| mistake.file.clone_from(&file));
            Ok(experiment)
        }
        Err(error) => Err(SpecError { file, ..error }),
    }
}

/// Reads `[prices]` of a file, which may also be an experiment.
pub fn read_prices(path: &Path) -> Result<Prices, SpecError> {
    let like = "as in docs/examples/prices.toml";
    let unread = |error| SpecError { remedy: format!("name a file with [prices], {like}"), ..error };
    let text = source::read(path).map_err(unread)?;
    let found = node::parse(&text).and_then(|root| match root.table("a file of prices")?.get("prices") {
        Some(node) => prices::prices(node),
        None => Err(SpecError::new(&root.origin, "there is no [prices]", format!("add it, {like}"))),
    });
    found.map_err(|error| SpecError { file: Some((source::name(path), text)), ..error })
}

/// Makes the experiment of `rumba run WORKLOAD --engine A,B`.
///
/// # Errors
/// The first mistake, with its remedy.
pub fn of_workload(workload: &str, overrides: &Overrides, registry: &Registry) -> Result<Experiment, SpecError> {
    let origin = Origin::Option(workload.to_owned());
    if overrides.engines.is_empty() {
        return Err(SpecError::new(
            &origin,
            "no engine is named",
            format!("add --engine with one or more of: {}", registry.engine_names().join(", ")),
        ));
    }
    let scalar = |text: &str| Node::at(Tree::Scalar(Value::Text(text.to_owned())), origin.clone());
    let table = |table: Table| Node::at(Tree::Table(table), origin.clone());
    let root = table(Table::from([
        ("name".to_owned(), scalar(workload)),
        ("workload".to_owned(), table(Table::from([(workload.to_owned(), table(Table::new()))]))),
        ("engine".to_owned(), Node::at(Tree::List(Vec::new()), origin.clone())),
    ]));
    finish(root, overrides, registry)
}

fn finish(mut root: Node, overrides: &Overrides, registry: &Registry) -> Result<Experiment, SpecError> {
    // The base comes first, because the others are relative to it.
    let mut wanted: Vec<String> = Vec::new();
    for name in overrides.against.iter().chain(&overrides.engines) {
        if !wanted.contains(name) {
            wanted.push(name.clone());
        }
    }
    set::choose_engines(&mut root, &wanted, &overrides.set, registry)?;
    set::apply(&mut root, &overrides.set, registry)?;
    ab::apply(&mut root, overrides)?;
    build::experiment(&root, &wanted, registry)
}

#[cfg(test)]
mod tests;
