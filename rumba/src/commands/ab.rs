//! `rumba ab`: two experiments in turns as one.

use std::path::Path;

use rumba_engine_api::printable::shown;
use rumba_lab::registry::Registry;
use rumba_lab::spec;

use crate::cli::AbArgs;
use crate::problem::Problem;
use crate::progress::notify;

/// Makes one experiment of two files, runs it, and shows its results and the changes from the first to the second.
pub fn run(args: &AbArgs, registry: &Registry) -> super::Result {
    if args.options.check {
        return Err(Problem::mistake(
            "--check is about claims, which speak of the engines of one file",
            "leave it out; `rumba compare DIR --fail-if 'ops_per_s < 0.95'` judges the comparison afterwards",
        ));
    }
    let overrides = super::run::overrides(&args.options);
    let experiment = spec::of_files(&args.base, &args.other, &overrides, registry)?;
    [&args.base, &args.other].into_iter().for_each(|file| say_claims_left_out(file));
    super::run::run_experiment(experiment, &args.options, registry)
}

fn say_claims_left_out(file: &Path) {
    // A pipe can be read only once, and waiting for more would never end.
    if !file.is_file() {
        return;
    }
    let claims = spec::claims_of(&std::fs::read_to_string(file).unwrap_or_default()).len();
    if claims > 0 {
        notify(&format!("the claims of {} ({claims}) are left out: they speak of engines by other names", shown(file)));
    }
}
