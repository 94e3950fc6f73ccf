//! `clients` with points.

use rumba_results::client_steps::ClientSteps;

use super::{GOOD, with};
use crate::spec::{RunSpec, SpecError};

const LADDER: &str = "clients=[[\"0s\", 1], [\"30s\", 8], [\"60s\", 4]]";

fn run(set: &[&str]) -> RunSpec {
    with(GOOD, &[&["loops=3", "loop=30s"], set].concat()).unwrap().run
}

fn refused(set: &[&str]) -> SpecError {
    with(GOOD, &[&["loops=3", "loop=30s"], set].concat()).unwrap_err()
}

#[test]
fn steps_are_one_trial_with_the_largest_number_and_written_back() {
    let expected = ClientSteps { points: vec![(0.0, 1), (30.0, 8), (60.0, 4)] };
    let stepped = run(&[LADDER]);
    assert_eq!((stepped.clients, stepped.trial.client_steps.as_ref()), (vec![8], Some(&expected)));
    let as_run = with(GOOD, &["loops=3", "loop=30s", LADDER]).unwrap().as_run;
    assert_eq!(with(&as_run, &[]).unwrap().run.client_steps, Some(expected), "{as_run}");
    assert_eq!(run(&["clients=1,8"]).client_steps, None);
}

#[test]
fn wrong_steps_are_refused_with_what_to_write() {
    for (clients, part) in [
        ("[[\"1s\", 1]]", "begins at 1 s; begin with a step at \"0s\""),
        ("[[\"0s\", 1], [\"20s\", 2], [\"20s\", 3]]", "from 20 s to 20 s; put the steps in the order of time"),
        ("[[\"0s\", 1], [\"90s\", 2]]", "a step at 90 s, and the loops end at 90 s"),
        ("[[\"0s\", 1], 2]", "holds a whole number where a step is needed"),
        ("[[\"0s\", 1, 2]]", "3 values, not a time and a number"),
        ("[[\"0s\", 0]]", "a whole number from 1 to"),
        ("[[\"0s\", 99999]]", "a whole number from 1 to"),
        ("[[0, 1]]", "has no unit"),
    ] {
        let error = refused(&[&format!("clients={clients}")]);
        let reported = format!("{}; {}", error.problem, error.remedy);
        assert!(reported.contains(part), "{clients}: {reported}");
    }
}

#[test]
fn keys_that_need_one_number_of_clients_are_refused_with_steps() {
    for (set, key) in [
        ("rate=1000", "rate"),
        ("rate=max(p99 < 10ms)", "rate"),
        ("rate=[[\"0s\", 5]]", "rate"),
        ("active=50%", "active"),
        ("until_decided=true", "until_decided"),
    ] {
        let error = refused(&[LADDER, set, "repeats=20"]);
        assert_eq!(error.remedy, format!("take {key} out, or give clients one number"), "{}", error.problem);
    }
    assert!(!run(&[LADDER, "until_decided=false"]).until_decided);
}
