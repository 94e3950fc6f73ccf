//! The page of results and its pictures, as files.

use std::path::Path;

use rumba_engine_api::printable::shown;
use rumba_lab::store;

use super::pictures;
use crate::cli::OutputArgs;
use crate::problem::Problem;
use crate::progress::notify;

/// Writes the page and its pictures; an existing page stays until the new one is complete.
pub fn write(args: &OutputArgs, html: &str) -> Result<(), Problem> {
    if let Some(page) = &args.html {
        store::replace_named(page, html).map_err(|error| not_written(page, &error, "name another file"))?;
        notify(&format!("page: {}", shown(page)));
    }
    let wanted = [("png", args.png.as_deref()), ("svg", args.svg.as_deref())];
    let wanted: Vec<_> = wanted.into_iter().filter_map(|(kind, directory)| Some((kind, directory?))).collect();
    pictures::write(html, &wanted)
}

/// The error when the page cannot be written.
pub fn not_written(page: &Path, error: &std::io::Error, remedy: &str) -> Problem {
    Problem::failure(format!("the page {} cannot be written: {error}", shown(page)), remedy)
}
