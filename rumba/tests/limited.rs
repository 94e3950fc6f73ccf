//! Limits and claims, through the binary.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use common::{TestDir, ended, set, text};
use std::process::{Command, Output};
use std::time::Duration;

const STORAGE: [&str; 4] = ["--set", "storage=slow-ssd", "--set", "storage.size=1GiB"];

fn mounts_below(place: &TestDir) -> usize {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().filter(|line| line.contains(place.path("").to_str().unwrap().trim_end_matches('/'))).count()
}

#[test]
#[needs(LoopDevice, StorageRates, MemoryGroup)]
fn limited_run_reports_its_limits_and_leaves_nothing() {
    let place = TestDir::new();
    let limits = [&STORAGE[..], &["--set", "memory=256MiB"]].concat();
    ended(0, place.short_run("sqlite", &limits));
    let trial = &place.report()["trials"][0];
    let conditions = trial["conditions"].as_object().unwrap();
    let enforced = |number: u32| conditions[&format!("limit {number}")].as_str().unwrap();
    assert!(enforced(1).contains("10000 operations/s") && enforced(2).contains("256.0 MiB"), "{conditions:?}");
    assert!(conditions["storage, measured before the trial"].as_str().unwrap().contains("depth 8"));
    assert!(conditions.contains_key("memory, peak of the group") || enforced(2).contains("systemd"));
    assert_eq!(trial["engine_settings"]["limits"]["storage"]["tier"], "slow-ssd");
    assert!(place.is_clean());
    assert_eq!(mounts_below(&place), 0);
}

/// Root without the capability made half a volume, and a server that nothing could end.
#[test]
#[needs(LoopDevice, PostgreSql)]
fn a_missing_capability_is_named_before_anything_is_created() {
    let place = TestDir::new();
    let without = |capability: &str, run: &Command| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", capability]).arg(run.get_program()).args(run.get_args());
        command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(place.path(""));
        command.output().unwrap()
    };
    let volume = place.short_run("sqlite", &STORAGE);
    for (capability, run, named) in [
        ("-sys_admin", &volume, "CAP_SYS_ADMIN"),
        ("-kill", &place.short_run("postgresql", &[]), "root runs this server as postgres, and lacks"),
    ] {
        let refused = without(capability, run);
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        let said = text(&refused).split_whitespace().collect::<Vec<_>>().join(" ").replace("│ ", "");
        assert!(said.contains(named), "{said}");
        assert!(!place.path("out").exists());
    }
    let output = without("-sys_admin", &place.short_run("sqlite", &[&STORAGE[..], &["--allow-unlimited"]].concat()));
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("CAP_SYS_ADMIN"), "{}", text(&output));
    assert!(place.is_clean());
}

fn devices_below(place: &TestDir) -> usize {
    let blocks = std::fs::read_dir("/sys/block").unwrap().flatten();
    let backing = blocks.filter_map(|block| std::fs::read_to_string(block.path().join("loop/backing_file")).ok());
    backing.filter(|file| file.starts_with(place.path("").to_str().unwrap())).count()
}

/// The processes of runs in this place that delay requests of a volume.
fn delayers(place: &TestDir) -> usize {
    let holds = |process: &std::path::Path, file: &str, text: &str| {
        let bytes = std::fs::read(process.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(text)
    };
    let here = place.path("state");
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|process| process.path());
    let is_one = |path: &std::path::PathBuf| {
        holds(path, "cmdline", "\0delay\0") && holds(path, "environ", here.to_str().unwrap())
    };
    processes.filter(is_one).count()
}

/// `depth 1: 480 reads/s, mean 2070 µs, median 2060 µs`: the rate and the median of each depth.
fn measured(trial: &serde_json::Value) -> Vec<(f64, f64)> {
    let words = trial["conditions"]["storage, measured before the trial"].as_str().unwrap();
    let points = words.split("; ").map(|point| {
        let numbers: Vec<f64> = point.split(' ').filter_map(|word| word.parse().ok()).collect();
        (numbers[0], numbers[2])
    });
    points.collect()
}

/// Requests that wait together must not wait for each other.
#[test]
#[needs(LoopDevice, Fuse)]
fn latency_holds_for_each_request_and_not_for_one_after_the_other() {
    for backing in ["tmpfs", "file"] {
        let place = TestDir::new();
        let storage = format!("storage={{ size=\"256MiB\", backing=\"{backing}\", latency=\"4ms\" }}");
        ended(0, place.short_run("sqlite", &["--set", &storage]));
        let trial = &place.report()["trials"][0];
        let [(one_per_s, one_us), (eight_per_s, eight_us)] = measured(trial)[..] else { panic!("{trial}") };
        // The delay is shorter by the measured way of a request.
        assert!(one_us >= 3000.0 && eight_us >= 3000.0, "{backing}: {one_us} {eight_us}");
        assert!(eight_per_s > 2.0 * one_per_s, "{backing}: {one_per_s} {eight_per_s}");
        let limit = trial["conditions"]["limit 1"].as_str().unwrap();
        assert!(limit.contains("4 ms per request") && limit.contains("by FUSE"), "{limit}");
        assert!(place.is_clean());
        assert_eq!((mounts_below(&place), devices_below(&place), delayers(&place)), (0, 0, 0));
    }
}

#[test]
#[needs(LoopDevice, Fuse)]
fn doctor_cleans_up_after_a_killed_run_with_latency() {
    let place = TestDir::new();
    let storage = ["--set", "storage={ size=\"256MiB\", latency=\"1ms\" }", "--set", "loop=60s"];
    let mut run = place.short_run("sqlite", &storage).spawn().unwrap();
    while !place.path("out/trials/001-sqlite-c2-r1/intervals.ndjson").exists() {
        assert!(run.try_wait().unwrap().is_none(), "it ended before its loops");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(mounts_below(&place) > 0, "the storage is mounted");
    run.kill().unwrap();
    run.wait().unwrap();
    while delayers(&place) > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    // The filesystem has lost its device: it fails to commit this, and accepts no change any more. Its data directory
    // could not be removed file by file.
    let lost = place.path("out/data/001-sqlite-c2-r1.storage/mounted/lost");
    let written = std::fs::File::create(lost).and_then(|file| file.sync_all());
    assert!(written.is_err(), "the volume still answers");
    let doctor = ended(0, place.rumba(&["doctor", "--clean"]));
    assert!(place.is_clean(), "{}", text(&doctor));
    assert_eq!((mounts_below(&place), devices_below(&place)), (0, 0), "{}", text(&doctor));
}

#[test]
#[needs(Root, MemoryGroup)]
fn a_trial_that_outgrows_its_memory_is_named_as_that() {
    let place = TestDir::new();
    // Less than RocksDB's memtables alone, which count towards its cache.
    let limits = ["--set", "memory=16MiB"];
    let more = ["--set", "maxid1=200000", "--set", "cache=2GiB", "--set", "rocksdb.write_buffer_size=256MiB"];
    let limits = [&limits[..], &["--allow-tight-memory"]].concat();
    ended(1, place.short_run("rocksdb", &[&limits[..], &more[..]].concat()));
    let cause = place.report()["trials"][0]["failure"]["cause"].as_str().unwrap().to_owned();
    assert!(cause.contains("killed by the memory group") && cause.contains("limit 16.0 MiB"), "{cause}");
    assert!(place.is_clean());
}

fn claims(holds: &str) -> (TestDir, Output) {
    let place = TestDir::new();
    let experiment = format!(
        "name = \"claims\"\nworkload.linkbench.maxid1 = 1000\nrun = {{ loops = 1, loop = \"200ms\", warmup = \"0s\" }}\n\
         [[engine]]\nname = \"null\"\n[[claim]]\ntext = \"It holds.\"\nholds = '{holds}'\n"
    );
    std::fs::write(place.path("claims.toml"), experiment).unwrap();
    let check = ["run", "claims.toml", "--check", "--accept-single-run", "--quiet", "--out", "out"];
    let output = place.rumba(&check).output().unwrap();
    (place, output)
}

#[test]
fn check_has_its_own_exit_code_unless_every_claim_holds() {
    let (place, output) = claims("rss_bytes(\"null\") > 1");
    assert_eq!(output.status.code(), Some(0), "one repeat is good enough: {}", text(&output));
    assert!(text(&output).contains("Claims\n") && text(&output).contains("single run"), "{}", text(&output));
    let refused = place.rumba(&["run", "claims.toml", "--check", "--out", "again"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(
        text(&refused).contains("claims.toml:8:") && text(&refused).contains("cannot decide"),
        "{}",
        text(&refused)
    );
    assert!(!place.path("again").exists());
    let (_, output) = claims("rss_bytes(\"null\") < 1");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output));
}

#[test]
#[needs(MariaDb, PostgreSql, SecantusDb)]
fn every_published_experiment_validates() {
    let place = TestDir::new();
    let listed = text(&place.rumba(&["reproduce"]).output().unwrap());
    let names: Vec<&str> = listed.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../experiments")).unwrap().count();
    // The recipes `quickstart` and `innodb-or-myrocks` reproduce no publication.
    assert_eq!(names.len() + 2, files, "{listed}");
    for name in names {
        // As scripts/experiments does, which refused a claim that the file's repeats cannot decide.
        assert_admitted(&place, &["reproduce", name, "--check", "--accept-single-run"]);
    }
    for name in ["quickstart", "innodb-or-myrocks"] {
        assert_admitted(&place, &["run", name]);
    }
}

/// The enforceable limits and the free disk space of this host do not depend on the experiments.
fn assert_admitted(place: &TestDir, command: &[&str]) {
    let mut dry = place.rumba(&[command, &["--dry-run", "--allow-unlimited"]].concat());
    // Some examples are for servers that are on the path if the user has them.
    let brought = rumba_testkit::secantusdb::program().canonicalize().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = dry.env("PATH", format!("{}:{path}", brought.parent().unwrap().display())).output().unwrap();
    let words = text(&output).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    let small_disk =
        words.contains("free; this data set may need") && words.contains("run.data_dir to a larger volume");
    // Claims about servers that are not installed are left out.
    let no_claim = words.contains("no claim to check");
    assert!(output.status.success() || small_disk || no_claim, "{command:?}: {}", text(&output));
}

/// A `mongod` that only prints its version: a dry run needs no more of a server.
fn mongod(place: &TestDir, version: &str) -> std::path::PathBuf {
    let bin = place.path(&format!("mongodb-{version}/bin"));
    std::fs::create_dir_all(&bin).unwrap();
    let program = bin.join("mongod");
    std::fs::write(&program, format!("#!/bin/sh\necho 'db version v{version}'\n")).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    bin
}

/// The programs here only print a version, because no catalogue has these releases.
#[test]
#[needs(MariaDb)]
fn experiment_with_mongodb_validates_where_it_is_installed() {
    let place = TestDir::new();
    let (bin, old) = (mongod(&place, "7.0.5"), mongod(&place, "3.6.23"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let engines = "mongodb[compression=snappy],mongodb[compression=zlib],mongodb-no-oplog,mongorocks,mmapv1";
    let mut dry = place.rumba(&["reproduce", "small-server", "--engine", engines, "--dry-run", "--allow-unlimited"]);
    let [old, new] = [&old, &bin].map(|bin| bin.parent().unwrap().display().to_string());
    let bases = [("mongorocks", &old), ("mmapv1", &old), ("mongodb", &new), ("mongodb-no-oplog", &new)];
    set(&mut dry, bases.map(|(engine, base)| format!("{engine}.server={base}")));
    let output = dry.env("PATH", &path).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(!text(&output).contains("left out"), "{}", text(&output));
    let workload = ["--set", "cache=256MiB", "--set", "recordcount=1000", "--dry-run"];
    let mut named = place.rumba(&[&["run", "ycsb", "--engine", "mongodb"], &workload[..]].concat());
    ended(0, named.env("PATH", &path));
}
