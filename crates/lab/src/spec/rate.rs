//! `rate` and related keys: when the operations of an open loop are due, and how many clients work.

use rumba_engine_api::setting::Value;
use rumba_engine_api::units::parse_duration;
use rumba_results::arrivals::{Arrivals, RateShape};
use rumba_results::search::{Percentile, Search};

use super::error::SpecError;
use super::node::{Node, Table, Tree};
use super::take;

const EXAMPLE: &str = "give operations per second, as in rate = 1000, or points of them over the time since the loops' \
                       start, as in rate = [[\"0s\", 1000], [\"60s\", 5000]]";

/// The highest rate for one client: over an engine that answers at once and stores nothing, one client does not reach
/// it.
const MOST_PER_CLIENT: f64 = 1e7;
/// The highest rate for all clients together: the schedule's resolution then lasts for two days.
const MOST_PER_S: f64 = 1e8;

#[derive(Default)]
pub struct RateSettings {
    /// Operations per second, or their mean over the loops.
    pub rate: Option<f64>,
    /// A rate that varies over time.
    pub arrivals: Option<Arrivals>,
    /// A search for the highest rate.
    pub search: Option<Search>,
}

/// Reads `rate`, `rate_shape` and `rate_period`, given the seconds of the loops and the largest number of clients.
pub fn requested(table: &Table, loops_s: f64, most_clients: u32) -> Result<RateSettings, SpecError> {
    let node = table.get("rate");
    match node.map(|node| (&node.tree, node)) {
        Some((Tree::List(points), node)) => {
            let points = points.iter().map(|node| point(node, most_clients)).collect::<Result<Vec<_>, _>>()?;
            refuse_points(&points, node)?;
            let shape = take::one_of(table, "rate_shape", &RateShape::NAMES, RateShape::Step)?;
            let last_s = points.last().map_or(0.0, |(at_s, _)| *at_s);
            let period_s = table.get("rate_period").map(|node| period(node, last_s)).transpose()?;
            let arrivals = Arrivals { points, shape, period_s };
            let rate = arrivals.mean_rate(loops_s);
            if rate > 0.0 {
                return Ok(RateSettings { rate: Some(rate), arrivals: Some(arrivals), search: None });
            }
            let problem = format!("no operation is due in the {loops_s} s of the loops");
            Err(SpecError::new(&node.origin, problem, "have a rate above zero begin within them"))
        }
        other => {
            for key in ["rate_shape", "rate_period"] {
                if let Some(node) = table.get(key) {
                    let problem = format!("{key} is about a rate with points, and there is none");
                    return Err(SpecError::new(&node.key_origin, problem, EXAMPLE));
                }
            }
            if let Some((Tree::Scalar(Value::Text(text)), node)) = other {
                return Ok(RateSettings { search: Some(search(text, node)?), ..RateSettings::default() });
            }
            let rate = other.map(|(_, node)| constant(node, most_clients)).transpose()?;
            Ok(RateSettings { rate, ..RateSettings::default() })
        }
    }
}

/// A positive rate that clients can reach.
fn constant(node: &Node, most_clients: u32) -> Result<f64, SpecError> {
    let per_s = take::positive("rate", node)?;
    refuse_absurd(per_s, node, most_clients).map(|()| per_s)
}

/// Refuses a rate that no client can reach.
fn refuse_absurd(per_s: f64, node: &Node, clients: u32) -> Result<(), SpecError> {
    let most = (MOST_PER_CLIENT * f64::from(clients)).min(MOST_PER_S);
    if per_s <= most {
        return Ok(());
    }
    let problem = format!(
        "rate {per_s} is more than {clients} {} can do: {MOST_PER_CLIENT:.0} operations per second each, {MOST_PER_S:.0} \
         together, at the very most",
        if clients == 1 { "client" } else { "clients" }
    );
    let remedy = format!("give at most {most:.0}, or leave rate out: clients then work as fast as they can");
    Err(SpecError::new(&node.origin, problem, remedy))
}

/// `max(p99 < 10ms)`.
fn search(text: &str, node: &Node) -> Result<Search, SpecError> {
    let wrong = |problem: String| {
        let names = Percentile::NAMES.map(|(name, _)| name).join(", ");
        let remedy =
            format!("write rate = \"max(p99 < 10ms)\" for the highest rate that keeps it (of {names}); or {EXAMPLE}");
        SpecError::new(&node.origin, problem, remedy)
    };
    let inner = text.trim().strip_prefix("max(").and_then(|rest| rest.strip_suffix(')'));
    let Some((name, limit)) = inner.and_then(|inner| inner.split_once('<')) else {
        return Err(wrong(format!("invalid rate `{text}`")));
    };
    let name = name.trim();
    let Some((_, percentile)) = Percentile::NAMES.into_iter().find(|(known, _)| *known == name) else {
        return Err(wrong(format!("rate names `{name}`, which is not a percentile")));
    };
    let limit = parse_duration(limit.trim()).map_err(|why| wrong(format!("rate: {why}")))?;
    if limit.is_zero() {
        return Err(wrong("rate: no operation ends in no time".to_owned()));
    }
    Ok(Search { percentile, limit_ms: limit.as_secs_f64() * 1e3 })
}

/// `["60s", 5000]`.
fn point(node: &Node, most_clients: u32) -> Result<(f64, f64), SpecError> {
    let wrong = |problem: String| SpecError::new(&node.origin, problem, EXAMPLE);
    let Tree::List(pair) = &node.tree else {
        return Err(wrong(format!("rate holds {} where a point is needed", node.kind())));
    };
    let [at, rate] = pair.as_slice() else {
        return Err(wrong(format!("a point of rate has {} values, not a time and a rate", pair.len())));
    };
    let per_s = take::number("rate", rate)?;
    if per_s.is_nan() || per_s < 0.0 {
        return Err(SpecError::new(&rate.origin, format!("a rate of {per_s} per second"), "give 0 or more"));
    }
    refuse_absurd(per_s, rate, most_clients)?;
    Ok((take::seconds("rate", at)?, per_s))
}

fn refuse_points(points: &[(f64, f64)], node: &Node) -> Result<(), SpecError> {
    let problem = match points {
        [] => "rate has no points".to_owned(),
        [(at_s, _), ..] if *at_s != 0.0 => format!("rate begins at {at_s} s"),
        _ => match points.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            Some(pair) => format!("rate goes from {} s to {} s", pair[0].0, pair[1].0),
            None if points.iter().all(|(_, rate)| *rate == 0.0) => "rate is zero all the time".to_owned(),
            None => return Ok(()),
        },
    };
    Err(SpecError::new(
        &node.origin,
        problem,
        format!("{EXAMPLE}; the first at \"0s\", each later than the one before"),
    ))
}

fn period(node: &Node, last_s: f64) -> Result<f64, SpecError> {
    let period_s = take::seconds("rate_period", node)?;
    if period_s > last_s {
        return Ok(period_s);
    }
    let problem = format!("rate_period is {period_s} s, and the last point of rate is at {last_s} s");
    Err(SpecError::new(&node.origin, problem, "give a longer one: after it the first point follows again"))
}

/// `"5%"`.
pub fn active(node: &Node) -> Result<f64, SpecError> {
    let percent = match take::scalar("active", node)? {
        Value::Text(text) => text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok()),
        _ => None,
    };
    percent.filter(|percent| *percent > 0.0 && *percent <= 100.0).ok_or_else(|| {
        let problem = "active is the number of working clients, which this is not".to_owned();
        SpecError::new(&node.origin, problem, "give a share of them, as in active = \"5%\"")
    })
}
