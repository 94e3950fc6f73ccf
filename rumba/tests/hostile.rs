//! Hostile users and hostile inputs, through the binary. They include other users' files in shared directories,
//! signals, endless sources, and names that are invalid or contain control sequences.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{TestDir, ended, kill, phase, start_long_run, text};
use rumba_lab::provision::Owner;
use serde_json::{Value, json};

/// A user that no system has.
const OUTSIDER: u32 = 12_345;

/// The output of a command, without the line breaks and frames of long lines.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && *c != '│').collect()
}

fn says(output: &Output, words: &str) -> bool {
    squeezed(&text(output)).contains(&squeezed(words))
}

/// The control characters in a command's output that a terminal would obey.
fn obeyed(output: &Output) -> Vec<char> {
    text(output).chars().filter(|c| c.is_control() && !"\n\t".contains(*c)).collect()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// `rumba` with an environment that only has a temporary directory.
fn without_home(place: &TestDir, args: &[&str], temporary: &Path) -> Command {
    let mut command = place.rumba(args);
    command.env_remove("XDG_STATE_HOME").env_remove("HOME").env("TMPDIR", temporary);
    command
}

/// A temporary directory that all users share.
fn temporary(place: &TestDir) -> std::path::PathBuf {
    let temporary = place.path("tmp");
    fs::create_dir(&temporary).unwrap();
    set_mode(&temporary, 0o1777);
    temporary
}

/// An entry of a ledger that makes `rumba doctor --clean` kill a process, if it is trusted.
fn entry_against(victim: u32, group_dir: &Path) -> (String, Value) {
    let mut owner = Owner::this_process("outsider", 1).unwrap();
    owner.process.boot_id = "an earlier one".to_owned();
    let group = group_dir.join(format!("rumba-{}-{}-0", owner.process.pid, owner.process.start_ticks));
    let script = format!("mkdir {0}; echo {victim} > {0}/cgroup.procs", group.display());
    (script, json!({ "thing": { "kind": "control-group", "path": group }, "owner": owner }))
}

#[test]
#[needs(Root)]
fn planted_resource_registry_is_refused_without_a_kill() {
    // Guards against a planted link. With neither HOME nor XDG_STATE_HOME, a link in the temporary directory once led
    // root to another user's entries, and rumba killed the process that they named.
    let place = TestDir::new();
    set_mode(&place.path(""), 0o755);
    let temporary = temporary(&place);
    let mut victim = Command::new("sleep").arg("1000").spawn().unwrap();
    let (forge, entry) = entry_against(victim.id(), &temporary);
    let script =
        format!("{forge}; mkdir trap; ln -s .. trap/managed; ln -s trap rumba-0; printf %s \"$ENTRY\" > 1.json");
    let mut outsider = Command::new("sh");
    outsider.args(["-euc", &script]).env("ENTRY", entry.to_string()).current_dir(&temporary);
    assert!(outsider.uid(OUTSIDER).gid(OUTSIDER).status().unwrap().success());
    let refused = without_home(&place, &["doctor", "--clean"], &temporary).output().unwrap();
    let lives = victim.try_wait().unwrap().is_none();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(lives, "root killed a process of another user's choice: {}", text(&refused));
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    for words in [temporary.join("rumba-0").to_str().unwrap(), "it belongs to 12345", "XDG_STATE_HOME"] {
        assert!(says(&refused, words), "{words}: {}", text(&refused));
    }
}

#[test]
fn a_ledger_among_temporary_files_is_private() {
    let place = TestDir::new();
    let temporary = temporary(&place);
    let doctor = || without_home(&place, &["doctor"], &temporary).output().unwrap();
    let output = doctor();
    assert!(output.status.success(), "{}", text(&output));
    let user = fs::metadata(&temporary).unwrap().uid();
    let ledger = temporary.join(format!("rumba-{user}"));
    for dir in [ledger.clone(), ledger.join("managed")] {
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o7777, 0o700, "{}", dir.display());
    }
    assert!(doctor().status.success(), "it is found again");
    // Another user may have read it or written to it while it was open.
    set_mode(&ledger, 0o755);
    let output = doctor();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(says(&output, "others may look into it"), "{}", text(&output));
    set_mode(&ledger, 0o700);
    set_mode(&temporary, 0o777);
    let output = doctor();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(says(&output, "everybody may write to it (mode 0777)"), "{}", text(&output));
}

#[test]
fn every_termination_signal_keeps_results_and_leaves_nothing() {
    // Guards against data left by signals: SIGQUIT (Ctrl-\ on a terminal) and others once ended rumba immediately, and
    // the data stayed.
    for signal in ["INT", "QUIT", "USR1", "USR2", "XCPU", "HUP", "TERM"] {
        let place = TestDir::new();
        // The parent of the tests may ignore these signals, as a shell's `&` does; rumba would then ignore them, too.
        for number in [libc::SIGQUIT, libc::SIGHUP] {
            // SAFETY: the default action takes no code of this process's.
            unsafe { libc::signal(number, libc::SIG_DFL) };
        }
        let mut child = start_long_run(&place, "null", &place.path("out"), &[]);
        kill(&format!("-{signal}"), child.id());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        let trial = &place.report()["trials"][0];
        assert_eq!(trial["status"], "interrupted", "{signal}");
        // SIGQUIT stops at once, so only the intervals of the loop are kept.
        if signal != "QUIT" {
            assert!(phase(trial, "loop 1").unwrap()["ops"].as_u64() > Some(0), "{signal}: the cut-off loop is kept");
        }
        assert!(place.path("out/report.html").is_file(), "{signal}");
        assert!(place.is_clean(), "{signal}");
    }
}

const EXPERIMENT: &str = "name = \"small\"\nworkload.linkbench.maxid1 = 1000\n\
                          run = { loops = 1, loop = \"200ms\", warmup = \"0s\" }\n[[engine]]\nname = \"null\"\n";

/// `rumba` with this standard input.
fn fed(place: &TestDir, args: &[&str], input: impl Into<Stdio>) -> Output {
    place.rumba(args).stdin(input).output().unwrap()
}

#[test]
fn endless_experiment_on_stdin_is_refused() {
    // Guards against endless input: /dev/zero was once read until the memory was full.
    let place = TestDir::new();
    let zero = || fs::File::open("/dev/zero").unwrap();
    let output = fed(&place, &["run", "-"], zero());
    assert_eq!(output.status.code(), Some(2));
    assert!(says(&output, "standard input is longer than 4.00 MiB"), "{}", text(&output));
    fs::write(place.path("small.toml"), EXPERIMENT).unwrap();
    let file = || fs::File::open(place.path("small.toml")).unwrap();
    let output = fed(&place, &["run", "-", "--dry-run"], file());
    assert!(output.status.success() && says(&output, "small: 1 trial"), "{}", text(&output));
}

#[test]
fn dry_run_refuses_a_results_directory_and_creates_none() {
    let place = TestDir::new();
    fs::write(place.path("small.toml"), EXPERIMENT).unwrap();
    let run = |more: &[&str]| place.rumba(&["run", "small.toml", "--out", "above/out"]).args(more).output().unwrap();
    let free = run(&["--dry-run"]);
    assert!(free.status.success() && !place.path("above").exists(), "{}", text(&free));
    assert!(run(&["--quiet"]).status.success());
    for more in [&["--dry-run"][..], &["--quiet"]] {
        let output = run(more);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", text(&output));
        assert!(says(&output, "results are never overwritten"), "{more:?}: {}", text(&output));
    }
}

#[test]
fn file_contents_cannot_control_the_terminal() {
    let place = TestDir::new();
    let escaped = EXPERIMENT.replace("name = \"null\"", "name = \"a\\u001b[2Jb\"\nuse = \"null\"");
    fs::write(place.path("escaped.toml"), escaped).unwrap();
    // An invalid TOML file, which rumba shows at its mistake.
    let raw = EXPERIMENT.replace("name = \"null\"", "name = \"\x1b]0;owned\x07\u{9b}31m");
    fs::write(place.path("raw.toml"), raw).unwrap();
    for (file, shown) in [("escaped.toml", "a\\u001b[2Jb"), ("raw.toml", "raw.toml:5:")] {
        let output = ended(2, place.rumba(&["run", file, "--dry-run"]));
        assert!(obeyed(&output).is_empty(), "{file}: {:?}", text(&output));
        assert!(says(&output, shown), "{}", text(&output));
    }
}

/// Guards against forged output: a directory name with a newline once appeared in errors and tables like a line from
/// rumba.
#[test]
fn directory_name_with_newline_is_refused_or_escaped() {
    const NAME: &str = "a\nverdict: all claims hold";
    const SHOWN: &str = "a\\u000averdict: all claims hold";
    let place = TestDir::new();
    fs::write(place.path("small.toml"), EXPERIMENT).unwrap();
    let data = EXPERIMENT.replace("warmup = \"0s\"", "warmup = \"0s\", data_dir = \"a\\nverdict: all claims hold\"");
    assert_ne!(data, EXPERIMENT);
    fs::write(place.path("data.toml"), data).unwrap();
    let refused = |args: &[&str]| {
        let output = ended(2, place.rumba(args));
        assert!(says(&output, SHOWN) && says(&output, "cannot be displayed"), "{}", text(&output));
        assert!(!place.path(NAME).exists() && !place.path("out").exists());
    };
    refused(&["run", "small.toml", "--out", NAME]);
    refused(&["run", "small.toml", "--out", NAME, "--dry-run"]);
    refused(&["run", "data.toml", "--out", "out"]);
    // Results that another user has put there.
    for out in ["moved", "out"] {
        ended(0, place.rumba(&["run", "small.toml", "--quiet", "--out", out]));
    }
    fs::rename(place.path("moved"), place.path(NAME)).unwrap();
    fs::create_dir(place.path("b\nverdict")).unwrap();
    for (args, code) in [
        (&["report", NAME][..], 0),
        (&["report", NAME, "out"], 0),
        (&["history", NAME], 0),
        (&["compare", NAME], 2),
        (&["report", "b\nverdict"], 2),
        (&["run", "c\nverdict.toml"], 2),
        (&["ab", "c\nverdict.toml", "small.toml"], 2),
        (&["man", "small.toml/\nverdict"], 1),
    ] {
        let output = place.rumba(args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output));
        assert!(!text(&output).contains("\nverdict"), "{args:?}: {}", text(&output));
    }
    let history = place.rumba(&["history", NAME]).output().unwrap();
    assert!(says(&history, SHOWN), "{}", text(&history));
    let history = place.rumba(&["history", NAME, "--json"]).output().unwrap();
    let history: Value = serde_json::from_slice(&history.stdout).unwrap();
    assert_eq!(history["points"][0]["directory"], NAME, "JSON means what it is");
}

#[test]
fn foreign_results_cannot_control_the_terminal() {
    let place = TestDir::new();
    fs::write(place.path("small.toml"), EXPERIMENT).unwrap();
    ended(0, place.rumba(&["run", "small.toml", "--quiet", "--out", "out"]));
    let trial = fs::read_dir(place.path("out/trials")).unwrap().next().unwrap().unwrap();
    let file = trial.path().join("record.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    record["plan"]["engine"]["name"] = json!("null\u{1b}[2J\u{9b}31m\u{202e}");
    record["warnings"] = json!([{ "code": "x", "message": "\u{1b}]0;owned\u{7}", "remedy": "\r\u{8}" }]);
    fs::write(&file, record.to_string()).unwrap();
    for more in [&["--warnings"][..], &["--json"]] {
        let output = ended(0, place.rumba(&["report", "out"]).args(more));
        assert!(obeyed(&output).is_empty(), "{more:?}: {:?}", text(&output));
        assert!(!text(&output).contains('\u{202e}'), "{more:?}");
        if more == ["--json"] {
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(report["trials"][0]["engine"], "null\u{1b}[2J\u{9b}31m\u{202e}", "JSON means what it meant");
        }
    }
}
