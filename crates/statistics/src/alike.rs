//! Matches engines of two runs that have different names in different versions. Older records name those of a list by
//! their values alone (`innodb.4k`), later ones by the differing settings (`innodb[page_size=4k]`).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rumba_results::engine_name::short;
use rumba_results::results::Results;

/// The names of the engines of a run, followed by the test in a suite.
pub fn engines(results: &Results) -> BTreeSet<String> {
    results.trials.iter().map(|trial| trial.record.plan.engine.name.clone()).collect()
}

/// A run with its engines renamed to these names, if a name on each side means the same and is unambiguous.
pub fn called_as<'a>(results: &'a Results, names: &BTreeSet<String>) -> Cow<'a, Results> {
    let own = engines(results);
    let renamed: BTreeMap<&String, &String> = own
        .difference(names)
        .filter_map(|name| {
            let same = |other: &&String| short(other) == short(name);
            let mut others = names.difference(&own).filter(same);
            let is_only_one = own.iter().filter(same).count() == 1;
            let (first, second) = (others.next()?, others.next());
            (is_only_one && second.is_none()).then_some((name, first))
        })
        .collect();
    if renamed.is_empty() {
        return Cow::Borrowed(results);
    }
    let mut results = results.clone();
    for trial in &mut results.trials {
        let name = &mut trial.record.plan.engine.name;
        if let Some(new) = renamed.get(name) {
            name.clone_from(new);
        }
    }
    Cow::Owned(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{record, results};

    fn renamed(own: &[&str], names: &[&str]) -> Vec<String> {
        let results = results(own.iter().map(|engine| record(engine, 8, 1)).collect());
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        engines(&called_as(&results, &names)).into_iter().collect()
    }

    #[test]
    fn ambiguous_engines_are_not_renamed() {
        assert_eq!(renamed(&["a.1"], &["a[x=1]", "a[y=1]"]), ["a.1"]);
        assert_eq!(renamed(&["a[x=1]", "a[y=1]"], &["a.1"]), ["a[x=1]", "a[y=1]"]);
        assert_eq!(renamed(&["a.1", "a[x=1]"], &["a[x=1]"]), ["a.1", "a[x=1]"]);
    }
}
