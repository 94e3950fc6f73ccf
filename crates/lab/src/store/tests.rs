//! What a full disk, a crash or a foreign tool would cost a user.

use std::fs;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use rumba_core::engine::{Durability, EngineConfig};
use rumba_core::event::Event;
use rumba_core::record::{PhaseKind, RunPlan, Status, TrialPlan};
use rumba_core::setting::Settings;

use super::append::Append;
use super::*;

fn trial_plan() -> TrialPlan {
    TrialPlan {
        number: 1,
        engine: EngineConfig {
            name: "null".into(),
            engine: "null".into(),
            cache: 1,
            durability: Durability::None,
            compression: None,
            library: None,
            server: None,
            limits: Default::default(),
            settings: Settings::default(),
        },
        workload: "linkbench".into(),
        workload_settings: Settings::default(),
        clients: 1,
        repeat: 1,
        part: Default::default(),
        loaded_by: None,
        run: RunPlan {
            load_clients: 1,
            driver: rumba_core::record::DriverKind::Auto,
            warmup_s: 0.0,
            warmup_most_s: None,
            loops: 1,
            loop_s: 1.0,
            rate: None,
            queue: None,
            backlog_s: 30.0,
            seed: 1,
            verify: true,
            keep_data: false,
            interval_s: 1.0,
            stall_s: 60.0,
        },
    }
}

#[test]
fn what_a_full_disk_refuses_is_kept_and_written_later() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lines");
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let mut file = Append::new(path.clone());
    file.line("first");
    assert!(file.flush().is_err(), "/dev/full is always full");
    fs::remove_file(&path).unwrap();
    file.line("second");
    file.flush().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "first\nsecond\n");
}

#[test]
fn the_latency_log_is_read_by_the_standard_reader() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TrialWriter::create(dir.path().join("t"), &trial_plan()).unwrap();
    let mut counts = crate::run::cells::Counts::new(1);
    counts.kinds[0].service.buckets[crate::run::buckets::index(5_000_000)] = 7;
    counts.kinds[0].service.max_ns = 5_000_000;
    const OPS: &[rumba_core::workload::OpInfo] = &[rumba_core::workload::OpInfo { name: "get_node", short: None }];
    let histograms = crate::run::stats::encode(OPS, &counts);
    writer.take(Event::Latency { start_s: 1.5, seconds: 1.0, histograms });
    writer.finish().unwrap();
    let log = fs::read(dir.path().join("t/latency.hlog")).unwrap();
    let mut intervals = 0;
    for entry in IntervalLogIterator::new(&log) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            intervals += 1;
            assert_eq!(interval.tag().map(|tag| tag.as_str()), Some("get_node.service"));
            assert_eq!(interval.max(), 5.0);
            let bytes =
                base64::Engine::decode(&base64::engine::general_purpose::STANDARD, interval.encoded_histogram())
                    .unwrap();
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            assert_eq!(histogram.len(), 7);
        }
    }
    assert_eq!(intervals, 1);
}

#[test]
fn a_trial_whose_process_is_gone_keeps_what_it_told_and_its_phase() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = TrialWriter::create(dir.path().join("t"), &trial_plan()).unwrap();
    writer.take(Event::PhaseStarted { phase: PhaseKind::Loop(2), seconds: Some(1.0), rows: None });
    writer.gone("killed".into());
    let record = writer.finish().unwrap();
    assert_eq!(record.status, Status::Failed { phase: PhaseKind::Loop(2), cause: "killed".into() });
    let text = fs::read_to_string(dir.path().join("t/record.json")).unwrap();
    assert_eq!(serde_json::from_str::<rumba_core::record::Record>(&text).unwrap(), record);
}

#[test]
fn a_partial_run_is_read_and_what_is_missing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let meta = Meta {
        format: rumba_core::record::FORMAT,
        name: "cut".into(),
        source: None,
        started: "2020-01-01T00:00:00Z".into(),
        rumba: "0".into(),
        conditions: BTreeMap::new(),
        warnings: Vec::new(),
        trials: vec!["001-null-c1-r1".into(), "002-null-c1-r2".into()],
    };
    fs::write(dir.path().join("experiment.json"), serde_json::to_string(&meta).unwrap()).unwrap();
    let first = dir.path().join("trials/001-null-c1-r1");
    drop(TrialWriter::create(first.clone(), &trial_plan()).unwrap());
    fs::write(first.join("intervals.ndjson"), "{\"start_s\":0.0,\"sec").unwrap();
    let results = read(dir.path()).unwrap();
    assert_eq!(results.trials.len(), 1);
    assert_eq!(results.missing.len(), 3, "{:?}", results.missing);
    assert!(results.missing.iter().any(|line| line.contains("002") && line.contains("not run")));
    assert!(results.missing.iter().any(|line| line.contains("cut off")));
}

#[test]
fn a_directory_without_results_is_named_as_that() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(read(dir.path()), Err(ReadError::NoResults { .. })));
    fs::write(dir.path().join("experiment.json"), "{\"format\":99}").unwrap();
    assert!(matches!(read(dir.path()), Err(ReadError::Format { found: 99, .. })));
}
