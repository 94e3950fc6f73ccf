//! The number of a run's repeats, and the data that they start from.

use super::*;

#[test]
fn starts_follow_their_load_and_appear_in_directory_names() {
    let trials = reported(&planned(&["clients=1", "starts=2"]));
    let names: Vec<&str> = trials.iter().map(|(name, _)| name.as_str()).collect();
    let starts = ["003-rocks.4k-c1-r1-s1", "004-rocks.16k-c1-r1-s1", "005-rocks.16k-c1-r1-s2", "006-rocks.4k-c1-r1-s2"];
    assert_eq!(names[..2], ["001-rocks.4k-load", "002-rocks.16k-load"]);
    assert_eq!(names[2..6], starts, "A B B A");
    assert_eq!(trials.iter().map(|(_, load)| *load).collect::<Vec<_>>()[2..6], [1, 2, 2, 1].map(Some));
    assert_eq!(planned(&["starts=1"]), planned(&[]));
}

#[test]
fn a_run_until_decided_plans_the_most_repeats_that_it_may_have() {
    let trials = planned(&["clients=1", "repeats=8", "until_decided=true"]);
    assert_eq!(trials.len(), 16);
    assert!(trials.iter().all(|trial| trial.run.at_most_repeats == Some(8)));
    assert!(planned(&["clients=1"]).iter().all(|trial| trial.run.at_most_repeats.is_none()));
}

#[test]
fn kept_repeats_start_from_one_load_per_keepable_engine() {
    let trials = planned(&["repeats_from=kept"]);
    let directories: Vec<_> = trials.iter().map(crate::plan::directory).collect();
    assert_eq!(directories[..3], ["001-rocks.4k-load", "002-rocks.16k-load", "003-rocks.4k-c1-r1"]);
    assert_eq!(trials.len(), 10);
    let loads: Vec<_> = trials[2..].iter().map(|trial| trial.loaded_by).collect();
    let turns = [[1, 2], [1, 2], [2, 1], [2, 1]].concat();
    assert_eq!(loads, turns.into_iter().map(Some).collect::<Vec<_>>(), "each from its own engine's load");
    assert_eq!(planned(&["repeats=1", "clients=1"]).len(), 2, "one trial gains nothing by it");
    assert_eq!(planned(&["repeats=1", "clients=1", "repeats_from=kept"]).len(), 4, "unless it is requested");
}
