//! Hardware counters and CPU profiles in the reports.

use crate::support::compare::summarise;
use crate::support::synthetic::{Plan, SERVER_BTREE, SERVER_LSM, results};
use rumba_report::{TableOptions, tables};
use rumba_results::metric::Metric;
use rumba_results::record::PhaseKind;
use rumba_results::results::Results;
use rumba_results::warning::Warning;

const PLAN: Plan = Plan { clients: &[16], repeats: 2, loops: 2, loop_s: 10 };

fn printed(results: &Results) -> String {
    tables(results, &summarise(results), &TableOptions::default())
}

#[test]
fn hardware_counters_have_a_table_with_the_counted_ones() {
    const TITLE: &str = "\nHardware counters per operation";
    let mut results = results(&[SERVER_BTREE, SERVER_LSM], PLAN);
    assert!(!printed(&results).contains(TITLE), "a table of absent figures says nothing");
    for trial in results.trials.iter_mut().filter(|trial| trial.record.plan.engine.name == SERVER_BTREE.name) {
        let loops = trial.record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
        loops.metrics.server_instructions_per_op = Metric::Value(81_234.0);
        loops.metrics.server_ipc = Metric::Value(0.91);
        loops.metrics.hardware_counted_percent = Metric::Value(62.0);
    }
    let text = printed(&results);
    let (_, table) = text.split_once(TITLE).unwrap();
    let lines: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["sins/t", "sIPC", "cnt%", "engine"], "no column without a figure");
    assert!(lines[1].join(" ").ends_with("0.91 62 innodb") && lines[1][0].starts_with("81"), "{:?}", lines[1]);
}

#[test]
fn programs_without_symbols_are_named_once_for_all_repeats() {
    const TITLE: &str = "\nFunctions without names in the CPU profile\n";
    let mut results = results(&[SERVER_BTREE, SERVER_LSM], PLAN);
    assert!(!printed(&results).contains(TITLE));
    for (at, trial) in
        results.trials.iter_mut().enumerate().filter(|(_, trial)| trial.record.plan.engine.name == "innodb")
    {
        let message = format!("{}% of the samples, in /usr/sbin/mariadbd", 40 + at);
        trial.record.warnings.push(Warning::new("missing-symbols", message, "install mariadb-server-core-dbgsym"));
    }
    let text = printed(&results);
    let (_, section) = text.split_once(TITLE).unwrap();
    let lines: Vec<&str> = section.lines().take_while(|line| line.starts_with("  ")).collect();
    assert_eq!(
        lines,
        ["  innodb, 16 clients: 40% of the samples, in /usr/sbin/mariadbd; install mariadb-server-core-dbgsym"]
    );
}
