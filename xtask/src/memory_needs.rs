//! `xtask memory-needs`: the memory that each build of an engine needs besides its cache.
//!
//! Five runs in a large memory group show the memory of its processes, and its growth with the cache, the data, the
//! loaders and the clients. Then groups of decreasing size show the smallest possible one. The table is compiled into
//! the engines, which refuse a smaller limit.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use rumba_results::condition;
use serde_json::Value;

const TABLE: &str = "engines/memory-needs.txt";
#[derive(Clone, Copy)]
struct Build {
    name: &'static str,
    engine: &'static str,
    server: Option<&'static str>,
    /// The workload.
    work: Work,
}

/// The workload of a build; both have the same number of bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    LinkBench,
    /// For an engine without transactions.
    Ycsb,
}

const fn embedded(name: &'static str) -> Build {
    Build { name, engine: name, server: None, work: Work::LinkBench }
}

const fn served(name: &'static str, engine: &'static str, server: &'static str) -> Build {
    Build { server: Some(server), ..Build { name, ..embedded(engine) } }
}

const BUILDS: [Build; 15] = [
    embedded("rocksdb"),
    embedded("wiredtiger"),
    embedded("lmdb"),
    embedded("sqlite"),
    Build { work: Work::Ycsb, ..embedded("bf-tree") },
    embedded("fractal-tree"),
    served("innodb/mariadb-10.11", "innodb", "mariadb@10.11"),
    served("myrocks/mariadb-10.11", "myrocks", "mariadb@10.11"),
    served("innodb/mariadb-11.8", "innodb", "mariadb@11.8"),
    served("myrocks/mariadb-11.8", "myrocks", "mariadb@11.8"),
    served("innodb/mysql-5.6", "innodb", "mysql@5.6"),
    served("innodb/mysql-9.7", "innodb", "mysql@9.7"),
    served("postgresql/postgresql-15", "postgresql", "postgresql@15"),
    served("postgresql/postgresql-18", "postgresql", "postgresql@18"),
    served("tokudb/mariadb-10.5", "tokudb", "mariadb-tokudb@10.5"),
];
/// A group in which nothing is short, MiB.
const ROOMY: f64 = 3072.0;
/// The smallest group that an experiment may request, MiB.
const LEAST: f64 = 16.0;
/// Groups tried between one that was too small and one that was not.
const STEPS: usize = 4;
/// A group is large enough if load and operations reach this share of the large group's speed.
const SANE: f64 = 0.5;
/// LinkBench's data of 50,000 and of 200,000 ids, MiB: the condition `data, logical`.
const DATA: [f64; 2] = [39.3, 169.7];
/// Bytes of YCSB's default record: ten fields and a key.
const RECORD: f64 = 1023.0;
/// Growth per additional byte; less is taken for chance.
const SEEN: f64 = 0.1;

const HEAD: &str = "\
# The memory that each build needs in addition to its cache, MiB. `cargo run -p xtask -- memory-needs` writes this file, and
# the engines read it.
#
# processes    memory of all processes of the trial, private and shared, sampled once a second; the maximum with 50,000 ids,
#              16 MiB of cache, one loader and one client; cache: with 48 MiB; data: with 200,000 ids; loaders: with 8;
#              clients: with 64
# group        the smallest memory group in which LinkBench (50,000 ids, 16 MiB of cache, 4 loaders, 16 clients) loaded and
#              ran at half of its speed in a large group; below: the largest group that was too small, and the outcome there
# per cache    bytes for each byte of cache, including the cache; 0 for engines without a cache
# per data     bytes for each byte of the workload's data beyond that of 50,000 ids
# per loader   MiB for each; per client: likewise
# base         the group, minus the shares of cache, loaders and clients
#
# bf-tree has no transactions, so it runs YCSB's workload A with records of the same total size.
#
# build | base | per cache | per data | per loader | per client | version | processes | cache | data | loaders |
# clients | group | below
";

/// The amount of data: the first or the second of [`DATA`].
#[derive(Clone, Copy)]
enum Data {
    Small,
    Large,
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Work::LinkBench => "linkbench",
            Work::Ycsb => "ycsb",
        }
    }

    /// The setting for this amount of data.
    fn size(self, data: Data) -> String {
        match (self, data) {
            (Work::LinkBench, Data::Small) => "maxid1=50000".to_owned(),
            (Work::LinkBench, Data::Large) => "maxid1=200000".to_owned(),
            (Work::Ycsb, data) => format!("recordcount={:.0}", DATA[data as usize] * 1_048_576.0 / RECORD),
        }
    }
}

/// The parameters of a run.
#[derive(Clone, Copy)]
struct Shape {
    data: Data,
    memory: f64,
    cache: f64,
    loaders: u32,
    clients: u32,
}

/// The results of a run.
struct Outcome {
    version: String,
    processes: f64,
    load_per_s: f64,
    ops_per_s: f64,
    /// Why it failed, if it did.
    failure: Option<String>,
}

/// The measurements of a build, in MiB.
struct Measured {
    name: String,
    version: String,
    processes: f64,
    cache: f64,
    data: f64,
    loaders: f64,
    clients: f64,
    group: f64,
    below: String,
}

impl Measured {
    /// Out of a line of the table.
    fn of(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |place: usize| words.get(place)?.parse().ok();
        Some(Self {
            name: (*words.first()?).to_owned(),
            version: (*words.get(6)?).to_owned(),
            processes: number(7)?,
            cache: number(8)?,
            data: number(9)?,
            loaders: number(10)?,
            clients: number(11)?,
            group: number(12)?,
            below: words.get(13..)?.join(" "),
        })
    }

    /// The line of the table: first the derived figures, which the engines read.
    fn line(&self) -> String {
        let Self { name, version, group, below, .. } = self;
        // The derived figures must follow from the rounded ones that the table shows, because `--fit` has only those.
        let [processes, cache, data, loaders, clients] =
            [self.processes, self.cache, self.data, self.loaders, self.clients].map(f64::round);
        let growth = |more: f64, over: f64| ((more - processes) / over).max(0.0);
        // An engine without its own cache does not need the setting, but a cache that was not full may still grow.
        let per_cache = match growth(cache, 32.0) {
            none if none < SEEN => 0.0,
            some => some.max(1.0),
        };
        // A smaller growth comes from buffers that were not full with the smaller data.
        let per_data = Some(growth(data, DATA[1] - DATA[0])).filter(|growth| *growth >= SEEN).unwrap_or_default();
        let (per_loader, per_client) = (growth(loaders, 7.0), growth(clients, 63.0));
        let base = group - 16.0 * per_cache - (4.0 * per_loader).max(16.0 * per_client);
        format!(
            "{name:<22} {:>4.0} {per_cache:>5.2} {per_data:>5.2} {per_loader:>6.2} {per_client:>5.2} {version:>10} \
             {processes:>6.0} {cache:>6.0} {data:>6.0} {loaders:>6.0} {clients:>6.0} {group:>5.0} {below}",
            base.max(1.0).ceil(),
        )
    }
}

/// Measures the named builds, or all whose library is available, and writes the table. With `--fit` alone, it only
/// derives figures from stored measurements.
///
/// # Errors
/// A build that does not run in a large group, or a table that cannot be written.
pub fn measure(root: &Path, named: &[&str]) -> Result<(), Box<dyn Error>> {
    unknown(named)?;
    let path = root.join(TABLE);
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let mut all: Vec<Measured> = known.lines().filter(|line| !line.starts_with('#')).filter_map(Measured::of).collect();
    let wanted = |name: &str| named.is_empty() || named.contains(&name);
    // Named builds must be available.
    let here = if named.is_empty() { engines()? } else { Value::Null };
    for build in BUILDS.into_iter().filter(|build| wanted(build.name)) {
        if let Some(why) = missing(&here, build) {
            println!("{} is left out: {why}", build.name);
            continue;
        }
        let measured = measured(build)?;
        println!("{}", measured.line());
        all.retain(|known| known.name != build.name);
        all.push(measured);
        write(&path, &mut all)?;
    }
    write(&path, &mut all)
}

/// The program's list of engines.
fn engines() -> Result<Value, Box<dyn Error>> {
    let output = rumba()?.args(["engines", "--json"]).output()?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("rumba engines: {error}").into())
}

/// The missing library of an embedded build, and the remedy, as the program reports them.
fn missing(engines: &Value, build: Build) -> Option<String> {
    let engine = engines.as_array()?.iter().find(|engine| engine["name"] == build.engine)?;
    let missing = engine["missing"].as_object().filter(|_| build.server.is_none())?;
    Some(format!("{}; {}", missing.get("what")?.as_str()?, missing.get("install")?.as_str()?))
}

/// Refuses an unknown build's name, which would measure nothing silently.
fn unknown(named: &[&str]) -> Result<(), String> {
    let is_known = |name: &str| name == "--fit" || BUILDS.iter().any(|build| build.name == name);
    let Some(name) = named.iter().find(|name| !is_known(name)) else { return Ok(()) };
    let builds: Vec<&str> = BUILDS.iter().map(|build| build.name).collect();
    Err(format!("there is no build {name}; the builds are {}", builds.join(", ")))
}

fn write(path: &Path, all: &mut [Measured]) -> Result<(), Box<dyn Error>> {
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let lines: Vec<String> = all.iter().map(Measured::line).collect();
    Ok(std::fs::write(path, format!("{HEAD}{}\n", lines.join("\n")))?)
}

fn measured(build: Build) -> Result<Measured, Box<dyn Error>> {
    let (name, run) = (build.name, |shape| run(build, shape));
    let small = Shape { data: Data::Small, memory: ROOMY, cache: 16.0, loaders: 1, clients: 1 };
    let roomy = |shape: Shape| -> Result<Outcome, Box<dyn Error>> {
        let outcome = run(shape)?;
        match &outcome.failure {
            Some(why) => Err(format!("{name} does not run in a roomy group: {why}").into()),
            None => Ok(outcome),
        }
    };
    let least = roomy(small)?;
    let processes = |shape| Ok::<_, Box<dyn Error>>(roomy(shape)?.processes);
    let usual = Shape { loaders: 4, clients: 16, ..small };
    let best = roomy(usual)?;
    let (group, below) = smallest(|memory| run(Shape { memory, ..usual }), &best)?;
    Ok(Measured {
        name: name.to_owned(),
        version: least.version.split(['-', ' ']).next().unwrap_or_default().to_owned(),
        processes: least.processes,
        cache: processes(Shape { cache: 48.0, ..small })?,
        data: processes(Shape { data: Data::Large, ..small })?,
        loaders: processes(Shape { loaders: 8, ..small })?,
        clients: processes(Shape { clients: 64, ..small })?,
        group,
        below,
    })
}

/// The smallest group, MiB, that is large enough, and the largest that is not.
fn smallest(
    run: impl Fn(f64) -> Result<Outcome, Box<dyn Error>>,
    best: &Outcome,
) -> Result<(f64, String), Box<dyn Error>> {
    let (mut low, mut high) = (0.5 * best.processes, 1.6 * best.processes.max(LEAST));
    let mut below = "-".to_owned();
    for _ in 0..STEPS {
        let memory = (f64::midpoint(low, high)).max(LEAST).round();
        let outcome = run(memory)?;
        let speed = (outcome.load_per_s / best.load_per_s).min(outcome.ops_per_s / best.ops_per_s);
        match outcome.failure {
            None if speed >= SANE => high = memory,
            None => (low, below) = (memory, format!("{memory}: {:.0}% of the speed", speed * 100.0)),
            Some(why) => {
                let why = ["stalled", "killed"].into_iter().find(|word| why.starts_with(word)).unwrap_or("failed");
                (low, below) = (memory, format!("{memory}: {why}"));
            }
        }
        if memory <= LEAST {
            break;
        }
    }
    Ok((high.ceil(), below))
}

/// A short run in a memory group.
fn run(build: Build, shape: Shape) -> Result<Outcome, Box<dyn Error>> {
    let place = tempfile::tempdir()?;
    let out = place.path().join("out");
    let mut command = rumba()?;
    let Build { engine, server, work, .. } = build;
    command.args(["run", work.name(), "--quiet", "--allow-tight-memory", "--engine", engine, "--out"]).arg(&out);
    let Shape { data, memory, cache, loaders, clients } = shape;
    let sets = [
        work.size(data),
        "warmup=1s".to_owned(),
        "loops=1".to_owned(),
        "loop=4s".to_owned(),
        "verify=false".to_owned(),
        "stall=10s".to_owned(),
        format!("cache={cache:.0}MiB"),
        format!("memory={memory:.0}MiB"),
        format!("load_clients={loaders}"),
        format!("clients={clients}"),
    ];
    for set in sets.into_iter().chain(server.map(|server| format!("server={server}"))) {
        command.args(["--set", &set]);
    }
    let ran = command.env("XDG_STATE_HOME", place.path()).output()?;
    let report = rumba()?.args(["report", "--json"]).arg(&out).output()?;
    let report: Value = serde_json::from_slice(&report.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&ran.stderr)))?;
    let trial = &report["trials"][0];
    let rate = |name: &str| {
        let phases = trial["phases"].as_array().into_iter().flatten();
        let phase = phases.into_iter().find(|phase| phase["phase"] == name);
        phase.map_or(0.0, |phase| {
            let (ops, seconds) = (phase["ops"].as_f64(), phase["seconds"].as_f64());
            ops.zip(seconds).map_or(0.0, |(ops, seconds)| ops / seconds)
        })
    };
    let processes = trial["conditions"][condition::PEAK_OF_PROCESSES].as_str().and_then(mebibytes);
    Ok(Outcome {
        version: trial["version"].as_str().unwrap_or("unknown").to_owned(),
        processes: processes.unwrap_or_default(),
        load_per_s: rate("load"),
        ops_per_s: rate("loops"),
        failure: (trial["status"] != "done").then(|| trial["failure"]["cause"].as_str().unwrap_or_default().to_owned()),
    })
}

/// `137.7 MiB`, in the form of the conditions.
fn mebibytes(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "KiB" => 1.0 / 1024.0,
        "MiB" => 1.0,
        "GiB" => 1024.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// The program, built next to this one.
fn rumba() -> Result<Command, Box<dyn Error>> {
    let adjacent: PathBuf = std::env::current_exe()?.with_file_name("rumba");
    if !adjacent.exists() {
        return Err(format!("there is no {}: cargo build -p rumba", adjacent.display()).into());
    }
    Ok(Command::new(adjacent))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_available_persistent_engine_has_a_build() {
        let is_built = |engine: &str| BUILDS.iter().any(|build| build.engine == engine);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        // `null` keeps no data. For `mongodb` only SecantusDB may be available, whose figures are not MongoDB's.
        let without = ["null", "mongodb"];
        for entry in std::fs::read_dir(root.join("engines")).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let name = if name == "mysql" { "innodb" } else { &name };
            if entry.path().is_dir() && !without.contains(&name) {
                assert!(is_built(name), "{name} has no build");
            }
        }
    }

    #[test]
    fn build_without_its_library_is_skipped_with_the_reason() {
        let lacks = json!({ "what": "there is no libtree.so", "install": "export RUMBA_TREE=/path/to/libtree.so" });
        let engines = json!([{ "name": "tree", "missing": lacks }, { "name": "log", "missing": null }]);
        let why = "there is no libtree.so; export RUMBA_TREE=/path/to/libtree.so";
        assert_eq!(missing(&engines, embedded("tree")).as_deref(), Some(why));
        assert_eq!(missing(&engines, embedded("log")), None);
        // One server release may be available and another not; the run reports it.
        assert_eq!(missing(&engines, served("tree/server-1", "tree", "server@1")), None);
        assert_eq!(missing(&Value::Null, embedded("tree")), None, "named builds are not checked");
    }

    #[test]
    fn unnamed_builds_keep_their_lines_and_unknown_fail() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("engines")).unwrap();
        let lines = |table: &str| -> Vec<String> {
            table.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        };
        let table = include_str!("../../engines/memory-needs.txt");
        std::fs::write(root.path().join(TABLE), table).unwrap();
        measure(root.path(), &["--fit"]).unwrap();
        assert_eq!(lines(&std::fs::read_to_string(root.path().join(TABLE)).unwrap()), lines(table));
        let said = measure(root.path(), &["postgresql-15"]).unwrap_err().to_string();
        assert!(
            said.starts_with("there is no build postgresql-15; ") && said.contains("postgresql/postgresql-15"),
            "{said}"
        );
    }
}
