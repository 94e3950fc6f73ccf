//! The end of a run from outside: signals, and standard output that is closed, full or limited.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use super::common::{kill, text};
use super::{TestDir, figure};

const SIGINT: i32 = 2;
const SIGPIPE: i32 = 13;
const SIGTERM: i32 = 15;

/// Reads its output until its first report. On a busy machine, it may be labelled with a later second.
fn await_first_report(child: &mut Child) -> BufReader<std::process::ChildStdout> {
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("s ] thds: ") {
        line.clear();
        assert!(stdout.read_line(&mut line).unwrap() > 0, "it ended before its first report");
    }
    stdout
}

/// An endless run that reports every second.
fn spin(place: &TestDir, more: &[&str]) -> Child {
    std::fs::write(place.path("spin.lua"), "function event() for i = 1, 100 do end end").unwrap();
    let mut command = place.rumba(&["sysbench", "spin.lua", "--time=60", "--report-interval=1"]);
    command.args(more).arg("run").stdout(Stdio::piped()).spawn().unwrap()
}

/// A shell ends its loop only if the program dies of the signal. Guards against a loop that goes on: `for i in 1 2 3; do
/// sysbench …; done` once began the next run at Ctrl-C.
#[test]
fn signal_ends_a_run_after_its_report() {
    let place = TestDir::new();
    for (name, signal, code) in
        [("-INT", Some(SIGINT), None), ("-TERM", Some(SIGTERM), None), ("-HUP", None, Some(130))]
    {
        let mut child = spin(&place, &[]);
        let mut stdout = await_first_report(&mut child);
        kill(name, child.id());
        let mut said = String::new();
        stdout.read_to_string(&mut said).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.signal(), status.code()), (signal, code), "{name}: {said}");
        assert!(figure(&said, "total number of events:") > 0.0, "{name}: {said}");
    }
}

/// As with `| head`. The run once went on to its end, without a reader of its reports.
#[test]
fn run_ends_when_its_report_pipe_is_closed() {
    let place = TestDir::new();
    let mut child = spin(&place, &["--report-json=r.json"]);
    drop(await_first_report(&mut child));
    assert_eq!(child.wait().unwrap().signal(), Some(SIGPIPE));
    let json = std::fs::read_to_string(place.path("r.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["failures"], serde_json::json!(["standard output was closed"]));
    assert!(json["total"]["events"].as_u64().unwrap() > 0, "{json}");
    // A script's own output ends in the same way.
    std::fs::write(place.path("talk.lua"), "function event() print('[ 1s ] thds: ') end").unwrap();
    let mut command = place.rumba(&["sysbench", "talk.lua", "--time=60", "run"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(await_first_report(&mut child));
    assert_eq!(child.wait().unwrap().signal(), Some(SIGPIPE));
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let place = TestDir::new();
    std::fs::write(place.path("talk.lua"), "print('hello')").unwrap();
    for words in
        [&["--version"][..], &["--help"], &["mutex", "--mutex-locks=10", "run"], &["--verbosity=0", "talk.lua"]]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = place.rumba(&["sysbench"]).args(words).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", text(&output));
        assert!(text(&output).contains("standard output: "), "{words:?}: {}", text(&output));
    }
}

/// Guards against death by SIGXFSZ, which has no message.
#[test]
fn file_size_limit_is_reported_as_an_error() {
    let place = TestDir::new();
    let script = format!(
        "ulimit -f 1; exec {} sysbench fileio --file-num=1 --file-total-size=1M prepare",
        env!("CARGO_BIN_EXE_rumba")
    );
    let output = Command::new("bash").args(["-c", &script]).current_dir(place.path("")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("File too large"), "{}", text(&output));
}
