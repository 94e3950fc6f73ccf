//! Metrics that include deferred work: the cost of rows and operations once the engine has caught up.

use rumba_engine_api::engine::DEFERRED_BYTES;
use rumba_results::counted::{NOT_COUNTED, metrics_of_record, rule_of};
use rumba_results::host_cpu::host_cpu_s;
use rumba_results::metric::{Metric, without_logs};
use rumba_results::prices::Usage;
use rumba_results::record::{PhaseKind, PhaseRecord, Record, Spent};
use rumba_results::tally;

use crate::search::DISTURBING;

/// Metrics that include deferred work, by stable name.
pub type Charged = Vec<(String, Metric)>;

/// The load's metrics that include deferred work: Σ over load and settle of bytes or CPU, per row or logical byte
/// loaded. Without the settle, an engine that leaves its writes to the page cache would seem to load without any
/// writes.
pub fn charged_load(record: &Record) -> Charged {
    let phases = loaded(record);
    let over = |cost: fn(&Spent) -> Metric, scale: f64, per: fn(&PhaseRecord) -> Metric, what: &str| match &phases {
        Ok((load, settle)) => total(&[load, settle], cost).map(|spent| spent * scale).over(&per(load), what),
        Err(reason) => Metric::absent(*reason),
    };
    let rows = |load: &PhaseRecord| Metric::from(load.ops as f64);
    let logical = |load: &PhaseRecord| load.metrics.logical_bytes.clone();
    vec![
        ("wkb_per_row_with_settle".to_owned(), over(written, 1.0 / 1024.0, rows, "rows")),
        ("cpu_us_per_row_with_settle".to_owned(), over(cpu_s, 1e6, rows, "rows")),
        ("write_amp_with_settle".to_owned(), over(written, 1.0, logical, "logical bytes")),
    ]
}

/// The phase, unless a failure or an interrupt cut it off.
pub fn ended(record: &Record, kind: PhaseKind) -> Option<&PhaseRecord> {
    record.phase(kind).filter(|phase| phase.complete)
}

fn loaded(record: &Record) -> Result<(&PhaseRecord, &PhaseRecord), &'static str> {
    let load = ended(record, PhaseKind::Load).ok_or("the trial ended before its load did")?;
    let settle = ended(record, PhaseKind::Settle).ok_or("the trial ended before its load was settled")?;
    Ok((load, settle))
}

/// The loops' metrics that include deferred work.
///
/// (Σ over warmup, loops, backlog and drain of bytes or CPU) / (Σ over warmup, loops and backlog of operations). The
/// warmup is in both sums because it also defers work, and the drain does not separate this work from that of the
/// loops.
pub fn charged_run(record: &Record) -> Charged {
    let spans = spans(record);
    let over = |cost: fn(&Spent) -> Metric, scale: f64| match &spans {
        Ok((working, drain)) => per_op(working, drain, cost).map(|value| value * scale),
        Err(reason) => Metric::absent(reason.clone()),
    };
    let mut charged = vec![
        ("wkb_per_op_with_drain".to_owned(), over(written, 1.0 / 1024.0)),
        ("cpu_us_per_op_with_drain".to_owned(), over(cpu_s, 1e6)),
        ("host_cpu_us_per_op_with_drain".to_owned(), host_cpu_us(record, &spans)),
    ];
    let share = |cost: fn(&Spent) -> Metric| match &spans {
        Ok((working, drain)) => drain_percent(working, drain, cost),
        Err(reason) => Metric::absent(reason.clone()),
    };
    charged.push(("wkb_drain_percent".to_owned(), share(written)));
    charged.push(("cpu_drain_percent".to_owned(), share(cpu_s)));
    if let (Ok((working, _)), Some(bytes)) = (&spans, deferred_bytes(record)) {
        charged.push((
            "wkb_per_op_deferred".to_owned(),
            Metric::from(bytes / 1024.0).per(operations(working), "operations"),
        ));
    }
    charged.push(("host_cpu_drain_percent".to_owned(), share(host_cpu_s)));
    charged.extend(metrics_of_record(record).into_iter().filter_map(|metric| {
        let rule = rule_of(&metric)?;
        let counter = rule.counter_of(&metric)?;
        let counted = match &spans {
            Ok((working, drain)) => grown(record, working, drain, &counter).map(|per_op| per_op / rule.per),
            Err(reason) => Metric::absent(reason.clone()),
        };
        Some((metric, counted))
    }));
    charged.extend(rates(record));
    charged.extend(tallies(record));
    let costs = costs(record, &charged);
    charged.extend(costs);
    charged
}

/// The costs at the experiment's prices, if it has any.
fn costs(record: &Record, charged: &Charged) -> Charged {
    let (Some(prices), Some(loops)) = (&record.plan.run.prices, ended(record, PhaseKind::Loops)) else {
        return Vec::new();
    };
    let with_drain = |name: &str| charged.iter().find(|(metric, _)| metric == name).map(|(_, value)| value.clone());
    let [host, own, written] = ["host_cpu_us_per_op_with_drain", "cpu_us_per_op_with_drain", "wkb_per_op_with_drain"]
        .map(|name| with_drain(name).unwrap_or_default());
    let metrics = &loops.metrics;
    let limit = record.plan.engine.limits.memory_bytes.map(|bytes| Metric::Value(bytes as f64));
    prices.metrics(&Usage {
        ops_per_s: metrics.ops_per_s.clone(),
        cpu_us_per_op: if host.value().is_some() { host } else { own },
        ios_per_op: metrics.reads_per_op.plus(&metrics.writes_per_op),
        wkb_per_op: written,
        memory_bytes: limit.unwrap_or_else(|| metrics.rss_bytes.clone()),
        storage_bytes: metrics.size_bytes.clone(),
    })
}

/// CPU microseconds of the host per operation, with the drain. The phases are adjacent, so their ticks are truncated
/// only once. The parts are therefore summed before they are compared.
fn host_cpu_us(record: &Record, spans: &Result<(Vec<&PhaseRecord>, &PhaseRecord), String>) -> Metric {
    let (working, drain) = match spans {
        Ok((working, drain)) => (working, *drain),
        Err(reason) => return Metric::absent(reason.clone()),
    };
    if let Some(why) = disturbance(record) {
        return Metric::absent(why);
    }
    let phases: Vec<&PhaseRecord> = working.iter().copied().chain([drain]).collect();
    let spent = Spent {
        cpu_s: total(&phases, cpu_s),
        host_cpu_s: total(&phases, |spent| spent.host_cpu_s.clone()),
        harness_cpu_s: total(&phases, |spent| spent.harness_cpu_s.clone()),
        others_cpu_s: total(&phases, |spent| spent.others_cpu_s.clone()),
        ..Spent::default()
    };
    host_cpu_s(&spent).map(|seconds| seconds * 1e6).per(operations(working), "operations")
}

/// The reason why the host's CPU includes work for other processes, if it does. The kernel's work for them cannot be
/// separated from its work for the trial.
fn disturbance(record: &Record) -> Option<String> {
    let warning = record.warnings.iter().find(|warning| DISTURBING.contains(&warning.code.as_str()))?;
    Some(format!("the host was disturbed: {}", warning.message))
}

/// The rates that the workload reports, and the growth of the database at these rates.
fn rates(record: &Record) -> Charged {
    let Some(loops) = ended(record, PhaseKind::Loops) else { return Vec::new() };
    let mut all = Vec::new();
    for (name, op) in &loops.op_types {
        let Some(rate) = &op.rate else { continue };
        let per_minute = Metric::Value(60.0 * op.count as f64).per(loops.seconds, "time passed");
        if let Some(most) = rate.most {
            all.push((rate.percent(), per_minute.map(|per_minute| 100.0 * per_minute).per(most, "rate allowed")));
        }
        let growth = growth(record, name);
        all.push((rate.growth_per_8h(), per_minute.times(&growth).map(|bytes| MINUTES_OF_8H * bytes)));
        all.push((rate.growth_per_op(), growth));
        all.push((rate.name.to_string(), per_minute));
    }
    all
}

/// The workload's own counters, per operation and per second.
fn tallies(record: &Record) -> Charged {
    let Some(loops) = ended(record, PhaseKind::Loops) else { return Vec::new() };
    let of_counter = |(name, count): (&String, &u64)| {
        let count = Metric::Value(*count as f64);
        let [per_op, per_s] = tally::metrics_of(name);
        [(per_op, count.per(loops.ops as f64, "operations")), (per_s, count.per(loops.seconds, "time passed"))]
    };
    loops.counted.iter().flat_map(of_counter).collect()
}

/// A working day, by the specification that defines such rates.
const MINUTES_OF_8H: f64 = 480.0;

/// Growth of the data on disk, in bytes per operation of a type. Both ends are without deferred work: the last settle
/// before the warmup, and the drain. Logs are excluded because they come and go. Files that have not grown count as 0;
/// without such repeats, the median would cover only repeats whose files happened to grow.
fn growth(record: &Record, op: &str) -> Metric {
    let (working, drain) = match spans(record) {
        Ok(spans) => spans,
        Err(reason) => return Metric::absent(reason),
    };
    let is_settled = |phase: &&PhaseRecord| matches!(phase.phase, PhaseKind::Settle | PhaseKind::VerifyLoad);
    let Some(settled) = before_work(record).filter(is_settled) else {
        return Metric::absent("the record lacks the settle before the warmup, and with it the size of the data then");
    };
    let data = |phase: &PhaseRecord| without_logs(&phase.metrics.size_bytes, &phase.metrics.log_bytes);
    let grown = data(drain).plus(&data(settled).map(|size| -size));
    let counts = working.iter().filter_map(|phase| phase.op_types.get(op)).map(|op| op.count as f64);
    grown.per(counts.sum(), "operations of this type")
}

/// The increase of one of the engine's own counters per operation, from the end of the settle to the end of the drain.
/// A counter that was absent at first starts at 0 if the engine reported others, for example for an LSM level that was
/// empty.
fn grown(record: &Record, working: &[&PhaseRecord], drain: &PhaseRecord, counter: &str) -> Metric {
    let at_end =
        |phase: &PhaseRecord| phase.counters.iter().find(|gauge| gauge.name == counter).map(|gauge| gauge.value);
    let before = before_work(record).and_then(|phase| at_end(phase).or((!phase.counters.is_empty()).then_some(0.0)));
    match (before, at_end(drain)) {
        (Some(before), Some(after)) => Metric::from(after - before).per(operations(working), "operations"),
        _ => Metric::absent(NOT_COUNTED),
    }
}

/// The last phase before the operations of the mix.
fn before_work(record: &Record) -> Option<&PhaseRecord> {
    record.phases.iter().take_while(|phase| !matches!(phase.phase, PhaseKind::Warmup | PhaseKind::Loop(_))).last()
}

/// Whether the engine reported counters at both ends of the charged span. A counter that is missing there counted
/// nothing.
pub fn counts_alike(record: &Record) -> bool {
    let reports = |phase: Option<&PhaseRecord>| phase.is_some_and(|phase| !phase.counters.is_empty());
    reports(before_work(record)) && reports(ended(record, PhaseKind::Drain))
}

/// The same sum as in `cpu_us_per_op`.
fn cpu_s(spent: &Spent) -> Metric {
    spent.cpu_s.clone()
}

fn written(spent: &Spent) -> Metric {
    spent.device_write_bytes.clone()
}

/// Bytes written to the device in the phases that serve operations, and in the drain.
pub fn drained_bytes(record: &Record) -> Option<(f64, f64)> {
    let (working, drain) = spans(record).ok()?;
    let served = total(&working, written).value()?;
    Some((served, drain.spent.device_write_bytes.value()?))
}

/// The growth of the engine's estimate of bytes for work below its own triggers, from before the operations to the end
/// of the drain. `None` if it makes no estimate.
pub fn deferred_bytes(record: &Record) -> Option<f64> {
    let at_end =
        |phase: &PhaseRecord| phase.debt_end.iter().find(|gauge| gauge.name == DEFERRED_BYTES).map(|gauge| gauge.value);
    let after = at_end(ended(record, PhaseKind::Drain)?)?;
    Some(after - before_work(record).and_then(at_end).unwrap_or_default())
}

/// The phases that serve operations and the drain, or the reason why deferred work cannot be included.
fn spans(record: &Record) -> Result<(Vec<&PhaseRecord>, &PhaseRecord), String> {
    let drain = ended(record, PhaseKind::Drain).ok_or("the trial ended before its debt was drained")?;
    let mut working: Vec<&PhaseRecord> = record.loops().collect();
    if working.is_empty() {
        working.extend(record.phase(PhaseKind::Loops));
    }
    if working.is_empty() {
        return Err("no loop ended".to_owned());
    }
    let warmup = record.phase(PhaseKind::Warmup);
    if warmup.is_none() && record.plan.run.warmup_s > 0.0 {
        return Err("the record lacks the warmup, which put work off too".to_owned());
    }
    working.extend(warmup);
    working.extend(record.phase(PhaseKind::Backlog));
    Ok((working, drain))
}

fn per_op(working: &[&PhaseRecord], drain: &PhaseRecord, cost: fn(&Spent) -> Metric) -> Metric {
    total(working, cost).plus(&cost(&drain.spent)).per(operations(working), "operations")
}

/// The drain's percentage of all resources spent, including the drain.
fn drain_percent(working: &[&PhaseRecord], drain: &PhaseRecord, cost: fn(&Spent) -> Metric) -> Metric {
    let of_drain = cost(&drain.spent);
    let all = total(working, cost).plus(&of_drain);
    of_drain.map(|spent| 100.0 * spent).over(&all, "work in warmup, loops and drain")
}

fn operations(phases: &[&PhaseRecord]) -> f64 {
    phases.iter().map(|phase| phase.ops as f64).sum()
}

fn total(phases: &[&PhaseRecord], cost: impl Fn(&Spent) -> Metric) -> Metric {
    phases.iter().fold(Metric::Value(0.0), |sum, phase| sum.plus(&cost(&phase.spent)))
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::engine::Gauge;
    use rumba_engine_api::rate::Rate;

    use super::*;
    use crate::testing::{phase, record, results};

    fn charged_wkb(record: &Record) -> Metric {
        charged_run(record)[0].1.clone()
    }

    #[test]
    fn the_drain_is_charged_to_the_operations_of_warmup_and_loops() {
        let mut record = record("a", 8, 1);
        record.phases = vec![
            phase(PhaseKind::Warmup, 10.0, 100, 1024.0 * 50.0),
            phase(PhaseKind::Loop(1), 10.0, 200, 1024.0 * 100.0),
            phase(PhaseKind::Loop(2), 10.0, 200, 1024.0 * 100.0),
            phase(PhaseKind::Loops, 20.0, 400, 1024.0 * 200.0),
            phase(PhaseKind::Drain, 5.0, 0, 1024.0 * 750.0),
        ];
        assert_eq!(charged_wkb(&record), Metric::Value(2.0), "(50 + 200 + 750) KB over 500 operations");
        assert_eq!(drained_bytes(&record), Some((1024.0 * 250.0, 1024.0 * 750.0)));
    }

    #[test]
    fn workload_rate_is_per_minute_and_percent_of_its_pace_limit() {
        let mut record = record("a", 8, 1);
        let loops = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
        loops.seconds = 30.0;
        let get = loops.op_types.get_mut("get_node").unwrap();
        (get.count, get.rate) = (600, Some(Rate { name: "tpmG".into(), most: Some(1500.0) }));
        let charged: std::collections::BTreeMap<_, _> = charged_run(&record).into_iter().collect();
        assert_eq!(charged["tpmG"], Metric::Value(1200.0));
        assert_eq!(charged["tpmG_percent"], Metric::Value(80.0));
        loops_cut_off(&mut record);
        assert!(!charged_run(&record).iter().any(|(name, _)| name.starts_with("tpm")), "half a run has no rate");
    }

    /// Sets the total size on disk at the end of a phase, and the share of logs in it.
    fn takes(record: &mut Record, kind: PhaseKind, size: f64, logs: f64) {
        let phase = record.phases.iter_mut().find(|phase| phase.phase == kind).unwrap();
        (phase.metrics.size_bytes, phase.metrics.log_bytes) = (Metric::Value(size), Metric::Value(logs));
    }

    /// Twenty thousand operations of a type with a rate in the warmup, and as many in each of two loops of ten seconds.
    /// The data grows from 900 MB to 1,020 MB, and the logs from 5 MB to 300 MB.
    fn grown() -> Record {
        let mut record = record("a", 8, 1);
        record.phases.insert(1, phase(PhaseKind::Settle, 1.0, 0, 0.0));
        let rated = record.phases.iter_mut().filter_map(|phase| phase.op_types.get_mut("get_node"));
        rated.for_each(|op| op.rate = Some(Rate { name: "tpmG".into(), most: None }));
        takes(&mut record, PhaseKind::Settle, 905e6, 5e6);
        takes(&mut record, PhaseKind::Drain, 1320e6, 300e6);
        // Before the drain there was more on disk.
        takes(&mut record, PhaseKind::Loops, 1500e6, 400e6);
        record
    }

    /// The growth per operation of the rate, and in eight hours.
    fn growth_of(record: &Record) -> [Metric; 2] {
        let charged: std::collections::BTreeMap<_, _> = charged_run(record).into_iter().collect();
        ["tpmG_growth_bytes_per_op", "tpmG_growth_bytes_per_8h"].map(|name| charged[name].clone())
    }

    #[test]
    fn growth_spans_settle_to_drain_and_scales_to_eight_hours() {
        let mut record = grown();
        // 120 MB over 60,000 operations; at 40,000 in 20 s there are 120,000 a minute, of 480.
        assert_eq!(growth_of(&record), [2000.0, 2000.0 * 120_000.0 * 480.0].map(Metric::Value));
        takes(&mut record, PhaseKind::Drain, 1194e6, 300e6);
        assert_eq!(growth_of(&record)[0], Metric::Value(-100.0), "more was freed than added");
    }

    #[test]
    fn unchanged_files_and_mostly_unchanged_medians_grow_by_zero() {
        const PIECE: f64 = 4.0 * 1024.0 * 1024.0;
        let grown_by = |bytes: f64, repeat: u32| {
            let mut record = grown();
            record.plan.repeat = repeat;
            takes(&mut record, PhaseKind::Drain, 1200e6 + bytes, 300e6);
            record
        };
        assert_eq!(growth_of(&grown_by(0.0, 1)), [0.0, 0.0].map(Metric::Value));
        let repeats = [0.0, 0.0, PIECE].into_iter().zip(1..).map(|(bytes, repeat)| grown_by(bytes, repeat));
        let summary = crate::summarise(&results(repeats.collect()));
        let run = summary.row("a", 8).unwrap().run.as_ref().unwrap();
        let figure = &run.metrics["tpmG_growth_bytes_per_op"];
        assert_eq!(figure.numbers(), [0.0, 0.0, PIECE / 60_000.0]);
        assert_eq!((&figure.median, figure.lacking()), (&Metric::Value(0.0), None));
        assert_eq!(run.metrics["tpmG_growth_bytes_per_8h"].median, Metric::Value(0.0));
    }

    /// Removes something from a record.
    type Change<'a> = &'a dyn Fn(&mut Record);

    #[test]
    fn unknown_growth_is_absent_with_its_reason_and_not_zero() {
        let absent = |change: &dyn Fn(&mut Record)| {
            let mut record = grown();
            change(&mut record);
            growth_of(&record).map(|metric| metric.reason().unwrap().to_owned())
        };
        let changes: [(&str, Change<'_>); 4] = [
            ("no operations of this type", &|record| {
                let ops = record.phases.iter_mut().flat_map(|phase| phase.op_types.values_mut());
                ops.for_each(|op| op.count = 0);
            }),
            ("before its debt was drained", &|record| record.phases.retain(|phase| phase.phase != PhaseKind::Drain)),
            ("lacks the settle", &|record| record.phases.retain(|phase| phase.phase != PhaseKind::Settle)),
            ("elsewhere", &|record| {
                let drain = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Drain).unwrap();
                drain.metrics.size_bytes = Metric::absent("the server runs elsewhere");
            }),
        ];
        for (why, change) in changes {
            let reported = absent(change);
            assert!(reported.iter().all(|reason| reason.contains(why)), "{why}: {reported:?}");
        }
    }

    fn loops_cut_off(record: &mut Record) {
        record.phases.iter_mut().for_each(|phase| phase.complete &= phase.phase != PhaseKind::Loops);
    }

    #[test]
    fn deferred_writes_are_estimate_after_drain_less_that_before() {
        let mut record = record("a", 8, 1);
        let of = |record: &Record| charged_run(record).into_iter().find(|(name, _)| name == "wkb_per_op_deferred");
        assert_eq!(of(&record), None, "an engine that makes no estimate");
        let deferred = |kb: f64| vec![Gauge::new(DEFERRED_BYTES, 1024.0 * kb)];
        record.phases.insert(1, phase(PhaseKind::Settle, 1.0, 0, 0.0));
        record.phases[1].debt_end = deferred(60_000.0);
        let drain = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Drain).unwrap();
        drain.debt_end = deferred(180_000.0);
        assert_eq!(of(&record).unwrap().1, Metric::Value(2.0), "120,000 KB over 60,000 operations");
    }

    #[test]
    fn the_settle_is_charged_to_the_rows_and_bytes_of_the_load() {
        let mut record = record("a", 8, 1);
        let mut load = phase(PhaseKind::Load, 10.0, 100, 1024.0 * 10.0);
        load.metrics.logical_bytes = Metric::Value(1024.0 * 50.0);
        let mut settle = phase(PhaseKind::Settle, 1.0, 0, 1024.0 * 190.0);
        settle.spent.cpu_s = Metric::Value(0.1);
        record.phases = vec![load, settle];
        let expected = [
            ("wkb_per_row_with_settle".to_owned(), Metric::Value(2.0)),
            ("cpu_us_per_row_with_settle".to_owned(), Metric::Value(2000.0)),
            ("write_amp_with_settle".to_owned(), Metric::Value(4.0)),
        ];
        assert_eq!(charged_load(&record), expected, "200 KB and 0.2 s over 100 rows and 50 KB");
        record.phases.pop();
        let reason = Metric::absent("the trial ended before its load was settled");
        assert!(charged_load(&record).iter().all(|(_, metric)| *metric == reason));
    }
}
