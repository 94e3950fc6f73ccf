#![allow(clippy::unwrap_used)]

use rumba_core::comparison::Summary;
use rumba_core::record::{PhaseKind, Record};

use super::*;
use crate::{summarise, testing};

fn trial(engine: &str, repeat: u32, wkb: f64) -> Record {
    let mut record = testing::record(engine, 8, repeat);
    let loops = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
    loops.metrics.wkb_per_op = Metric::from(wkb);
    record
}

fn run(a: &[f64], b: &[f64]) -> Summary {
    let of = |engine: &'static str, values: &[f64]| {
        values.iter().zip(1..).map(|(&wkb, repeat)| trial(engine, repeat, wkb)).collect::<Vec<_>>()
    };
    summarise(&testing::results([of("a", a), of("b", b)].concat()))
}

fn claim(holds: &str) -> Claim {
    Claim { text: "a writes more".into(), source: None, holds: holds.into(), measure: None, published: Some(18.3) }
}

fn judged(holds: &str, summary: &Summary) -> Judgement {
    judge(&[claim(holds)], &summary.rows).remove(0)
}

fn scope() -> Scope {
    let mut scope = Scope::default();
    scope.add("innodb.16k", 16);
    scope.add("myrocks.zstd", 16);
    scope
}

const HOLDS: &str = "wkb_per_op(\"a\") >= 4 * wkb_per_op(\"b\")";

#[test]
fn a_claim_far_from_the_noise_holds_or_fails_and_one_within_it_is_undecided() {
    let clear = judged(HOLDS, &run(&[20.0, 21.0, 19.0], &[1.0, 1.1, 0.9]));
    assert_eq!((clear.verdict, clear.support), (Verdict::Holds, Some(1.0)));
    assert_eq!(clear.measured, Metric::Value(5.0));
    let (low, high) = clear.interval.unwrap();
    assert!(low < 5.0 && 5.0 < high, "{low} {high}");
    assert_eq!(judged(HOLDS, &run(&[2.0, 2.1, 1.9], &[1.0, 1.1, 0.9])).verdict, Verdict::Fails);
    let noise = judged(HOLDS, &run(&[2.0, 4.0, 9.0], &[1.0, 1.0, 1.0]));
    assert_eq!(noise.verdict, Verdict::Undecided, "{noise:?}");
    assert!(noise.reason.contains("% of draws from 3 repeats"), "{}", noise.reason);
}

#[test]
fn one_repeat_is_judged_by_its_figures_and_says_so() {
    let one = judged(HOLDS, &run(&[20.0], &[1.0]));
    assert_eq!((one.verdict, one.interval, one.support), (Verdict::Holds, None, None));
    assert!(one.reason.contains("one repeat"), "{}", one.reason);
}

#[test]
fn an_absent_figure_leaves_a_claim_undecided_with_its_reason() {
    let mut summary = run(&[20.0, 20.0], &[1.0, 1.0]);
    let run = summary.rows[1].run.as_mut().unwrap();
    run.metrics.get_mut("wkb_per_op").unwrap().values.fill(Metric::absent("tmpfs has no device"));
    run.metrics.get_mut("wkb_per_op").unwrap().median = Metric::absent("tmpfs has no device");
    let judged = judged(HOLDS, &summary);
    assert_eq!(judged.verdict, Verdict::Undecided);
    assert_eq!(judged.reason, "absent because wkb_per_op of b: tmpfs has no device");
}

#[test]
fn a_division_by_a_figure_of_zero_is_undecided_and_no_infinity() {
    let ratio = "wkb_per_op(\"a\") / wkb_per_op(\"b\") > 2.0";
    assert_eq!(judged(ratio, &run(&[20.0, 20.0], &[0.0, 0.0])).verdict, Verdict::Undecided);
}

#[test]
fn a_measure_is_what_is_shown_beside_the_published_figure() {
    let measure = Some("wkb_per_op(\"a\") / wkb_per_op(\"b\")".to_owned());
    let judged = judge(&[Claim { measure, ..claim(HOLDS) }], &run(&[20.0, 20.0], &[1.0, 1.0]).rows).remove(0);
    assert_eq!((judged.measured, judged.interval), (Metric::Value(20.0), Some((20.0, 20.0))));
}

#[test]
fn claims_reach_percentiles_loads_and_joined_inequalities() {
    let summary = run(&[2.0, 2.0], &[1.0, 1.0]);
    let all = "p99_ms(\"a\", \"get_node\") == 2.0 && load_ops_per_s(\"b\") > 9_000 && \
               wkb_per_op_with_drain(\"a\", 8) > 0 && write_amp_with_settle(\"a\") >= 0";
    let judged = judged(all, &summary);
    // The made-up load has no logical bytes: a part that is absent leaves the whole undecided.
    assert_eq!(judged.verdict, Verdict::Undecided);
    assert!(judged.reason.contains("write_amp_with_settle"), "{}", judged.reason);
    let known = all.rsplit_once("&&").unwrap().0;
    assert_eq!(super::tests::judged(known, &summary).verdict, Verdict::Holds);
}

#[test]
fn what_is_wrong_with_a_claim_is_said_before_anything_runs() {
    let problem = |text: &str| check(text, true, &scope()).unwrap_err();
    check("wkb_per_op(\"innodb.16k\") >= 5 * wkb_per_op(\"myrocks.zstd\")", true, &scope()).unwrap();
    let engine = problem("wkb_per_op(\"innodb.16k\") >= 5 * wkb_per_op(\"myrocks.zsdt\")");
    assert_eq!(engine.problem, "the experiment has no engine `myrocks.zsdt`");
    assert_eq!((engine.remedy.as_str(), engine.offset), ("did you mean `myrocks.zstd`?", 32));
    let metric = problem("true || wkb_per_opp(\"innodb.16k\") > 1");
    assert_eq!((metric.remedy.as_str(), metric.offset), ("did you mean `wkb_per_op`?", 8));
    assert!(problem("wkb_per_op(\"innodb.16k\", 4) > 1").problem.contains("4 clients"));
    assert!(problem("p99_ms(\"innodb.16k\") > 1").remedy.contains("get_node"));
    assert!(problem("wkb_per_op(\"innodb.16k\")").problem.contains("not an inequality"));
    assert!(problem("wkb_per_op(\"innodb.16k\") > ").problem.contains("cannot be read"));
    assert!(problem("wkb_per_op > 1").remedy.contains("wkb_per_op(\"innodb\")"));
    assert!(problem("while true {}").problem.contains("cannot be read"));
}

#[test]
fn several_numbers_of_clients_must_be_told_apart() {
    let mut scope = scope();
    scope.add("innodb.16k", 1);
    let error = check("ops_per_s(\"innodb.16k\") > 1", true, &scope).unwrap_err();
    assert!(error.remedy.contains("1, 16"), "{}", error.remedy);
    check("ops_per_s(\"innodb.16k\", 16) > ops_per_s(\"innodb.16k\", 1)", true, &scope).unwrap();
}
