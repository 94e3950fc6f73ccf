//! `rumba reproduce`: the published experiments, embedded in the binary.

use rumba_lab::registry::Registry;
use rumba_lab::spec;

use crate::cli::ReproduceArgs;
use crate::experiments::EXPERIMENTS;
use crate::problem::Problem;

/// Lists the experiments, or runs one.
pub fn run(args: &ReproduceArgs, registry: &Registry) -> super::Result {
    let Some(name) = &args.name else { return list() };
    let Some((name, text)) = EXPERIMENTS.iter().find(|(known, _)| known == name) else {
        let known: Vec<&str> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
        return Err(Problem::mistake(
            format!("unknown published experiment `{name}`"),
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
    Ok(super::Output::text("`rumba reproduce NAME` runs one; docs/experiments.md has the results from here."))
}
