//! The charged metrics: what rows and operations cost once their debt is paid.

use rumba_core::counted::{NOT_COUNTED, metrics_of_record, rule_of};
use rumba_core::metric::Metric;
use rumba_core::record::{PhaseKind, PhaseRecord, Record, Spent};

/// Charged metrics by stable name.
pub type Charged = Vec<(String, Metric)>;

/// The load's charged metrics: Σ over load and settle of bytes or CPU, per row
/// or logical byte loaded. Without the settle, an engine that leaves its writes
/// to the page cache would load for nothing.
pub fn charged_load(record: &Record) -> Charged {
    let phases = loaded(record);
    let over = |cost: fn(&Spent) -> Metric, scale: f64, per: fn(&PhaseRecord) -> Metric, what: &str| match &phases {
        Ok((load, settle)) => match per(load) {
            Metric::Value(amount) => total(&[load, settle], cost).map(|spent| spent * scale).per(amount, what),
            absent => absent,
        },
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

/// The loops' charged metrics.
///
/// (Σ over warmup, loops, backlog and drain of bytes or CPU) / (Σ over warmup,
/// loops and backlog of operations). The warmup is in both sums: it put work off
/// as well, and what it put off cannot be told apart in the drain.
pub fn charged_run(record: &Record) -> Charged {
    let spans = spans(record);
    let over = |cost: fn(&Spent) -> Metric, scale: f64| match &spans {
        Ok((working, drain)) => per_op(working, drain, cost).map(|value| value * scale),
        Err(reason) => Metric::absent(reason.clone()),
    };
    let mut charged = vec![
        ("wkb_per_op_with_drain".to_owned(), over(written, 1.0 / 1024.0)),
        ("cpu_us_per_op_with_drain".to_owned(), over(cpu_s, 1e6)),
    ];
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
    charged
}

/// The rates that the workload reports.
fn rates(record: &Record) -> Charged {
    let Some(loops) = ended(record, PhaseKind::Loops) else { return Vec::new() };
    let mut all = Vec::new();
    for op in loops.op_types.values() {
        let Some(rate) = &op.rate else { continue };
        let per_minute = Metric::Value(60.0 * op.count as f64).per(loops.seconds, "time passed");
        if let Some(most) = rate.most {
            all.push((rate.percent(), per_minute.map(|per_minute| 100.0 * per_minute).per(most, "rate allowed")));
        }
        all.push((rate.name.to_string(), per_minute));
    }
    all
}

/// What a counter of the engine's own grew by for each operation, from the end of the settle to that of the drain. One that
/// was not there before began at nothing, where the engine told others: a level that had never held anything.
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

/// Whether the engine told counters at both ends of what it is charged for: one that is not among them counted nothing.
pub fn counts_alike(record: &Record) -> bool {
    let tells = |phase: Option<&PhaseRecord>| phase.is_some_and(|phase| !phase.counters.is_empty());
    tells(before_work(record)) && tells(ended(record, PhaseKind::Drain))
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

/// The phases that serve operations and the drain; or the reason why the debt cannot be charged.
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

fn operations(phases: &[&PhaseRecord]) -> f64 {
    phases.iter().map(|phase| phase.ops as f64).sum()
}

fn total(phases: &[&PhaseRecord], cost: impl Fn(&Spent) -> Metric) -> Metric {
    phases.iter().fold(Metric::Value(0.0), |sum, phase| sum.plus(&cost(&phase.spent)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::engine::Gauge;
    use rumba_core::rate::Rate;

    use super::*;
    use crate::testing::{phase, record};

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
    fn a_rate_that_the_workload_reports_is_of_a_minute_and_of_what_its_pace_allows() {
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

    fn loops_cut_off(record: &mut Record) {
        record.phases.iter_mut().for_each(|phase| phase.complete &= phase.phase != PhaseKind::Loops);
    }

    #[test]
    fn a_trial_without_its_drain_has_no_charged_figure() {
        let mut record = record("a", 8, 1);
        record.phases.retain(|phase| phase.phase != PhaseKind::Drain);
        assert_eq!(charged_wkb(&record), Metric::absent("the trial ended before its debt was drained"));
    }

    #[test]
    fn a_counter_that_comes_later_began_at_nothing_where_others_were_told() {
        let level = |bytes: f64| Gauge::new("written_compaction_level4_bytes", bytes);
        let flushes = |bytes: f64| Gauge::new("written_flush_bytes", bytes);
        let mut record = record("a", 8, 1);
        record.phases.insert(1, phase(PhaseKind::Settle, 1.0, 0, 0.0));
        record.phases[1].counters = vec![flushes(1024.0)];
        let drain = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Drain).unwrap();
        drain.counters = vec![flushes(1024.0), level(1024.0 * 60_000.0)];
        let of = |record: &Record| charged_run(record).into_iter().find(|(name, _)| name.contains("level4")).unwrap().1;
        assert_eq!(of(&record), Metric::Value(1.0), "60,000 KB over 60,000 operations");
        record.phases[1].counters.clear();
        assert_eq!(of(&record), Metric::absent(NOT_COUNTED), "nobody was asked before");
    }

    #[test]
    fn one_absent_part_makes_the_sum_absent_with_its_reason() {
        let mut record = record("a", 8, 1);
        let drain = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Drain).unwrap();
        drain.spent.device_write_bytes = Metric::absent("tmpfs has no device");
        assert_eq!(charged_wkb(&record), Metric::absent("tmpfs has no device"));
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
