//! What a session over the fractal tree costs beside a plain C loop over the same library, where somebody has brought that.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{Bench, Spread};
use super::{Failure, Line};

/// Names the library, as for the engine.
const VARIABLE: &str = "RUMBA_FRACTAL_TREE";
pub const SESSION: &str = "fractal_tree_cost";
const PLAIN: &str = "engines/fractal-tree/examples/plain.c";
/// The least rate of the session, of the loop's.
const LEAST_RATE: f64 = 0.85;
/// The most CPU of an operation that may be rumba's.
const MOST_US: f64 = 1.0;

/// Its checkpoints, which begin by the clock, fall into some turns and not into others.
const REPEATS: usize = 9;

/// What one turn took: rows per second and µs of CPU per row, by kind of work.
type Turn = Vec<(String, f64, f64)>;

/// The session in turns with the loop; nothing where the library is not.
pub fn session(bench: &Bench) -> Result<Vec<Line>, Failure> {
    let Some(library) = std::env::var_os(VARIABLE).map(PathBuf::from) else { return Ok(Vec::new()) };
    let plain = compiled(bench, &library)?;
    let mut turns: Vec<(Turn, Turn)> = Vec::new();
    for turn in 0..REPEATS {
        let directory = |who: &str| bench.path(&format!("fractal-tree-{who}-{turn}"));
        let session = || taken(&bench.example(SESSION), &directory("session"));
        let floor = || taken(&plain, &directory("plain"));
        // Every second turn the session goes first, so that what one leaves behind is in both's figures.
        turns.push(if turn % 2 == 0 {
            let floor = floor()?;
            (session()?, floor)
        } else {
            (session()?, floor()?)
        });
    }
    Ok(vec![
        rate(&turns, "load", "rows loaded per second over the fractal tree, ratio to a plain C loop")?,
        rate(&turns, "update", "updates per second over the fractal tree, ratio to a plain C loop")?,
        own(&turns, "get", "CPU of ours per get over the fractal tree")?,
        own(&turns, "update", "CPU of ours per update over the fractal tree")?,
        own(&turns, "upsert", "CPU of ours per message over the fractal tree")?,
    ])
}

/// The loop, built with the header and the library of the directory that PerconaFT was built in.
fn compiled(bench: &Bench, library: &Path) -> Result<PathBuf, Failure> {
    let header = |built: &&Path| built.join("buildheader/db.h").is_file();
    let Some(built) = library.parent().and_then(Path::parent).filter(header) else {
        let library = library.display();
        return Err(format!(
            "{library} is in no build of PerconaFT: name build/src/libtokufractaltree.so, beside its header"
        )
        .into());
    };
    let program = bench.path("plain");
    let mut command = Command::new("cc");
    command.arg("-O2").arg("-I").arg(built.join("buildheader")).arg(bench.source(PLAIN)).arg("-o").arg(&program);
    command.arg(library).arg(format!("-Wl,-rpath,{0}/src:{0}/portability", built.display()));
    let output = command.output()?;
    if output.status.success() {
        Ok(program)
    } else {
        Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
    }
}

/// Runs one of both in a directory of its own.
fn taken(program: &Path, directory: &Path) -> Result<Turn, Failure> {
    std::fs::create_dir(directory)?;
    let output = Command::new(program).arg(directory).output()?;
    std::fs::remove_dir_all(directory)?;
    if !output.status.success() {
        return Err(format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr)).into());
    }
    let line = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(line).collect())
}

/// A kind of work, of the session and of the loop: their rates, and their CPU.
fn pairs(turns: &[(Turn, Turn)], kind: &str) -> Result<Vec<[(f64, f64); 2]>, Failure> {
    let of = |turn: &Turn| turn.iter().find(|(name, ..)| name == kind).map(|&(_, rate, cpu)| (rate, cpu));
    let found: Option<Vec<_>> = turns.iter().map(|(session, plain)| Some([of(session)?, of(plain)?])).collect();
    found.ok_or_else(|| format!("no figures of {kind}").into())
}

fn rate(turns: &[(Turn, Turn)], kind: &str, what: &str) -> Result<Line, Failure> {
    let pairs = pairs(turns, kind)?;
    let ratio = Spread::of(pairs.iter().map(|[session, plain]| session.0 / plain.0).collect());
    let [session, plain] = [0, 1].map(|who| Spread::of(pairs.iter().map(|pair| pair[who].0).collect()).median);
    Ok(Line {
        what: what.to_owned(),
        goal: format!("≥ {LEAST_RATE}"),
        measured: format!("{}; {session:.0} over {plain:.0}", ratio.told(2)),
        met: Some(ratio.median >= LEAST_RATE),
        command: command(),
    })
}

fn own(turns: &[(Turn, Turn)], kind: &str, what: &str) -> Result<Line, Failure> {
    let pairs = pairs(turns, kind)?;
    let own = Spread::of(pairs.iter().map(|[session, plain]| session.1 - plain.1).collect());
    let [session, plain] = [0, 1].map(|who| Spread::of(pairs.iter().map(|pair| pair[who].1).collect()).median);
    Ok(Line {
        what: what.to_owned(),
        goal: format!("≤ {MOST_US} µs"),
        measured: format!("{} µs; {session:.2} over {plain:.2} µs", own.told(2)),
        met: Some(own.median <= MOST_US),
        command: command(),
    })
}

fn command() -> String {
    format!("{SESSION} DIRECTORY; in turns with {PLAIN}")
}
