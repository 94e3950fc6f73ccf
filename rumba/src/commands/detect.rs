//! `rumba run --detect`: a pilot, and what it takes to detect a difference.

use rumba_engine_api::printable::shown;
use rumba_lab::registry::Registry;
use rumba_results::detection::LEAST_PILOT_REPEATS;

use super::Output;
use super::run::{exit_code, measure, missing, read_with};
use crate::cli::RunArgs;
use crate::problem::Problem;

/// Runs the pilot and prints how many repeats it takes to detect this difference.
pub fn run(change: f64, args: &RunArgs, registry: &Registry) -> super::Result {
    let options = &args.options;
    let is_set =
        |key: &str| options.set.iter().any(|set| set.split('=').next().is_some_and(|name| name.trim().ends_with(key)));
    // The spread between repeats of one load does not predict the spread between loads.
    let pilot =
        [("repeats", format!("repeats={LEAST_PILOT_REPEATS}")), ("repeats_from", "repeats_from=load".to_owned())];
    let set: Vec<String> = pilot.into_iter().filter(|(key, _)| !is_set(key)).map(|(_, set)| set).collect();
    let experiment = read_with(args, &set, registry)?;
    if experiment.run.repeats < LEAST_PILOT_REPEATS {
        return Err(Problem::mistake(
            format!("a pilot with repeats = {} cannot estimate the noise", experiment.run.repeats),
            format!("leave out `--set repeats`, or set it to {LEAST_PILOT_REPEATS} or more"),
        ));
    }
    if experiment.engines.len() < 2 {
        return Err(Problem::mistake(
            "--detect needs two engines to compare, and the experiment has one",
            "name both with --engine A,B; to detect a change of one engine, name it as two [[engine]]s",
        ));
    }
    let (results, outcome) = measure(experiment, options, registry)?;
    let read = super::report::read(results.path())?;
    let detection = rumba_statistics::detection(&read, &rumba_statistics::summarise(&read), change);
    let output = if options.json {
        Output::json(&rumba_report::detection_json(&detection))
    } else {
        Output::text(format_args!("{}\nresults: {}", rumba_report::detection_table(&detection), shown(results.path())))
    };
    Ok(Output { notes: missing(&results, outcome), exit_code: exit_code(outcome).unwrap_or_default(), ..output })
}
