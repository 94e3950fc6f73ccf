//! Every available server of the catalogue runs LinkBench from load to verify. Its settings must be known to it and
//! stay in effect, and its answers must equal those of oracles.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "common/conforms.rs"]
mod conforms;
#[allow(dead_code)] // Only its engines and catalogues are used.
#[path = "../src/registry.rs"]
mod registry;

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::Command;

use common::{TestDir, ended, phase, set, text};
use rumba_engine_api::engine::{EngineConfig, Form};
use rumba_engine_api::setting;
use rumba_testkit::mounts::{LoopDevice, fill};

/// The test of every server in the catalogue. Each has its own tests, so that a missing server shows as skipped.
macro_rules! tried {
    ($($test:ident: $engine:literal of $server:literal $(needs $plugin:ident)?;)*) => {
        const TRIED: &[(&str, &str)] = &[$(($engine, $server)),*];
        mod runs_to_a_clean_verify_and_complains_of_no_variable {
            $(
                #[test]
                #[needs(Server($server) $(, $plugin)?)]
                fn $test() {
                    super::runs_to_a_clean_verify($engine, $server, &[]);
                }
            )*
        }
        mod answers_as_the_oracles_do {
            $(
                #[test]
                #[needs(Server($server) $(, $plugin)?)]
                fn $test() {
                    super::answers_as_the_oracles_do($engine, $server);
                }
            )*
        }
    };
}

tried! {
    innodb_of_mariadb_10_5: "innodb" of "mariadb-tokudb@10.5";
    innodb_of_mariadb_10_11: "innodb" of "mariadb@10.11";
    innodb_of_mariadb_11_8: "innodb" of "mariadb@11.8";
    innodb_of_mysql_5_6: "innodb" of "mysql@5.6";
    innodb_of_mysql_5_7: "innodb" of "mysql@5.7";
    innodb_of_mysql_8_0: "innodb" of "mysql@8.0";
    innodb_of_mysql_9_7: "innodb" of "mysql@9.7";
    mongodb_4_2: "mongodb" of "mongodb@4.2";
    mongodb_6_0: "mongodb" of "mongodb@6.0";
    myrocks_of_mariadb_10_5: "myrocks" of "mariadb-tokudb@10.5";
    myrocks_of_mariadb_10_11: "myrocks" of "mariadb@10.11" needs MyRocks;
    myrocks_of_mariadb_11_8: "myrocks" of "mariadb@11.8";
    postgresql_15: "postgresql" of "postgresql@15";
    postgresql_18: "postgresql" of "postgresql@18";
    postgresql_19: "postgresql" of "postgresql@19";
    // Debian's source ends in settle's ANALYZE TABLE, because LinkBench's keys have several columns.
    tokudb_of_mariadb_10_5: "tokudb" of "mariadb-tokudb@10.5";
}

/// A server's engine that differs only by a setting. Engines with their own name are tested under it.
const BY_SETTING: &str = "mysql";

#[test]
fn every_catalogue_server_runs_with_each_of_its_engines() {
    let mut engines = registry::engines();
    engines.retain(|engine| engine.info().form == Form::Server && engine.info().name != BY_SETTING);
    let engines: Vec<&str> = engines.iter().map(|engine| engine.info().name).collect();
    let mut wanted = Vec::new();
    for server in registry::catalogues().iter().flat_map(|catalogue| catalogue.list()) {
        let of_server = engines.iter().filter(|engine| server.engines.iter().any(|name| name == *engine));
        wanted.extend(of_server.map(|engine| (*engine, server.name.clone())));
    }
    wanted.sort();
    let tried: Vec<_> = TRIED.iter().map(|&(engine, server)| (engine, server.to_owned())).collect();
    assert_eq!(tried, wanted);
}

fn answers_as_the_oracles_do(engine: &str, server: &str) {
    let seed = TRIED.iter().position(|&tried| tried == (engine, server)).unwrap() as u64;
    let engines = registry::engines();
    let engine = engines.iter().find(|known| known.info().name == engine).unwrap();
    let config = conforms::config(engine.as_ref(), Some(server));
    // mongod accepts no smaller cache.
    let cache = if server.starts_with("mongodb") { 256 << 20 } else { config.cache };
    conforms::conforms(engine.as_ref(), &EngineConfig { cache, ..config }, &[seed]);
}

/// SecantusDB is in no catalogue.
#[test]
#[needs(SecantusDb)]
fn document_run_verifies_cleanly_and_matches_the_oracle() {
    let server = rumba_testkit::secantusdb::program().canonicalize().unwrap().display().to_string();
    // Each record takes a millisecond and more: some have links, counts and index entries as well.
    runs_to_a_clean_verify("secantusdb", &server, &["maxid1=500", "rate=200"]);
    let engines = registry::engines();
    let engine = engines.iter().find(|known| known.info().name == "secantusdb").unwrap();
    let mut config = EngineConfig { compression: None, ..conforms::config(engine.as_ref(), Some(&server)) };
    conforms::conforms(engine.as_ref(), &config, &[1]);
    config.settings.0.insert("transactions".to_owned(), setting::Value::Bool(false));
    conforms::conforms(engine.as_ref(), &config, &[3]);
}

/// An unprivileged user, which exists on every Debian.
const NO_USER: u32 = 65_534;

#[test]
#[needs(Root, PostgreSql, MariaDb)]
fn unprivileged_user_runs_two_server_families_together() {
    let place = TestDir::new();
    // A directory that the user can reach, because the program may lie below a directory that only root can.
    let program = place.path("rumba");
    rumba_testkit::process::executable(&std::fs::read(env!("CARGO_BIN_EXE_rumba")).unwrap(), &program);
    chown(place.path(""), Some(NO_USER), Some(NO_USER)).unwrap();
    let requested = place.short_run("postgresql,innodb", &[]);
    let mut run = Command::new(program);
    run.args(requested.get_args()).current_dir(place.path("")).uid(NO_USER).gid(NO_USER);
    run.env("XDG_STATE_HOME", place.path("state")).env("RUMBA_CACHE", place.path("cache"));
    run.env("HOME", place.path("")).env("TMPDIR", place.path("")).env("NO_COLOR", "1");
    ended(0, &mut run);
    let report = place.report();
    let trials = report["trials"].as_array().unwrap();
    let engines: Vec<&str> = trials.iter().map(|trial| trial["engine"].as_str().unwrap()).collect();
    assert_eq!(engines, ["postgresql", "innodb"]);
    for trial in trials {
        assert_eq!(trial["status"], "done", "{trial}");
        for check in phase(trial, "verify").unwrap()["checks"].as_array().unwrap() {
            assert_eq!(check["wrong"], 0, "{check}");
        }
    }
    assert!(place.is_clean());
}

/// The messages of servers about unknown or deprecated variables.
const COMPLAINTS: [&str; 6] =
    ["unknown variable", "unknown option", "deprecated", "obsolete", "option was set to", "is ignored"];

/// A server's complaint about its own default.
const ITS_OWN: [&str; 1] = ["TIMESTAMP with implicit DEFAULT value"];

fn is_complaint(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    COMPLAINTS.iter().any(|words| lower.contains(words)) && !ITS_OWN.iter().any(|words| line.contains(words))
}

/// With these options in addition to the server.
fn runs_to_a_clean_verify(engine: &str, server: &str, more: &[&str]) {
    let place = TestDir::new();
    let what = format!("{engine} of {server}");
    let mut command = place.short_run(engine, &["--set", &format!("server={server}")]);
    if engine == "mongodb" {
        // mongod accepts no smaller cache.
        set(&mut command, ["cache=256MiB"]);
    }
    if engine == "innodb" {
        set(&mut command, ["innodb.wait_events=true"]);
    }
    set(&mut command, more);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{what}: {}", text(&output));
    let report = place.report();
    let trial = &report["trials"][0];
    // MySQL 8.0.15 finds these latches by some queries only.
    if engine == "innodb" {
        assert!(trial["charged"]["index_wait_us_per_op"].as_f64().is_some_and(|us| us > 0.0), "{what}");
    }
    for check in phase(trial, "verify").unwrap()["checks"].as_array().unwrap() {
        assert_eq!(check["wrong"], 0, "{what}: {check}");
        assert!(check["examined"].as_u64().unwrap() > 0, "{what}: {check}");
    }
    let log = place.path(&format!("out/trials/001-{engine}-c2-r1/error.log"));
    let log = std::fs::read_to_string(log).unwrap();
    let complaints: Vec<&str> = log.lines().filter(|line| is_complaint(line)).collect();
    assert!(complaints.is_empty(), "{what}: {complaints:#?}");
    assert!(place.is_clean(), "{what}");
}

/// Repeats start from a copy of the load, in a memory group and on a separate volume if the host supports them.
#[test]
#[needs(PostgreSql, LoopDevice, MemoryGroup)]
fn postgresql_starts_its_repeats_from_kept_data_under_limits() {
    let place = TestDir::new();
    let mut command = place.short_run("postgresql", &["--set", "storage={ backing = \"file\", size = \"1GiB\" }"]);
    let sets = ["cache=16MiB", "memory=192MiB", "postgresql.full_page_writes=true,false"];
    set(&mut command, sets.into_iter().chain(["repeats=2", "repeats_from=kept"]));
    ended(0, &mut command);
    let report = place.report();
    let trials: Vec<_> = report["trials"].as_array().unwrap().iter().filter(|trial| trial["part"] != "load").collect();
    assert_eq!(trials.len(), 4);
    for trial in trials {
        let loops = phase(trial, "loops").unwrap();
        let held = loops["rss_bytes"].as_f64().unwrap();
        assert!(held < (192 << 20) as f64, "{held}: what its processes share counts once");
        assert!(trial["charged"]["wal_kb_per_op"].as_f64().unwrap() > 0.0, "{}", trial["charged"]);
    }
    assert!(place.is_clean());
}

/// Guards against a low figure: the memory of the last loop was once read after clients had closed their sessions, when
/// their processes were gone.
#[test]
#[needs(Server("postgresql@15"))]
fn memory_at_the_end_of_the_loops_includes_every_session() {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", "linkbench", "--engine", "postgresql", "--out", "out", "--quiet"]);
    let small =
        ["maxid1=2000", "clients=16", "load_clients=2", "warmup=2s", "loops=2", "loop=2s", "server=postgresql@15"];
    set(&mut command, small);
    ended(0, &mut command);
    let report = place.report();
    let trial = &report["trials"][0];
    let memory = |name: &str| phase(trial, name).unwrap()["rss_bytes"].as_f64().unwrap();
    let (first, last) = (memory("loop 1"), memory("loop 2"));
    assert!(last > 0.95 * first, "{last} bytes at the end of the last loop, {first} at the end of the one before");
    assert_eq!(memory("loops"), last);
    assert!(place.is_clean());
}

/// Guards against damaged nodes: gcc vectorized snappy, and what it had compressed could not be read back. Each run starts
/// from a copy of its load, so it reads the nodes from their files.
#[test]
#[needs(Server("mariadb-tokudb@10.5"))]
fn tokudb_reads_back_what_each_compression_has_written() {
    let place = TestDir::new();
    let methods = ["none", "snappy", "quicklz", "zlib", "lzma"];
    let engines = methods.map(|method| format!("tokudb.{method}")).join(",");
    ended(0, &mut place.short_run(&engines, &["--set", "repeats_from=kept"]));
    let report = place.report();
    let runs = report["trials"].as_array().unwrap().iter().filter(|trial| trial["part"] == "run");
    let mut verified = 0;
    for trial in runs {
        let checks = phase(trial, "verify").unwrap()["checks"].as_array().unwrap().clone();
        assert!(
            checks.iter().all(|check| check["wrong"] == 0 && check["examined"] != 0),
            "{}: {checks:?}",
            trial["engine"]
        );
        verified += 1;
    }
    assert_eq!(verified, methods.len());
}

/// A server without transactions had no oplog either, so the oplog's cost could not be measured alone.
#[test]
#[needs(Server("mongodb@4.2"))]
fn mongodb_writes_its_oplog_without_transactions() {
    let place = TestDir::new();
    let mut command = place.short_run("mongodb", &["--set", "server=mongodb@4.2"]);
    set(&mut command, ["cache=256MiB", "mongodb.transactions=false", "mongodb.oplog=true,false"]);
    ended(0, &mut command);
    let report = place.report();
    let trials = report["trials"].as_array().unwrap();
    let log_kb: Vec<f64> = trials.iter().map(|trial| trial["charged"]["log_kb_per_op"].as_f64().unwrap()).collect();
    assert!(log_kb[0] > 1.2 * log_kb[1], "{log_kb:?} KB written to the log per operation, with and without the oplog");
    for trial in trials {
        let counters = phase(trial, "drain").unwrap()["counters"].as_array().unwrap();
        let begun = counters.iter().find(|gauge| gauge["name"] == "transactions_totalStarted");
        assert!(begun.is_none_or(|gauge| gauge["value"] == 0.0), "{begun:?}");
    }
}

/// A build that cannot begin must name what the host lacks, and must not download anything before.
#[test]
fn build_without_a_compiler_names_the_packages() {
    let place = TestDir::new();
    let mut build = place.rumba(&["engines", "build", "tokudb"]);
    // No server listens there, and the path has no compiler.
    build.env("RUMBA_DEBIAN_MIRROR", "http://127.0.0.1:1").env("PATH", place.path(""));
    let output = ended(1, build.env("RUMBA_CACHE", place.path("cache")));
    let reported = text(&output).replace("\n  │ ", " ");
    assert!(reported.contains("apt-get install") && reported.contains("cmake"), "{reported}");
    assert_eq!(std::fs::read_dir(place.path("cache/servers")).unwrap().count(), 0);
    assert!(!place.path("cache/sources").exists(), "{reported}");
}

#[test]
fn an_install_that_fails_leaves_nothing_and_names_the_remedy() {
    let place = TestDir::new();
    let mut install = place.rumba(&["engines", "install", "mysql@5.6"]);
    // No server listens there, so npm cannot fetch it.
    install.env("npm_config_registry", "http://127.0.0.1:1").env("npm_config_fetch_retries", "0");
    let output = ended(1, install.env("RUMBA_CACHE", place.path("cache")));
    assert!(text(&output).contains("nothing was installed"), "{}", text(&output));
    assert_eq!(std::fs::read_dir(place.path("cache/servers")).unwrap().count(), 0);
}

#[test]
#[needs(LoopDevice)]
fn install_on_a_full_disk_suggests_another_location() {
    let place = TestDir::new();
    let disk = LoopDevice::at(&place.path("disk"), 4);
    fill(disk.path());
    let mut install = place.rumba(&["engines", "install", "mysql@5.6"]);
    let output = ended(1, install.env("RUMBA_CACHE", disk.path().join("cache")));
    assert!(text(&output).contains("device is full") && text(&output).contains("RUMBA_CACHE"), "{}", text(&output));
}

#[test]
#[needs(MariaDb)]
fn installed_server_is_not_fetched_again() {
    let place = TestDir::new();
    let mut install = place.rumba(&["engines", "install", "mariadb@10.11"]);
    // A fetch would fail.
    let output = install.env("RUMBA_DEBIAN_MIRROR", "http://127.0.0.1:1").output().unwrap();
    assert!(output.status.success() && text(&output).contains("it is here already"), "{}", text(&output));
}
