//! Tests of a history: in the order of versions, each step with its verdict.

use rumba_results::build::Build;
use rumba_results::comparison::Part;

use super::*;
use crate::testing::{at_rates, break_data, results};
use crate::{Found, Gate};

/// A run of engine `a` in this version, with four repeats around this rate.
fn run(version: &str, rate: f64, started: &str) -> Run {
    let mut records = at_rates("a", &[1.0, 1.002, 0.998, 1.001].map(|noise| rate * noise));
    records.iter_mut().for_each(|record| record.version = Some(version.to_owned()));
    let results = Results { started: started.to_owned(), ..results(records) };
    Run { directory: format!("results/{started}"), results }
}

fn rate_line(history: &History) -> &Line {
    history.lines.iter().find(|line| line.metric == "ops_per_s" && line.part == Part::Run).unwrap()
}

fn labels(line: &Line) -> Vec<&str> {
    line.steps.iter().map(|step| step.label.as_str()).collect()
}

#[test]
fn versions_sort_by_number_and_not_by_run_order() {
    let runs = [run("10.1", 90.0, "2024-01-01"), run("9.2", 100.0, "2024-01-02"), run("9.10", 100.0, "2024-01-03")];
    let history = history(&runs, None);
    let line = rate_line(&history);
    assert_eq!((line.by, labels(line)), (Axis::Version, vec!["9.2", "9.10", "10.1"]));
    let verdicts: Vec<Option<Change>> =
        line.steps.iter().map(|step| step.against.as_ref().map(|ratio| ratio.change)).collect();
    assert_eq!(verdicts, [None, Some(Change::Same), Some(Change::Worse)]);
    let worse = line.steps[2].against.as_ref().unwrap();
    assert!((worse.ratio.value().unwrap() - 0.9).abs() < 1e-9 && worse.high.value().unwrap() < 0.92);
    assert_eq!(line.changes.iter().map(|c| (c.after.as_str(), c.at.as_str())).collect::<Vec<_>>(), [("9.10", "10.1")]);
    let by_start = super::history(&runs, Some(Axis::Started));
    assert_eq!(labels(rate_line(&by_start)), ["2024-01-01", "2024-01-02", "2024-01-03"]);
}

#[test]
fn listed_engine_is_one_line_despite_names_of_older_versions() {
    let mut runs = [("1.0", "2024-01-01"), ("1.1", "2024-01-02")].map(|(version, at)| run(version, 100.0, at));
    for (run, name) in runs.iter_mut().zip(["a.4k", "a[page=4k]"]) {
        run.results.trials.iter_mut().for_each(|trial| trial.record.plan.engine.name = name.to_owned());
    }
    let history = history(&runs, None);
    assert!(history.lines.iter().all(|line| line.engine == "a[page=4k]" && line.steps.len() == 2));
    assert!(last_step(&runs, None).unwrap().unmatched.is_empty());
}

#[test]
fn commits_of_one_version_are_ordered_by_commit_date() {
    let of_commit = |commit: &str, committed: &str, started: &str| {
        let mut run = run("1.0", 100.0, started);
        let (commit, committed) = (Some(commit.repeat(40)), Some(committed.to_owned()));
        run.results.build = Some(Build { commit, committed, ..Build::default() });
        run
    };
    let runs = [of_commit("b", "2024-02-02", "2024-03-01"), of_commit("a", "2024-02-01", "2024-03-02")];
    let history = history(&runs, None);
    let line = rate_line(&history);
    assert_eq!((line.by, labels(line)), (Axis::Commit, vec!["aaaaaaaaaaaa", "bbbbbbbbbbbb"]));
    assert!(history.differ.iter().all(|name| name != "load_average_at_start"), "{:?}", history.differ);
}

#[test]
fn two_runs_of_one_version_keep_apart_by_their_starts() {
    let runs = [run("2.0", 100.0, "2024-01-01"), run("1.0", 100.0, "2024-01-02"), run("1.0", 100.0, "2024-01-03")];
    let history = history(&runs, None);
    assert_eq!(labels(rate_line(&history)), ["1.0 (2024-01-02)", "1.0 (2024-01-03)", "2.0"]);
}

#[test]
fn failed_run_is_skipped_with_reason_and_broken_data_undecided() {
    let mut failed = run("2.0", 100.0, "2024-01-02");
    for trial in &mut failed.results.trials {
        let cause = "the device is full".to_owned();
        trial.record.status = Status::Failed { phase: rumba_results::record::PhaseKind::Load, cause };
        trial.record.phases.clear();
    }
    let mut broken = run("4.0", 300.0, "2024-01-04");
    break_data(&mut broken.results.trials[0].record);
    let runs = [run("1.0", 100.0, "2024-01-01"), failed, run("3.0", 200.0, "2024-01-03"), broken];
    let history = history(&runs, None);
    let line = rate_line(&history);
    assert_eq!(line.steps[1].median.reason().unwrap(), "it failed in load: the device is full");
    let over_first = line.steps[2].against.as_ref().unwrap();
    assert_eq!((over_first.change, over_first.ratio.value().unwrap().round()), (Change::Better, 2.0));
    let of_broken = &line.steps[3];
    assert!(of_broken.unsound.is_some() && of_broken.against.as_ref().is_none_or(|r| r.change == Change::Undecided));
    assert!(!line.changes.is_empty() && line.changes.iter().all(|change| change.at == "3.0"), "{:?}", line.changes);
}

#[test]
fn undecided_run_does_not_hide_a_step_across_it() {
    let mut cut_off = run("2.0", 100.0, "2024-01-02");
    for trial in &mut cut_off.results.trials {
        let cause = "killed".to_owned();
        trial.record.status = Status::Failed { phase: rumba_results::record::PhaseKind::Loop(2), cause };
        trial.record.phases.truncate(3);
    }
    let mut lacking = run("3.0", 100.0, "2024-01-03");
    let loops = lacking.results.trials[0].record.phases.iter_mut();
    loops.for_each(|phase| phase.metrics.ops_per_s = Metric::absent("not counted"));
    let runs = [run("1.0", 100.0, "2024-01-01"), cut_off, lacking, run("4.0", 70.0, "2024-01-04")];
    let history = history(&runs, None);
    let steps = &rate_line(&history).steps;
    for step in &steps[1..3] {
        assert_eq!(step.against.as_ref().unwrap().change, Change::Undecided, "{}", step.label);
    }
    let over_first = steps[3].against.as_ref().unwrap();
    assert_eq!((over_first.change, over_first.ratio.value().unwrap()), (Change::Worse, 0.7));
}

#[test]
fn the_last_step_is_a_comparison_that_gates_judge() {
    let runs = [run("1.0", 100.0, "2024-01-02"), run("2.0", 80.0, "2024-01-01"), run("0.9", 10.0, "2024-01-03")];
    let last = last_step(&runs, None).unwrap();
    let gate = Gate::parse("ops_per_s < 0.95").unwrap();
    assert!(gate.judge(&last).unwrap().iter().all(|gated| gated.verdict == Found::Holds));
    assert!(last_step(&runs[..1], None).is_none());
}

/// A run of engine `a` at this rate and of engine `b` at one that never changes.
fn run_of_both(rate: f64, started: &str) -> Run {
    let (mut both, other) = (run("1.0", rate, started), run("1.0", 100.0, started));
    both.results.trials.extend(other.results.trials.into_iter().map(|mut trial| {
        trial.record.plan.number += 4;
        trial.record.plan.engine.name = "b".to_owned();
        trial
    }));
    both
}

fn failing(started: &str) -> Run {
    let mut failing = run_of_both(100.0, started);
    for trial in &mut failing.results.trials[..4] {
        let cause = "the device is full".to_owned();
        trial.record.status = Status::Failed { phase: rumba_results::record::PhaseKind::Load, cause };
        trial.record.phases.clear();
    }
    failing
}

/// The verdicts of a gate on the last step, engine by engine.
fn gated(runs: &[Run]) -> Vec<(String, u32, Found)> {
    let mut found = Gate::parse("ops_per_s < 0.95").unwrap().judge(&last_step(runs, None).unwrap()).unwrap();
    found.sort_by(|one, other| one.engine.cmp(&other.engine));
    found.into_iter().map(|gated| (gated.engine, gated.clients, gated.verdict)).collect()
}

fn found(a: Found, b: Found) -> Vec<(String, u32, Found)> {
    vec![("a".to_owned(), 8, a), ("b".to_owned(), 8, b)]
}

#[test]
fn undecided_run_hides_no_step_across_it_from_a_gate() {
    let mut broken = run_of_both(300.0, "2024-01-02");
    break_data(&mut broken.results.trials[0].record);
    let mut lacking = run_of_both(100.0, "2024-01-02");
    let phases = lacking.results.trials[0].record.phases.iter_mut();
    phases.for_each(|phase| phase.metrics.ops_per_s = Metric::absent("not counted"));
    for between in [failing("2024-01-02"), broken, lacking] {
        let of_last = |last: Run| gated(&[run_of_both(100.0, "2024-01-01"), between.clone(), last]);
        assert_eq!(of_last(run_of_both(50.0, "2024-01-03")), found(Found::Holds, Found::Fails));
        assert_eq!(of_last(run_of_both(100.0, "2024-01-03")), found(Found::Fails, Found::Fails));
        assert_eq!(of_last(failing("2024-01-03")), found(Found::NotJudged, Found::Fails), "it is not shown still");
    }
}

#[test]
fn client_count_no_longer_run_is_judged_only_when_it_stopped() {
    let mut wider = run_of_both(100.0, "2024-01-01");
    let more = wider.results.trials.clone();
    wider.results.trials.extend(more.into_iter().map(|mut trial| {
        trial.record.plan.number += 8;
        trial.record.plan.clients = 16;
        trial
    }));
    let (second, third) = (run_of_both(100.0, "2024-01-02"), run_of_both(100.0, "2024-01-03"));
    assert!(gated(&[wider.clone(), second.clone()]).contains(&("a".to_owned(), 16, Found::NotJudged)));
    assert_eq!(gated(&[wider, second, third]), found(Found::Fails, Found::Fails));
}
