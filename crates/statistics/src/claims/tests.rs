use rumba_results::comparison::Summary;
use rumba_results::record::{PhaseKind, Record};

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
fn claim_beyond_noise_holds_or_fails_and_within_is_undecided() {
    let clear = judged(HOLDS, &run(&[20.0, 21.0, 19.0], &[1.0, 1.1, 0.9]));
    assert_eq!((clear.verdict, clear.seen), (Verdict::Holds, Some(true)));
    assert_eq!(clear.test.as_deref(), Some("permutation and Welch tests, 3 and 3 repeats, each from its own load"));
    assert_eq!(clear.measured, Metric::Value(5.0), "the left side over the right");
    let (low, high) = clear.interval.unwrap();
    assert!(low < 5.0 && 5.0 < high && low > 4.0, "{low} {high}");
    assert_eq!(judged(HOLDS, &run(&[2.0, 2.1, 1.9], &[1.0, 1.1, 0.9])).verdict, Verdict::Fails);
    let near = judged(HOLDS, &run(&[4.0, 5.5, 7.0], &[1.0, 1.0, 1.0]));
    assert_eq!((near.verdict, near.seen), (Verdict::Undecided, Some(true)), "{near:?}");
    assert!(near.more_repeats.unwrap() > 1 && near.reason.contains("more repeats of each"), "{}", near.reason);
    let noise = judged(HOLDS, &run(&[3.0, 5.0, 9.0], &[1.0, 1.0, 1.0]));
    assert_eq!((noise.verdict, noise.more_repeats), (Verdict::Undecided, None), "{noise:?}");
    assert!(noise.reason.ends_with("; too noisy to decide here"), "{}", noise.reason);
}

/// Four repeats of each engine; a kept engine's repeats share one load.
fn repeats_from(a_is_kept: bool, b_is_kept: bool) -> Summary {
    let of = |engine: &'static str, wkb: f64, load: Option<u32>| {
        (1..=4).map(move |repeat| {
            let mut record = trial(engine, repeat, wkb + f64::from(repeat) / 100.0);
            record.plan.loaded_by = load;
            record
        })
    };
    let (a, b) = (a_is_kept.then_some(90), b_is_kept.then_some(91));
    summarise(&testing::results(of("a", 20.0, a).chain(of("b", 1.0, b)).collect()))
}

#[test]
fn claim_over_starts_of_one_load_is_judged_for_that_load_only() {
    let verdict = |holds: &str, a: bool, b: bool| judged(holds, &repeats_from(a, b)).verdict;
    let fails = HOLDS.replace(">=", "<");
    assert_eq!([verdict(HOLDS, false, false), verdict(&fails, false, false)], [Verdict::Holds, Verdict::Fails]);
    for (a, b) in [(true, true), (true, false), (false, true)] {
        assert_eq!(verdict(HOLDS, a, b), Verdict::TrueForThisLoad);
        assert_eq!(verdict(&fails, a, b), Verdict::FalseForThisLoad);
        assert_eq!(verdict(&format!("!({HOLDS})"), a, b), Verdict::FalseForThisLoad);
    }
    // A part that decides for other loads too needs no other; otherwise the narrowest scope of all parts applies.
    let of_loads = HOLDS.replace("wkb_per_op(", "load_ops_per_s(").replace("4 *", "0.5 *");
    assert_eq!(verdict(&of_loads, true, true), Verdict::Holds, "a load is a repeat of the load");
    assert_eq!(verdict(&format!("{HOLDS} || {of_loads}"), true, true), Verdict::Holds);
    assert_eq!(verdict(&format!("{HOLDS} && {of_loads}"), true, true), Verdict::TrueForThisLoad);
    assert_eq!(verdict(&format!("{fails} || !({of_loads})"), true, true), Verdict::FalseForThisLoad);
    assert_eq!(serde_json::to_value(Verdict::TrueForThisLoad).unwrap(), "true-for-this-load");
}

#[test]
fn single_repeat_has_its_own_verdict_and_result() {
    let one = judged(HOLDS, &run(&[20.0], &[1.0]));
    assert_eq!((one.verdict, one.seen, one.interval), (Verdict::SingleRun, Some(true), None));
    assert_eq!(one.reason, "left 20.0, right 4.00; true in the one repeat");
    let not = judged(HOLDS, &run(&[2.0, 2.1, 2.2], &[1.0]));
    assert_eq!((not.verdict, not.seen), (Verdict::SingleRun, Some(false)), "one side with one repeat");
}

#[test]
fn metric_missing_in_one_repeat_leaves_claim_undecided() {
    let mut summary = run(&[20.0, 21.0, 19.0, 20.0], &[1.0, 1.1, 0.9, 1.0]);
    let figures = summary.rows[1].run.as_mut().unwrap();
    figures.metrics.get_mut("wkb_per_op").unwrap().values[2] = Metric::absent("the device went away");
    for holds in [HOLDS.to_owned(), "wkb_per_op(\"a\") - wkb_per_op(\"b\") > wkb_per_op(\"b\")".to_owned()] {
        let lacking = judged(&holds, &summary);
        assert_eq!(lacking.verdict, Verdict::Undecided, "{holds}");
        assert_eq!(lacking.reason, "wkb_per_op of b: 1 of 4 repeats have none: the device went away");
    }
    assert_eq!(judged("wkb_per_op(\"a\") > 4", &summary).verdict, Verdict::Undecided, "four of one side are too few");
}

#[test]
fn unknown_operand_leaves_decision_to_a_deciding_operand() {
    let summary = run(&[20.0, 21.0, 19.0, 20.5], &[1.0, 1.1, 0.9, 1.0]);
    // The made-up load has no logical bytes.
    let absent = "write_amp_with_settle(\"a\") >= 1";
    let of = |holds: &str| judged(holds, &summary);
    let untrue = HOLDS.replace(">=", "<");
    for (holds, verdict, seen) in [
        (format!("{HOLDS} || {absent}"), Verdict::Holds, Some(true)),
        (format!("{absent} || {HOLDS}"), Verdict::Holds, Some(true)),
        (format!("{absent} && {untrue}"), Verdict::Fails, Some(false)),
        (format!("!({untrue} && {absent})"), Verdict::Holds, Some(true)),
        (format!("({HOLDS} || {absent}) && {HOLDS}"), Verdict::Holds, Some(true)),
        (format!("{untrue} || {absent}"), Verdict::Undecided, None),
        (format!("{HOLDS} && {absent}"), Verdict::Undecided, None),
        (format!("{absent} || {absent}"), Verdict::Undecided, None),
    ] {
        let judged = of(&holds);
        assert_eq!((judged.verdict, judged.seen), (verdict, seen), "{holds}: {}", judged.reason);
        assert!(judged.reason.contains("absent because write_amp_with_settle of a"), "{holds}: {}", judged.reason);
    }
    let noisy = run(&[3.0, 5.0, 9.0], &[1.0, 1.0, 1.0]);
    let within_noise = judged(&format!("{HOLDS} || {absent}"), &noisy);
    assert_eq!(within_noise.verdict, Verdict::Undecided, "true of the medians alone is not enough");
}

#[test]
fn a_division_by_a_figure_of_zero_is_undecided_and_no_infinity() {
    let ratio = "wkb_per_op(\"a\") / wkb_per_op(\"b\") > 2.0";
    let divided = judged(ratio, &run(&[20.0, 20.0], &[0.0, 0.0]));
    assert_eq!((divided.verdict, divided.reason.as_str()), (Verdict::Undecided, "something is divided by zero"));
    for large in ["1e308 * 10 > 1", "1e308 / 0.01 > 1", "1e308 + 1e308 > 1"] {
        let judged = judged(large, &run(&[1.0], &[1.0]));
        assert_eq!(judged.reason, "the result is not a finite number", "{large}");
    }
}

#[test]
fn zero_divisor_in_some_repeats_leaves_claim_undecided() {
    let some = run(&[5.0; 7], &[0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let ratio = "wkb_per_op(\"a\") / wkb_per_op(\"b\")";
    for holds in [format!("{ratio} <= 10"), "1 / wkb_per_op(\"b\") <= wkb_per_op(\"a\")".to_owned()] {
        let divided = judged(&holds, &some);
        assert_eq!(divided.verdict, Verdict::Undecided, "{holds}");
        assert_eq!(divided.reason, "2 of 7 repeats have no value: something is divided by zero", "{holds}");
    }
    let measured = Claim { measure: Some(ratio.to_owned()), ..claim("wkb_per_op(\"a\") >= 1") };
    let measured = judge(&[measured], &some.rows).remove(0);
    assert_eq!((measured.verdict, measured.interval), (Verdict::Holds, None), "nor is there an interval of them");
}

#[test]
fn a_divisor_below_zero_is_not_brought_to_the_other_side() {
    let shrinking = run(&[100.0; 5], &[-10.0; 5]);
    let at_least = judged("wkb_per_op(\"a\") / wkb_per_op(\"b\") >= -2", &shrinking);
    assert_eq!((at_least.verdict, at_least.seen), (Verdict::Fails, Some(false)), "{}", at_least.reason);
    assert_eq!(at_least.test.as_deref(), Some("sign-flip test, 5 repeats, each from its own load"));
    assert_eq!(judged("wkb_per_op(\"a\") / wkb_per_op(\"b\") <= -2", &shrinking).verdict, Verdict::Holds);
    let by_number = judged("wkb_per_op(\"a\") / wkb_per_op(\"b\") / -2 >= -2", &run(&[100.0; 5], &[10.0; 5]));
    assert_eq!(by_number.verdict, Verdict::Fails, "a number as well: {}", by_number.reason);
}

#[test]
fn engines_without_common_repeats_are_not_a_single_run() {
    let of = |engine: &'static str, first: u32| (first..first + 2).map(move |repeat| trial(engine, repeat, 2.0));
    let summary = summarise(&testing::results(of("a", 1).chain(of("b", 3)).collect()));
    let apart = judged("wkb_per_op(\"a\") - wkb_per_op(\"b\") >= 0 * wkb_per_op(\"b\")", &summary);
    assert_eq!((apart.verdict, apart.reason.as_str()), (Verdict::Undecided, "no repeat has all that it reads"));
}

#[test]
fn figures_of_zero_are_tested_without_logarithms() {
    let none = run(&[3.0, 4.0, 5.0], &[0.0, 0.0, 0.0]);
    let more = judged("wkb_per_op(\"a\") > wkb_per_op(\"b\")", &none);
    assert_eq!((more.verdict, more.interval), (Verdict::Holds, None));
    assert_eq!(judged("wkb_per_op(\"b\") >= wkb_per_op(\"a\")", &none).verdict, Verdict::Fails);
}

#[test]
fn engine_against_a_number_needs_sign_test_and_five_repeats() {
    let absolute = "ops_per_s(\"a\") >= 1000 && p99_ms(\"a\", \"get_node\") <= 2.5";
    let four = judged(absolute, &run(&[1.0; 4], &[1.0]));
    assert_eq!((four.verdict, four.more_repeats), (Verdict::Undecided, Some(1)), "{}", four.reason);
    let five = judged(absolute, &run(&[1.0; 5], &[1.0]));
    assert_eq!(five.test.as_deref(), Some("sign-flip test, 5 repeats, each from its own load"));
    assert_eq!(five.verdict, Verdict::Holds, "b, with one repeat, is not in it");
    let paired = judged("wkb_per_op_with_drain(\"a\") <= 2 * wkb_per_op_with_drain(\"a\")", &run(&[1.0; 5], &[1.0]));
    assert_eq!(paired.verdict, Verdict::Holds);
}

#[test]
fn ratios_of_four_rows_are_two_sides_of_repeats() {
    let rates = |engine: &'static str, rates: [f64; 3]| {
        rates.into_iter().zip(1..).map(move |(wkb, repeat)| trial(engine, repeat, wkb))
    };
    let records = rates("a", [40.0, 41.0, 39.0])
        .chain(rates("b", [10.0, 10.1, 9.9]))
        .chain(rates("c", [20.0, 20.5, 19.5]))
        .chain(rates("d", [10.0, 10.2, 9.8]));
    let summary = summarise(&testing::results(records.collect()));
    let of = |engine: &str| format!("wkb_per_op(\"{engine}\")");
    let holds = format!("{} / {} >= {} / {}", of("a"), of("b"), of("c"), of("d"));
    let four = judged(&holds, &summary);
    assert_eq!(four.verdict, Verdict::Holds, "{}", four.reason);
    assert_eq!(four.test.as_deref(), Some("permutation and Welch tests, 3 and 3 repeats, each from its own load"));
    assert_eq!(judged(&holds.replace(">=", "<="), &summary).verdict, Verdict::Fails);
}

#[test]
fn a_part_of_a_conjunction_fails_at_its_share_of_the_level() {
    let (low, high) = ("wkb_per_op(\"a\") >= 4 * wkb_per_op(\"b\")", "wkb_per_op(\"a\") <= 6 * wkb_per_op(\"b\")");
    let both = format!("{low} && {high}");
    assert_eq!(judged(&both, &run(&[5.0, 5.1, 4.9], &[1.0, 1.01, 0.99])).verdict, Verdict::Holds);
    // 1 of 20 deals is 5%, which is not 2.5%; 1 of 70 is less.
    assert_eq!(judged(&both, &run(&[9.0, 9.1, 8.9], &[1.0, 1.01, 0.99])).verdict, Verdict::Undecided);
    let four = run(&[9.0, 9.1, 8.9, 9.05], &[1.0, 1.01, 0.99, 1.0]);
    assert_eq!(judged(&both, &four).verdict, Verdict::Fails);
    assert_eq!(judged(&format!("!({both})"), &four).verdict, Verdict::Holds);
    assert_eq!(judged(&format!("{low} || {high}"), &four).verdict, Verdict::Holds);
}

#[test]
fn equal_means_within_a_percent() {
    let same = "wkb_per_op(\"a\") == wkb_per_op(\"b\")";
    assert_eq!(judged(same, &run(&[10.0, 10.01, 9.99], &[10.0, 10.02, 10.01])).verdict, Verdict::Holds);
    assert_eq!(judged(same, &run(&[10.5, 10.51, 10.49, 10.5], &[10.0; 4])).verdict, Verdict::Fails);
    assert_eq!(judged(&same.replace("==", "!="), &run(&[10.5; 4], &[10.0; 4])).verdict, Verdict::Holds);
    // The same is true for single runs, plain numbers, and one part of several.
    let once = judged(same, &run(&[10.02], &[10.0]));
    assert_eq!((once.verdict, once.seen), (Verdict::SingleRun, Some(true)), "{}", once.reason);
    let apart = judged(same, &run(&[10.2], &[10.0]));
    assert_eq!((apart.verdict, apart.seen), (Verdict::SingleRun, Some(false)), "{}", apart.reason);
    assert_eq!(judged("1 == 1.005", &run(&[10.0; 4], &[10.0; 4])).verdict, Verdict::Holds);
    for one_way_or_the_other in ["99 == 100", "100 == 99"] {
        assert_eq!(judged(one_way_or_the_other, &run(&[10.0; 4], &[10.0; 4])).verdict, Verdict::Fails);
    }
    assert_eq!(judged("0 == 0.001", &run(&[10.0; 4], &[10.0; 4])).verdict, Verdict::Fails);
    let both = judged(&format!("{same} && ops_per_s(\"a\") > 0"), &run(&[10.0, 10.01, 9.99, 10.0, 10.01], &[10.02; 5]));
    assert_eq!((both.verdict, both.seen), (Verdict::Holds, Some(true)), "{}", both.reason);
    assert!(both.reason.contains("it is true"), "{}", both.reason);
}

#[test]
fn claims_reach_percentiles_loads_and_joined_inequalities() {
    let all =
        "p99_ms(\"a\", \"get_node\") == 2.0 && load_ops_per_s(\"b\") > 9_000 && wkb_per_op_with_drain(\"a\", 8) > 0";
    assert_eq!(judged(all, &run(&[2.0; 5], &[1.0; 5])).verdict, Verdict::Holds);
}

#[test]
fn numbers_are_floating_point() {
    let number = |text: &str| {
        let parsed = language::number(text, &scope()).unwrap();
        Figures(&[]).number(&parsed, Which::Medians).unwrap()
    };
    assert_eq!(number("7/10"), 0.7);
    assert_eq!(number("1_000 * 2 - 3 / 2"), 1998.5);
    assert_eq!(number("-(2 + 1e1) * -.5"), 6.0);
    assert_eq!(number("8 - 2 - 1 / 2 / 2"), 5.75);
    let empty = run(&[1.0], &[1.0]);
    assert_eq!(judged("7/10 > 0.5 && !(1 > 2) && (1 < 2 || 2 < 1)", &empty).verdict, Verdict::Holds);
}

#[test]
fn wrong_claims_are_refused_before_the_run() {
    let problem = |text: &str| check(text, true, &scope()).unwrap_err();
    check("wkb_per_op(\"innodb.16k\") >= 5 * wkb_per_op(\"myrocks.zstd\")", true, &scope()).unwrap();
    let engine = problem("wkb_per_op(\"innodb.16k\") >= 5 * wkb_per_op(\"myrocks.zsdt\")");
    assert_eq!(engine.problem, "the experiment has no engine `myrocks.zsdt`");
    assert_eq!((engine.remedy.as_str(), engine.offset), ("did you mean `myrocks.zstd`?", 43));
    assert_eq!(engine.missing, Some(Missing::Engine("myrocks.zsdt".to_owned())));
    let metric = problem("1 > 0 || wkb_per_opp(\"innodb.16k\") > 1");
    assert_eq!((metric.remedy.as_str(), metric.offset), ("did you mean `wkb_per_op`?", 9));
    let clients = problem("wkb_per_op(\"innodb.16k\", 4) > 1");
    assert!(clients.problem.contains("4 clients") && clients.missing == Some(Missing::Clients));
    assert!(problem("p99_ms(\"innodb.16k\") > 1").remedy.contains("(\"innodb.16k\", \"OPERATION\")"));
    assert!(problem("wkb_per_op() > 1").problem.contains("wrong arguments for"));
    assert!(problem("wkb_per_op(\"innodb.16k\")").problem.contains("not an inequality"));
    assert!(problem("wkb_per_op(\"innodb.16k\") > ").problem.contains("cannot be read"));
    assert!(problem("wkb_per_op > 1").remedy.contains("wkb_per_op(\"innodb.16k\")"));
    assert!(check("1 > 2", false, &scope()).unwrap_err().problem.contains("not a number"));
}

#[test]
fn syntax_errors_are_reported_with_position_and_remedy() {
    let problem = |text: &str| check(text, true, &scope()).unwrap_err();
    let at = |text: &str| (problem(text).offset, problem(text).remedy);
    assert_eq!(at("1 < 2 < 3"), (6, "join two inequalities: 1 < x && x < 2".to_owned()));
    assert_eq!(at("1 = 2"), (2, "write ==, >= or <=".to_owned()));
    assert_eq!(at("1 < 2 & 2 < 3"), (6, "write &&".to_owned()));
    assert_eq!(at("wkb_per_op(innodb) > 1"), (11, "put it between double quotes: \"innodb\"".to_owned()));
    for (text, offset) in [
        ("while true {}", 11),
        ("(1 < 2", 6),
        ("1 < 2)", 5),
        ("wkb_per_op(\"innodb.16k) > 1", 11),
        ("1 < 0x10", 4),
        ("1 < 2 @", 6),
        ("1 < * 2", 4),
        ("1 < 2 && 3", 9),
        ("", 0),
    ] {
        assert_eq!(problem(text).offset, offset, "{text}: {}", problem(text).problem);
    }
    let deep = format!("{}1{} > 0", "(".repeat(10_000), ")".repeat(10_000));
    assert!(problem(&deep).problem.contains("nested too deeply"));
    for sign in ["+", "-", "*", "/"] {
        let long = format!("1{} > 0", format!("{sign}1").repeat(30_000));
        assert_eq!(problem(&long).problem, "it has more than 256 numbers and figures");
        assert_eq!((problem(&long).offset, problem(&long).remedy.as_str()), (512, "split it into several claims"));
    }
    assert!(problem(&format!("1 > 0{}", " && 1 > 0".repeat(30_000))).problem.contains("more than 256"));
    check(&format!("ops_per_s(\"myrocks.zstd\") > 1{}", "+1".repeat(254)), true, &scope()).unwrap();
}

proptest::proptest! {
    /// Any text is either parsed or refused with a position inside it.
    #[test]
    fn no_text_breaks_the_parser(text in r#"[a-z_0-9"().<>=!&|+*/, é-]{0,40}"#) {
        if let Err(mistake) = check(&text, true, &scope()) {
            proptest::prop_assert!(mistake.offset <= text.len());
        }
    }
}

#[test]
fn client_counts_must_be_distinct() {
    let mut scope = scope();
    scope.add("innodb.16k", 1);
    let error = check("ops_per_s(\"innodb.16k\") > 1", true, &scope).unwrap_err();
    assert!(error.remedy.contains("1, 16"), "{}", error.remedy);
    check("ops_per_s(\"innodb.16k\", 16) > ops_per_s(\"innodb.16k\", 1)", true, &scope).unwrap();
}
