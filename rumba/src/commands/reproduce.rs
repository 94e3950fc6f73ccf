//! `rumba reproduce`: the published experiments, embedded in the binary.

use rumba_lab::registry::Registry;
use rumba_lab::spec;

use crate::cli::ReproduceArgs;
use crate::problem::Problem;

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*]
    };
}

/// The experiments by name, as their files have them.
const EXPERIMENTS: &[(&str, &str)] = experiments![
    "linkbench-fast-server",
    "storage-tiers",
    "storage-tiers-apart",
    "innodb-page-size",
    "doublewrite",
    "small-server",
    "zlib-vs-zstd",
    "three-trees",
    "isolation-and-instrumentation",
    "binlog-impact",
    "range-scan",
    "lsm-shape",
    "write-ladder",
    "read-ladder",
    "redo-flush",
    "charset",
    "io-bound-point-select",
    "table-size",
    "table-size-embedded",
    "versions",
    "tpcc-scale",
    "tpcc-settings",
    "tpcc-trees",
    "tpcc-ladder",
    "tpcc-proof",
    "tpcc-proof-embedded",
    "tpcc-lost",
    "ycsb",
    "ycsb-trees",
    "ycsb-documents",
    "linkbench-documents",
];

/// Experiments that answer a question and reproduce no publication: `rumba run NAME` runs them without their file.
const RECIPES: &[(&str, &str)] = experiments!["quickstart", "innodb-or-myrocks"];

/// The text of the recipe of this name.
pub fn recipe(name: &str) -> Option<&'static str> {
    RECIPES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Lists the experiments, or runs one.
pub fn run(args: &ReproduceArgs, registry: &Registry) -> super::Result {
    let Some(name) = &args.name else { return list() };
    let Some((name, text)) = EXPERIMENTS.iter().find(|(known, _)| known == name) else {
        let known: Vec<&str> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
        return Err(Problem::mistake(
            format!("there is no published experiment called `{name}`"),
            format!(
                "{} (`rumba reproduce` lists them; your own are run by `rumba run FILE`)",
                Registry::suggest(name, &known)
            ),
        ));
    };
    let file = format!("experiments/{name}.toml");
    let experiment = spec::read_text(&file, text, &super::run::overrides(&args.options), registry)?;
    super::run::run_experiment(experiment, &args.options, registry)
}

fn list() -> super::Result {
    for (name, text) in EXPERIMENTS {
        let source = spec::source_of(text).unwrap_or_default();
        say!("{name}\n  {source}");
        for claim in spec::claims_of(text) {
            let published = claim.published.map_or(String::new(), |figure| format!(" (published: {figure})"));
            say!("  - {}{published}", claim.text);
        }
        say!("");
    }
    super::print("`rumba reproduce NAME` runs one; docs/experiments.md shows what came of them here.")
}
