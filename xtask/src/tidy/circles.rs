//! The modules of a crate with many files must use each other in one direction. A reader of one file then need not have
//! read the files that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::code::lines_of_code;
use super::folders::used;
use super::{Finding, Text};

/// The checked crates; the lab's folders have a separate table.
const CRATES: [&str; 3] = ["crates/engine-api/src", "crates/results/src", "crates/statistics/src"];

/// A module, and those that it uses, each with the line that names it first.
type Uses<'a> = BTreeMap<String, BTreeMap<String, (&'a Text, usize)>>;

/// Reports uses that lead back to their origin.
pub fn check(files: &[Text]) -> Vec<Finding> {
    CRATES.iter().flat_map(|root| check_crate(files, root)).collect()
}

fn check_crate(files: &[Text], root: &str) -> Vec<Finding> {
    let uses = uses(files, Path::new(root));
    let mut findings = Vec::new();
    for (module, of_module) in &uses {
        for (other, (file, line)) in of_module {
            if reaches(&uses, other, module) {
                let what = format!("`{module}` uses `{other}`, which uses `{module}`, itself or by others: a circle");
                findings.push(file.finding(*line, what));
            }
        }
    }
    findings
}

fn uses<'a>(files: &'a [Text], root: &Path) -> Uses<'a> {
    let mut uses = Uses::new();
    for file in files.iter().filter(|file| file.extension() == "rs") {
        let Ok(below) = file.path.strip_prefix(root) else { continue };
        let first = below.iter().next().and_then(|part| part.to_str()).unwrap_or_default();
        let module = first.strip_suffix(".rs").unwrap_or(first);
        // The root only re-exports the others.
        if module == "lib" {
            continue;
        }
        let of_module = uses.entry(module.to_owned()).or_default();
        for (number, line) in lines_of_code(&file.content) {
            for other in used(line).into_iter().filter(|other| !other.is_empty() && *other != module) {
                of_module.entry(other.to_owned()).or_insert((file, number));
            }
        }
    }
    uses
}

/// Whether one module uses another, directly or through others.
fn reaches(uses: &Uses<'_>, from: &str, to: &str) -> bool {
    let (mut seen, mut ahead) = (BTreeSet::new(), vec![from]);
    while let Some(module) = ahead.pop() {
        if module == to {
            return true;
        }
        if seen.insert(module) {
            ahead.extend(uses.get(module).into_iter().flat_map(|of_module| of_module.keys().map(String::as_str)));
        }
    }
    false
}
