//! Servers that refuse to start, die, are interrupted or run out of disk. The cause is reported, measurements are kept,
//! and no process or directory remains.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::process::Child;
use std::time::Duration;

use common::{TestDir, children, ended, is_alive, kill, phase, start_long_run, text};
use rumba_testkit::mounts::{LoopDevice, fill};

fn failure(place: &TestDir) -> String {
    place.report()["trials"][0]["failure"]["cause"].as_str().unwrap_or_default().to_owned()
}

fn server_of(run: &Child) -> u32 {
    let trial = children(run.id())[0];
    children(trial)[0]
}

#[test]
#[needs(MariaDb)]
fn refused_setting_is_named_with_the_server_message() {
    for (set, name, words) in [
        // Refused when the data directory is made.
        ("innodb.innodb_data_file_path=ibdata1:1M", "innodb_data_file_path", "Tablespace size"),
        // Refused at the start.
        ("innodb.innodb_log_group_home_dir=nowhere", "innodb_log_group_home_dir", "nowhere/ib_logfile0"),
    ] {
        let place = TestDir::new();
        ended(1, place.short_run("innodb", &["--set", set]));
        let cause = failure(&place);
        assert!(cause.contains(&format!("`{name}`")) && cause.contains(words), "{cause}");
        assert!(place.is_clean(), "{set}");
    }
}

#[test]
#[needs(MariaDb)]
fn silently_changed_value_is_refused_with_both_values() {
    let place = TestDir::new();
    // The server accepts each number alone; together, InnoDB lowers the first to the second.
    let sets = ["--set", "innodb.innodb_io_capacity=3000", "--set", "innodb.innodb_io_capacity_max=1000"];
    ended(1, place.short_run("innodb", &sets));
    let cause = failure(&place);
    let reported = ["innodb_io_capacity was set to 3000", "is 1000"];
    assert!(reported.iter().all(|words| cause.contains(words)), "{cause}");
    assert!(place.is_clean());
}

#[test]
#[needs(MariaDb)]
fn invalid_settings_are_refused_before_creation() {
    let outside = "is outside the data directory";
    for (more, reported) in [
        (&["innodb.innodb_log_group_home_dir=/nowhere"][..], outside),
        (&["innodb.general_log_file=../../x.log"], outside),
        // A dry run once accepted this, and the run ended with the server's refusal.
        (&["innodb.page_size=7k", "--dry-run"], "expected one of 4k, 8k, 16k, 32k, 64k"),
        (&["innodb.innodb_io_capacity=50"], "from 100 to"),
    ] {
        let place = TestDir::new();
        let output = ended(2, place.short_run("innodb", &[&["--set"], more].concat()));
        let words = text(&output).replace("\n  │ ", " ");
        assert!(words.contains(reported), "{more:?}: {words}");
        assert!(!place.path("out").exists(), "{more:?}");
    }
}

/// It would run until the first transaction to roll back, and leave inconsistent data.
#[test]
fn workloads_refuse_a_storage_engine_without_transactions() {
    let place = TestDir::new();
    for workload in ["tpcc", "linkbench"] {
        let mut command = place.rumba(&["run", workload, "--engine", "mysql", "--out", "out"]);
        let output = ended(2, command.args(["--set", "mysql.storage_engine=aria"]));
        let words = text(&output).replace("\n  │ ", " ");
        assert!(words.contains("needs transactions of several keys, which mysql does not have"), "{words}");
    }
    assert!(!place.path("out").exists());
}

#[test]
#[needs(MariaDb)]
fn an_interrupt_leaves_no_server_no_directory_and_no_password() {
    let place = TestDir::new();
    let mut run = start_long_run(&place, "innodb", &place.path("out"), &[]);
    let server = server_of(&run);
    for pid in [run.id(), children(run.id())[0], server] {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!line.contains("Aa1-"), "generated passwords begin like that: {line}");
    }
    kill("-INT", run.id());
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(!is_alive(server), "the server has ended before the run has");
    assert!(place.is_clean());
    let found = common::files_holding(&place.path("out"), "Aa1-");
    assert!(found.is_empty(), "{found:?}");
}

#[test]
#[needs(MariaDb)]
fn a_killed_run_takes_its_server_with_it() {
    let place = TestDir::new();
    let mut run = start_long_run(&place, "innodb", &place.path("out"), &[]);
    let server = server_of(&run);
    kill("-KILL", run.id());
    run.wait().unwrap();
    while is_alive(server) {
        std::thread::sleep(Duration::from_millis(20));
    }
    ended(0, place.rumba(&["doctor", "--clean"]));
    assert!(place.is_clean());
}

/// Half of the operations add a node of some kilobytes, instead of reading one. InnoDB's files grow by a megabyte at a
/// time. At a calm rate, the usual mix would fill such a step only after more than a minute.
const GROWS: [&str; 3] = ["addnode=46.6", "getnode=0", "node_datasize=4000"];

fn assert_full_disk_is_reported(engine: &str, settings: &[&str]) {
    let place = TestDir::new();
    let disk = LoopDevice::at(&place.path("disk"), 500);
    let data = format!("data_dir={}", disk.path().join("data").display());
    let more = [&GROWS[..], settings, &[&data]].concat();
    let mut run = start_long_run(&place, engine, &place.path("out"), &more);
    fill(disk.path());
    assert_eq!(run.wait().expect("the run ends").code(), Some(1), "{engine}");
    let report = place.report();
    assert_eq!(report["trials"][0]["failure"]["phase"], "loop 1", "{engine}");
    let cause = failure(&place);
    assert!(cause.contains("the device is full"), "{engine}: {cause}");
    // Every line of MyRocks contains the word `rocksdb`, which is also an option's name.
    assert!(!cause.contains("seems to be the cause"), "{engine}: no setting is to blame: {cause}");
    assert!(phase(&report["trials"][0], "loop 1").is_some_and(|phase| phase["ops"].as_u64() > Some(0)), "{engine}");
    assert!(place.is_clean(), "{engine}");
}

#[test]
#[needs(MariaDb, MyRocks, LoopDevice)]
fn full_disk_under_a_server_is_reported_as_disk_full() {
    for engine in ["innodb", "myrocks"] {
        assert_full_disk_is_reported(engine, &["cache=16MiB"]);
    }
}

/// mongod writes a long backtrace when it aborts. It writes pages at a checkpoint, every 60 seconds by default.
#[test]
#[needs(Server("mongodb@4.2"), LoopDevice)]
fn full_disk_under_mongodb_is_reported_as_disk_full() {
    assert_full_disk_is_reported("mongodb", &["server=mongodb@4.2", "cache=256MiB", "mongodb.syncdelay=2"]);
}
