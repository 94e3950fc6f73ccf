//! `[run]`: how an experiment is run.

use std::path::PathBuf;

use rumba_engine_api::setting::Value;
use rumba_results::record::{BACKLOG_S, DriverKind, QueueKind, RunPlan};
use rumba_results::starts::FIRST_LOOK;

use super::error::{Origin, SpecError};
use super::node::{Node, Table};
use super::{RepeatsFrom, RunSpec, client_steps, ladder, rate, take};

pub const RUN_KEYS: &[&str] = &[
    "load_clients",
    "clients",
    "driver",
    "age",
    "age_by",
    "warmup",
    "warmup_most",
    "loops",
    "loop",
    "interval",
    "repeats",
    "repeats_from",
    "until_decided",
    "starts",
    "rate",
    "rate_shape",
    "rate_period",
    "active",
    "queue",
    "backlog",
    "seed",
    "verify",
    "crash",
    "keep_data",
    "data_dir",
    "stall",
    "aa",
    "hardware_counters",
];
/// The default of `stall`, seconds: longer than any statement of a workload takes, and than InnoDB's limit for waiting
/// for a lock.
const DEFAULT_STALL_S: f64 = 60.0;

/// The requested queue; `None` without arrivals.
fn queued(table: &Table) -> Result<Option<QueueKind>, SpecError> {
    let Some(node) = table.get("queue") else { return Ok(None) };
    if table.contains_key("rate") {
        return take::one_of(table, "queue", &QueueKind::NAMES, QueueKind::Shared).map(Some);
    }
    Err(SpecError::new(
        &node.key_origin,
        "queue sets which client serves an arrival of an open loop, but rate is not set",
        "add for example rate = 1000, or take queue out",
    ))
}

/// Whether the run ends once every headline is decided; `repeats` is then its maximum.
fn until_decided(table: &Table, repeats: u32, searches: bool) -> Result<bool, SpecError> {
    let Some(node) = table.get("until_decided") else { return Ok(false) };
    if !take::bool("until_decided", node)? {
        return Ok(false);
    }
    if searches {
        return Err(SpecError::new(
            &node.origin,
            "until_decided and a search for the highest rate exclude each other",
            "search with a fixed number of repeats",
        ));
    }
    if repeats <= FIRST_LOOK {
        return Err(SpecError::new(
            &node.origin,
            format!("until_decided needs more than {FIRST_LOOK} repeats, and repeats is {repeats}"),
            "set repeats to the most that the run may have, for example repeats = 20 (on the command line: --at-most 20)",
        ));
    }
    Ok(true)
}

/// How many trials start from one load.
fn starts(table: &Table, repeats_from: RepeatsFrom, searches: bool) -> Result<u32, SpecError> {
    let Some(node) = table.get("starts") else { return Ok(1) };
    let starts = take::int("starts", node, 1, 1000)? as u32;
    let refuse = |problem: &str, remedy: &str| Err(SpecError::new(&node.origin, problem, remedy));
    match repeats_from {
        _ if starts == 1 => Ok(starts),
        RepeatsFrom::Kept => refuse(
            "with repeats_from = \"kept\" the repeats are themselves starts of one load",
            "set repeats instead of starts, or take repeats_from out",
        ),
        RepeatsFrom::Load if searches => {
            refuse("a search for a rate confirms it with its own probes", "take starts out, or give a fixed rate")
        }
        RepeatsFrom::Load => Ok(starts),
    }
}

/// The shortest interval in seconds: in shorter ones the harness's own work would show.
pub const SHORTEST_INTERVAL_S: f64 = 0.1;
/// The shortest, the usual and the longest interval in seconds. Stalls of 1–4 s vanish in longer ones.
const INTERVAL_S: (f64, f64, f64) = (SHORTEST_INTERVAL_S, 1.0, 60.0);

fn interval(node: &Node) -> Result<f64, SpecError> {
    let interval_s = take::seconds("interval", node)?;
    let (shortest, _, longest) = INTERVAL_S;
    if (shortest..=longest).contains(&interval_s) {
        return Ok(interval_s);
    }
    Err(SpecError::new(
        &node.origin,
        format!("an interval of {interval_s} s"),
        format!("give one from {} ms to {longest} s, or leave it out for {} s", shortest * 1e3, INTERVAL_S.1),
    ))
}

/// The longest time for which the loaded data is aged.
fn age(node: &Node) -> Result<f64, SpecError> {
    let age_s = take::seconds("age", node)?;
    if age_s > 0.0 {
        return Ok(age_s);
    }
    Err(SpecError::new(
        &node.origin,
        "age is the longest time for which the loaded data is aged, and this is none",
        "give it as in \"5m\", or leave it out for data as it was loaded",
    ))
}

/// The longest warmup, no shorter than the shortest.
fn warmup_most(node: &Node, warmup_s: f64) -> Result<f64, SpecError> {
    let most_s = take::seconds("warmup_most", node)?;
    if most_s >= warmup_s {
        return Ok(most_s);
    }
    Err(SpecError::new(
        &node.origin,
        format!("warmup_most is {most_s} s, shorter than the warmup of {warmup_s} s"),
        "give the longest time that the warmup may take until the engine is steady, as in \"10m\"",
    ))
}

/// The shortest `stall` in seconds. Every engine has pauses of a second or two that are no stall, and the cause is
/// found from several samples, a second apart.
const LEAST_STALL_S: f64 = 5.0;

fn stall(node: &Node) -> Result<f64, SpecError> {
    let stall_s = take::seconds("stall", node)?;
    if stall_s == 0.0 || stall_s >= LEAST_STALL_S {
        return Ok(stall_s);
    }
    Err(SpecError::new(
        &node.origin,
        format!(
            "a trial would fail after {stall_s} s in which no operation ends, and healthy engines pause for seconds"
        ),
        format!("give {LEAST_STALL_S} s or more, or \"0s\" to let a trial wait for ever"),
    ))
}

/// The default time that clients work until the database is killed, seconds.
const CRASH_S: f64 = 5.0;

/// Whether the data is verified, and for `"acid"` how long clients work until the database is killed.
fn proof(table: &Table) -> Result<(bool, Option<f64>), SpecError> {
    let node = table.get("verify");
    let (verify, is_acid) = match node.map(|node| (node, take::scalar("verify", node))) {
        None => (true, false),
        Some((_, Ok(Value::Text(text)))) if text == "acid" => (true, true),
        Some((_, Ok(Value::Bool(verify)))) => (*verify, false),
        Some((_, Err(error))) => return Err(error),
        Some((node, Ok(other))) => {
            let problem = format!("verify `{other}` is not known");
            return Err(SpecError::new(&node.origin, problem, "give true, false, or \"acid\" for more"));
        }
    };
    match table.get("crash") {
        Some(node) if is_acid => Ok((verify, Some(take::seconds("crash", node)?))),
        Some(node) => Err(SpecError::new(
            &node.key_origin,
            "crash sets how long clients work before the database is killed; it needs verify = \"acid\"",
            "add verify = \"acid\", or take crash out",
        )),
        None => Ok((verify, is_acid.then_some(CRASH_S))),
    }
}

pub fn run(node: Option<&Node>) -> Result<RunSpec, SpecError> {
    let empty = Table::new();
    let table = match node {
        Some(node) => node.table("run")?,
        None => &empty,
    };
    take::only(table, "[run]", RUN_KEYS)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let count = |key: &str, default: u32, low: i64, high: i64| {
        table.get(key).map_or(Ok(default), |node| take::int(key, node, low, high).map(|number| number as u32))
    };
    let driver = take::one_of(table, "driver", &DriverKind::NAMES, DriverKind::Auto)?;
    let seconds = |key: &str, default: f64| table.get(key).map_or(Ok(default), |node| take::seconds(key, node));
    let loop_s = seconds("loop", 20.0)?;
    if loop_s <= 0.0 {
        let origin = table.get("loop").map_or(Origin::Default, |node| node.origin.clone());
        return Err(SpecError::new(&origin, "a loop needs a length above 0", "write for example loop = \"20s\""));
    }
    let warmup_s = seconds("warmup", 5.0)?;
    let (verify, crash_s) = proof(table)?;
    let loops = count("loops", 3, 1, 10_000)?;
    let client_steps = client_steps::requested(table, f64::from(loops) * loop_s)?;
    let clients: Vec<u32> = match (&client_steps, table.get("clients")) {
        (Some(steps), _) => vec![steps.most()],
        (None, Some(node)) => ladder::rungs(node)?.into_iter().map(|(number, _)| number).collect(),
        (None, None) => vec![cores.min(4)],
    };
    let most_clients = clients.iter().copied().max().unwrap_or(1);
    let requested = rate::requested(table, f64::from(loops) * loop_s, most_clients)?;
    let repeats = count("repeats", 1, 1, 1000)?;
    let repeats_from = take::one_of(table, "repeats_from", &RepeatsFrom::NAMES, RepeatsFrom::Load)?;
    let until_decided = until_decided(table, repeats, requested.search.is_some())?;
    let bool = |key: &str, default| table.get(key).map_or(Ok(default), |node| take::bool(key, node));
    Ok(RunSpec {
        clients,
        age_by: table.get("age_by").map(|node| take::text("age_by", node)).transpose()?.map(str::to_owned),
        repeats,
        until_decided,
        repeats_from,
        data_dir: table.get("data_dir").map(|node| take::text("data_dir", node)).transpose()?.map(PathBuf::from),
        trial: RunPlan {
            load_clients: count("load_clients", cores.min(4), 1, 1024)?,
            driver,
            age_s: table.get("age").map(age).transpose()?,
            warmup_s,
            warmup_most_s: table.get("warmup_most").map(|node| warmup_most(node, warmup_s)).transpose()?,
            loops,
            loop_s,
            rate: requested.rate,
            arrivals: requested.arrivals,
            aa: bool("aa", false)?,
            hardware_counters: bool("hardware_counters", false)?,
            prices: None,
            at_most_repeats: until_decided.then_some(repeats),
            search: requested.search,
            active_percent: table.get("active").map(rate::active).transpose()?,
            client_steps,
            queue: queued(table)?,
            backlog_s: seconds("backlog", BACKLOG_S)?,
            seed: table.get("seed").map_or(Ok(42), |node| take::int("seed", node, 0, i64::MAX))? as u64,
            verify,
            crash_s,
            starts: starts(table, repeats_from, requested.search.is_some())?,
            keep_data: bool("keep_data", false)?,
            interval_s: table.get("interval").map_or(Ok(INTERVAL_S.1), interval)?,
            stall_s: table.get("stall").map_or(Ok(DEFAULT_STALL_S), stall)?,
            fleet: None,
        },
    })
}
