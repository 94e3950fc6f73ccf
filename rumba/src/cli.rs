//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use rumba_statistics::Drift;

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
  rumba run quickstart                       four embedded engines in two minutes
  rumba run innodb-or-myrocks                which engine of a server for this box
  rumba run linkbench --engine rocksdb,lmdb --set maxid1=100000
  rumba ab before.toml after.toml            two experiments in turns, and how they differ
  rumba report results/DIR --html page.html
  rumba run quickstart --live                a page of the run while it goes on

Exit codes: 0 done; 1 a trial failed, broke its data or was suspended, or a search found no rate;
2 a mistake in the command or the experiment; 3 a claim does not hold, is undecided or seen once
(--check), or what --fail-if names is so; 130 interrupted, results kept."
)]
pub struct Cli {
    /// What to do.
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
    /// Show what became of each figure from version to version, or from commit to commit
    History(HistoryArgs),
    /// List the engines: version, what is missing, the command that installs it; install servers
    Engines(EnginesArgs),
    /// List the workloads and their settings
    Workloads(ListArgs),
    /// Look for host settings that spoil benchmarks, and leftovers of killed runs
    Doctor(DoctorArgs),
    /// Serve fixed answers over the protocol of MySQL, PostgreSQL or MongoDB: what a client costs, and whether it tells time
    NullServer(NullServerArgs),
    /// Run sysbench's tests and scripts by its command line: `rumba sysbench oltp_read_write --tables=4 run`
    #[command(disable_help_flag = true)]
    Sysbench {
        /// What sysbench would be given
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Start a managed server to look into, also over what a run has kept, list and stop such servers
    Server(ServerArgs),
    /// Print the completions of a shell: `rumba completions bash > ~/.local/share/bash-completion/completions/rumba`
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
    /// Run one trial ordered on standard input (used by `run`)
    #[command(hide = true)]
    Trial,
    /// Keep the server ordered on standard input (used by `server start`)
    #[command(hide = true)]
    Keep,
    /// Hold an instance open within its limits (used by `keep`)
    #[command(hide = true)]
    Hold,
    /// Say whether an engine can run the configuration on standard input (used by `run`)
    #[command(hide = true)]
    Probe,
    /// Measure what rumba itself costs per operation of the workload on standard input (used by `run`)
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
  --set memory=1GiB --set storage=slow-ssd     limits: what of the host every trial gets
  --set cache=data/12 --set memory=data/4      sizes that grow with the workload's data
Engines may carry a compression: --engine rocksdb.zstd,wiredtiger.snappy
--against compares engines of one run, in turns:
  rumba run linkbench --engine rocksdb.zstd --against rocksdb.none
  rumba run linkbench --engine rocksdb.4MiB --against rocksdb.8MiB \\
    --set rocksdb.write_buffer_size=4MiB,8MiB
--detect plans by sensitivity: a short pilot says what it takes to find a difference.
  rumba run experiment.toml --detect 5%
--until-decided adds repeats until every headline is decided.
  rumba run experiment.toml --until-decided --at-most 12

Exit codes: 0 done; 1 a trial failed, broke its data or was suspended, or a search found no rate;
2 a mistake in the command or the experiment, or --check without a claim, or with one that so few
repeats never decide; 3 with --check, a claim fails, is undecided, seen once, or true for this load
only; 130 interrupted, results kept.")]
pub struct RunArgs {
    /// An experiment's .toml file, - for standard input, or the name of a workload or of a recipe (quickstart,
    /// innodb-or-myrocks)
    #[arg(required_unless_present = "resume")]
    pub experiment: Option<String>,
    /// Go on with an interrupted run: finished trials stay, the others run
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "engine", "against", "set", "verify", "out", "dry_run", "until_decided"])]
    pub resume: Option<PathBuf>,
    /// With --resume: run the failed trials again, too
    #[arg(long, requires = "resume")]
    pub retry_failed: bool,
    /// Compare the engines of --engine with this one, or each with one of these; runs it, too
    #[arg(long, value_name = "A,B", requires = "engine")]
    pub against: Vec<String>,
    /// Run a pilot of 3 repeats (or --set repeats=N), then print how many repeats and minutes it takes to detect such a
    /// difference in nine of ten cases
    #[arg(long, value_name = "PERCENT", value_parser = difference, conflicts_with_all = ["resume", "dry_run", "check", "until_decided"])]
    pub detect: Option<f64>,
    /// How it is run
    #[command(flatten)]
    pub options: RunOptions,
}

/// Reads the difference that is to be detected: `5%` is 0.05.
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

Trials of both take turns in one results directory, so that what the host does meets both. Engines,
[common] and [limits] may differ; the workload and [run] may not. In the results engines are called
base/NAME and other/NAME. --engine and --set hold for both files; base/ or other/ before the name
makes it one's own. Without `repeats` there are four, the fewest that can decide.")]
pub struct AbArgs {
    /// The experiment's .toml file to compare with
    pub base: PathBuf,
    /// The one to compare
    pub other: PathBuf,
    /// How they are run
    #[command(flatten)]
    pub options: RunOptions,
}

/// Arguments of `reproduce`.
#[derive(Args)]
#[command(after_help = "\
  rumba reproduce                              the published experiments and their claims
  rumba reproduce storage-tiers                run one as it is scaled here
  rumba reproduce storage-tiers --set maxid1=5000000 --set repeats=3     larger, and with intervals
  rumba reproduce storage-tiers --dry-run      what would run")]
pub struct ReproduceArgs {
    /// The experiment; without it, they are listed
    pub name: Option<String>,
    /// How it is run
    #[command(flatten)]
    pub options: RunOptions,
}

/// How an experiment is run.
#[derive(Args)]
pub struct RunOptions {
    /// Only these engines of the experiment, or the engines to run a workload on
    #[arg(long, value_name = "A,B")]
    pub engine: Vec<String>,
    /// Change one key of the experiment; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// What is proven after each run: true, the data; acid, also that transactions are whole and apart, and stay after a
    /// kill; false, nothing
    #[arg(long, value_name = "WHAT", value_parser = ["true", "false", "acid"])]
    pub verify: Option<String>,
    /// Where results go; must be new or empty [default: results/NAME-TIMESTAMP]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Run although a limit cannot be enforced here: it is left out, and the results warn of it
    #[arg(long)]
    pub allow_unlimited: bool,
    /// Run although limits.memory is too small for what an engine was measured to need
    #[arg(long)]
    pub allow_tight_memory: bool,
    /// Add repeats until every headline is decided against the first engine, or for `ab` against the base. Verdicts are
    /// looked at after each repeat from the fifth on, and corrected for that: each is wrong in at most 5 of 100 runs
    #[arg(long)]
    pub until_decided: bool,
    /// With --until-decided: end after this many repeats, decided or not
    #[arg(long, value_name = "N", requires = "until_decided", default_value_t = 20)]
    pub at_most: u32,
    /// End with exit code 3 unless every claim of the experiment holds; with 2 where it has none
    #[arg(long)]
    pub check: bool,
    /// With --check: a claim that was true in its only repeat is good enough
    #[arg(long, requires = "check")]
    pub accept_seen_once: bool,
    /// Print the trials that would run, and what of disk, memory and time they would take, or why they would not run;
    /// and run nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Serve a page of the run while it goes on, with its stop button and past results; prints the address
    #[arg(long)]
    pub live: bool,
    /// With --live: the port on 127.0.0.1 [default: any that is free]
    #[arg(long, value_name = "PORT", requires = "live")]
    pub port: Option<u16>,
    /// Sample with perf where server or trial spend their CPU in the loops; the page draws it as flame graphs
    #[arg(long)]
    pub profile: bool,
    /// Print the results, or what --dry-run tells, as JSON instead of tables
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// In which form something is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables for a terminal
    Table,
    /// One JSON document, with a schema in docs
    Json,
    /// Long flat columns for a data frame
    Csv,
    /// What was found, and the headline table, for a pull request
    Markdown,
}

/// Arguments of `report`.
#[derive(Args)]
#[command(after_help = "\
  rumba report results/DIR --claim 'ops_per_s(\"lmdb\") >= 1.5 * ops_per_s(\"sqlite\")' --check
  rumba report results/DIR --format csv > figures.csv        a row per figure, for a data frame
  rumba report results/DIR --format markdown >> $GITHUB_STEP_SUMMARY
  docs/claims.md has the language; after several directories engines are named ENGINE@DIR

Exit codes with --check: 1 a trial failed, was suspended, or its data failed its verification;
2 there is no claim to check; 3 a claim fails, is undecided, seen once, or true for this load only
(repeats_from = \"kept\"); 0 otherwise.")]
pub struct ReportArgs {
    /// Results directories
    #[arg(required = true, value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// Write a self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print in this form [default: table, and nothing beside --html]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print JSON (see docs/report.schema.json): --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The engine that relative figures are relative to [default: the first]
    #[arg(long, value_name = "ENGINE")]
    pub baseline: Option<String>,
    /// Judge this inequality over the results too; may be given several times
    #[arg(long, value_name = "EXPR")]
    pub claim: Vec<String>,
    /// Show all warnings, and not the worst alone
    #[arg(long)]
    pub warnings: bool,
    /// End with exit code 3 unless every claim holds, with 1 when a trial failed, with 2 where there is none
    #[arg(long)]
    pub check: bool,
    /// With --check: a claim that was true in its only repeat is good enough
    #[arg(long, requires = "check")]
    pub accept_seen_once: bool,
}

impl ReportArgs {
    /// What is printed, if anything.
    pub fn format(&self) -> Option<Format> {
        let chosen = if self.json { Some(Format::Json) } else { self.format };
        chosen.or(self.html.is_none().then_some(Format::Table))
    }
}

/// Arguments of `compare`.
#[derive(Args)]
#[command(after_help = "\
  rumba compare results/AB                     the sides of `rumba ab`, or of `rumba run --against`
  rumba compare results/BASE results/DIR --fail-if 'ops_per_s < 0.95' --fail-if 'get_node.p99_ms > 1.2'
  rumba compare results/BASE results/DIR --format markdown        what changed, for a pull request

--fail-if takes METRIC < RATIO, the other over the base: a metric of the loops, load_METRIC,
or OP.p99_ms; or the word worse: any headline is, with 5% for false alarms over all of them together.
It ends with exit code 3 when that is so of an engine beyond the noise. Undecided and seen once pass,
unless --fail-if-undecided is given. Of runs that did not take turns it must be so beyond --allow-drift as well,
which is nothing for sizes.")]
pub struct CompareArgs {
    /// The results to compare against; alone, a run that holds both a base and another
    pub base: PathBuf,
    /// The results to compare
    pub directory: Option<PathBuf>,
    /// Show every metric, not the headlines alone
    #[arg(long)]
    pub details: bool,
    /// End with exit code 3 when this is so of an engine; may be given several times
    #[arg(long, value_name = "METRIC < RATIO | worse")]
    pub fail_if: Vec<String>,
    /// With --fail-if: end with exit code 3 as well where it is undecided or seen once
    #[arg(long, requires = "fail_if")]
    pub fail_if_undecided: bool,
    /// With --fail-if: how far the host alone is allowed to have moved a ratio of runs that did not take turns
    #[arg(long, value_name = "PERCENT", value_parser = Drift::parse, requires = "fail_if", default_value = "5%")]
    pub allow_drift: Drift,
    /// Print in this form [default: table]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print JSON (see docs/compare.schema.json): --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl CompareArgs {
    /// What is printed.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format.unwrap_or(Format::Table) }
    }
}

/// What the runs of a history are ordered by.
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
  rumba history baseline results/new --fail-if worse --format markdown >> \"$GITHUB_STEP_SUMMARY\"

Each engine's runs are in the order of its versions where these differ, else of rumba's commits,
else of their starts. Each is set against the one before it, as `compare` does it; and over all runs
the changes of level are named. --fail-if judges the last run of each engine over the one before it,
with which it did not take turns: exit code 3 when it is so beyond the noise and --allow-drift as well.
docs/examples/benchmark.yml is a workflow that does so for each change of a repository.")]
pub struct HistoryArgs {
    /// Results directories, or directories with results right below them
    #[arg(required = true, value_name = "DIR")]
    pub directories: Vec<PathBuf>,
    /// Order the runs by this [default: what differs]
    #[arg(long, value_name = "WHAT")]
    pub by: Option<OrderBy>,
    /// End with exit code 3 when this is so of an engine's last run: METRIC < RATIO, or worse; may be given several times
    #[arg(long, value_name = "WHAT")]
    pub fail_if: Vec<String>,
    /// With --fail-if: end with exit code 3 as well where it is undecided or seen once
    #[arg(long, requires = "fail_if")]
    pub fail_if_undecided: bool,
    /// With --fail-if: how far the host alone is allowed to have moved a ratio, since runs of a history take no turns
    #[arg(long, value_name = "PERCENT", value_parser = Drift::parse, requires = "fail_if", default_value = "5%")]
    pub allow_drift: Drift,
    /// Print in this form [default: table]
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// Print JSON (see docs/history.schema.json): --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl HistoryArgs {
    /// What is printed.
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format.unwrap_or(Format::Table) }
    }
}

/// Arguments of `serve`.
#[derive(Args)]
#[command(after_help = "\
In a browser:
  rumba serve                           results/: list, search, compare, tags and notes
  rumba serve /mnt/runs --port 8080     another directory, at a port of your choice
  rumba run quickstart --live           the same, with the page of the run that goes on

The printed address holds a secret: who has it sees everything, and nobody else is answered. From
another host: ssh -L 8080:127.0.0.1:8080 HOST, with --port 8080. Ctrl-C ends it. Tags and notes are
kept in library.json beside the results. docs/live.md has the rest, Prometheus too.")]
pub struct ServeArgs {
    /// The directory with the results, one directory each
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
    /// What to do instead of listing
    #[command(subcommand)]
    pub command: Option<EnginesCommand>,
    /// What to list
    #[command(flatten)]
    pub list: ListArgs,
}

/// What `engines` can do beside listing.
#[derive(Subcommand)]
pub enum EnginesCommand {
    /// Install a server or a library into rumba's own cache, such as mysql@9.7 or rocksdb@10.4; needs no root
    Install {
        /// The server or library, as `rumba engines` lists it
        server: String,
    },
}

/// Arguments of `server`.
#[derive(Args)]
#[command(after_help = "\
What is started:
  rumba server start mariadb@10.11 --engine myrocks   a release, an engine of it
  rumba server start postgresql --set cache=256MiB    an engine, and its settings
  rumba server start results/DIR                      a copy of kept data
  rumba server list
  rumba server stop myrocks

It listens on loopback alone. A process in the background keeps it, within the
limits that are asked for or that the trial had. When it is stopped, nothing of
it is left, and what a run has kept (keep_data = true) is as it was.

The page of a run that goes on is another thing: `rumba serve`.")]
pub struct ServerArgs {
    /// What to do
    #[command(subcommand)]
    pub command: ServerCommand,
}

/// What `server` can do.
#[derive(Subcommand)]
pub enum ServerCommand {
    /// Start a server, and print its client's command line
    Start(ServerStartArgs),
    /// Stop servers and remove all that was made for them
    Stop(ServerStopArgs),
    /// List the servers that are up
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
    /// Of a results directory: the trial whose data it is
    #[arg(long, value_name = "TRIAL", conflicts_with_all = ["engine", "set"])]
    pub trial: Option<String>,
    /// Set a key, as `rumba run` takes it: cache=1GiB, memory=2GiB, storage=slow-ssd, or a variable of the server
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// What it is to be called [default: the engine or the trial]
    #[arg(long)]
    pub name: Option<String>,
    /// Below which directory its own is made
    #[arg(long, value_name = "DIR", default_value = "servers")]
    pub data_dir: PathBuf,
    /// Start it although a limit cannot be enforced here: it is left out
    #[arg(long)]
    pub allow_unlimited: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `server stop`.
#[derive(Args)]
pub struct ServerStopArgs {
    /// Their names, as `rumba server list` has them
    #[arg(required_unless_present = "all")]
    pub names: Vec<String>,
    /// Stop all of them
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
    /// Show the settings of this one
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `doctor`.
#[derive(Args)]
pub struct DoctorArgs {
    /// Remove what killed runs have left behind
    #[arg(long)]
    pub clean: bool,
    /// Where data directories would be made
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub data_dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
