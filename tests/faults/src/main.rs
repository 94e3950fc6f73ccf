//! `faults`: runs the cases of a seed, and records how many there were and how many missed an answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use rumba_faults::{Bench, Case, Counts, PAGE, RECORD, Trouble, draw, page};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Inject faults into real runs of rumba. Five questions are answered after each: what the user saw, the exit code, the
/// kept results, the leftovers, and whether the next run works.
#[derive(Parser)]
#[command(
    name = "faults",
    after_help = "\
Exit codes: 0 no answer was missed; 1 one was (its case stays below --base); 2 a case could not be
tried, or the suite was stopped.

  faults --seed 7                        the cases of seed 7
  faults --seed 7 --case 31              one of them again
  faults --fault 'kill -9 of rumba'      those of one fault"
)]
struct Args {
    /// The program under test
    #[arg(long, value_name = "FILE", default_value = "target/release/rumba")]
    rumba: PathBuf,
    /// The seed that draws the cases
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only the case with this number
    #[arg(long, value_name = "N")]
    case: Option<u32>,
    /// Only faults whose names contain these words
    #[arg(long, value_name = "WORDS")]
    fault: Option<String>,
    /// Parent directory of the cases
    #[arg(long, value_name = "DIR", default_value = "target/faults")]
    base: PathBuf,
    /// Start no case later than this
    #[arg(long, value_name = "MINUTES", default_value_t = 29)]
    minutes: u64,
    /// The project's directory: write the counts there, if all cases of the seed were run
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Run no case; write the page of --write from its record
    #[arg(long, requires = "write")]
    page_only: bool,
    /// Print the cases and run none
    #[arg(long)]
    dry_run: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(code) => code,
        Err(trouble) => {
            eprintln!("faults: {trouble}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<ExitCode, Trouble> {
    if let (Some(root), true) = (&args.write, args.page_only) {
        write(root, None)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut bench = Bench::new(&args.rumba, &args.base)?;
    let available = bench.available()?;
    for missing in &available.missing {
        println!("missing: {missing}");
    }
    let (mut cases, left_out) = draw(args.seed, &available);
    for fault in left_out {
        println!("cannot be tried here: {fault}");
    }
    let all = cases.len();
    cases.retain(|case| args.case.is_none_or(|number| number == case.number));
    cases.retain(|case| args.fault.as_ref().is_none_or(|words| case.fault.name.contains(words)));
    println!("seed {}: {} of {all} cases", args.seed, cases.len());
    if args.dry_run {
        cases.iter().for_each(|case| println!("{case} ({:?}, {} ms)", case.again, case.delay.as_millis()));
        return Ok(ExitCode::SUCCESS);
    }
    let tried = try_all(&mut bench, &cases, Duration::from_secs(60 * args.minutes))?;
    let sum = tried.counts.all();
    println!("seed {}: {} cases, {} with a miss, {} too late", args.seed, sum.cases, sum.misses, tried.counts.too_late);
    if let Some(root) = args.write.as_ref().filter(|_| tried.is_whole && cases.len() == all) {
        write(root, Some((args.seed, tried.counts)))?;
        println!("counts: {PAGE}");
    }
    Ok(match (sum.misses, tried.is_whole) {
        (1.., _) => ExitCode::FAILURE,
        (0, false) => ExitCode::from(2),
        (0, true) => ExitCode::SUCCESS,
    })
}

/// The results of the tried cases.
struct Tried {
    counts: Counts,
    /// Whether every case was.
    is_whole: bool,
}

fn try_all(bench: &mut Bench, cases: &[Case], most: Duration) -> Result<Tried, Trouble> {
    let stopped = stopped()?;
    let since = Instant::now();
    let mut tried = Tried { counts: Counts::default(), is_whole: true };
    for (number, case) in cases.iter().enumerate() {
        if stopped.load(Ordering::Relaxed) || since.elapsed() > most {
            println!("stopped: {} cases were not tried", cases.len() - number);
            tried.is_whole = false;
            break;
        }
        match bench.try_case(case) {
            Ok(outcome) => {
                let word = match (&outcome.injected, outcome.misses.is_empty()) {
                    (None, _) => "late",
                    (_, true) => "ok",
                    (_, false) => "MISS",
                };
                println!("{word:<5} {case} ({:.1} s)", outcome.took.as_secs_f64());
                outcome.misses.iter().for_each(|miss| println!("      {miss}"));
                tried.counts.add(case, &outcome);
            }
            Err(trouble) => {
                println!("FAIL  {case}: could not be tried: {trouble}");
                tried.is_whole = false;
            }
        }
    }
    Ok(tried)
}

/// The first signal lets the current case end; a second one ends the suite.
fn stopped() -> Result<Arc<AtomicBool>, Trouble> {
    let stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, stopped.clone())
            .and_then(|_| signal_hook::flag::register(signal, stopped.clone()))
            .map_err(|error| Trouble::new("catching signals", error))?;
    }
    Ok(stopped)
}

/// Writes the counts of a seed next to those of the others, and the page.
fn write(root: &Path, seed: Option<(u64, Counts)>) -> Result<(), Trouble> {
    let (record, reported) = (root.join(RECORD), root.join(PAGE));
    let failed = |path: &Path, error: &dyn std::fmt::Display| Trouble::new(path.display().to_string(), error);
    let text = std::fs::read_to_string(&record).map_err(|error| failed(&record, &error))?;
    let mut seeds: BTreeMap<u64, Counts> = serde_json::from_str(&text).map_err(|error| failed(&record, &error))?;
    if let Some((seed, counts)) = seed {
        seeds.insert(seed, counts);
        let json = serde_json::to_string_pretty(&seeds).map_err(|error| failed(&record, &error))?;
        std::fs::write(&record, json + "\n").map_err(|error| failed(&record, &error))?;
    }
    let text = std::fs::read_to_string(&reported).map_err(|error| failed(&reported, &error))?;
    let page = page(&text, &seeds).ok_or_else(|| failed(&reported, &"it has no marks for the counts"))?;
    std::fs::write(&reported, page).map_err(|error| failed(&reported, &error))
}
