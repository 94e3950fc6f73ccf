//! Updates the pages of docs/experiments/, and those that quote them: every measured figure of an experiment comes from
//! a committed file of `make experiments`, docs/experiments/NAME.json.
//!
//! A table follows a comment that describes it; a figure in a sentence is between two comments. `since` lists the
//! differences between a run and today's experiment file, experiments/NAME.toml, and the rules of a fair comparison that
//! the run predates. Every run that a page of docs/experiments/ quotes has such a block there:
//!
//! ```text
//! <!-- measured: storage-tiers
//! column: innodb.fast-ssd | InnoDB
//! column: myrocks.fast-ssd | MyRocks
//! row: transactions per second | ops_per_s | 0 | 21414, 28965
//! -->
//! …
//! <!-- end -->
//! <!-- claims: storage-tiers -->
//! …
//! <!-- end -->
//! <!-- since: storage-tiers -->
//! …
//! <!-- end -->
//! <!-- output: quickstart | 5 | with 4 clients -->
//! …
//! <!-- end -->
//! <!-- index -->
//! …
//! <!-- end -->
//! serves <!-- = storage-tiers: ops_per_s("myrocks.fast-ssd") / ops_per_s("innodb.fast-ssd") ; 2 -->1.06<!-- / --> times
//! ```

mod changed_claims;
mod claims;
mod figures;
mod index;
mod page;
mod predates;
mod since;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

/// The state of the pages.
pub struct Report {
    /// Pages that differ from their figures.
    pub differing: Vec<String>,
    /// Experiments without a committed file; their text stays unchanged.
    pub missing: Vec<String>,
    /// Committed runs that a page of docs/experiments/ quotes without a block on the differences from today's experiment file.
    pub unreported: Vec<String>,
    /// The differences of runs that only other pages quote from today's experiment files, a sentence each. Readers of
    /// those pages would not learn of them.
    pub outdated: Vec<String>,
    /// Why claims were not compared with those of the first committed results.
    pub without_history: Option<String>,
}

impl Report {
    /// Whether the pages agree with the files, or were just `written`. Experiments that have not run yet have no file
    /// to compare. Only the author of a page can add a block for a run's differences.
    pub fn is_in_order(&self, written: bool) -> bool {
        self.unreported.is_empty() && self.outdated.is_empty() && (written || self.differing.is_empty())
    }
}

/// The folder with a page for each published experiment.
const EXPERIMENTS: &str = "docs/experiments";

/// The other pages that quote experiments, relative to the root.
const QUOTING: [&str; 5] = [
    "README.md",
    "docs/experiments.md",
    "docs/how-to/compare-engines.md",
    "docs/how-to/measure-a-setting.md",
    "docs/published.md",
];

/// The pages of [`EXPERIMENTS`], relative to the root.
fn pages(root: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{EXPERIMENTS}: {error}");
    let mut pages = Vec::new();
    for file in std::fs::read_dir(root.join(EXPERIMENTS)).map_err(failed)? {
        let name = file.map_err(failed)?.file_name().to_string_lossy().into_owned();
        let path = format!("{EXPERIMENTS}/{name}");
        // Another function writes that page.
        if name.ends_with(".md") && path != changed_claims::PAGE {
            pages.push(path);
        }
    }
    pages.sort_unstable();
    Ok(pages)
}

/// Compares the pages with the figures, and on request writes those that differ.
///
/// # Errors
/// A file that cannot be read or written, or a comment that requests a missing figure.
pub fn check(root: &Path, write: bool) -> Result<Report, String> {
    let experiments = root.join("experiments");
    let (mut differing, mut missing, mut quoted) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let (mut reported, mut elsewhere) = (String::new(), BTreeSet::new());
    let published = pages(root)?;
    for name in published.iter().cloned().chain(QUOTING.map(str::to_owned)) {
        // A new one for each page, because it records the runs that the page quotes.
        let mut figures = figures::Committed::of(&root.join("docs/experiments"));
        let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        let text = std::fs::read_to_string(root.join(&name)).map_err(|error| failed(&error))?;
        let page = page::written(&text, &mut figures).map_err(|error| failed(&error))?;
        let page = claims::written(&page, &mut figures, &experiments).map_err(|error| failed(&error))?;
        let page = since::written(&page, &mut figures, &experiments).map_err(|error| failed(&error))?;
        let page = page::replaced(&page, "<!-- index -->", "\n", page::END, &mut |_| {
            index::table(root, &published, &mut figures::Committed::of(&root.join(EXPERIMENTS))).map(Some)
        })
        .map_err(|error| failed(&error))?;
        if name.starts_with(&format!("{EXPERIMENTS}/")) {
            quoted.extend(since::quoted(&page, &figures)?);
            reported += &page;
        } else {
            elsewhere.extend(figures.names()?.into_iter().filter(|name| figures.has_read(name)));
        }
        missing.extend(figures.missing());
        if page != text {
            if write {
                std::fs::write(root.join(&name), page).map_err(|error| failed(&error))?;
            }
            differing.push(name);
        }
    }
    elsewhere.retain(|name| !since::is_reported(&reported, name));
    let unreported = quoted.into_iter().filter(|name| !since::is_reported(&reported, name)).collect();
    let mut figures = figures::Committed::of(&root.join("docs/experiments"));
    let mut outdated = Vec::new();
    for name in elsewhere {
        let sentence = since::reported(&name, &mut figures, &experiments)?.unwrap_or_default();
        outdated.extend((!sentence.is_empty()).then(|| sentence.trim_end().to_owned()));
    }
    let without_history = match changed_claims::page(root)? {
        Ok(page) => {
            let path = root.join(changed_claims::PAGE);
            if std::fs::read_to_string(&path).unwrap_or_default() != page {
                differing.push(changed_claims::PAGE.to_owned());
                if write {
                    std::fs::write(&path, page).map_err(|error| format!("{}: {error}", changed_claims::PAGE))?;
                }
            }
            None
        }
        Err(why) => Some(why),
    };
    Ok(Report { without_history, differing, missing: missing.into_iter().collect(), unreported, outdated })
}
