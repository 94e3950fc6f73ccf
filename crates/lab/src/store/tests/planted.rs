//! Results made by another user: nothing in them leads elsewhere or blocks a reader, and no file exceeds the reader's
//! limit.

use std::os::unix::fs::symlink;
use std::sync::mpsc::channel;
use std::time::Duration;

use rumba_results::engine_samples::{Column, EngineTimeSeries, Of};

use super::super::read::add_look;
use super::*;

/// No measurement: a reader that blocks or reads endlessly is still busy after this time.
const PATIENCE: Duration = Duration::from_secs(120);
/// The contents of a file elsewhere.
const SECRET: &str = "somebody's alone";

/// The files of results, from their directory.
fn files() -> Vec<PathBuf> {
    let of_trial = |name| Path::new("trials").join(FIRST).join(name);
    let of_trial = ["record.json", "intervals.ndjson", ENGINE, STACKS].map(of_trial);
    ["experiment.json", "experiment.toml", "resume.json"].map(PathBuf::from).into_iter().chain(of_trial).collect()
}

/// The output of all readers for a directory.
fn everything(path: &Path) -> String {
    let mut following = Following::open(path);
    let again = following.as_mut().ok().map(Following::refresh);
    let followed = following.as_ref().ok().map(|following| format!("{:?}", following.results()));
    let whole = read(path).map(|results| format!("{results:?}")).unwrap_or_else(|error| error.to_string());
    let head = read_head(path).map(|head| format!("{head:?}")).unwrap_or_else(|error| error.to_string());
    let (records, profiles) = (read_records(path).is_ok(), profiles(path, None));
    format!("{whole}\n{head}\n{followed:?}{again:?}{records}{profiles:?}{:?}", data_base(path))
}

/// The same, in a thread with a time limit.
fn everything_in_time(path: &Path) -> String {
    let (said, received) = channel();
    let path = path.to_owned();
    std::thread::spawn(move || said.send(everything(&path)));
    received.recv_timeout(PATIENCE).expect("it waits, or reads without end")
}

#[test]
fn planted_file_is_reported_and_neither_followed_nor_awaited() {
    // Guards against a pipe, which blocked the one reading thread of `rumba serve`. A sparse file of 100 GB took all
    // memory.
    let pipe = |_: &Path, path: &Path| {
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    };
    let huge = |_: &Path, path: &Path| fs::File::create(path).unwrap().set_len(100 << 30).unwrap();
    let endless = |_: &Path, path: &Path| symlink("/dev/zero", path).unwrap();
    let link = |elsewhere: &Path, path: &Path| symlink(elsewhere, path).unwrap();
    type Plant<'a> = &'a dyn Fn(&Path, &Path);
    let plants: [(&str, Plant<'_>, &str); 4] = [
        ("a pipe", &pipe, "it is a pipe"),
        ("a huge file", &huge, "107374182400 bytes, and no more than 256 MiB are read"),
        ("a link to a device", &endless, "it is a link, and is not followed"),
        ("a link", &link, "it is a link, and is not followed"),
    ];
    let yard = tempfile::tempdir().unwrap();
    let elsewhere = yard.path().join("elsewhere");
    fs::write(&elsewhere, SECRET).unwrap();
    for file in files() {
        for (name, plant, reported) in &plants {
            let written = Written::new(1);
            let path = written.dir.path().join(&file);
            let _ = fs::remove_file(&path);
            plant(&elsewhere, &path);
            let said = everything_in_time(written.dir.path());
            let is_of_lines = path.extension().is_some_and(|extension| extension == "ndjson");
            let reported = if is_of_lines && *name == "a huge file" { "is longer than 1 GiB" } else { reported };
            // Unreadable stacks are left out of the page.
            assert!(said.contains(reported) || file.ends_with(STACKS), "{name} as {}: {said}", file.display());
            assert!(!said.contains(SECRET), "{name} as {}: {said}", file.display());
        }
    }
}

#[test]
fn no_link_and_no_name_leads_out_of_results() {
    let elsewhere = Written::new(1);
    let record = |path: &Path| fs::read_to_string(path.join("trials").join(FIRST).join("record.json")).unwrap();
    let theirs = record(elsewhere.dir.path()).replace("\"linkbench\"", &format!("\"{SECRET}\""));
    fs::write(elsewhere.file("record.json"), theirs).unwrap();
    fs::write(elsewhere.file(STACKS), SECRET).unwrap();
    let reported = |written: &Written, words: &str| {
        let said = everything_in_time(written.dir.path());
        assert!(said.contains(words) && !said.contains(SECRET), "{words}: {said}");
    };
    for of_elsewhere in [Path::new("trials").to_owned(), Path::new("trials").join(FIRST)] {
        let written = Written::new(1);
        let link = written.dir.path().join(&of_elsewhere);
        fs::remove_dir_all(&link).unwrap();
        symlink(elsewhere.dir.path().join(&of_elsewhere), &link).unwrap();
        reported(&written, "is a link, and is not followed");
    }
    let theirs = elsewhere.dir.path().join("trials").join(FIRST).display().to_string();
    let (name, below) = (elsewhere.dir.path().file_name().unwrap().to_str().unwrap(), format!("trials/{FIRST}"));
    for lead in [theirs, format!("../../{name}/{below}")] {
        let written = Written::new(1);
        let file = written.dir.path().join("experiment.json");
        let json = fs::read_to_string(&file).unwrap().replace(FIRST, &lead);
        fs::write(&file, json).unwrap();
        reported(&written, "its name leads out of the directory");
    }
}

#[test]
fn damaged_time_series_loses_only_the_damaged_line() {
    let written = Written::new(1);
    let looks = "{\"at_s\":1.0,\"counters\":{\"reads\":5.0}}\n\0\0\0\0\n{\"at_s\":3.0}\n{\"at_s\":4.0,\"coun";
    fs::write(written.file(ENGINE), looks).unwrap();
    let (trials, reported) = written.read();
    assert_eq!((&trials[0].course.at_s, &trials[0].course.columns[0].values), (&vec![1.0, 3.0], &vec![5.0; 2]));
    let expected = ["engine.ndjson line 4 is cut off", "engine.ndjson line 2 cannot be read; the other 2 were"];
    assert_eq!(reported, expected.map(|words| format!("{FIRST}: {words}")));
    let following = Following::open(written.dir.path()).unwrap();
    assert_eq!(following.results().trials[0].course, trials[0].course);
}

#[test]
fn truncated_line_loses_only_itself() {
    let written = Written::new(2);
    let file = written.file("intervals.ndjson");
    let intervals = fs::read_to_string(&file).unwrap();
    let (first, second) = intervals.split_at(intervals.find('\n').unwrap() + 1);
    fs::write(&file, format!("{first}{}\n{second}", "x".repeat(40 << 20))).unwrap();
    let (trials, reported) = written.read();
    assert_eq!(trials[0].intervals, [interval(0), interval(1)]);
    assert_eq!(reported, [format!("{FIRST}: intervals.ndjson line 2 cannot be read; the other 2 were")]);
    assert_eq!(Following::open(written.dir.path()).unwrap().results().trials[0].intervals.len(), 2);
}

#[test]
fn short_input_cannot_request_more_values_than_the_limit() {
    // A column continues on lines that do not name it: 10 MB of names and 10 MB of lines became a terabyte.
    let column = |number: usize| Column { of: Of::Counter, name: number.to_string(), before: 0, values: Vec::new() };
    let mut course = EngineTimeSeries { at_s: vec![0.0; 1 << 10], columns: (0..1 << 17).map(column).collect() };
    assert!(!add_look(&mut course, look(1.0, 4096.0, 5.0)));
    assert_eq!(course.at_s.len(), 1 << 10);
    course.columns.truncate(1 << 16);
    assert!(add_look(&mut course, look(1.0, 4096.0, 5.0)));
}
