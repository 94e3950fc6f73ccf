//! `xtask aa`: the measured error rate of verdicts, with one engine compared with itself.
//!
//! A pair is one run of an engine against itself, four repeats of each side, with a tiny workload and short loops.
//! Every verdict of better, worse or differs is false. Pairs run in two modes: each repeat loads its own data, or the
//! four repeats of a side are starts of one load. Counts are kept in docs/aa.json, from which the table in
//! docs/error-rates.md is made.

mod binomial;
mod page;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rumba_results::comparison::{Comparison, Part};
use rumba_results::ratio::Change;
use serde_json::{Value, json};

use crate::bench::{Failure, output_of};

/// The engines to compare with themselves by default.
const ENGINES: [&str; 5] = ["innodb", "myrocks", "wiredtiger", "rocksdb", "postgresql"];
/// The default number of pairs of an engine in a mode.
const PAIRS: u32 = 20;
/// The counts, below the root.
const KEPT: &str = "docs/aa.json";

/// The unit that the repeats of a side are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Loads,
    /// Starts of one load.
    Kept,
}

impl Mode {
    const ALL: [Self; 2] = [Self::Loads, Self::Kept];

    fn name(self) -> &'static str {
        match self {
            Self::Loads => "loads",
            Self::Kept => "kept",
        }
    }

    /// The value of `run.repeats_from`.
    fn repeats_from(self) -> &'static str {
        match self {
            Self::Loads => "load",
            Self::Kept => "kept",
        }
    }
}

/// The requested pairs: `PAIRS=2 ENGINE=innodb,rocksdb MODE=loads --write`.
#[derive(Debug, PartialEq)]
struct Wanted {
    engines: Vec<String>,
    modes: Vec<Mode>,
    pairs: u32,
    write: bool,
}

impl Wanted {
    fn of(words: &[&str]) -> Result<Self, String> {
        let mut wanted = Self {
            engines: ENGINES.map(str::to_owned).to_vec(),
            modes: Mode::ALL.to_vec(),
            pairs: PAIRS,
            write: false,
        };
        for word in words {
            match word.split_once('=') {
                None if *word == "--write" => wanted.write = true,
                Some(("ENGINE", names)) => wanted.engines = names.split(',').map(str::to_owned).collect(),
                Some(("MODE", name)) => {
                    let mode = Mode::ALL.into_iter().find(|mode| mode.name() == name);
                    wanted.modes = vec![mode.ok_or_else(|| format!("unknown MODE `{name}`; give loads or kept"))?];
                }
                Some(("PAIRS", number)) => {
                    let pairs = number.parse().ok().filter(|pairs| *pairs > 0);
                    wanted.pairs =
                        pairs.ok_or_else(|| format!("invalid PAIRS `{number}`; expected a number such as 20"))?;
                }
                _ => return Err(format!("unknown argument `{word}`; known are ENGINE=, MODE=, PAIRS= and --write")),
            }
        }
        Ok(wanted)
    }
}

/// The number of verdicts, and the number of false ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    wrong: u64,
    all: u64,
}

impl Counted {
    fn add(&mut self, other: Self) {
        self.wrong += other.wrong;
        self.all += other.all;
    }
}

/// The kinds of headline metrics, in the order of the table.
const KINDS: [&str; 7] = ["throughput", "written", "reads", "CPU", "size", "p99", "load"];

fn kind_of(part: Part, metric: &str) -> &'static str {
    match metric {
        _ if part == Part::Load => "load",
        "ops_per_s" => "throughput",
        "data_bytes" => "size",
        name if name.starts_with("wkb_") => "written",
        name if name.starts_with("reads_") => "reads",
        name if name.ends_with(".p99_ms") => "p99",
        _ => "CPU",
    }
}

/// The results of the pairs of an engine in a mode.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cell {
    /// Pairs, and how many had a false verdict.
    pairs: Counted,
    kinds: BTreeMap<String, Counted>,
    /// The median over pairs and sides of the coefficient of variation of throughput.
    noise: Option<f64>,
}

impl Cell {
    /// Counts the comparisons of all pairs.
    fn of(comparisons: &[Comparison]) -> Self {
        let mut cell = Self::default();
        let mut noise = Vec::new();
        for comparison in comparisons {
            let mut of_pair = Counted::default();
            for row in &comparison.rows {
                for compared in row.metrics.iter().filter(|compared| compared.ratio.headline) {
                    if row.part == Part::Run && compared.ratio.metric == "ops_per_s" {
                        noise.extend([&compared.base, &compared.other].iter().filter_map(|one| Some(one.spread?.cv)));
                    }
                    if compared.ratio.p.is_none() {
                        continue;
                    }
                    let is_wrong = matches!(compared.ratio.change, Change::Better | Change::Worse | Change::Differs);
                    let one = Counted { wrong: is_wrong.into(), all: 1 };
                    cell.kinds.entry(kind_of(row.part, &compared.ratio.metric).to_owned()).or_default().add(one);
                    of_pair.add(one);
                }
            }
            cell.pairs.add(Counted { wrong: (of_pair.wrong > 0).into(), all: 1 });
        }
        noise.sort_unstable_by(f64::total_cmp);
        cell.noise = noise.get(noise.len() / 2).copied();
        cell
    }

    /// All verdicts, of any kind.
    fn verdicts(&self) -> Counted {
        self.kinds.values().fold(Counted::default(), |mut sum, kind| {
            sum.add(*kind);
            sum
        })
    }

    fn to_json(&self, engine: &str, mode: Mode) -> Value {
        let counted = |one: &Counted| json!({ "false": one.wrong, "of": one.all });
        let kinds: serde_json::Map<String, Value> =
            self.kinds.iter().map(|(kind, one)| (kind.clone(), counted(one))).collect();
        json!({
            "engine": engine, "mode": mode.name(), "pairs": counted(&self.pairs), "verdicts": kinds,
            "throughput_cv": self.noise,
        })
    }

    fn from_json(value: &Value) -> Option<(String, Mode, Self)> {
        let counted = |one: &Value| Some(Counted { wrong: one["false"].as_u64()?, all: one["of"].as_u64()? });
        let mode = Mode::ALL.into_iter().find(|mode| Some(mode.name()) == value["mode"].as_str())?;
        let kinds = value["verdicts"].as_object()?.iter();
        let kinds = kinds.map(|(kind, one)| Some((kind.clone(), counted(one)?))).collect::<Option<_>>()?;
        let cell = Self { pairs: counted(&value["pairs"])?, kinds, noise: value["throughput_cv"].as_f64() };
        Some((value["engine"].as_str()?.to_owned(), mode, cell))
    }
}

/// The known results, by engine and mode in the order of the table.
type Cells = Vec<(String, Mode, Cell)>;

/// Runs the requested pairs that this build has not run yet, and prints the table. With `--write` it stores the counts
/// and puts the table into docs/error-rates.md. Returns whether verdicts over loads keep their level.
///
/// # Errors
/// A run that fails, with its directory; a page without the place for the table.
pub fn run(root: &Path, words: &[&str]) -> Result<bool, Failure> {
    let wanted = Wanted::of(words)?;
    let program = program(root)?;
    let commit = output_of(Command::new("git").current_dir(root).args(["rev-parse", "--short=12", "HEAD"]))?;
    let results = root.join("results/aa").join(commit.trim());
    let mut cells = known(root)?;
    for engine in &wanted.engines {
        for &mode in &wanted.modes {
            let mut comparisons = Vec::new();
            for pair in 1..=wanted.pairs {
                let directory = results.join(format!("{engine}-{}/{pair:02}", mode.name()));
                comparisons.push(compared(&program, engine, mode, &directory)?);
                reported(&format!("{engine}, {}: {pair} of {} pairs", mode.name(), wanted.pairs));
            }
            let cell = Cell::of(&comparisons);
            println!("{}", page::line(engine, mode, &cell));
            cells.retain(|(known, of, _)| (known, of) != (engine, &mode));
            cells.push((engine.clone(), mode, cell));
            if wanted.write {
                page::write(root, &mut cells)?;
            }
        }
    }
    let of_loads = page::all_of(&cells, Mode::Loads);
    let (low, _) = binomial::interval(of_loads.wrong, of_loads.all);
    Ok(low <= binomial::LEVEL)
}

/// A line that the next one overwrites on a terminal.
fn reported(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{line}");
    } else {
        eprintln!("{line}");
    }
}

/// The rumba to run: the release build, or else the one next to this program.
fn program(root: &Path) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?.parent().map(|directory| directory.join("rumba"));
    let candidates = [own, Some(root.join("target/release/rumba"))];
    let found = candidates.into_iter().flatten().find(|path| path.exists());
    found.ok_or_else(|| "there is no rumba next to this program; run cargo build --release -p rumba".into())
}

/// The stored results of earlier runs.
fn known(root: &Path) -> Result<Cells, Failure> {
    let Ok(text) = std::fs::read_to_string(root.join(KEPT)) else { return Ok(Vec::new()) };
    let kept: Value = serde_json::from_str(&text).map_err(|error| format!("{KEPT}: {error}"))?;
    let cells = kept["cells"].as_array().into_iter().flatten();
    let cells = cells.map(|cell| Cell::from_json(cell).ok_or_else(|| format!("{KEPT}: `{cell}` is no cell")));
    Ok(cells.collect::<Result<_, _>>()?)
}

/// The comparison of a pair, which runs unless its directory has a finished run.
fn compared(program: &Path, engine: &str, mode: Mode, directory: &Path) -> Result<Comparison, Failure> {
    if let Some(comparison) = finished(program, directory) {
        return Ok(comparison);
    }
    if directory.exists() {
        // A pair that was interrupted. The directory holds no other files.
        std::fs::remove_dir_all(directory)?;
    }
    let place = tempfile::tempdir()?;
    let file = place.path().join("aa.toml");
    std::fs::write(&file, experiment(engine, mode))?;
    std::fs::create_dir_all(directory.parent().unwrap_or(directory))?;
    output_of(Command::new(program).args(["run", "--quiet", "--json", "--out"]).arg(directory).arg(&file))?;
    finished(program, directory)
        .ok_or_else(|| format!("{}: the pair did not end as planned", directory.display()).into())
}

/// The comparison of a finished pair: every trial ended, and every headline was compared.
fn finished(program: &Path, directory: &Path) -> Option<Comparison> {
    if !directory.exists() {
        return None;
    }
    let text = output_of(Command::new(program).arg("report").arg(directory).arg("--json")).ok()?;
    let report: Value = serde_json::from_str(&text).ok()?;
    let is_done = |trial: &Value| trial["status"] == "done";
    let trials = report["trials"].as_array().filter(|trials| !trials.is_empty() && trials.iter().all(is_done))?;
    let runs = trials.iter().filter(|trial| trial["part"] != "load").count();
    let comparison: Comparison = serde_json::from_value(report["comparison"].clone()).ok()?;
    (runs == 8 && comparison.rows.iter().any(|row| row.part == Part::Run)).then_some(comparison)
}

/// An experiment with one engine against itself. The data is larger than the cache, so that loads can differ in the
/// cost of reads.
fn experiment(engine: &str, mode: Mode) -> String {
    format!(
        r#"name = "aa-{engine}-{mode}"
[workload.linkbench]
profile = "2017"
maxid1 = 10_000
[common]
cache = "8MiB"
durability = "no-sync"
[run]
aa = true
load_clients = 2
clients = [2]
warmup = "100ms"
loops = 1
loop = "1s"
interval = "100ms"
repeats = 4
repeats_from = "{repeats_from}"
verify = false
[ab]
base = ["a"]
other = ["b"]
[[engine]]
name = "a"
use = "{engine}"
[[engine]]
name = "b"
use = "{engine}"
"#,
        mode = mode.name(),
        repeats_from = mode.repeats_from()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_name_engines_mode_and_pairs() {
        let all = Wanted::of(&[]).ok();
        assert_eq!(all.map(|all| (all.engines.len(), all.modes.len(), all.pairs)), Some((5, 2, 20)));
        let some = Wanted::of(&["ENGINE=innodb,rocksdb", "MODE=kept", "PAIRS=2", "--write"]);
        let engines = vec!["innodb".to_owned(), "rocksdb".to_owned()];
        assert_eq!(some, Ok(Wanted { engines, modes: vec![Mode::Kept], pairs: 2, write: true }));
        for wrong in ["MODE=both", "PAIRS=0", "PAIRS=many", "innodb"] {
            assert!(Wanted::of(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn kept_cells_round_trip() {
        let mut cell = Cell { pairs: Counted { wrong: 1, all: 20 }, noise: Some(0.03), ..Cell::default() };
        cell.kinds.insert("p99".to_owned(), Counted { wrong: 1, all: 60 });
        let json = cell.to_json("innodb", Mode::Kept);
        assert_eq!(Cell::from_json(&json), Some(("innodb".to_owned(), Mode::Kept, cell)));
        assert!(Cell::from_json(&json!({ "engine": "innodb" })).is_none());
    }

    #[test]
    fn every_headline_has_a_kind() {
        let run = [
            ("ops_per_s", "throughput"),
            ("wkb_per_op_with_drain", "written"),
            ("reads_per_op", "reads"),
            ("cpu_us_per_op_with_drain", "CPU"),
            ("data_bytes", "size"),
            ("get_node.p99_ms", "p99"),
        ];
        for (metric, kind) in run {
            assert_eq!(kind_of(Part::Run, metric), kind);
        }
        assert_eq!(kind_of(Part::Load, "ops_per_s"), "load");
    }
}
