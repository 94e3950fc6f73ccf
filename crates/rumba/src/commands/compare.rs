//! `rumba compare`.

use crate::cli::CompareArgs;
use crate::problem::Problem;

/// Compares one run against a base.
pub fn run(args: &CompareArgs) -> super::Result {
    let base = super::report::read(&args.base)?;
    let other = super::report::read(&args.directory)?;
    let comparison = rumba_statistics::compare(&base, &other);
    if args.json {
        let value = serde_json::to_value(&comparison).map_err(|error| {
            Problem::failure(format!("the comparison cannot be written as JSON: {error}"), "report this")
        })?;
        return super::print_json(&value);
    }
    super::print(rumba_report::comparison_table(&comparison))
}
