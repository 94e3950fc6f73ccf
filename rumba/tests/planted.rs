//! Files that other users have put next to and into results. `rumba serve`, `report` and `history` do not follow them,
//! wait for them or write through them, and show all other results. Another test fills the disk while a note is stored.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/served.rs"]
mod served;

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Instant;

use common::{TestDir, text};
use rumba_testkit::mounts::{Tmpfs, fill};
use serde_json::{Value, json};
use served::{PATIENCE, Served};

/// A user that no system has.
const OUTSIDER: u32 = 12_345;
const PRECIOUS: &str = "irreplaceable";
const NAME: &str = "<script>\n\u{1b}[2J?#%&\"";
const TRIAL: &str = "trials/001-null-c2-r1";

/// Sound results in `results/a`.
fn with_results(place: &TestDir) -> PathBuf {
    let output = place.short_run("null", &["--quiet"]).output().unwrap();
    assert!(place.path("out/experiment.json").exists(), "{}", text(&output));
    let results = place.path("results");
    fs::create_dir(&results).unwrap();
    fs::rename(place.path("out"), results.join("a")).unwrap();
    fs::write(place.path("precious"), PRECIOUS).unwrap();
    results
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A copy of the sound results, damaged.
fn planted(results: &Path, name: &str, plant: impl FnOnce(&Path)) {
    let directory = results.join(name);
    copy(&results.join("a"), &directory);
    plant(&directory);
}

/// Plants each kind of foreign file next to the sound results.
fn plant_everything(results: &Path) {
    let experiment = |directory: &Path| directory.join("experiment.json");
    planted(results, "pipe", |directory| pipe(&experiment(directory)));
    planted(results, "record", |directory| pipe(&directory.join(TRIAL).join("record.json")));
    planted(results, "pipes", |directory| {
        for file in ["intervals.ndjson", "engine.ndjson", "stacks.folded"] {
            pipe(&directory.join(TRIAL).join(file));
        }
    });
    planted(results, "huge", |directory| {
        let record = fs::File::create(directory.join(TRIAL).join("record.json")).unwrap();
        record.set_len(100 << 30).unwrap();
    });
    planted(results, "later", |directory| fs::write(experiment(directory), "{\"format\": 2}").unwrap());
    planted(results, "half", |directory| {
        let whole = fs::read(experiment(directory)).unwrap();
        fs::write(experiment(directory), &whole[..whole.len() / 2]).unwrap();
    });
    planted(results, "link", |directory| {
        fs::remove_file(directory.join("experiment.toml")).unwrap();
        symlink("../../precious", directory.join("experiment.toml")).unwrap();
    });
    planted(results, NAME, |_| ());
    symlink("a", results.join("of my own")).unwrap();
    symlink("nowhere", results.join("dangling")).unwrap();
    symlink("loop", results.join("loop")).unwrap();
    pipe(&results.join("a pipe"));
    fs::create_dir_all(results.join("deep/".repeat(200))).unwrap();
}

/// The output of a command, unless it waits endlessly.
fn printed(mut command: Command) -> std::process::Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let (said, received) = channel();
    std::thread::spawn(move || said.send(child.wait_with_output().unwrap()));
    received.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        common::kill("-KILL", pid);
        panic!("{command:?} waits");
    })
}

/// Waits until the list has read all records.
fn await_all_read(served: &Served) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (status, list) = served.get("");
        assert_eq!(status, 200, "{list}");
        if !list.contains("not read yet") {
            return list;
        }
        assert!(Instant::now() < deadline, "{list}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn escaped(name: &str) -> String {
    name.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn library_lists_planted_results_without_blocking_on_them() {
    // Guards against a blocked server: one pipe kept the single reading thread busy, and no request was answered any
    // more.
    let place = TestDir::new();
    let results = with_results(&place);
    plant_everything(&results);
    let served = Served::start(place.rumba(&["serve"]));
    let list = await_all_read(&served);
    assert!(list.contains("10 of 10 results"), "{list}");
    for reported in ["experiment.json cannot be read: it is a pipe", "was written in format 2; this version reads"] {
        assert!(list.contains(reported), "{reported}: {list}");
    }
    assert!(!list.contains("<script>") && list.contains("results/%3Cscript%3E%0A%1B"), "{list}");
    for (status, names) in [(200, ["a", "record", "pipes", "huge"].as_slice()), (500, &["pipe", "later", "half"])] {
        for name in names {
            let (found, answer) = served.get(&format!("results/{name}"));
            assert_eq!(found, status, "{name}: {answer}");
        }
    }
    for name in ["link", NAME, "of my own"] {
        let (found, page) = served.get(&format!("results/{}", escaped(name)));
        assert!(found == 200 && !page.contains(PRECIOUS), "{name}: {found}");
    }
    for (name, file, why) in [
        ("record", "record.json", "it is a pipe"),
        ("pipes", "intervals.ndjson", "it is a pipe"),
        ("pipes", "engine.ndjson", "it is a pipe"),
        ("huge", "record.json", "no more than 256 MiB are read"),
        ("link", "experiment.toml", "it is a link"),
    ] {
        let missing = served.data(&format!("results/{name}/report.json"))["missing"].clone();
        let is_reported = |line: &Value| line.as_str().is_some_and(|line| line.contains(file) && line.contains(why));
        assert!(missing.as_array().unwrap().iter().any(is_reported), "{name}, {file}: {missing}");
    }
    assert_eq!(served.get("compare?base=a&other=huge").0, 200);
    assert_eq!(served.get("together?base=a&other=pipes").0, 200);
    // A result that disappears while it is listed leaves the list, and no other does.
    fs::remove_dir_all(results.join("half")).unwrap();
    assert!(served.get("").1.contains("9 of 9 results"));
}

#[test]
fn report_and_history_skip_pipes_and_unreadable_results() {
    let place = TestDir::new();
    let results = with_results(&place);
    plant_everything(&results);
    for name in ["record", "pipes", "huge", "link"] {
        let output = printed(place.rumba(&["report", &format!("results/{name}"), "--html", "page.html", "--json"]));
        assert!(output.status.success(), "{name}: {}", text(&output));
        let page = fs::read_to_string(place.path("page.html")).unwrap();
        assert!(!page.contains(PRECIOUS) && !text(&output).contains(PRECIOUS), "{name}");
    }
    let output = printed(place.rumba(&["report", "results/pipe"]));
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("it is a pipe"), "{}", text(&output));
    let history = printed(place.rumba(&["history", "results", "--json"]));
    assert!(history.status.success(), "{}", text(&history));
    let reported: Value = serde_json::from_slice(&history.stdout).unwrap();
    let runs: Vec<&str> =
        reported["points"].as_array().unwrap().iter().filter_map(|point| point["directory"].as_str()).collect();
    assert!(runs.contains(&"results/a") && !runs.contains(&"results/later"), "{reported}");
    let said = String::from_utf8_lossy(&history.stderr).into_owned();
    for (name, why) in [("pipe", "it is a pipe"), ("later", "format 2"), ("half", "cannot be read")] {
        let is_reported = |line: &str| line.starts_with(&format!("left out: results/{name}")) && line.contains(why);
        assert!(said.lines().any(is_reported), "{name}: {said}");
    }
    // A gate must not pass because the run that would fail it cannot be read.
    let gated = printed(place.rumba(&["history", "results", "--fail-if", "worse"]));
    assert_eq!(gated.status.code(), Some(2), "{}", text(&gated));
}

#[test]
fn library_cache_follows_no_link_and_never_blocks() {
    // Guards against an overwritten file: serving a directory with a link `.library-cache.json` once overwrote the
    // link's target.
    let place = TestDir::new();
    let results = with_results(&place);
    let of_the_library = [".library-cache.json", "library.json"].map(|name| results.join(name));
    of_the_library.iter().for_each(|file| symlink("../precious", file).unwrap());
    let note = "name=a&tags=x&note=y";
    {
        let served = Served::start(place.rumba(&["serve"]));
        let (status, answer) = served.post("note", note);
        assert!(status == 500 && answer.contains("library.json: it is a link, and is not followed"), "{answer}");
    }
    assert_eq!(fs::read_to_string(place.path("precious")).unwrap(), PRECIOUS);
    // A link to a missing file must not create that file.
    fs::remove_file(place.path("precious")).unwrap();
    {
        let served = Served::start(place.rumba(&["serve"]));
        assert_eq!(served.post("note", note).0, 500);
        fs::remove_file(&of_the_library[1]).unwrap();
        await_all_read(&served);
        // The server is idle once it has stored what it read.
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    assert!(!place.path("precious").exists());
    of_the_library.iter().for_each(|file| pipe(file));
    let served = Served::start(place.rumba(&["serve"]));
    let (status, answer) = served.post("note", note);
    assert!(status == 500 && answer.contains("library.json: it is a pipe"), "{answer}");
    fs::remove_file(&of_the_library[1]).unwrap();
    assert_eq!(served.post("note", note).0, 303);
    assert!(await_all_read(&served).contains("#x"));
}

#[test]
#[needs(Root)]
fn forged_library_cache_is_ignored_and_notes_keep_owner() {
    let place = TestDir::new();
    let results = with_results(&place);
    let cache = results.join(".library-cache.json");
    {
        let served = Served::start(place.rumba(&["serve"]));
        await_all_read(&served);
        let deadline = Instant::now() + PATIENCE;
        while !cache.exists() {
            assert!(Instant::now() < deadline);
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    let forged = fs::read_to_string(&cache).unwrap().replace("\"linkbench\"", "\"forged\"");
    fs::write(&cache, &forged).unwrap();
    {
        let served = Served::start(place.rumba(&["serve"]));
        assert!(served.get("").1.contains("forged"), "its own is believed: this is how it would be shown");
    }
    chown(&cache, Some(OUTSIDER), Some(OUTSIDER)).unwrap();
    let notes = results.join("library.json");
    fs::write(&notes, json!({ "format": 1, "results": {} }).to_string()).unwrap();
    chown(&notes, Some(OUTSIDER), Some(OUTSIDER)).unwrap();
    let served = Served::start(place.rumba(&["serve"]));
    assert!(!await_all_read(&served).contains("forged"));
    assert_eq!(served.post("note", "name=a&note=seen").0, 303);
    assert_eq!(fs::metadata(&notes).unwrap().uid(), OUTSIDER);
    assert_eq!(fs::read_to_string(&cache).unwrap(), forged, "it belongs to another user");
}

#[test]
#[needs(Tmpfs)]
fn note_on_a_full_disk_is_reported_and_the_old_one_stays() {
    let place = TestDir::new();
    let results = with_results(&place);
    let memory = Tmpfs::at(&place.path("memory"), "size=8m");
    copy(&results.join("a"), &memory.path().join("a"));
    let served = Served::start(place.rumba(&["serve", "memory"]));
    assert_eq!(served.post("note", "name=a&tags=old&note=before").0, 303);
    await_all_read(&served);
    fill(memory.path());
    let note = format!("name=a&tags=new&note={}", "after".repeat(1500));
    let (status, answer) = served.post("note", &note);
    assert!(status == 500 && answer.contains("memory/library.json: No space left on device"), "{answer}");
    assert!(answer.contains("value=\"new\"") && answer.contains("afterafter"), "what was typed can be sent again");
    let list = served.get("").1;
    assert!(list.contains("#old") && list.contains("before") && !list.contains("#new"), "{list}");
    let kept: Value = serde_json::from_slice(&fs::read(memory.path().join("library.json")).unwrap()).unwrap();
    assert_eq!(kept["results"]["a"], json!({ "tags": ["old"], "note": "before" }));
    let left = fs::read_dir(memory.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(left.into_iter().all(|name| !name.starts_with(".rumba-")), "a part of the new one is left");
    fs::remove_file(memory.path().join("ballast")).unwrap();
    assert_eq!(served.post("note", &note).0, 303);
    assert!(served.get("").1.contains("#new"));
}
