//! The beginning, the course and the end of `rumba sysbench` runs: checkpoints, warmups, time limits, and clients that
//! block or never stop.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/existing.rs"]
mod existing;
#[path = "sysbench_runs/prepared.rs"]
mod prepared;
#[path = "sysbench_runs/suite.rs"]
mod suite;

use std::process::{Command, Output};

use common::{TestDir, text};
use existing::{Existing, PASSWORD};
use rumba_engine_api::engine::ExternalLibrary;

/// Third-party scripts, which are not part of this repository.
const SCRIPTS: ExternalLibrary = ExternalLibrary { variable: "RUMBA_SYSBENCH_SCRIPTS", page: "docs/sysbench.md" };

fn sysbench(place: &TestDir, script: &str, words: &[&str]) -> Output {
    std::fs::write(place.path("own.lua"), format!("ffi.cdef[[int usleep(unsigned int);]]\n{script}")).unwrap();
    place.rumba(&["sysbench", "own.lua"]).args(words).output().unwrap()
}

fn succeeds(place: &TestDir, script: &str, words: &[&str]) -> String {
    let output = sysbench(place, script, words);
    assert!(output.status.success(), "{}", text(&output));
    text(&output)
}

/// The number that follows a label.
fn figure(said: &str, label: &str) -> f64 {
    let (_, rest) = said.split_once(label).unwrap_or_else(|| panic!("no {label:?} in {said}"));
    let is_part = |character: &char| character.is_ascii_digit() || *character == '.';
    rest.trim_start().chars().take_while(is_part).collect::<String>().parse().unwrap()
}

fn intervals(said: &str) -> Vec<&str> {
    said.lines().filter(|line| line.starts_with("[ ") && line.contains(" thds: ")).collect()
}

/// Guards against lost counts: the interval of a checkpoint once had counts near 0, because the checkpoint took them.
#[test]
fn interval_with_a_checkpoint_reports_all_its_events() {
    let place = TestDir::new();
    let script = "function event() ffi.C.usleep(2000) ffi.C.sb_counter_inc(0, ffi.C.SB_CNT_READ) end";
    let words = ["--time=4", "--report-interval=2", "--report-checkpoints=1,3", "run"];
    let said = succeeds(&place, script, &words);
    let lines = intervals(&said);
    assert!(!lines.is_empty(), "{said}");
    for line in lines {
        let (tps, qps) = (figure(line, "tps:"), figure(line, "qps:"));
        assert!(tps > 0.0 && (qps / tps - 1.0).abs() < 0.1, "each event is one query: {line}");
    }
    let reads: Vec<f64> = said.split("SQL statistics:").skip(1).map(|part| figure(part, "read:")).collect();
    let events: Vec<f64> =
        said.split("SQL statistics:").skip(1).map(|part| figure(part, "total number of events:")).collect();
    assert_eq!(reads.len(), 3, "{said}");
    for (reads, events) in reads.iter().zip(&events) {
        assert!((reads - events).abs() <= 2.0, "{said}");
    }
}

/// Guards against warmup effects in the results: events waiting at the end of a warmup were once served after it, and
/// their wait counted as response time.
#[test]
fn warmup_waits_are_excluded_from_the_measurement() {
    let place = TestDir::new();
    // The first event takes the whole warmup and a second and a half more.
    let script = "local is_first = true
        function event() ffi.C.usleep(is_first and 4500000 or 1000) is_first = false end";
    let said = succeeds(&place, script, &["--rate=100", "--warmup-time=3", "--time=2", "run"]);
    let longest_ms = figure(&said, "max:");
    assert!((400.0..2500.0).contains(&longest_ms), "{said}");
    // The 300 earlier arrivals are no longer begun.
    let events = figure(&said, "total number of events:");
    assert!(events > 20.0 && events < 300.0, "{said}");
}

#[test]
fn overdue_run_is_forced_to_end_and_reports_what_it_left() {
    let place = TestDir::new();
    let script = "function event() ffi.C.usleep(sysbench.tid == 0 and 60e6 or 1000) end";
    let words = ["--threads=3", "--time=1", "--forced-shutdown=1", "run"];
    let output = sysbench(&place, script, &words);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("FATAL: The --max-time limit has expired, forcing shutdown..."), "{said}");
    assert!(said.contains("Number of unfinished transactions on forced shutdown: 1"), "{said}");
    assert!(figure(&said, "total number of events:") > 0.0, "{said}");
}

/// The document of `--report-json=r.json`.
fn document(place: &TestDir) -> serde_json::Value {
    serde_json::from_str(&std::fs::read_to_string(place.path("r.json")).unwrap()).unwrap()
}

/// Guards against lost results: an error at the end, such as a server that went away, once cost the whole measurement.
#[test]
fn failure_after_the_measurement_keeps_the_report() {
    let place = TestDir::new();
    for function in ["thread_done", "done"] {
        let script = format!("function event() ffi.C.usleep(1000) end function {function}() error('gone', 0) end");
        let words = ["--threads=2", "--events=40", "--time=0", "--report-json=r.json", "run"];
        let said = succeeds(&place, &script, &words);
        let fatal = format!("FATAL: `{function}' function failed: gone\n");
        assert_eq!(said.matches(&fatal).count(), 1, "{said}");
        assert_eq!(figure(&said, "total number of events:"), 40.0, "{said}");
        let json = document(&place);
        assert_eq!(json["total"]["events"], 40, "{json}");
        assert_eq!(json["failures"], serde_json::json!([format!("`{function}' function failed: gone")]));
    }
    let script = "function event() ffi.C.usleep(1000) end
        function sysbench.hooks.report_cumulative() error('gone', 0) end";
    let said = succeeds(&place, script, &["--events=40", "--time=0", "run"]);
    assert!(said.contains("FATAL: `report_cumulative' function failed: gone\n"), "{said}");
    assert_eq!(figure(&said, "total number of events:"), 40.0, "{said}");
    // A pipe gets the document once, also if `done` fails.
    let script = "function event() end function done() error('gone', 0) end";
    let output = sysbench(&place, script, &["--events=1", "--verbosity=0", "--report-json=/dev/stderr", "run"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(json["failures"], serde_json::json!(["`done' function failed: gone"]));
    // A thread that ends early with an error does not end the others.
    let script = "function event(thread) ffi.C.usleep(1000) return thread == 0 end
        function thread_done(thread) if thread == 0 then error('gone') end end";
    let said = succeeds(&place, script, &["--threads=2", "--events=40", "--time=0", "run"]);
    assert!(said.contains("FATAL: `thread_done' function failed: own.lua:3: gone"), "{said}");
    assert!(figure(&said, "total number of events:") >= 39.0, "{said}");
}

#[test]
fn json_report_of_a_failed_run_keeps_its_measurements() {
    let place = TestDir::new();
    let script = "local events = 0
        function event()
            events = events + 1
            if events > 20 then error('gone') end
            ffi.C.usleep(100)
        end
        function done() print('done') end";
    let output = sysbench(&place, script, &["--time=60", "--report-json=r.json", "run"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("FATAL: `thread_run' function failed: own.lua:5: gone\n"), "{said}");
    assert!(!said.contains("total number of events:") && said.ends_with("done\n"), "as in sysbench: {said}");
    let json = document(&place);
    assert_eq!(json["total"]["events"], 20, "{json}");
    assert_eq!(json["failures"], serde_json::json!(["`thread_run' function failed: own.lua:5: gone"]));

    let script = "function event() ffi.C.usleep(10000) end";
    let output = sysbench(&place, script, &["--rate=2000000000", "--report-json=r.json", "run"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let json = document(&place);
    assert!(json["failures"][0].as_str().unwrap().starts_with("The event queue is full."), "{json}");
}

/// An old document belongs to another run, and would be taken for this one's.
#[test]
fn run_failing_early_leaves_no_stale_json_report() {
    let place = TestDir::new();
    let init = "function init() error('no') end function event() end";
    let thread_init = "function thread_init() error('no') end function event() end";
    let first_event = "function event() error('no') end";
    let slow = "function thread_init() ffi.C.usleep(60e6) end function event() end";
    for (script, failure) in [
        (init, "`init' function failed: own.lua:2: no"),
        (thread_init, "`thread_init' function failed: own.lua:2: no"),
        (first_event, "`thread_run' function failed: own.lua:2: no"),
        (slow, "Worker threads failed to initialize within 1 seconds!"),
    ] {
        std::fs::write(place.path("r.json"), "{}").unwrap();
        let output = sysbench(&place, script, &["--report-json=r.json", "--thread-init-timeout=1", "run"]);
        assert!(!output.status.success() && !text(&output).contains("General statistics:"), "{}", text(&output));
        let json = document(&place);
        assert!(json["total"].is_null() && json["failures"][0] == failure, "{json}");
    }
}

#[test]
fn unwritable_json_report_is_refused_before_start() {
    let place = TestDir::new();
    let script = "function init() print('init') end function event() end";
    for file in ["nowhere/r.json", "."] {
        let output = sysbench(&place, script, &[&format!("--report-json={file}"), "--events=1", "run"]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(&format!("FATAL: {file}: ")) && said.contains("--report-json needs a file"), "{said}");
        assert!(!said.contains("init\n"), "{said}");
    }
    // The check for a writable file must neither create nor change it.
    std::fs::write(place.path("r.json"), "another").unwrap();
    let script = "function init() assert(io.open('r.json'):read('*a') == 'another' and not io.open('new.json')) end
        function event() end";
    for file in ["new.json", "r.json"] {
        succeeds(&place, script, &[&format!("--report-json={file}"), "--events=1", "run"]);
        let _ = std::fs::remove_file(place.path("new.json"));
    }
    assert_eq!(document(&place)["total"]["events"], 1);
}

#[test]
fn failure_before_the_run_is_reported_without_the_run_banner() {
    let place = TestDir::new();
    for (script, words) in [
        ("function init() error('no') end function event() end", "FATAL: `init' function failed: own.lua:2: no"),
        ("function init() end", "FATAL: cannot find the event() function in own.lua"),
    ] {
        let output = sysbench(&place, script, &["run"]);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(words) && !said.contains("Running the test with following options"), "{said}");
    }
    let output = place.rumba(&["sysbench", "fileio", "--file-test-mode=rndrd", "run"]).output().unwrap();
    let said = text(&output);
    assert!(said.contains("Doing random read test\nFATAL: Cannot open file 'test_file.0'"), "{said}");
    assert!(!said.contains("Initializing worker threads..."), "{said}");
}

/// Enough clients that the loop of each core has several.
const ON_LOOPS: &str = "--threads=256";

#[test]
fn busy_client_without_statements_delays_no_report() {
    let place = TestDir::new();
    let script = "function event()
            if sysbench.tid == 0 then while true do end end
            ffi.C.usleep(500)
        end";
    for (driver, threads) in [("sqlite", "--threads=3"), ("mysql", ON_LOOPS)] {
        let driver = format!("--db-driver={driver}");
        let words = [&driver, threads, "--time=3", "--report-interval=1", "--forced-shutdown=0", "run"];
        let output = sysbench(&place, script, &words);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let lines = intervals(&said);
        assert!(lines.len() >= 2, "{said}");
        // With a single loop, all of them wait for the one that does not stop.
        let goes_on = driver.ends_with("sqlite") || std::thread::available_parallelism().unwrap().get() > 1;
        for line in lines {
            assert!(!goes_on || figure(line, "eps:") > 0.0, "{said}");
        }
    }
}

#[test]
fn blocking_script_works_when_clients_share_a_thread() {
    let place = TestDir::new();
    let script = "function event()
            ffi.C.usleep(100)
            assert(sysbench.tid % 64 > 0 or os.execute('true'))
        end";
    let said = succeeds(&place, script, &[ON_LOOPS, "--events=600", "--time=0", "run"]);
    assert_eq!(figure(&said, "total number of events:"), 600.0, "{said}");
}

#[test]
fn script_runs_by_its_shebang_and_by_name_on_the_lua_path() {
    let place = TestDir::new();
    let bin = place.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_rumba"), bin.join("sysbench")).unwrap();
    let script = place.path("mine.lua");
    let text_of_it = "#!/usr/bin/env sysbench\nsysbench.cmdline.options = { word = {'A word', 'none'} }
        require('theirs')
        function event() assert(sysbench.opt.word == 'given' and theirs == 5) end";
    rumba_testkit::process::executable(text_of_it.as_bytes(), &script);
    let library = place.path("library");
    std::fs::create_dir(&library).unwrap();
    std::fs::write(library.join("theirs.lua"), "theirs = 5").unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let lua_path = format!("{0}/?.lua;{1}/?.lua", library.display(), place.path("").display());
    let run = |program: &str, first: &[&str]| {
        let mut command = Command::new(program);
        command.args(first).args(["--events=3", "--time=0", "--word=given", "run"]).current_dir(&library);
        command.env("PATH", &path).env("LUA_PATH", &lua_path);
        // A process that another test starts at this moment keeps the written file open until it executes its program.
        loop {
            match command.output() {
                Err(busy) if busy.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                ended => return ended.unwrap(),
            }
        }
    };
    for output in [run(script.to_str().unwrap(), &[]), run("sysbench", &["mine"])] {
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(figure(&text(&output), "total number of events:"), 3.0);
    }
}

#[test]
fn reports_of_a_script_s_choice_are_the_ones_that_come() {
    let place = TestDir::new();
    let with = |hook: &str| {
        let script = format!(
            "function event() ffi.C.usleep(1000) ffi.C.sb_counter_inc(0, ffi.C.SB_CNT_READ) end
            sysbench.hooks.report_intermediate = {hook}"
        );
        succeeds(&place, &script, &["--time=3", "--report-interval=1", "--verbosity=0", "run"])
    };
    let said = with("sysbench.report_csv");
    let lines: Vec<Vec<f64>> =
        said.lines().map(|line| line.split(',').map(|field| field.parse().unwrap()).collect()).collect();
    assert!(lines.len() >= 2 && lines[0].len() == 10, "{said}");
    // The time, threads, and as many queries a second as events, all of them reads.
    assert_eq!((lines[0][0], lines[0][1]), (1.0, 1.0), "{said}");
    assert!(lines[0][2] > 0.0 && lines[0][3] == lines[0][4] && lines[0][5] == 0.0, "{said}");
    let said = with("sysbench.report_json");
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(json[0]["qps"]["reads"].as_f64().unwrap() > 0.0 && json[0]["threads"] == 1, "{said}");
    let said = with("sysbench.report_default");
    assert!(intervals(&said).len() >= 2 && figure(&said, "qps:") > 0.0, "{said}");
}

#[test]
fn clients_write_before_their_first_event_on_request() {
    let place = TestDir::new();
    let options = ["--db-driver=sqlite", "--sqlite-synchronous=off", "--tables=2", "--table-size=200", "--threads=2"];
    let sysbench = |words: &[&str]| {
        let output = place.rumba(&["sysbench"]).args(words).args(options).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    sysbench(&["oltp_common", "prepare"]);
    // A quarter of 400 rows, divided among two clients: two updates, a delete and an insert each.
    let said = sysbench(&["oltp_point_select", "--writes-before=25", "--events=10", "--time=0", "run"]);
    let (read, written, other) = (figure(&said, "read:"), figure(&said, "write:"), figure(&said, "other:"));
    assert_eq!((read, written, figure(&said, "total number of events:")), (10.0, 400.0, 10.0), "{said}");
    assert!(other >= 200.0, "BEGIN and COMMIT: {said}");
    let said = sysbench(&["oltp_point_select", "--events=10", "--time=0", "run"]);
    assert_eq!((figure(&said, "write:"), figure(&said, "other:")), (0.0, 0.0), "{said}");
}

/// The scripts of a third-party directory, without modules that others require and without other dialects.
fn brought(directory: &std::path::Path) -> Vec<String> {
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_whole = |name: &String| {
        let name = name.strip_suffix(".lua").unwrap_or("_common");
        !name.ends_with("_common") && !name.ends_with("_postgres") && !name.starts_with("tpcc_")
    };
    let mut names: Vec<String> = files.filter(is_whole).collect();
    names.sort_unstable();
    names
}

/// Runs each script unchanged, here and in sysbench with the same arguments: it must run here if it runs there, with as
/// many events.
#[test]
#[needs(ExternalLibrary(SCRIPTS), Sysbench, MariaDb)]
fn brought_scripts_run_as_in_sysbench() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    let root = std::path::PathBuf::from(std::env::var_os(SCRIPTS.variable).unwrap());
    let socket = format!("--mysql-socket={}", server.socket.display());
    let connect = [&socket, "--mysql-user=root", &format!("--mysql-password={PASSWORD}"), "--db-driver=mysql"]
        .map(|word| word.to_owned());
    let mut ran = 0;
    for (repository, options) in [
        ("sysbench-tpcc", &["--tables=1", "--scale=1"][..]),
        ("sysbench-lua-scripts", &["--table-size=300"]),
        ("mytools/bench/sysbench.lua/lua", &["--tables=1", "--table-size=300"]),
    ] {
        let directory = root.join(repository);
        for script in brought(&directory) {
            let outcome = |program: &mut dyn FnMut() -> Command| {
                // Their tables refer to each other.
                let mut admin = server.connect().unwrap();
                for sql in ["SET foreign_key_checks = 0", "CREATE OR REPLACE DATABASE sbtest"] {
                    admin.query(sql).unwrap();
                }
                let mut does = |words: &[&str]| {
                    let mut command = program();
                    command.arg(&script).args(options).args(&connect).args(words).current_dir(&directory);
                    command.output().unwrap()
                };
                let prepared = does(&["prepare"]);
                let run = does(&["--threads=2", "--events=6", "--time=0", "run"]);
                let events = run.status.success().then(|| figure(&text(&run), "total number of events:"));
                (prepared.status.success(), events, format!("{}{}", text(&prepared), text(&run)))
            };
            let theirs = outcome(&mut || Command::new("sysbench"));
            let ours = outcome(&mut || place.rumba(&["sysbench"]));
            let is_same = (theirs.0, theirs.1) == (ours.0, ours.1);
            assert!(is_same, "{repository}/{script}: sysbench\n{}\nhere\n{}", theirs.2, ours.2);
            ran += usize::from(ours.1.is_some());
            println!("{repository}/{script}: {:?} events, as there", ours.1);
        }
    }
    assert!(ran > 10, "{ran} scripts ran");
}
