//! Finds the number of clients beyond which throughput does not grow, and the reason.

use rumba_engine_api::units::counted;
use rumba_results::comparison::{About, Part, PhaseFigures, Remark, Row};
use rumba_results::counted::WAITED;
use rumba_results::distinct;
use rumba_results::warning::Warning;

/// The fewest numbers of clients of a ladder.
const RUNGS: usize = 3;
/// The factor by which a rung must exceed the best one below it to count as growth.
const GROWS: f64 = 1.05;
/// A wait below this share of an operation's time is no explanation.
const SHARE: f64 = 0.1;
/// The retries per operation from which they are reported.
const RETRIES: f64 = 0.05;
/// Above this, the host's CPUs are the limit.
const BUSY_PERCENT: f64 = 90.0;

/// A remark on each engine whose rate stops growing over a ladder of clients.
pub fn remarks(rows: &[Row]) -> Vec<Remark> {
    let engines = distinct(rows.iter().map(|row| row.engine.as_str()));
    engines.into_iter().filter_map(|engine| remark(rows.iter().filter(|row| row.engine == engine))).collect()
}

/// A number of clients, and its results.
struct Rung<'a> {
    clients: u32,
    ops_per_s: f64,
    run: &'a PhaseFigures,
}

fn remark<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<Remark> {
    let rung = |row: &'a Row| {
        let run = row.run.as_ref().filter(|_| row.why_not_judged(Part::Run).is_none())?;
        Some(Rung { clients: row.clients, ops_per_s: run.median("ops_per_s").value()?, run })
    };
    let rows: Vec<&Row> = rows.collect();
    let mut rungs: Vec<Rung> = rows.iter().filter_map(|row| rung(row)).collect();
    rungs.sort_by_key(|rung| rung.clients);
    // With think times, throughput follows the number of clients and their think time.
    let is_bounded =
        |rung: &Rung| rung.run.op_types.values().any(|op| op.rate.as_ref().is_some_and(|rate| rate.most.is_some()));
    if rungs.len() < RUNGS || rungs.iter().any(is_bounded) {
        return None;
    }
    let is_last_growth = |at: &usize| {
        let (from, later) = (rungs[*at].ops_per_s, &rungs[at + 1..]);
        !later.is_empty() && later.iter().all(|rung| rung.ops_per_s <= from * GROWS)
    };
    let at = (0..rungs.len()).find(is_last_growth)?;
    let (last, beyond) = (&rungs[at], &rungs[at + 1]);
    let message = format!(
        "beyond {} operations/s do not grow: {:.0} by {} after {:.0}; {}",
        counted(last.clients as usize, "client"),
        beyond.ops_per_s,
        beyond.clients,
        last.ops_per_s,
        cause(beyond.run)
    );
    let remedy = "compare at fewer clients, or change the named cause and run the ladder again";
    let about = About::repeats(&rows.first()?.engine, beyond.clients);
    Some(Remark { about, warning: Warning::new("scaling-ended", message, remedy) })
}

/// The probable reason why more clients did not do more, from the figures.
fn cause(run: &PhaseFigures) -> String {
    let mut reported = Vec::new();
    if let Some((what, share)) = largest_wait(run).filter(|(_, share)| *share >= SHARE) {
        reported.push(format!("{share:.2} of an operation's time is {what}"));
    }
    if let Some(retries) = run.median("retries_per_op").value().filter(|retries| *retries >= RETRIES) {
        reported.push(format!("an operation is tried again {retries:.2} times"));
    }
    if let Some(busy) = run.median("host_cpu_percent").value().filter(|busy| *busy >= BUSY_PERCENT) {
        reported.push(format!("the host's CPUs are {busy:.0}% busy"));
    }
    if reported.is_empty() {
        return "no wait that the engine counts is a tenth of an operation's time, and the CPUs are not used up"
            .to_owned();
    }
    reported.join(", ")
}

/// The longest wait of the clients, as a share of the mean time of an operation.
fn largest_wait(run: &PhaseFigures) -> Option<(&str, f64)> {
    let mean_us = mean_us(run)?;
    let waits = run.counted_by(&WAITED).filter_map(|name| Some((WAITED.what(name)?, run.median(name).value()?)));
    waits.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(what, us)| (what, us / mean_us))
}

/// The mean time of an operation, over all types.
fn mean_us(run: &PhaseFigures) -> Option<f64> {
    let (mut count, mut sum_us) = (0.0, 0.0);
    for op in run.op_types.values() {
        let of_type = op.count.median.value()?;
        sum_us += of_type * 1e3 * op.service.get("mean_ms")?.median.value()?;
        count += of_type;
    }
    (count > 0.0 && sum_us > 0.0).then(|| sum_us / count)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rumba_results::comparison::{Figure, OpFigures};
    use rumba_results::metric::Metric;

    use super::*;

    fn figure(value: f64) -> Figure {
        Figure { median: Metric::Value(value), values: vec![Metric::Value(value)], ..Figure::default() }
    }

    /// A rung at which an operation takes a millisecond.
    fn row(clients: u32, ops_per_s: f64, metrics: &[(&str, f64)]) -> Row {
        let mut all: BTreeMap<String, Figure> =
            metrics.iter().map(|(name, value)| ((*name).to_owned(), figure(*value))).collect();
        all.insert("ops_per_s".to_owned(), figure(ops_per_s));
        let service = BTreeMap::from([("mean_ms".to_owned(), figure(1.0))]);
        let op = OpFigures { count: figure(100.0), service, ..OpFigures::default() };
        Row {
            engine: "a".to_owned(),
            clients,
            run: Some(PhaseFigures {
                trials: vec![clients],
                repeats: vec![1],
                metrics: all,
                op_types: BTreeMap::from([("get".to_owned(), op)]),
                ..PhaseFigures::default()
            }),
            loads: 1,
            ..Row::default()
        }
    }

    fn reported(rows: &[Row]) -> Vec<String> {
        remarks(rows).into_iter().map(|remark| remark.warning.message).collect()
    }

    #[test]
    fn rate_plateau_is_reported_with_its_largest_wait() {
        let waits = [("row_locks_wait_us_per_op", 620.0), ("index_wait_us_per_op", 130.0), ("retries_per_op", 0.01)];
        let rows = [row(4, 1000.0, &[]), row(16, 2000.0, &[]), row(64, 2050.0, &waits), row(256, 1500.0, &waits)];
        assert_eq!(
            reported(&rows),
            [
                "beyond 16 clients operations/s do not grow: 2050 by 64 after 2000; 0.62 of an operation's time is row_locks"
            ]
        );
        assert_eq!(remarks(&rows)[0].about, About::repeats("a", 64), "of all repeats, and in no trial's warnings");
    }

    #[test]
    fn scaling_remark_names_retries_busy_cpus_or_unknown_cause() {
        let ladder = |metrics: &[(&str, f64)]| {
            reported(&[row(1, 100.0, &[]), row(2, 200.0, &[]), row(4, 190.0, metrics)]).remove(0)
        };
        let both = ladder(&[("retries_per_op", 0.5), ("host_cpu_percent", 97.0), ("cache_wait_us_per_op", 50.0)]);
        assert!(both.ends_with("an operation is tried again 0.50 times, the host's CPUs are 97% busy"), "{both}");
        assert!(ladder(&[]).contains("no wait that the engine counts"));
    }

    #[test]
    fn growing_rate_or_two_client_counts_get_no_scaling_remark() {
        assert_eq!(
            reported(&[row(1, 100.0, &[]), row(2, 90.0, &[]), row(4, 110.0, &[])]),
            [""; 0],
            "it dipped, and grew"
        );
        assert_eq!(reported(&[row(1, 100.0, &[]), row(2, 90.0, &[])]), [""; 0]);
    }
}
