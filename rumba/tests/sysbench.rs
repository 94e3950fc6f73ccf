//! `rumba sysbench` as its users see it, and the tools that parse its output. Covers the bundled scripts over SQLite,
//! MariaDB and PostgreSQL, its own command line, and errors.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

#[path = "sysbench/apart.rs"]
mod apart;
mod common;
#[path = "sysbench/endings.rs"]
mod endings;
#[path = "common/existing.rs"]
mod existing;
#[path = "sysbench/libpq.rs"]
mod libpq;
#[path = "sysbench/not_found.rs"]
mod not_found;
#[path = "sysbench/restarts.rs"]
mod restarts;
#[path = "sysbench/restricted.rs"]
mod restricted;
#[path = "sysbench/unready.rs"]
mod unready;

use std::process::Output;

use common::{TestDir, text};
use existing::{Existing, PASSWORD};
use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};

/// The bundled scripts that are useful with a run of events.
const SCRIPTS: [&str; 10] = [
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_insert",
    "oltp_delete",
    "oltp_update_index",
    "oltp_update_non_index",
    "select_random_points",
    "select_random_ranges",
];

fn sysbench<S: AsRef<std::ffi::OsStr>>(place: &TestDir, words: &[S]) -> Output {
    place.rumba(&["sysbench"]).args(words).output().unwrap()
}

fn succeeds<S: AsRef<std::ffi::OsStr> + std::fmt::Debug>(place: &TestDir, words: &[S]) -> String {
    let output = sysbench(place, words);
    assert!(output.status.success(), "{words:?}: {}", text(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// The figure that parsers take from a line: the text after its label.
fn figure(said: &str, label: &str) -> f64 {
    let line = said.lines().find(|line| line.trim_start().starts_with(label));
    let rest = line.unwrap_or_else(|| panic!("no {label:?} in {said}")).trim_start()[label.len()..].trim_start();
    rest.split(|character: char| !(character.is_ascii_digit() || character == '.')).next().unwrap().parse().unwrap()
}

/// The whole suite: prepare, each script, cleanup.
fn suite(place: &TestDir, options: &[&str]) {
    let with = |words: &[&str]| -> Vec<String> { options.iter().chain(words).map(|&word| word.to_owned()).collect() };
    succeeds(place, &with(&["oltp_common", "--tables=2", "--table-size=500", "--threads=2", "prepare"]));
    for script in SCRIPTS {
        // Two clients that write many rows in a transaction sometimes conflict, and an event is restarted.
        let threads =
            if matches!(script, "oltp_read_write" | "oltp_write_only") { "--threads=1" } else { "--threads=2" };
        let words = with(&[script, "--tables=2", "--table-size=500", threads, "--events=60", "--time=0", "run"]);
        let said = succeeds(place, &words);
        assert_eq!(figure(&said, "total number of events:"), 60.0, "{script}: {said}");
        assert_eq!(figure(&said, "ignored errors:"), 0.0, "{script}: {said}");
        let queries = figure(&said, "total:");
        let each = match script {
            "oltp_read_write" => 20.0,
            "oltp_read_only" => 16.0,
            "oltp_write_only" => 6.0,
            _ => 1.0,
        };
        assert_eq!(queries, 60.0 * each, "{script}: {said}");
    }
    micro(place, options);
    succeeds(place, &with(&["oltp_common", "--tables=2", "cleanup"]));
    succeeds(place, &with(&["bulk_insert", "--threads=2", "prepare"]));
    let said = succeeds(place, &with(&["bulk_insert", "--threads=2", "--events=2000", "--time=0", "run"]));
    assert_eq!(figure(&said, "total number of events:"), 2000.0);
    succeeds(place, &with(&["bulk_insert", "--threads=2", "cleanup"]));
    // All tables are gone, so they can be created again.
    succeeds(place, &with(&["oltp_common", "--tables=2", "--table-size=10", "prepare"]));
}

/// Each of the tests of single statements.
fn micro(place: &TestDir, options: &[&str]) {
    let listed = succeeds(place, &["micro", "tests"]);
    let tests: Vec<&str> = listed.lines().filter_map(|line| Some(line.split_once('\t')?.0)).collect();
    assert!(tests.len() >= 40, "{listed}");
    for test in tests {
        let test = format!("--micro-test={test}");
        let words =
            [options, &["micro", &test, "--tables=2", "--table-size=500", "--events=5", "--time=0", "run"]].concat();
        let said = succeeds(place, &words);
        assert_eq!(figure(&said, "total number of events:"), 5.0, "{test}: {said}");
    }
}

#[test]
fn the_suite_runs_with_no_server_at_all() {
    let place = TestDir::new();
    suite(&place, &["--db-driver=sqlite", "--sqlite-synchronous=off"]);
    assert!(place.path("sbtest.sqlite").exists());
}

#[test]
#[needs(MariaDb)]
fn the_suite_runs_over_mariadb_as_text() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    server.fetch("CREATE DATABASE sbtest");
    let (socket, password) =
        (format!("--mysql-socket={}", server.socket.display()), format!("--mysql-password={PASSWORD}"));
    suite(&place, &[&socket, "--mysql-user=root", &password, "--db-ps-mode=disable"]);
}

/// As in the client library; the server has no network.
#[test]
#[needs(MariaDb)]
fn localhost_is_the_usual_socket_unless_a_port_is_named() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    server.fetch("CREATE DATABASE sbtest");
    let run = |more: &[&str]| {
        let password = format!("--mysql-password={PASSWORD}");
        let words = ["sysbench", "oltp_point_select", "--table-size=10", "--mysql-user=root", &password];
        place.rumba(&words).args(more).env("MYSQL_UNIX_PORT", &server.socket).output().unwrap()
    };
    let prepared = run(&["prepare"]);
    assert!(prepared.status.success(), "{}", text(&prepared));
    let elsewhere = run(&["--mysql-port=1", "--events=1", "run"]);
    assert!(!elsewhere.status.success(), "{}", text(&elsewhere));
    // The password may be in the environment too; a given one counts.
    for (given, environment) in [(None, PASSWORD), (Some(format!("--mysql-password={PASSWORD}")), "wrong")] {
        let mut command = place.rumba(&["sysbench", "oltp_point_select", "--table-size=10", "--mysql-user=root"]);
        command.args(given).env("MYSQL_UNIX_PORT", &server.socket).env("MYSQL_PWD", environment);
        let output = command.args(["--events=1", "run"]).output().unwrap();
        assert!(output.status.success(), "{environment}: {}", text(&output));
    }
}

#[test]
#[needs(PostgreSql)]
fn the_suite_runs_over_postgresql() {
    let place = TestDir::new();
    let server = PostgreSql::start(&[], &[]);
    let (host, port) =
        (format!("--pgsql-host={}", server.directory().display()), format!("--pgsql-port={}", server.port()));
    let user = format!("--pgsql-user={SUPERUSER}");
    suite(&place, &["--db-driver=pgsql", &host, &port, &user, "--pgsql-db=postgres"]);
}

#[test]
fn help_and_version_match_what_tools_parse() {
    let place = TestDir::new();
    assert!(succeeds(&place, &["--version"]).starts_with("sysbench 1.1.0"));
    let help = succeeds(&place, &["--help"]);
    for words in ["--threads=N", "--db-driver=STRING", "--mysql-host=", "--pgsql-host=", "--sqlite-db="] {
        assert!(help.contains(words), "{words} in {help}");
    }
    for words in [["--help", "--version"], ["--version", "--help"]] {
        assert_eq!(succeeds(&place, &words), help, "sysbench looks for --help first: {words:?}");
    }
    let help = succeeds(&place, &["oltp_read_only", "help"]);
    assert!(help.contains("oltp_read_only options:") && help.contains("--table_size=N"), "{help}");
    // Called by its name, it is sysbench.
    let link = place.path("sysbench");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rumba"), &link).unwrap();
    let output = std::process::Command::new(link).arg("--version").output().unwrap();
    assert!(text(&output).starts_with("sysbench 1.1.0"), "{}", text(&output));
}

#[test]
fn banner_comes_first_unless_output_is_terse() {
    let place = TestDir::new();
    let script = "sysbench.cmdline.options = { mode = {'Which', 'fast'} } print('loaded', sysbench.test.path)
        function help(tid) print(tid) sysbench.cmdline.print_test_options() end function event() end";
    std::fs::write(place.path("own.lua"), script).unwrap();
    let said = succeeds(&place, &["own.lua"]);
    assert!(said.starts_with("sysbench 1.1.0 (using rumba ") && said.ends_with(")\n\nloaded\town.lua\n"), "{said}");
    let said = succeeds(&place, &["--verbosity=2", "own.lua", "help"]);
    assert_eq!(said, "loaded\town.lua\nnil\n  --mode=STRING Which [fast]\n\n");
    let output = sysbench(&place, &["nowhere", "run"]);
    assert!(text(&output).starts_with("sysbench 1.1.0 "), "{}", text(&output));
}

#[test]
fn a_dry_run_needs_no_server() {
    let place = TestDir::new();
    // No server listens there.
    let dry = ["--mysql-dry-run", "--mysql-port=1", "oltp_read_write", "--tables=2", "--table-size=5000"];
    succeeds(&place, &[&dry[..], &["prepare"]].concat());
    let said = succeeds(&place, &[&dry[..], &["--threads=2", "--events=60", "--time=0", "run"]].concat());
    assert_eq!(figure(&said, "total number of events:"), 60.0, "{said}");
    let (read, written, other) = (figure(&said, "read:"), figure(&said, "write:"), figure(&said, "other:"));
    assert_eq!((read, written, other), (0.0, 0.0, 1200.0), "no answer says what a statement did: {said}");
}

/// A script that sleeps for a millisecond in each event, with more functions.
fn nap(place: &TestDir, more: &str) {
    let script = "ffi.cdef[[int usleep(unsigned int);]]\nfunction event() ffi.C.usleep(1000) end\n";
    std::fs::write(place.path("nap.lua"), format!("{script}{more}")).unwrap();
}

#[test]
fn statement_times_are_reported_at_maximum_verbosity() {
    let place = TestDir::new();
    let options = ["--db-driver=sqlite", "--db-debug", "oltp_read_only", "--table-size=500"];
    succeeds(&place, &[&options[..], &["prepare"]].concat());
    let run = ["--events=50", "--time=0", "run"];
    let said = succeeds(&place, &[&options[..], &run].concat());
    assert!(!said.contains("execution statistics"), "{said}");
    let said = succeeds(&place, &[&options[..], &["--verbosity=5"], &run].concat());
    for part in ["Query execution statistics:", "Results fetching statistics:"] {
        let (_, reported) =
            said.split_once(&format!("DEBUG: {part}\n")).unwrap_or_else(|| panic!("no {part:?} in {said}"));
        assert!(figure(reported, "DEBUG:   total:") > 0.0, "{part}: {said}");
    }
}

/// Guards against counting warmup events: they once used up the requested number, so the warmup ended with them and
/// they were reported as the run's.
#[test]
fn warmup_events_are_not_reported_or_counted() {
    let place = TestDir::new();
    let more = "local began, nap = 0, event\nfunction event() began = began + 1 nap() end
        function thread_done() print('began: ' .. began) end";
    nap(&place, more);
    let said = succeeds(&place, &["nap.lua", "--warmup-time=1", "--events=40", "--time=0", "run"]);
    // Events in progress at the end of the warmup are reported too.
    let events = figure(&said, "total number of events:");
    assert!((40.0..60.0).contains(&events) && figure(&said, "began:") > 80.0, "{said}");
    // A run that ends within the warmup has no events to report.
    let mutex = ["mutex", "--mutex-num=1", "--mutex-locks=1", "--mutex-loops=1"];
    let said = succeeds(&place, &[&mutex[..], &["--warmup-time=5", "run"]].concat());
    assert_eq!((figure(&said, "total number of events:"), figure(&said, "max:")), (0.0, 0.0), "{said}");
}

/// Guards against shifted checkpoints: their times were once relative to the end of the warmup, and one at the very
/// start had nothing to report.
#[test]
fn checkpoint_times_include_warmup_but_none_fall_in_it() {
    let place = TestDir::new();
    nap(&place, "");
    let words = ["nap.lua", "--warmup-time=2", "--time=2", "--report-checkpoints=0,1,3,3", "run"];
    let said = succeeds(&place, &words);
    let titles: Vec<&str> = said.lines().filter(|line| line.ends_with("Checkpoint report:")).collect();
    // A busy host may report it half a second late.
    assert!(matches!(titles[..], ["[ 3s ] Checkpoint report:" | "[ 4s ] Checkpoint report:"]), "{said}");
    let elapsed_s = figure(&said, "total time:");
    assert!((1.0..2.0).contains(&elapsed_s), "without the warm-up: {said}");
}

/// Guards against another format: a server that had not answered yet was once ignored, and line parsers found another
/// form.
#[test]
fn statements_are_reported_once_a_driver_is_requested() {
    let place = TestDir::new();
    nap(&place, "function thread_init() drv = sysbench.sql.driver('sqlite') end");
    let words = ["nap.lua", "--db-driver=sqlite", "--time=2", "--report-interval=1", "run"];
    let said = succeeds(&place, &words);
    let reported = said.lines().find(|line| line.starts_with("[ ") && line.contains(" thds: 1 tps: "));
    assert!(reported.is_some_and(|line| line.contains(" qps: 0.00 (r/w/o: 0.00/0.00/0.00) ")), "{said}");
    assert!(said.contains("SQL statistics:\n") && figure(&said, "queries:") == 0.0, "{said}");
}

#[test]
fn a_command_of_all_threads_that_fails_in_one_fails() {
    let place = TestDir::new();
    let script = "local function fill() assert(sysbench.tid == 0, 'no room') end
        sysbench.cmdline.commands = { fill = { fill, sysbench.cmdline.PARALLEL_COMMAND } }";
    std::fs::write(place.path("fill.lua"), script).unwrap();
    let output = sysbench(&place, &["fill.lua", "--threads=2", "fill"]);
    let said = text(&output);
    assert!(output.status.code() == Some(1) && said.contains("no room"), "{said}");
}

#[test]
fn queue_length_is_reported_during_a_rate_limited_run() {
    let place = TestDir::new();
    let script = "ffi.cdef[[int usleep(unsigned int);]]\nfunction event() ffi.C.usleep(2000) end";
    std::fs::write(place.path("nap.lua"), script).unwrap();
    let words = ["--rate=2000", "--time=2", "--report-interval=1", "--report-json=r.json", "run"];
    let said = succeeds(&place, &[&["nap.lua"][..], &words].concat());
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("[ 1s ] ")).collect();
    assert!(lines.len() == 2 && lines[0].contains(" eps: ") && !lines[1].contains(','), "{said}");
    // Two thousand events arrive per second, and at most five hundred are served.
    let (length, concurrency) =
        (figure(&said, "[ 1s ] queue length:"), lines[1].split_once("concurrency: ").unwrap().1);
    assert!(length >= 1000.0 && ["0", "1"].contains(&concurrency), "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("r.json")).unwrap()).unwrap();
    assert_eq!(json["intervals"][0]["queue_length"].as_f64(), Some(length), "{json}");
    assert!(json["total"].get("queue_length").is_none(), "{json}");
}

#[test]
fn mistakes_are_refused_in_its_words() {
    let place = TestDir::new();
    for (words, said) in [
        (&["nowhere", "run"][..], "FATAL: Cannot find benchmark 'nowhere': no such built-in test, file or module"),
        (&["oltp_read_only", "--tabels=3", "run"], "invalid option: --tabels=3\ndid you mean --tables?"),
        (&["oltp_read_only", "--threads=abc", "run"], "Invalid value for the 'threads' option: 'abc'"),
        (&["oltp_read_only", "fly"], "Unknown command: fly"),
        (&["--db-driver=oracle", "oltp_read_only", "run"], "invalid database driver name: 'oracle'"),
        (&["--db-driver=sqlite", "oltp_read_only", "run"], "no such table: sbtest1"),
        (&["--mysql-port=1", "oltp_read_only", "run"], "Connection refused"),
        (
            &["--db-driver=sqlite", "--sqlite-synchronous=ful", "oltp_read_only", "run"],
            "FATAL: Invalid value for --sqlite-synchronous: 'ful'; it is off, normal, full or extra\n",
        ),
        (
            &["--db-driver=sqlite", "--sqlite-journal-mode=foo", "oltp_read_only", "run"],
            "for --sqlite-journal-mode: 'foo'; it is wal, delete, truncate, persist, memory or off\n",
        ),
        (&["--sqlite-cache-size=foo", "oltp_read_only", "prepare"], "for --sqlite-cache-size: 'foo'; it is a size"),
        (&["--sqlite-ignore-errors=x", "oltp_read_only", "prepare"], "for --sqlite-ignore-errors: 'x'; it is all"),
    ] {
        let output = sysbench(&place, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", text(&output));
        assert!(text(&output).contains(said), "{words:?}: {}", text(&output));
    }
}

#[test]
fn reports_come_while_it_runs_and_at_its_end() {
    let place = TestDir::new();
    std::fs::write(
        place.path("nap.lua"),
        "ffi.cdef[[int usleep(unsigned int);]]\nlocal events = 0
        function event() events = events + 1 ffi.C.usleep(events % 10 == 0 and 20000 or 2000) end
        function done() print('done') end",
    )
    .unwrap();
    let words =
        ["nap.lua", "--time=3", "--report-interval=1", "--percentile=50,99", "--histogram", "--report-json=r.json"];
    let said = succeeds(&place, &[&words[..], &["--threads=2", "--warmup-time=1", "run"]].concat());
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("[ ")).collect();
    assert!((2..=3).contains(&lines.len()) && lines[0].starts_with("[ 1s ] thds: 2 eps: "), "{said}");
    // One of ten sleeps is ten times as long, so more than one of a hundred.
    assert!(figure(&said, "50th percentile:") >= 1.9 && figure(&said, "99th percentile:") >= 19.0, "{said}");
    assert!(figure(&said, "min:") >= 1.9 && said.ends_with("done\n"), "{said}");
    let events = figure(&said, "total number of events:");
    assert!(events > 100.0 && events <= 3100.0, "{said}");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("r.json")).unwrap()).unwrap();
    assert_eq!(json["total"]["events"].as_f64(), Some(events), "{json}");
    assert!(json["total"]["latency_ms"]["p99"].as_f64().unwrap() >= 19.0, "{json}");
}

#[test]
fn the_built_in_tests_run_as_they_do_there() {
    let place = TestDir::new();
    let said = succeeds(&place, &["cpu", "--cpu-max-prime=100", "--events=50", "--time=0", "--threads=2", "run"]);
    assert!(said.contains("CPU speed:\n    events per second:"), "{said}");
    assert_eq!(figure(&said, "total number of events:"), 50.0);
    let said = succeeds(&place, &["memory", "--memory-total-size=8M", "--memory-block-size=4K", "--threads=2", "run"]);
    assert!(said.contains("8.00 MiB transferred"), "{said}");
    let said = succeeds(&place, &["threads", "--events=20", "--thread-yields=5", "--time=0", "run"]);
    assert_eq!(figure(&said, "total number of events:"), 20.0);
    succeeds(&place, &["mutex", "--mutex-locks=100", "--mutex-loops=10", "run"]);
    let files = ["fileio", "--file-total-size=1M", "--file-num=4"];
    succeeds(&place, &[&files[..], &["prepare"]].concat());
    assert!(place.path("test_file.3").exists());
    let words = ["--file-test-mode=rndrw", "--events=200", "--time=0", "--file-fsync-freq=50", "run"];
    let said = succeeds(&place, &[&files[..], &words].concat());
    assert!(said.contains("File operations:\n    reads/s: "), "{said}");
    succeeds(&place, &[&files[..], &["cleanup"]].concat());
    assert!(!place.path("test_file.0").exists());
    let output = sysbench(&place, &[&files[..], &["--file-test-mode=seqrd", "run"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let output = sysbench(&place, &["cpu"]);
    assert!(text(&output).contains("The 'cpu' test requires a command argument. See 'sysbench cpu help'"));
}

#[test]
fn hooks_options_and_commands_of_a_script_are_its_own() {
    let place = TestDir::new();
    std::fs::write(
        place.path("own.lua"),
        "sysbench.cmdline.options = { size = { 'A size', 3 } }
         sysbench.cmdline.commands = { shout = { function() print('tid ' .. sysbench.tid) end, sysbench.cmdline.PARALLEL_COMMAND } }
         function event() return sysbench.opt.size == 4 end
         function sysbench.hooks.report_cumulative(stat) print('events ' .. stat.events .. ' of ' .. stat.threads_running) end",
    )
    .unwrap();
    let said = succeeds(&place, &["own.lua", "--size=4", "run"]);
    assert!(said.contains("events 0 of 0") && !said.contains("General statistics"), "{said}");
    let said = succeeds(&place, &["own.lua", "--threads=3", "shout"]);
    let mut tids: Vec<&str> = said.lines().filter(|line| line.starts_with("tid ")).collect();
    tids.sort_unstable();
    assert_eq!(tids, ["tid 0", "tid 1", "tid 2"]);
    let output =
        place.rumba(&["sysbench", "--anything=1"]).stdin(std::fs::File::open(place.path("own.lua")).unwrap()).output();
    assert!(output.unwrap().status.success(), "a script of the standard input is run as it is");
}
