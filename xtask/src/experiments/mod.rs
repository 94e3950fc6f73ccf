//! docs/experiments.md and README.md: every measured figure of an experiment in
//! them is written from a committed file that `make experiments` made,
//! docs/experiments/NAME.json.
//!
//! A table stands below a comment that says what it shows, a figure in a
//! sentence between two comments; `tests` is a row for each test of a suite,
//! whose engines are those of that test. `since` says what a run had otherwise
//! than its experiment's file, experiments/NAME.toml, has it today, and which rules
//! of a fair comparison it predates; every run that docs/experiments.md quotes has
//! such a block there:
//!
//! ```text
//! <!-- measured: storage-tiers
//! column: innodb.fast-ssd | InnoDB
//! column: myrocks.fast-ssd @ storage-tiers-apart | MyRocks, budgets apart
//! row: transactions per second | ops_per_s | 0 | 21414, 28965
//! -->
//! …
//! <!-- end -->
//! <!-- claims: storage-tiers -->
//! …
//! <!-- end -->
//! <!-- package: minutes in all -->12<!-- / --> minutes
//! <!-- measured: versions
//! column: mysql-9.7 | MySQL 9.7
//! tests: ops_per_s / ops_per_s@mysql-5.6 | 2
//! -->
//! …
//! <!-- end -->
//! <!-- since: storage-tiers -->
//! …
//! <!-- end -->
//! <!-- output: quickstart | 5 | with 4 clients -->
//! …
//! <!-- end -->
//! serves <!-- = storage-tiers: ops_per_s@myrocks.fast-ssd / ops_per_s@innodb.fast-ssd ; 2 -->1.06<!-- / --> times
//! ```

mod changed_claims;
mod expression;
mod figures;
mod page;
mod predates;
mod since;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::Path;

/// What became of the pages.
pub struct Report {
    /// Pages that differ from their figures.
    pub differing: Vec<&'static str>,
    /// Experiments without a committed file; what is said of them stays as it is.
    pub missing: Vec<String>,
    /// Committed runs that docs/experiments.md quotes without saying what their experiment's file has otherwise today.
    pub untold: Vec<String>,
    /// What runs that other pages alone quote had otherwise than their experiments' files have it today, a sentence each:
    /// nobody who reads those pages would be told.
    pub outdated: Vec<String>,
    /// Why claims were not compared with those of the first kept results.
    pub without_history: Option<String>,
}

impl Report {
    /// Whether the pages say what the files say, or were just `written` so. What is yet to be run has no file to differ
    /// from; where a page is to speak of a run's file, only who writes the page knows.
    pub fn is_in_order(&self, written: bool) -> bool {
        self.untold.is_empty() && self.outdated.is_empty() && (written || self.differing.is_empty())
    }
}

/// The page that quotes every published run.
const EXPERIMENTS: &str = "docs/experiments.md";

/// Where the pages are, from the root.
const PAGES: [&str; 4] =
    [EXPERIMENTS, "README.md", "docs/how-to/compare-engines.md", "docs/how-to/measure-a-setting.md"];

/// What `scripts/package-test --write` has kept of a stranger's path.
const PACKAGE: &str = "docs/package.txt";

/// Compares the pages with the figures, and writes those that differ if asked to.
///
/// # Errors
/// What cannot be read or written, or a comment that asks for what is not there.
pub fn check(root: &Path, write: bool) -> Result<Report, String> {
    let package = std::fs::read_to_string(root.join(PACKAGE)).unwrap_or_default();
    let experiments = root.join("experiments");
    let (mut differing, mut missing, mut untold) = (Vec::new(), BTreeSet::new(), Vec::new());
    let (mut told, mut elsewhere) = (String::new(), BTreeSet::new());
    for name in PAGES {
        // One for each page: it knows afterwards what that page has quoted.
        let mut figures = figures::Committed::of(&root.join("docs/experiments"));
        let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
        let text = std::fs::read_to_string(root.join(name)).map_err(|error| failed(&error))?;
        let page = page::written(&text, &mut figures).map_err(|error| failed(&error))?;
        let page = since::written(&page, &mut figures, &experiments).map_err(|error| failed(&error))?;
        let page = page::packaged(&page, &package).map_err(|error| failed(&error))?;
        if name == EXPERIMENTS {
            untold = since::untold(&page, &figures)?;
            told.clone_from(&page);
        } else {
            elsewhere.extend(figures.names()?.into_iter().filter(|name| figures.has_read(name)));
        }
        missing.extend(figures.missing());
        if page != text {
            differing.push(name);
            if write {
                std::fs::write(root.join(name), page).map_err(|error| failed(&error))?;
            }
        }
    }
    elsewhere.retain(|name| !since::is_told(&told, name));
    let mut figures = figures::Committed::of(&root.join("docs/experiments"));
    let mut outdated = Vec::new();
    for name in elsewhere {
        let sentence = since::told(&name, &mut figures, &experiments)?.unwrap_or_default();
        outdated.extend((!sentence.is_empty()).then(|| sentence.trim_end().to_owned()));
    }
    let without_history = match changed_claims::page(root)? {
        Ok(page) => {
            let path = root.join(changed_claims::PAGE);
            if std::fs::read_to_string(&path).unwrap_or_default() != page {
                differing.push(changed_claims::PAGE);
                if write {
                    std::fs::write(&path, page).map_err(|error| format!("{}: {error}", changed_claims::PAGE))?;
                }
            }
            None
        }
        Err(why) => Some(why),
    };
    Ok(Report { without_history, differing, missing: missing.into_iter().collect(), untold, outdated })
}
