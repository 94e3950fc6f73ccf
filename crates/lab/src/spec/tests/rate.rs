//! `rate` in its forms, and related keys.

use rumba_results::arrivals::{Arrivals, RateShape};

use super::{GOOD, with};

fn run(set: &[&str]) -> crate::spec::RunSpec {
    with(GOOD, set).unwrap().run
}

fn problem(set: &[&str]) -> String {
    let error = with(GOOD, set).unwrap_err();
    format!("{}; {}", error.problem, error.remedy)
}

#[test]
fn rate_points_are_parsed_averaged_over_loops_and_written_back() {
    let points = "rate=[[\"0s\", 1000], [\"2m\", 5000]]";
    let steps = run(&[points, "loops=2", "loop=2m"]);
    let expected = Arrivals { points: vec![(0.0, 1000.0), (120.0, 5000.0)], shape: RateShape::Step, period_s: None };
    assert_eq!((steps.rate, steps.arrivals.as_ref()), (Some(3000.0), Some(&expected)));
    let ramp = run(&[points, "loops=1", "loop=2m", "rate_shape=ramp"]);
    assert_eq!(ramp.rate, Some(3000.0));
    let bursts = run(&["rate=[[\"0s\", 0], [\"9s\", 2000]]", "rate_period=10s", "loop=20s", "loops=1"]);
    assert_eq!(bursts.rate, Some(200.0));
    let as_run = with(GOOD, &[points]).unwrap().as_run;
    assert_eq!(with(&as_run, &[]).unwrap().run.arrivals, Some(expected), "{as_run}");
}

#[test]
fn invalid_rate_schedule_is_refused_with_a_suggestion() {
    for (rate, part) in [
        ("rate=[]", "no points"),
        ("rate=[[\"1s\", 5]]", "begins at 1 s"),
        ("rate=[[\"0s\", 5], [\"0s\", 6]]", "from 0 s to 0 s"),
        ("rate=[[\"0s\", 0]]", "zero all the time"),
        ("rate=[[\"0s\"]]", "1 values"),
        ("rate=[[0, 5]]", "has no unit"),
        ("rate=[[\"0s\", -5]]", "-5 per second"),
        ("rate=1000,2000", "holds a whole number"),
    ] {
        assert!(problem(&[rate]).contains(part), "{rate}: {}", problem(&[rate]));
    }
    assert!(problem(&["rate_shape=ramp"]).contains("there is none"));
    assert!(problem(&["rate=[[\"0s\", 5]]", "rate_shape=rmap"]).contains("did you mean `ramp`"));
    assert!(problem(&["rate=[[\"0s\", 5], [\"9s\", 6]]", "rate_period=9s"]).contains("give a longer one"));
}

#[test]
fn a_rate_that_no_client_can_do_is_refused_with_the_limit() {
    for (set, limit) in [
        (&["rate=1e9", "clients=4"][..], "give at most 40000000,"),
        (&["rate=1e12", "clients=1000"], "give at most 100000000,"),
        (&["rate=[[\"0s\", 5], [\"1s\", 1e9]]", "clients=1"], "give at most 10000000,"),
    ] {
        assert!(problem(set).contains(limit), "{set:?}: {}", problem(set));
    }
    assert_eq!(run(&["rate=1e7", "clients=1,2"]).rate, Some(1e7));
}

#[test]
fn active_is_a_share_of_the_clients() {
    assert_eq!(run(&["active=5%"]).active_percent, Some(5.0));
    for wrong in ["active=5", "active=0%", "active=101%", "active=five%"] {
        assert!(problem(&[wrong]).contains("active = \"5%\""), "{wrong}");
    }
}

#[test]
fn rate_search_is_parsed_and_its_trials_start_from_one_load() {
    let search = run(&["rate=max(p99 < 10ms)"]).search.unwrap();
    assert_eq!(search.to_string(), "max(p99 < 10 ms)");
    for (rate, part) in [
        ("rate=fast", "invalid rate `fast`"),
        ("rate=max(p98 < 10ms)", "`p98`, which is not a percentile"),
        ("rate=max(p99 < 10)", "rate: "),
        ("rate=max(p99 < 0ms)", "no time"),
    ] {
        assert!(problem(&[rate]).contains(part), "{rate}: {}", problem(&[rate]));
    }
}
