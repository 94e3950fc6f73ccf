//! Clients on several hosts. Each host is a network namespace, and a bridge connects them.
#![allow(clippy::unwrap_used)] // A test says what it expects by unwrapping it.

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;
#[path = "fleet/network.rs"]
mod network;

use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{TestDir, kill, text};
use network::{COORDINATOR, Network, in_network};
use rumba_null_server::{Config, Listen, NullServer};
use rumba_protocol_mysql::{Address, Admin, Secret, Target, Tls};
use rumba_testkit::mariadb::{Installed, MariaDb, PROGRAM};
use serde_json::Value;

const PASSWORD: &str = "secret-of-the-test";
const TOKEN: &str = "token-of-the-test";
/// Longer than any machine needs, so that only a hang fails a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The statements that make the user of the runs.
fn users() -> String {
    format!("CREATE USER lab@'%' IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO lab@'%';\n")
}

fn mariadb() -> (MariaDb, String) {
    let installed = Installed::new();
    let first = installed.directory().join("first.sql");
    std::fs::write(&first, users()).unwrap();
    let options = ["--skip-networking=0", "--bind-address=10.77.0.1", "--port=3306"].map(str::to_owned);
    let server = installed.start(&[&options[..], &[format!("--init-file={}", first.display())]].concat());
    (server, "use = \"innodb\"\nserver = \"mysql://lab@10.77.0.1:3306/lab\"".to_owned())
}

/// An experiment over a server that the hosts reach.
fn experiment(place: &TestDir, workload: &str, run: &str, fleet: &str, engine: &str) {
    let file = format!(
        "name = \"fleet\"\n[workload.{workload}\n[run]\nload_clients = 5\nwarmup = \"500ms\"\nloops = 1\n{run}\n\
         [fleet]\nhosts = 3\naddress = \"{COORDINATOR}\"\n{fleet}\n[[engine]]\n{engine}\n"
    );
    std::fs::write(place.path("fleet.toml"), file).unwrap();
}

/// A run with its agents, by rank; all end with it.
struct Fleet<'a> {
    place: &'a TestDir,
    run: Child,
    agents: Vec<Child>,
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        for child in self.agents.iter_mut().chain([&mut self.run]) {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// Gives a process the secrets of the test.
fn with_secrets(command: &mut Command) -> &mut Command {
    command.env("RUMBA_MYSQL_PASSWORD", PASSWORD).env("RUMBA_FLEET_TOKEN", TOKEN);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

fn agent(network: &Network, rank: u32) -> Command {
    let mut command = network.on_host(rank, env!("CARGO_BIN_EXE_rumba"));
    command.args(["agent", "--rank", &rank.to_string(), "--size", "3", "--coordinator"]);
    command.arg(format!("{COORDINATOR}:7331"));
    with_secrets(&mut command);
    command
}

impl<'a> Fleet<'a> {
    fn start(place: &'a TestDir, network: &Network) -> Self {
        let _ = std::fs::remove_dir_all(place.path("out"));
        let agents = (0..3).map(|rank| agent(network, rank).spawn().unwrap()).collect();
        let run = with_secrets(&mut place.rumba(&["run", "fleet.toml", "--out", "out"])).spawn().unwrap();
        Self { place, run, agents }
    }

    /// Waits until a second of the first trial's loop has been reported.
    fn in_loop(self) -> Self {
        self.in_loop_of("001-")
    }

    fn in_loop_of(mut self, trial: &str) -> Self {
        let until = Instant::now() + PATIENCE;
        loop {
            let reported = read(self.place, trial, "intervals.ndjson");
            if reported.is_some_and(|intervals| intervals.contains("\"loop 1\"")) {
                return self;
            }
            let is_running = Instant::now() < until && self.run.try_wait().unwrap().is_none();
            assert!(is_running, "{}", self.words());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Kills the run and its agents, and returns their output.
    fn words(&mut self) -> String {
        let outputs = self.agents.iter_mut().chain([&mut self.run]).map(|child| {
            let _ = child.kill();
            text(&output(child))
        });
        outputs.collect::<Vec<_>>().join("\n")
    }

    /// Waits for the end of the run; returns its output, and those of the agents.
    fn end(mut self) -> (Output, Vec<Output>) {
        let pid = self.run.id();
        let finished = |child: &mut Child| {
            let until = Instant::now() + PATIENCE;
            while child.try_wait().unwrap().is_none() {
                assert!(Instant::now() < until, "{pid} does not end");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        finished(&mut self.run);
        self.agents.iter_mut().for_each(finished);
        (output(&mut self.run), self.agents.iter_mut().map(output).collect())
    }
}

/// The output of a process that has ended.
fn output(child: &mut Child) -> Output {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    std::io::copy(child.stdout.as_mut().unwrap(), &mut stdout).unwrap();
    std::io::copy(child.stderr.as_mut().unwrap(), &mut stderr).unwrap();
    Output { status: child.wait().unwrap(), stdout, stderr }
}

/// A file of the trial whose directory begins with this number.
fn read(place: &TestDir, number: &str, file: &str) -> Option<String> {
    let mut trials = std::fs::read_dir(place.path("out/trials")).ok()?.flatten();
    let trial = trials.find(|trial| trial.file_name().to_string_lossy().starts_with(number))?;
    std::fs::read_to_string(trial.path().join(file)).ok()
}

/// The record of the first trial.
fn record(place: &TestDir) -> Value {
    serde_json::from_str(&read(place, "001-", "record.json").unwrap()).unwrap()
}

/// A workload, and how it runs.
type Work<'a> = (&'a str, &'a str);
const WORKS: [Work<'_>; 4] = [
    ("sysbench]\nscript = \"oltp_read_write\"\ntables = 3\ntable-size = 1000", "clients = 7\nloop = \"1s\""),
    ("linkbench]\nmaxid1 = 2000", "clients = 8\nloop = \"1s\"\nrate = 500"),
    ("tpcc]\nwarehouses = 2\ncustomers = 100\nitems = 100", "clients = 2\nloop = \"1s\""),
    // Clients prefer the records that they have inserted.
    (
        "ycsb]\nrecordcount = 3000\nprofile = \"d\"\nreadproportion = 0.5\nupdateproportion = 0.3\n\
         insertproportion = 0.2",
        "clients = 7\nloop = \"1s\"",
    ),
];

/// A user's own script. One loader fills the table, and each client changes its own key.
const SCRIPT: &str = r#"
function prepare()
   local kv = rumba.kv()
   for key = 1, 100 do kv:put("key" .. key, "0") end
end
function thread_init() kv = rumba.kv() end
function event()
   assert(kv:get("key" .. sysbench.tid + 1) == "0")
   kv:put("own" .. sysbench.tid, tostring(sysbench.opt.threads))
end
"#;

/// Runs workloads from three hosts. Their verification compares all acknowledged writes with the tables.
fn runs_verified(network: &Network, engine: &str, works: &[Work<'_>]) {
    let place = TestDir::new();
    for (workload, run) in works {
        experiment(&place, workload, run, "", engine);
        let (output, agents) = Fleet::start(&place, network).end();
        // A busy machine suspends a measurement. Its counts are as exact as any other's.
        let is_suspended = text(&output).contains("suspended while measured");
        assert!(output.status.success() || is_suspended, "{workload}: {}", text(&output));
        for (rank, agent) in agents.iter().enumerate() {
            assert!(agent.status.success() && text(agent).contains("the run has ended"), "{rank}: {}", text(agent));
        }
        let record = record(&place);
        assert_eq!(record["status"]["state"], if is_suspended { "suspended" } else { "done" }, "{workload}");
        let phase =
            |name: &str| record["phases"].as_array().unwrap().iter().find(|phase| phase["phase"] == name).unwrap();
        let checks = phase("verify")["checks"].as_array().map_or(&[][..], Vec::as_slice);
        // A user's script has no checks.
        assert!(
            checks.is_empty() == workload.starts_with("lua") && checks.iter().all(|check| check["wrong"] == 0),
            "{workload}: {checks:?}"
        );
        assert!(phase("load")["ops"].as_u64().unwrap() > 0);
        let number = |value: &Value| value.as_u64().unwrap();
        let late = phase("loops")["op_types"].as_object().unwrap().values();
        let late: u64 = late.filter_map(|op| op["ended_late"].as_u64()).sum();
        let hosts = record["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), 3);
        let of_hosts: u64 = hosts.iter().map(|host| number(&host["ops"])).sum();
        let of_phases = number(&phase("warmup")["ops"]) + number(&phase("loops")["ops"]) + late;
        // TPC-C's rolled-back orders are no operations of a phase.
        assert!(
            of_hosts == of_phases || workload.starts_with("tpcc") && of_hosts >= of_phases,
            "{of_hosts} {of_phases}"
        );
        let clients: u64 = hosts.iter().map(|host| number(&host["clients"])).sum();
        assert_eq!(clients, number(&record["plan"]["clients"]));
        assert!(hosts.iter().all(|host| host["missing_frames"] == 0 && host["lost"].is_null()), "{hosts:?}");
        assert_eq!(hosts[2]["name"], "n3");
        let report = place.rumba(&["report", "--json", "out"]).output().unwrap();
        let trial = serde_json::from_slice::<Value>(&report.stdout).unwrap()["trials"][0].clone();
        assert_eq!(trial["hosts"], record["hosts"]);
    }
    assert!(place.is_clean());
}

#[test]
#[needs(NetworkNamespaces, MariaDb)]
fn three_hosts_run_workloads_over_mariadb_verified() {
    in_network(|network| {
        let (_server, engine) = mariadb();
        runs_verified(network, &engine, &WORKS);
        let place = TestDir::new();
        std::fs::write(place.path("own.lua"), SCRIPT).unwrap();
        let own = format!("lua]\nscript = \"{}\"", place.path("own.lua").display());
        runs_verified(network, &engine, &[(&own, "clients = 7\nloop = \"1s\"")]);
    });
}

/// An experiment of minutes at a rate that leaves the machine to others.
fn long(place: &TestDir, fleet: &str, engine: &str) {
    let script = "sysbench]\nscript = \"oltp_read_write\"\ntables = 3\ntable-size = 100";
    experiment(place, script, "clients = 6\nrate = 60\nloop = \"5m\"", fleet, engine);
}

fn sessions(server: &MariaDb) -> usize {
    let address = Address::Socket(server.socket());
    let (user, password) = ("root".to_owned(), Secret::new(String::new()));
    let target = Target { address, user, password, database: None, tls: Tls::Off };
    let mut admin = Admin::connect(&target, PATIENCE).unwrap();
    let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'lab'";
    admin.query(sql).unwrap().rows.len()
}

#[test]
#[needs(NetworkNamespaces, MariaDb)]
fn lost_agent_or_coordinator_ends_the_run_and_leaves_nothing() {
    in_network(|network| {
        let (server, engine) = mariadb();
        let place = TestDir::new();
        long(&place, "", &engine);
        // A run that cannot listen is refused before it creates anything.
        for (token, address, reason) in [
            ("", COORDINATOR, "the fleet's token has 0 characters"),
            (TOKEN, "10.99.99.99", "cannot listen on 10.99.99.99:7331"),
        ] {
            let set = format!("fleet.address={address}");
            let mut run = place.rumba(&["run", "fleet.toml", "--out", "out", "--set", &set]);
            let output = with_secrets(&mut run).env("RUMBA_FLEET_TOKEN", token).output().unwrap();
            assert!(output.status.code() == Some(2) && !place.path("out").exists(), "{}", text(&output));
            assert!(text(&output).replace("\n  │", "").contains(reason), "{}", text(&output));
        }
        let fleet = Fleet::start(&place, network).in_loop();
        kill("-KILL", fleet.agents[1].id());
        let (output, _) = fleet.end();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let cause = record(&place)["status"]["cause"].as_str().unwrap().to_owned();
        assert!(
            cause.contains("the client host n2 (rank 1) was lost") && cause.contains("closed the connection"),
            "{cause}"
        );

        let fleet = Fleet::start(&place, network).in_loop();
        kill("-KILL", fleet.run.id());
        let (_, agents) = fleet.end();
        for agent in &agents {
            assert_eq!(agent.status.code(), Some(1), "{}", text(agent));
            assert!(text(agent).contains("the connection to the coordinator broke"), "{}", text(agent));
        }
        let until = Instant::now() + PATIENCE;
        while sessions(&server) > 0 {
            assert!(Instant::now() < until, "sessions are left");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

#[test]
#[needs(NetworkNamespaces, MariaDb)]
fn degraded_run_goes_on_without_lost_hosts_and_takes_them_back() {
    in_network(|network| {
        let (_server, engine) = mariadb();
        let place = TestDir::new();
        long(&place, "on_lost = \"degraded\"", &engine);
        let toml = std::fs::read_to_string(place.path("fleet.toml")).unwrap();
        std::fs::write(place.path("fleet.toml"), toml.replace("\"5m\"", "\"12s\"\nrepeats = 2")).unwrap();
        let mut fleet = Fleet::start(&place, network).in_loop();
        network.cut_off(1);
        kill("-STOP", fleet.agents[2].id());
        let until = Instant::now() + PATIENCE;
        let record = loop {
            let record = read(&place, "001-", "record.json").and_then(|text| serde_json::from_str(&text).ok());
            match record {
                Some(Value::Object(record))
                    if ["done", "suspended"].map(Value::from).contains(&record["status"]["state"]) =>
                {
                    break record;
                }
                _ => assert!(Instant::now() < until, "{}", fleet.words()),
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let hosts = record["hosts"].as_array().unwrap();
        let lost = |rank: usize| hosts[rank]["lost"].as_str().unwrap_or_default().to_owned();
        assert_eq!(lost(0), "");
        assert!(lost(1).contains("silent for 3 s") && lost(2).contains("silent for 3 s"), "{hosts:?}");
        assert!(hosts[1]["missing_frames"].as_u64().unwrap() > 0);
        let warnings = record["warnings"].as_array().unwrap();
        let message = |code: &str| {
            let found = warnings.iter().find(|warning| warning["code"] == code);
            found.map(|warning| warning["message"].as_str().unwrap().to_owned()).unwrap_or_default()
        };
        assert!(message("host-lost").contains("33% of all, offered no load"), "{warnings:?}");
        assert!(message("not-verified").contains("a client host was lost"), "{warnings:?}");
        // Both take part in the next trial, which waits for all hosts.
        network.reconnect(1);
        kill("-CONT", fleet.agents[2].id());
        fleet.in_loop_of("002-");
    });
}

/// Slurm starts the agents, and they end with the run.
#[test]
#[needs(NetworkNamespaces, ThreeHosts, MariaDb)]
fn slurm_starts_the_agents_of_a_run() {
    let (place, installed) = (TestDir::new(), Installed::new());
    let dir = installed.directory();
    std::fs::write(dir.join("first.sql"), users()).unwrap();
    let script = "sysbench]\nscript = \"oltp_read_write\"\ntables = 3\ntable-size = 100";
    let engine = "use = \"innodb\"\nserver = \"mysql://lab@10.77.0.1:3306/lab\"";
    let fleet = "launcher = \"slurm\"\nport = 0\njob_time = \"5m\"";
    experiment(&place, script, "clients = 6\nrate = 60\nloop = \"1s\"", fleet, engine);
    let (dir, rumba) = (dir.display(), std::path::Path::new(env!("CARGO_BIN_EXE_rumba")));
    let commands = format!(
        "set -e\nexport XDG_STATE_HOME={0}/state\n\
         {PROGRAM} --no-defaults --user=root --datadir={dir}/data --socket={dir}/socket --bind-address=10.77.0.1 \
         --init-file={dir}/first.sql --innodb-log-file-size=16M > {dir}/log 2>&1 &\n\
         for try in $(seq 300); do [ -S {dir}/socket ] && break; sleep 0.1; done\n\
         {1} run fleet.toml --dry-run | grep srun\n{1} run fleet.toml --out out\n\
         cat out/agents.log\necho jobs: $(squeue -h | wc -l)\nkill %1\nwait %1 || true\n",
        place.path("").display(),
        rumba.display()
    );
    std::fs::write(place.path("script"), commands).unwrap();
    let mut cluster = Command::new(rumba_testkit::three_hosts::PROGRAM);
    cluster.arg(place.path("script")).arg(rumba.parent().unwrap()).current_dir(place.path(""));
    let output = cluster.env("RUMBA_MYSQL_PASSWORD", PASSWORD).output().unwrap();
    let words = text(&output);
    assert!(output.status.success(), "{words}");
    assert!(words.contains("srun -N3 -n3 --exclusive --no-kill -K0 --wait=0 --time=5"), "{words}");
    assert!(words.contains("jobs: 0") && words.matches("the run has ended").count() == 3, "{words}");
    let hosts = record(&place)["hosts"].as_array().unwrap().clone();
    let mut names: Vec<&str> = hosts.iter().map(|host| host["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["n1", "n2", "n3"]);
}

/// A run of a script over a server that answers after a fixed time; returns its document.
fn sysbench(place: &TestDir, words: &[&str]) -> Value {
    let server = format!("--mysql-socket={}", place.path("s").display());
    let mut run = place.rumba(&["sysbench", "oltp_read_write", "--tables=2", "--threads=7", "--events=700"]);
    run.args(["--time=0", "--rand-seed=3", "--histogram", "--report-interval=1", "--report-json=r.json", &server]);
    let output = with_secrets(run.args(words).arg("run")).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    serde_json::from_str(&std::fs::read_to_string(place.path("r.json")).unwrap()).unwrap()
}

#[test]
fn sysbench_on_three_hosts_counts_exactly_as_one_process() {
    let place = TestDir::new();
    let delay = Some(Duration::from_millis(1));
    let config = Config { delay, ..Config::new(Listen::Socket(place.path("s"))) };
    let _server = NullServer::start(&config).unwrap();
    let alone = sysbench(&place, &[]);
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap().port();
    let mut agents: Vec<Child> = (0..3)
        .map(|rank: u32| {
            let mut command = place.rumba(&["agent", "--size", "3", "--rank", &rank.to_string()]);
            command.args(["--coordinator", &format!("127.0.0.1:{port}")]);
            with_secrets(&mut command).spawn().unwrap()
        })
        .collect();
    let fleet = sysbench(&place, &[&format!("--fleet=3@127.0.0.1:{port}")]);
    for agent in &mut agents {
        let output = output(agent);
        assert!(output.status.success() && text(&output).contains("the run has ended"), "{}", text(&output));
    }
    for run in [&alone, &fleet] {
        let total = &run["total"];
        let histogram = total["histogram"].as_array().unwrap();
        let in_histogram: u64 = histogram.iter().map(|row| row["count"].as_u64().unwrap()).sum();
        assert_eq!((&total["events"], in_histogram), (&700.into(), 700), "{total}");
        // Each event has twenty statements, and no answer comes early.
        assert!(total["latency_ms"]["min"].as_f64().unwrap() >= 20.0, "{total}");
    }
    assert_eq!(alone["total"]["queries"]["total"], 700 * 20);
    for kind in ["read", "write", "other", "total"] {
        assert_eq!(alone["total"]["queries"][kind], fleet["total"]["queries"][kind], "{kind}");
    }
    assert!(!fleet["intervals"].as_array().unwrap().is_empty(), "{fleet}");
}

#[test]
fn unsupported_fleet_runs_are_refused_first() {
    let place = TestDir::new();
    let refused = |workload: &str, run: &str, engine: &str| {
        experiment(&place, workload, run, "", engine);
        let output = place.rumba(&["run", "fleet.toml", "--out", "out"]).output().unwrap();
        assert!(output.status.code() == Some(2) && !place.path("out").exists(), "{}", text(&output));
        text(&output).replace("│ ", "").split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let words = refused("linkbench]", "", "use = \"sqlite\"");
    assert!(words.contains("sqlite is embedded: its clients are threads of the trial's process"), "{words}");
    let words = refused("linkbench]", "verify = \"acid\"", "use = \"sqlite\"");
    assert!(words.contains("verify = \"acid\" needs clients in one process"), "{words}");
    let mistaken = place.rumba(&["run", "fleet.toml", "--set", "fleet.hosst=3"]).output().unwrap();
    assert!(text(&mistaken).contains("did you mean `fleet.hosts`?"), "{}", text(&mistaken));
}
