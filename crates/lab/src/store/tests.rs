//! Guards results against a full disk, a crash and foreign tools.

use std::fs;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use rumba_results::engine_samples::EngineSample;
use rumba_results::event::Event;
use rumba_results::record::{Interval, PhaseKind, Status, TrialPlan};
use rumba_results::samples::{self, trial_plan};

use super::write::ENGINE;
use super::*;

mod planted;

fn writer(directory: &Path) -> TrialWriter {
    let room = Room::hold(directory.parent().unwrap(), 1).unwrap();
    TrialWriter::create(directory.to_owned(), &trial_plan(), &Build::unknown("a test"), Arc::new(room)).unwrap()
}

/// The tags and start times that the standard reader finds after each mark of a phase.
fn by_phase(log: &str) -> Vec<(String, Vec<f64>)> {
    let mut parts: Vec<(String, String)> = vec![("before".to_owned(), String::new())];
    for line in log.lines() {
        if let Some(phase) = line.strip_prefix("#[Phase: ").and_then(|rest| rest.strip_suffix(']')) {
            parts.push((phase.to_owned(), String::new()));
        }
        if let Some((_, part)) = parts.last_mut() {
            *part += &format!("{line}\n");
        }
    }
    let starts = |text: &str| {
        let entries = IntervalLogIterator::new(text.as_bytes()).map(|entry| entry.unwrap());
        let start = |entry| match entry {
            LogEntry::Interval(interval) => Some(interval.start_timestamp().as_secs_f64()),
            _ => None,
        };
        entries.filter_map(start).collect::<Vec<f64>>()
    };
    parts.iter().map(|(phase, text)| (phase.clone(), starts(text))).collect()
}

#[test]
fn latency_log_names_phases_and_standard_reader_still_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(&dir.path().join("t"));
    let started = |phase| Event::PhaseStarted { phase, seconds: None, rows: None };
    let second = |start_s| {
        let mut counts = crate::run::cells::Counts::new(1);
        counts.kinds[0].service.buckets[crate::run::buckets::index(5_000_000)] = 7;
        counts.kinds[0].service.max_ns = 5_000_000;
        const OPS: &[rumba_engine_api::workload::OpInfo] = &[rumba_engine_api::workload::OpInfo::new("get_node")];
        Event::Latency { start_s, seconds: 1.0, histograms: crate::run::stats::encode(OPS, &counts) }
    };
    writer.take(started(PhaseKind::Settle));
    writer.take(started(PhaseKind::Warmup));
    writer.take(second(1.0));
    writer.take(started(PhaseKind::Loop(1)));
    writer.take(second(2.0));
    writer.take(second(3.0));
    writer.take(started(PhaseKind::Loop(2)));
    writer.take(second(4.0));
    writer.finish().unwrap();
    let log = fs::read_to_string(dir.path().join("t/latency.hlog")).unwrap();
    let whole = IntervalLogIterator::new(log.as_bytes()).filter(|entry| matches!(entry, Ok(LogEntry::Interval(_))));
    let whole: Vec<_> = whole.collect();
    assert_eq!(whole.len(), 4, "{log}");
    let Ok(LogEntry::Interval(first)) = &whole[0] else { panic!("{log}") };
    assert_eq!((first.tag().map(|tag| tag.as_str()), first.max()), (Some("get_node.service"), 5.0));
    let encoded = first.encoded_histogram();
    assert!(encoded.starts_with("HISTFAAA"), "the prefix that HdrHistogram tools look for: {encoded}");
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded).unwrap();
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    assert_eq!(histogram.len(), 7);
    assert!(IntervalLogIterator::new(log.as_bytes()).all(|entry| entry.is_ok()));
    let found = by_phase(&log);
    let seconds: Vec<(&str, usize)> = found.iter().map(|(phase, starts)| (phase.as_str(), starts.len())).collect();
    assert_eq!(seconds, [("before", 0), ("warmup", 1), ("loop 1", 2), ("loop 2", 1)], "{log}");
    let first = found[1].1[0];
    assert!((found[3].1[0] - first - 3.0).abs() < 1e-6, "{found:?}");
}

#[test]
fn trial_of_a_dead_process_keeps_its_events_and_phase() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(&dir.path().join("t"));
    writer.take(Event::PhaseStarted { phase: PhaseKind::Loop(2), seconds: Some(1.0), rows: None });
    writer.gone("killed".into());
    let record = writer.finish().unwrap();
    assert_eq!(record.status, Status::Failed { phase: PhaseKind::Loop(2), cause: "killed".into() });
    let text = fs::read_to_string(dir.path().join("t/record.json")).unwrap();
    assert_eq!(serde_json::from_str::<rumba_results::record::Record>(&text).unwrap(), record);
}

/// A results directory as a run leaves it: two trials, the first with this many seconds.
struct Written {
    dir: tempfile::TempDir,
}

const FIRST: &str = "001-null-c1-r1";

impl Written {
    fn new(seconds: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let second = TrialPlan { number: 2, repeat: 2, ..trial_plan() };
        let meta = Meta {
            format: FORMAT,
            name: "cut".into(),
            source: None,
            started: "2020-01-01T00:00:00Z".into(),
            rumba: "0".into(),
            build: None,
            conditions: BTreeMap::new(),
            warnings: Vec::new(),
            trials: vec![plan::directory(&trial_plan()), plan::directory(&second)],
        };
        let resume = Resume {
            plans: vec![trial_plan(), second],
            planned: 2,
            data_base: "data".into(),
            versions: BTreeMap::new(),
            allow_unlimited: false,
        };
        let write = |name: &str, text: String| fs::write(dir.path().join(name), text).unwrap();
        write("experiment.json", serde_json::to_string(&meta).unwrap());
        write("resume.json", serde_json::to_string(&resume).unwrap());
        write("experiment.toml", "# a claim is judged by what is here\n".to_owned());
        fs::create_dir(dir.path().join("trials")).unwrap();
        let written = Self { dir };
        let mut writer = writer(&written.file(""));
        (0..seconds).for_each(|second| writer.take(Event::Interval(Box::new(interval(second)))));
        writer.take(Event::Finished);
        writer.finish().unwrap();
        written
    }

    /// A file of the first trial.
    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("trials").join(FIRST).join(name)
    }

    fn read(&self) -> (Vec<rumba_results::results::Trial>, Vec<String>) {
        let results = read(self.dir.path()).unwrap();
        let (reported, rest): (Vec<String>, Vec<String>) =
            results.missing.into_iter().partition(|line| !line.contains("was not run"));
        assert_eq!(rest, ["002-null-c1-r2: was not run"]);
        (results.trials, reported)
    }

    /// Replaces the first byte of `text` in a line by a byte that is invalid in text.
    fn spoil(&self, file: &Path, line: usize, text: &str) {
        let mut bytes = fs::read(file).unwrap();
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let begin = std::iter::once(0).chain(ends).nth(line - 1).unwrap();
        let at = bytes[begin..].windows(text.len()).position(|part| part == text.as_bytes()).unwrap();
        bytes[begin + at] = 0xff;
        fs::write(file, bytes).unwrap();
    }
}

fn interval(second: u32) -> Interval {
    let counts = BTreeMap::from([("get_node".to_owned(), 10)]);
    Interval { ops: 10, counts, ..samples::interval(PhaseKind::Loop(1), f64::from(second)) }
}

#[test]
fn partial_run_is_read_and_missing_parts_are_named() {
    let written = Written::new(0);
    drop(writer(&written.file("")));
    fs::write(written.file("intervals.ndjson"), "{\"start_s\":0.0,\"sec").unwrap();
    let (trials, reported) = written.read();
    assert_eq!(trials.len(), 1);
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(
        reported[0].contains("cut off before its end") && reported[1].contains("line 1 is cut off"),
        "{reported:?}"
    );
}

#[test]
fn bad_byte_loses_only_its_second_and_its_line_is_reported() {
    // Guards against one bad byte hiding the whole trial, when the file was read as one text.
    let written = Written::new(7);
    let file = written.file("intervals.ndjson");
    for line in [2, 4, 5, 6] {
        written.spoil(&file, line, "get_node");
    }
    let (trials, reported) = written.read();
    assert_eq!(trials[0].record.status, Status::Done);
    assert_eq!(trials[0].intervals, [interval(0), interval(2), interval(6)]);
    assert_eq!(reported, [format!("{FIRST}: intervals.ndjson lines 2, 4 to 6 cannot be read; the other 3 were")]);
}

#[test]
fn intervals_that_cannot_be_read_at_all_hide_no_record() {
    let written = Written::new(1);
    fs::remove_file(written.file("intervals.ndjson")).unwrap();
    fs::create_dir(written.file("intervals.ndjson")).unwrap();
    let (trials, reported) = written.read();
    assert_eq!((&trials[0].record.status, trials[0].intervals.len()), (&Status::Done, 0));
    assert!(reported[0].contains("intervals.ndjson cannot be read: "), "{reported:?}");
}

#[test]
fn bad_byte_in_a_record_is_reported_and_the_rest_is_read() {
    let written = Written::new(2);
    let lines = fs::read_to_string(written.file("record.json")).unwrap();
    let line = 1 + lines.lines().position(|line| line.contains("linkbench")).unwrap();
    written.spoil(&written.file("record.json"), line, "nkbench");
    let (trials, reported) = written.read();
    assert_eq!(trials[0].record.plan.workload, "li\u{fffd}kbench");
    assert_eq!((&trials[0].record.status, trials[0].intervals.len()), (&Status::Done, 2));
    assert!(reported[0].contains(&format!("record.json line {line} has bytes that are not UTF-8")), "{reported:?}");
}

#[test]
fn a_record_that_cannot_be_read_leaves_the_trial_its_intervals() {
    for damage in [Some("{ \"format\": 1,\n \"plan\": {]"), Some(""), None] {
        let written = Written::new(2);
        match damage {
            Some(text) => fs::write(written.file("record.json"), text).unwrap(),
            None => fs::remove_file(written.file("record.json")).unwrap(),
        }
        let (trials, reported) = written.read();
        assert_eq!((&trials[0].record.status, trials[0].intervals.len()), (&Status::Running, 2));
        assert_eq!(trials[0].record.plan, trial_plan());
        assert!(reported.len() == 1 && reported[0].contains("record.json cannot be read, so only"), "{reported:?}");
    }
}

#[test]
fn damaged_experiment_is_reported_as_claims_are_not_judged() {
    let written = Written::new(1);
    let toml = written.dir.path().join("experiment.toml");
    written.spoil(&toml, 1, "claim");
    let (_, reported) = written.read();
    assert!(reported[0].starts_with("experiment.toml line 1 has bytes that are not UTF-8"), "{reported:?}");
    fs::write(&toml, "[[claim]\n").unwrap();
    let (_, reported) = written.read();
    assert!(reported[0].starts_with("experiment.toml is damaged, and its claims are not judged: "), "{reported:?}");
    fs::remove_file(&toml).unwrap();
    let (_, reported) = written.read();
    assert!(reported[0].starts_with("experiment.toml cannot be read, and its claims are not judged: "), "{reported:?}");
}

#[test]
fn one_of_concurrent_claims_of_a_directory_succeeds() {
    // Guards against two runs that write the same results: with a check before the creation, one set was lost.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    let start = std::sync::Barrier::new(8);
    let claims: Vec<_> = std::thread::scope(|scope| {
        let claim = || {
            start.wait();
            Claim::new(&path)
        };
        let runs: Vec<_> = (0..8).map(|_| scope.spawn(claim)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    let refused: Vec<String> =
        claims.iter().filter_map(|claim| claim.as_ref().err()).map(ToString::to_string).collect();
    assert_eq!(refused.len(), 7);
    assert!(refused.iter().all(|words| words.contains("a/b is taken")), "{refused:?}");
    // A directory that one run has left empty can be claimed by another.
    drop(claims);
    Claim::new(&path).unwrap();
}

#[test]
fn same_second_names_differ_and_unused_directories_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("results");
    let claims: Vec<Claim> = (0..50).map(|_| Claim::named(&base, "e").unwrap()).collect();
    let mut paths: Vec<&Path> = claims.iter().map(Claim::path).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 50);
    drop(claims);
    assert_eq!(fs::read_dir(&base).map(Iterator::count).unwrap_or(0), 0, "they were not used");
}

#[test]
fn results_just_written_are_not_taken_by_an_earlier_check() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut claim = Claim::new(&path).unwrap();
    fs::write(path.join("experiment.toml"), "").unwrap();
    claim.keep();
    drop(claim);
    assert!(matches!(Claim::new(&path), Err(ClaimError::Used { .. })));
    assert!(path.join("experiment.toml").exists());
}

#[test]
fn a_directory_without_results_is_named_as_that() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(read(dir.path()), Err(ReadError::NoResults { .. })));
    // Guards against truncating 2^32 + 1 to 1, the own format.
    fs::write(dir.path().join("experiment.json"), "{\"format\":4294967297}").unwrap();
    assert!(matches!(read(dir.path()), Err(ReadError::Format { found: 4_294_967_297, .. })));
}

#[test]
fn following_results_reads_each_interval_once() {
    // Guards against reading all intervals again for each new one, as a page of an hour's run did.
    let written = Written::new(1);
    let path = written.dir.path();
    let name = fs::read_dir(path.join("trials")).unwrap().next().unwrap().unwrap().file_name();
    let trial = path.join("trials").join(name);
    let file = trial.join("intervals.ndjson");
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().count();
    let mut following = Following::open(path).unwrap();
    let seconds = |following: &Following| following.results().trials[0].intervals.len();
    assert_eq!(seconds(&following), lines);
    assert_eq!(following.results().trials, read(path).unwrap().trials);
    assert!(!following.refresh().unwrap(), "nothing has come");
    let (line, mut grown) = (text.lines().next().unwrap(), fs::OpenOptions::new().append(true).open(&file).unwrap());
    use std::io::Write;
    grown.write_all(&line.as_bytes()[..20]).unwrap();
    assert!(!following.refresh().unwrap());
    assert_eq!(seconds(&following), lines, "half a second is none");
    grown.write_all(format!("{}\n", &line[20..]).as_bytes()).unwrap();
    assert!(!following.refresh().unwrap(), "its record is as it was");
    assert_eq!(seconds(&following), lines + 1);
    // A trial that is run again has new files in place of these.
    let (other, record) = (trial.join("other"), trial.join("record.json"));
    fs::write(&other, format!("{line}\n")).unwrap();
    fs::rename(&other, &file).unwrap();
    fs::write(&other, fs::read(&record).unwrap()).unwrap();
    fs::rename(&other, &record).unwrap();
    assert!(following.refresh().unwrap());
    assert_eq!(seconds(&following), 1);
}

fn look(at_s: f64, size_bytes: f64, reads: f64) -> EngineSample {
    let counters = BTreeMap::from([("reads".to_owned(), reads), ("opened".to_owned(), 1.0)]);
    EngineSample { at_s, size_bytes: Some(size_bytes), debt: BTreeMap::new(), counters }
}

#[test]
fn engine_samples_stored_as_changes_are_read_back_whole() {
    let written = Written::new(1);
    let mut writer = writer(&written.file(""));
    let mut following = Following::open(written.dir.path()).unwrap();
    for (second, reads) in [(1.0, 5.0), (2.0, 5.0), (3.0, 9.0)] {
        writer.take(Event::Looked(Box::new(look(second, 4096.0, reads))));
        following.refresh().unwrap();
    }
    writer.take(Event::Finished);
    writer.finish().unwrap();
    let lines = fs::read_to_string(written.file("engine.ndjson")).unwrap();
    assert_eq!(lines.lines().nth(1), Some(r#"{"at_s":2.0}"#));
    assert_eq!(lines.lines().nth(2), Some(r#"{"at_s":3.0,"counters":{"reads":9.0}}"#));
    let (trials, reported) = written.read();
    assert!(reported.is_empty(), "{reported:?}");
    let course = &trials[0].course;
    let column = |name: &str| &course.columns.iter().find(|column| column.name == name).unwrap().values;
    assert_eq!((&course.at_s, column("reads")), (&vec![1.0, 2.0, 3.0], &vec![5.0, 5.0, 9.0]));
    assert_eq!((column("size_bytes"), column("opened")), (&vec![4096.0; 3], &vec![1.0; 3]));
    assert_eq!(following.results().trials[0].course, *course, "as it came");
    assert_eq!(super::read_records(written.dir.path()).unwrap().trials[0].course, Default::default());
}

#[test]
fn a_directory_that_a_run_writes_is_known_from_one_that_it_left() {
    let dir = tempfile::tempdir().unwrap();
    let claim = Claim::new(&dir.path().join("a")).unwrap();
    let path = claim.path().to_owned();
    assert!(is_being_written(&path));
    fs::write(path.join("file"), "").unwrap();
    drop(claim);
    assert!(!is_being_written(&path) && !is_being_written(&dir.path().join("gone")));
}
