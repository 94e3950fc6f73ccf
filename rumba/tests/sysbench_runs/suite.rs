//! sysbench's own cram tests, which a checkout of its repository has: what the installed sysbench passes, rumba passes.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rumba_engine_api::engine::ExternalLibrary;
use rumba_protocol_postgresql::{Address, Admin, Secret, Target, Tls};
use rumba_testkit::postgresql::{PROGRAMS, PostgreSql, SUPERUSER};

use super::common::TestDir;
use super::existing::{Existing, PASSWORD};

/// The checkout, which is not part of this repository.
const CHECKOUT: ExternalLibrary = ExternalLibrary { variable: "RUMBA_SYSBENCH_CHECKOUT", page: "docs/sysbench.md" };

/// The files that expect sysbench's help texts, drivers or version; docs/sysbench.md has the reasons.
const DIFFERS: [&str; 9] = [
    "drivers",
    "help_drv_mysql",
    "help_drv_pgsql",
    "opt_help",
    "opt_version",
    "test_cpu",
    "test_memory",
    "test_mutex",
    "test_threads",
];

/// The servers, and what the tests expect of their surroundings.
struct Suite {
    place: TestDir,
    tests: PathBuf,
    mariadb: Existing,
    postgresql: PostgreSql,
}

impl Suite {
    /// Whether this program, installed as `sysbench`, passes each file.
    fn passes(&self, name: &str, program: &Path, files: &[String]) -> Vec<bool> {
        let bin = self.place.path(name);
        std::fs::create_dir(&bin).unwrap();
        symlink(program, bin.join("sysbench")).unwrap();
        // The tests start these clients without the address of a server.
        let socket = self.mariadb.socket.display();
        let clients = [
            ("mysql", format!("/usr/bin/mysql --no-defaults --socket={socket} --password={PASSWORD}")),
            ("psql", format!("{PROGRAMS}/psql")),
        ];
        for (client, command) in clients {
            let text = format!("#!/bin/sh\nexec {command} \"$@\"\n");
            rumba_testkit::process::executable(text.as_bytes(), &bin.join(client));
        }
        files.iter().map(|file| self.passes_one(&bin, file)).collect()
    }

    fn passes_one(&self, bin: &Path, file: &str) -> bool {
        self.mariadb.fetch("CREATE OR REPLACE DATABASE sbtest");
        let mut admin = self.admin();
        admin.query("DROP DATABASE IF EXISTS sbtest WITH (FORCE)").unwrap();
        admin.query("CREATE DATABASE sbtest").unwrap();
        // cram writes the differences next to the file.
        let name = format!("{file}.t");
        std::fs::copy(self.tests.join("t").join(&name), bin.join(&name)).unwrap();
        let (scripts, include) = (self.tests.join("../src/lua"), self.tests.join("include"));
        std::fs::write(bin.join("config.sh"), "").unwrap();
        let version = Command::new(bin.join("sysbench")).arg("--version").output().unwrap().stdout;
        let version = String::from_utf8(version).unwrap().split_whitespace().nth(1).unwrap().to_owned();
        let lua_path = [&scripts, &include].map(|path| format!("{0}/?;{0}/?.lua", path.display())).join(";");
        let (host, port) = (self.postgresql.directory().display(), self.postgresql.port());
        let mysql =
            format!("--mysql-socket={} --mysql-user=root --mysql-password={PASSWORD}", self.mariadb.socket.display());
        let pgsql = format!("--pgsql-host={host} --pgsql-port={port} --pgsql-user={SUPERUSER}");
        let is_1_0 = self.tests.join("t/api_legacy_basic.t").exists();
        let mut cram = Command::new("cram");
        cram.args(["--shell=/bin/bash", &name]).current_dir(bin);
        cram.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())).env("LUA_PATH", lua_path);
        cram.env("SBTEST_ROOTDIR", &self.tests).env("SBTEST_SUITEDIR", self.tests.join("t"));
        cram.env("SBTEST_SCRIPTDIR", scripts).env("SBTEST_INCDIR", include).env("SBTEST_CONFIG", bin.join("config.sh"));
        cram.env("SBTEST_VERSION", &version).env("SBTEST_VERSION_STRING", format!("sysbench {version}"));
        cram.env("SBTEST_HAS_MYSQL", "yes").env("SBTEST_HAS_PGSQL", "yes");
        cram.env("SBTEST_MYSQL_ARGS", mysql).env("SBTEST_PGSQL_ARGS", pgsql);
        cram.env("PGHOST", host.to_string()).env("PGPORT", port.to_string()).env("PGUSER", SUPERUSER);
        cram.env("SYSBENCH_REPORT_LAYOUT", if is_1_0 { "1.0" } else { "1.1" });
        cram.output().expect("cram; pip install cram").status.success()
    }

    fn admin(&self) -> Admin {
        let target = Target {
            address: Address::Socket(self.postgresql.socket()),
            user: SUPERUSER.into(),
            password: Secret::default(),
            database: Some("postgres".into()),
            tls: Tls::Off,
        };
        Admin::connect(&target, Duration::from_secs(30)).unwrap()
    }
}

#[test]
#[needs(ExternalLibrary(CHECKOUT), Sysbench, MariaDb, PostgreSql)]
fn sysbench_suite_passes_wherever_the_installed_sysbench_does() {
    let tests = PathBuf::from(std::env::var_os(CHECKOUT.variable).unwrap()).canonicalize().unwrap().join("tests");
    let names = std::fs::read_dir(tests.join("t")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<String> = names
        .filter(|path| path.extension().is_some_and(|extension| extension == "t"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort_unstable();
    let suite =
        Suite { place: TestDir::new(), tests, mariadb: Existing::start(&[]), postgresql: PostgreSql::start(&[], &[]) };
    let theirs = suite.passes("theirs", Path::new("/usr/bin/sysbench"), &files);
    let ours = suite.passes("ours", Path::new(env!("CARGO_BIN_EXE_rumba")), &files);
    let count = |passed: &[bool]| passed.iter().filter(|&&passed| passed).count();
    println!("of {} files sysbench passes {}, rumba {}", files.len(), count(&theirs), count(&ours));
    let mut lost = Vec::new();
    for ((file, theirs), ours) in files.iter().zip(&theirs).zip(&ours) {
        println!("{file}: sysbench {theirs}, rumba {ours}");
        if *theirs && !ours && !DIFFERS.contains(&file.as_str()) {
            lost.push(file);
        }
    }
    assert!(lost.is_empty() && count(&theirs) > 0, "{lost:?}: see the .err files that cram writes");
}
