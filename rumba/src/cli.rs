//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rumba_statistics::Drift;

use crate::commands::agent::AgentArgs;
use crate::commands::doctor::DoctorArgs;
use crate::commands::null_server::NullServerArgs;

/// Which storage engine, with which settings, serves your workload with the
/// least hardware, and how do you know?
#[derive(Parser)]
#[command(
    name = "rumba",
    version,
    long_version = crate::build::version(),
    after_help = "\
Start here:
  rumba engines                              what can run on this machine
  rumba run quickstart                       four embedded engines in three minutes
  rumba run innodb-or-myrocks                which engine of MariaDB suits this host
  rumba run linkbench --engine rocksdb,lmdb --set maxid1=100000
  rumba ab before.toml after.toml            compare two experiments, with their trials in turns
  rumba report results/DIR --html page.html
  rumba run quickstart --live                a page that follows the run

Exit codes: 0 done; 1 a trial failed, broke its data or was suspended, or a search found no rate;
2 a mistake in the command or the experiment; 3 with --check, a claim does not hold or is not
decided, or with --fail-if, a change exceeds its limit; 130 interrupted, results kept."
)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Run an experiment, or a workload on named engines
    Run(RunArgs),
    /// Run two experiments in turns as one, and compare the second with the first
    Ab(AbArgs),
    /// List the published experiments, or run one and judge its claims
    Reproduce(ReproduceArgs),
    /// Show the results of one or more runs: tables, a page, or JSON
    Report(ReportArgs),
    /// Compare a run against a base, engine by engine, or the two sides of one run
    Compare(CompareArgs),
    /// Serve past results to a browser on this host: list, search, compare, tags and notes
    Serve(ServeArgs),
    /// Show how each metric changed across versions or commits
    History(HistoryArgs),
    /// List the engines: version, what is missing, the command that installs it; or install servers
    Engines(EnginesArgs),
    /// List the workloads and their settings
    Workloads(ListArgs),
    /// Check the host for settings that spoil benchmarks, and for leftovers of killed runs
    Doctor(DoctorArgs),
    /// Serve canned answers over the MySQL, PostgreSQL or MongoDB protocol, to measure a client's own overhead and
    /// timing accuracy
    NullServer(NullServerArgs),
    /// Run sysbench's tests and scripts with sysbench's command line: `rumba sysbench oltp_read_write --tables=4 run`
    #[command(disable_help_flag = true)]
    Sysbench {
        /// The arguments, as sysbench takes them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Run a share of another host's run: clients on several hosts
    Agent(AgentArgs),
    /// Start, list or stop managed servers for your own use, also on data that a run has kept
    Server(ServerArgs),
    /// Print shell completions: `rumba completions bash > ~/.local/share/bash-completion/completions/rumba`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages of all commands into a directory (used by `make package`)
    #[command(hide = true)]
    Man {
        /// The directory
        directory: PathBuf,
    },
    /// Write the reference pages of the documentation into a directory
    #[command(hide = true)]
    Reference {
        /// The directory
        directory: PathBuf,
    },
    /// Run the trial described on standard input (used by `run`)
    #[command(hide = true)]
    Trial,
    /// Supervise the server described on standard input (used by `server start`)
    #[command(hide = true)]
    Keep,
    /// Hold an instance open within its limits (used by `keep`)
    #[command(hide = true)]
    Hold,
    /// Report whether an engine can run the configuration on standard input (used by `run`)
    #[command(hide = true)]
    Probe,
    /// Serve the file of a volume, and delay its requests (used by `run` and `keep`)
    #[command(hide = true)]
    Delay,
    /// Measure rumba's own cost per operation of the workload on standard input (used by `run`)
    #[command(hide = true)]
    Harness,
}

/// Arguments of `run`.
#[derive(Args)]
#[command(after_help = "\
--set reaches every key of the experiment by its shortest unambiguous name:
  --set maxid1=100000          a setting of the workload
  --set clients=1,8            a list makes trials
  --set loops=3 --set loop=20s --set warmup=5s --set repeats=3 --set rate=5000
  --set cache=256MiB --set durability=sync
  --set rocksdb.write_buffer_size=8MiB         an engine's own setting, by its own name
  --set memory=1GiB --set cpus=0 --set storage=slow-ssd   limits: the share of the host for each trial
  --set cache=data/12 --set memory=data/4      sizes that grow with the workload's data
Engines may carry a compression: --engine rocksdb.zstd,wiredtiger.snappy
--against compares engines of one run, in turns:
  rumba run linkbench --engine rocksdb.zstd --against rocksdb.none
  rumba run linkbench --engine rocksdb.4MiB --against rocksdb.8MiB \\
    --set rocksdb.write_buffer_size=4MiB,8MiB
--detect plans by sensitivity: a short pilot estimates the repeats that find a difference.
  rumba run experiment.toml --detect 5%
--until-decided adds repeats until every headline is decided.
  rumba run experiment.toml --until-decided --at-most 12

Exit codes: 0 done; 1 a trial failed, broke its data or was suspended, or a search found no rate;
2 a mistake in the command or the experiment, or --check without a claim, or with one that so few
repeats never decide; 3 with --check, a claim fails, is not decided, or holds for this load only;
130 interrupted, results kept.")]
pub struct RunArgs {
    /// An experiment's .toml file, - for standard input, or the name of a workload or recipe (quickstart,
    /// innodb-or-myrocks)
    #[arg(required_unless_present = "resume")]
    pub experiment: Option<String>,
    /// Continue an interrupted run: keep finished trials and run the others
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "engine", "against", "set", "verify", "out", "dry_run", "until_decided"])]
    pub resume: Option<PathBuf>,
    /// With --resume: also run the failed trials again
    #[arg(long, requires = "resume")]
    pub retry_failed: bool,
    /// Compare each engine of --engine with this one, or with each of these; also runs them
    #[arg(long, value_name = "A,B", requires = "engine")]
    pub against: Vec<String>,
    /// Run a pilot of 3 repeats (or --set repeats=N). Then print how many repeats and minutes it takes to detect a
    /// difference of this size in nine of ten cases
    #[arg(long, value_name = "PERCENT", value_parser = difference, conflicts_with_all = ["resume", "dry_run", "check", "until_decided"])]
    pub detect: Option<f64>,
    /// How to run it
    #[command(flatten)]
    pub options: RunOptions,
}

/// Parses the difference to detect: `5%` is 0.05.
fn difference(text: &str) -> Result<f64, String> {
    let percent = text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    let percent = percent.filter(|percent| *percent > 0.0 && *percent <= 1000.0);
    percent.map(|percent| percent / 100.0).ok_or_else(|| "expected a percentage above 0 such as 5%".to_owned())
}

/// Arguments of `ab`.
#[derive(Args)]
#[command(after_help = "\
  rumba ab before.toml after.toml                          engines of the same name are compared
  rumba ab mine.toml mine.toml --set base/cache=64MiB --set other/cache=256MiB
  rumba compare results/DIR --fail-if 'ops_per_s < 0.95'   the same comparison again, as a gate

Trials of both files take turns, so changes of the host affect both. Engines, [common] and [limits]
may differ; the workload and [run] may not. Results name the engines base/NAME and other/NAME.
--engine and --set apply to both files, or to one with base/ or other/ before the name. The default
is four repeats, the fewest that can decide.")]
pub struct AbArgs {
    /// The base experiment's .toml file
    pub base: PathBuf,
    /// The .toml file of the experiment to compare with the base
    pub other: PathBuf,
    /// How to run them
    #[command(flatten)]
    pub options: RunOptions,
}

/// Arguments of `reproduce`.
#[derive(Args)]
#[command(after_help = "\
  rumba reproduce                              the published experiments and their claims
  rumba reproduce storage-tiers                run one at the scale of its experiment file
  rumba reproduce storage-tiers --set maxid1=5000000 --set repeats=3     larger, and with intervals
  rumba reproduce storage-tiers --dry-run      what would run")]
pub struct ReproduceArgs {
    /// The experiment; without it, list all of them
    pub name: Option<String>,
    /// How to run it
    #[command(flatten)]
    pub options: RunOptions,
}

/// How an experiment is run.
#[derive(Args)]
pub struct RunOptions {
    /// Only these engines of the experiment, or the engines to run a workload on
    #[arg(long, value_name = "A,B")]
    pub engine: Vec<String>,
    /// Change one key of the experiment; repeat the option for more keys
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Checks after each run: true checks the data; acid also checks atomicity, isolation and durability after a kill;
    /// false checks nothing
    #[arg(long, value_name = "WHAT", value_parser = ["true", "false", "acid"])]
    pub verify: Option<String>,
    /// Directory for the results; must be new or empty [default: results/NAME-TIMESTAMP]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Skip limits this host cannot enforce; the results carry a warning
    #[arg(long)]
    pub allow_unlimited: bool,
    /// Run although limits.memory is below the engine's measured need
    #[arg(long)]
    pub allow_tight_memory: bool,
    /// Add repeats until every headline is decided against the first engine, or for `ab` against the base. rumba tests
    /// after each repeat from the fifth on. It corrects for that: each verdict is wrong in at most 5 of 100 runs
    #[arg(long)]
    pub until_decided: bool,
    /// With --until-decided: stop after this many repeats, decided or not
    #[arg(long, value_name = "N", requires = "until_decided", default_value_t = 20)]
    pub at_most: u32,
    /// Exit with code 3 unless every claim of the experiment holds, or with 2 if it has no claims
    #[arg(long)]
    pub check: bool,
    /// With --check: accept a claim that held in its only repeat
    #[arg(long, alias = "accept-seen-once", requires = "check")]
    pub accept_single_run: bool,
    /// Print the trials that would run, with the disk, memory and time they need, or why they cannot run; run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Serve a live page of the run, with a stop button and past results; prints the address
    #[arg(long)]
    pub live: bool,
    /// With --live: the port on 127.0.0.1 [default: any that is free]
    #[arg(long, value_name = "PORT", requires = "live")]
    pub port: Option<u16>,
    /// Sample with perf where the server or the trial spends CPU in the loops; the page shows flame graphs
    #[arg(long)]
    pub profile: bool,
    /// Print the results, or the output of --dry-run, as JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for a terminal
    Table,
    /// One JSON document, with a schema in docs
    Json,
    /// Long flat columns for a data frame
    Csv,
    /// The findings and the headline table, for a pull request
    Markdown,
}

/// Arguments of `report`.
#[derive(Args)]
#[command(after_help = "\
  rumba report results/DIR --claim 'ops_per_s(\"lmdb\") >= 1.5 * ops_per_s(\"sqlite\")' --check
  rumba report results/DIR --format csv > figures.csv        a row per figure, for a data frame
  rumba report results/DIR --svg pictures                    every chart and table as a file
  rumba report results/DIR --format markdown >> $GITHUB_STEP_SUMMARY
  docs/claims.md has the language; after several directories engines are named ENGINE@DIR

Exit codes with --check: 1 a trial failed, was suspended, or its data failed its verification;
2 there is no claim to check; 3 a claim fails, is not decided, or holds for this load only
(repeats_from = \"kept\"); 0 otherwise.")]
pub struct ReportArgs {
    /// One or more results directories
    #[arg(required = true, value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// The page, its pictures, and the output format
    #[command(flatten)]
    pub output: OutputArgs,
    /// The engine that relative figures refer to [default: the first]
    #[arg(long, value_name = "ENGINE")]
    pub baseline: Option<String>,
    /// Also check this inequality against the results; repeat the option for more
    #[arg(long, value_name = "EXPR")]
    pub claim: Vec<String>,
    /// Compute costs with the [prices] of this file instead of the experiment's
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Show all warnings instead of only the worst
    #[arg(long)]
    pub warnings: bool,
    /// Explain the columns below each table
    #[arg(long)]
    pub legend: bool,
    /// Exit with code 3 unless every claim holds, with 1 if a trial failed, with 2 if there are no claims
    #[arg(long)]
    pub check: bool,
    /// With --check: accept a claim that held in its only repeat
    #[arg(long, alias = "accept-seen-once", requires = "check")]
    pub accept_single_run: bool,
}

/// Options for the page of results, its pictures, and the printed output.
#[derive(Args)]
pub struct OutputArgs {
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write every chart and table of the page to this directory as PNG; needs Chromium (RUMBA_BROWSER names another)
    #[arg(long, value_name = "DIR")]
    pub png: Option<PathBuf>,
    /// Write them as SVG; needs Chromium too
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Output format [default: table, or only the page and its pictures if you name them]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print JSON (docs/report.schema.json, docs/history.schema.json): --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl OutputArgs {
    /// Whether a page or pictures are to be written.
    pub fn writes_page(&self) -> bool {
        self.html.is_some() || self.png.is_some() || self.svg.is_some()
    }

    /// The format to print, if anything is to be printed.
    pub fn format(&self) -> Option<Format> {
        let chosen = if self.json { Some(Format::Json) } else { self.format };
        chosen.or((!self.writes_page()).then_some(Format::Table))
    }
}

/// Arguments of `compare`.
#[derive(Args)]
#[command(after_help = "\
  rumba compare results/AB                     the sides of `rumba ab`, or of `rumba run --against`
  rumba compare results/BASE results/DIR --fail-if 'ops_per_s < 0.95' --fail-if 'get_node.p99_ms > 1.2'
  rumba compare results/BASE results/DIR --format markdown        what changed, for a pull request

--fail-if takes METRIC < RATIO, the other run over the base: a metric of the loops, load_METRIC, or
OP.p99_ms. `worse` means any headline, with 5% of false alarms for all of them together. The exit
code is 3 if an engine meets the condition beyond the noise. An undecided ratio passes, unless you
give --fail-if-undecided. If the runs did not take turns, the condition must also
hold beyond --allow-drift, which is 0 for sizes.")]
pub struct CompareArgs {
    /// The base results; alone, a run that holds both sides
    pub base: PathBuf,
    /// The results to compare
    pub directory: Option<PathBuf>,
    /// Show every metric instead of only the headlines
    #[arg(long)]
    pub details: bool,
    /// Exit with code 3 if this condition holds for an engine; repeat the option for more conditions
    #[arg(long, value_name = "METRIC < RATIO | worse")]
    pub fail_if: Vec<String>,
    /// With --fail-if: also exit with code 3 if the condition is undecided or rests on a single run
    #[arg(long, requires = "fail_if")]
    pub fail_if_undecided: bool,
    /// With --fail-if: how far the host alone may move a ratio between runs that were not interleaved
    #[arg(long, value_name = "PERCENT", value_parser = Drift::parse, requires = "fail_if", default_value = "5%")]
    pub allow_drift: Drift,
    /// Output format [default: table]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print JSON (see docs/compare.schema.json): --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl CompareArgs {
    /// The format to print.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format.unwrap_or(Format::Table) }
    }
}

/// The key that orders the runs of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderBy {
    /// The engine's version, by its numbers
    Version,
    /// When rumba's commit was made
    Commit,
    /// When the run began
    Started,
}

/// Arguments of `history`.
#[derive(Args)]
#[command(after_help = "\
  rumba history results/9.2 results/10.1 results/10.2        one experiment, three versions
  rumba history results --by commit                          every run below a directory
  rumba history results --html history.html                  a chart of each metric over the runs
  rumba history baseline results/new --fail-if worse --format markdown >> \"$GITHUB_STEP_SUMMARY\"

Runs of an engine are ordered by its version, then by rumba's commit, then by start. Each run is
compared with the previous one as in `compare`, and change points over all runs are listed.
--fail-if compares each engine's last run with the one before. These runs did not take turns, so
exit code 3 needs a change beyond both the noise and --allow-drift.
docs/examples/benchmark.yml is a workflow that does this for each change of a repository.")]
pub struct HistoryArgs {
    /// Results directories, or their parent directories
    #[arg(required = true, value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// Order the runs by this key [default: the first of version, commit and start that differs]
    #[arg(long, value_name = "WHAT")]
    pub by: Option<OrderBy>,
    /// Exit with code 3 if this condition holds for an engine's last run: METRIC < RATIO, or worse; repeat the option
    /// for more conditions
    #[arg(long, value_name = "WHAT")]
    pub fail_if: Vec<String>,
    /// With --fail-if: also exit with code 3 if the condition is undecided or rests on a single run
    #[arg(long, requires = "fail_if")]
    pub fail_if_undecided: bool,
    /// With --fail-if: how far the host alone may move a ratio, because runs of a history are not interleaved
    #[arg(long, value_name = "PERCENT", value_parser = Drift::parse, requires = "fail_if", default_value = "5%")]
    pub allow_drift: Drift,
    /// The page, its pictures, and the output format
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Arguments of `serve`.
#[derive(Args)]
#[command(after_help = "\
In a browser:
  rumba serve                           results/: list, search, compare, tags and notes
  rumba serve /mnt/runs --port 8080     another directory, at a port of your choice
  rumba run quickstart --live           the same, with the page of the current run

The printed address contains a secret. Anyone with it can see everything; other requests are
refused. From another host: ssh -L 8080:127.0.0.1:8080 HOST, with --port 8080. Ctrl-C ends the
server. Tags and notes are stored in library.json with the results. See docs/live.md.")]
pub struct ServeArgs {
    /// The directory that holds the results directories
    #[arg(value_name = "DIR", default_value = "results")]
    pub directory: PathBuf,
    /// The port on 127.0.0.1 [default: any that is free]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

/// Arguments of `engines`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct EnginesArgs {
    /// The command to run instead of listing.
    #[command(subcommand)]
    pub command: Option<EnginesCommand>,
    /// The engine to list, and the format.
    #[command(flatten)]
    pub list: ListArgs,
}

/// The subcommands of `engines`.
#[derive(Subcommand)]
pub enum EnginesCommand {
    /// Install a server or a library into rumba's own cache, such as mysql@9.7 or rocksdb@10.4; needs no root
    Install {
        /// The server or library, as `rumba engines` lists it
        server: String,
    },
    /// Compile a server that no package has into rumba's own cache; prints time and disk space first, needs no root, and
    /// continues an interrupted build
    Build {
        /// The engine that the server is for: tokudb
        engine: String,
    },
}

/// Arguments of `server`.
#[derive(Args)]
#[command(after_help = "\
Servers that you can start:
  rumba server start mariadb@10.11 --engine myrocks   a release, an engine of it
  rumba server start postgresql --set cache=256MiB    an engine, and its settings
  rumba server start results/DIR                      a copy of kept data
  rumba server list
  rumba server stop myrocks

The server listens only on loopback and runs in the background, within the limits that you set or
that the trial had. When you stop it, rumba removes all of its files. Data that a run has kept
(keep_data = true) stays unchanged.

To see results in a browser instead, use `rumba serve`.")]
pub struct ServerArgs {
    /// The command to run
    #[command(subcommand)]
    pub command: ServerCommand,
}

/// The subcommands of `server`.
#[derive(Subcommand)]
pub enum ServerCommand {
    /// Start a server, and print its client's command line
    Start(ServerStartArgs),
    /// Stop servers and remove everything that was made for them
    Stop(ServerStopArgs),
    /// List the running servers
    List(ServerListArgs),
}

/// Arguments of `server start`.
#[derive(Args)]
pub struct ServerStartArgs {
    /// A release (mariadb@10.11), an engine (innodb, postgresql) or a results directory with kept data
    pub what: String,
    /// The engine of a release [default: its first]
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<String>,
    /// The trial whose data to start from, for a results directory
    #[arg(long, value_name = "TRIAL", conflicts_with_all = ["engine", "set"])]
    pub trial: Option<String>,
    /// Set a key, as in `rumba run`: cache=1GiB, memory=2GiB, storage=slow-ssd, or a variable of the server
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// The server's name [default: the engine or the trial]
    #[arg(long)]
    pub name: Option<String>,
    /// Parent directory for the server's data
    #[arg(long, value_name = "DIR", default_value = "servers")]
    pub data_dir: PathBuf,
    /// Skip limits this host cannot enforce
    #[arg(long)]
    pub allow_unlimited: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `server stop`.
#[derive(Args)]
pub struct ServerStopArgs {
    /// The servers' names, as `rumba server list` prints them
    #[arg(required_unless_present = "all")]
    pub names: Vec<String>,
    /// Stop all servers
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
}

/// Arguments of `server list`.
#[derive(Args)]
pub struct ServerListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `workloads`, and of `engines` when it lists.
#[derive(Args)]
pub struct ListArgs {
    /// Show the settings of this one only
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
