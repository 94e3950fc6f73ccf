//! Percentiles that a slow repeat lacks because it served too few operations.
//!
//! If such a repeat were left out, a gate could pass because the engine was too slow to be measured. The missing
//! percentile is at least the next lower one that has enough samples. A test with this lower bound can show that it is
//! worse, and errs no more often than with the percentile itself. If the bound shows nothing and the repeat served
//! fewer operations than every repeat of the base, the gate does not pass.

use rumba_results::comparison::{Compared, ComparedRow, Figure};
use rumba_results::metric::{Better, Metric};
use rumba_results::ratio::{Change, Ratio};

use crate::ratios::test;

/// A figure of the other with lower bounds in place of missing percentiles.
pub struct Bounded {
    pub figure: Figure,
    pub words: String,
}

/// The other's figure with a lower bound for each repeat that has too few samples. `None` if the base lacks some too,
/// or if a repeat lacks it for another reason.
pub fn bounded(compared: &Compared) -> Option<Bounded> {
    let Compared { base, other, ratio } = compared;
    if other.at_least.is_empty() || base.values.iter().any(|value| value.value().is_none()) {
        return None;
    }
    // A verdict may be withheld for another reason, such as a disturbed host, where no bound helps.
    let of_other = other.lacking().map(|why| format!("of the other, {why}"));
    if ratio.lacking.is_some() && ratio.lacking != of_other {
        return None;
    }
    let known = |(value, least): (&Metric, &Metric)| value.value().or(least.value());
    let values: Option<Vec<f64>> = other.values.iter().zip(&other.at_least).map(known).collect();
    let figure = crate::statistics::figure(values?.into_iter().map(Metric::Value).collect());
    let lacking = other.lacking().or_else(|| other.median.reason().map(str::to_owned))?;
    let words = format!("with a lower bound where it has too few samples ({lacking})");
    Some(Bounded { figure, words })
}

/// The ratio with these bounds, if it is worse even with them.
pub fn worse(compared: &Compared, looks: f64) -> Option<(Ratio, Figure)> {
    let Bounded { figure, .. } = bounded(compared)?;
    let tested = test(&compared.base.numbers(), &figure.numbers(), Better::Less, looks);
    let (base, other) = (compared.base.median.value()?, figure.median.value()?);
    let (low, high) = (tested.low.into(), Metric::absent("only a lower bound is known of some repeats"));
    let ratio = Ratio {
        ratio: Metric::from(other / base),
        low,
        high,
        change: tested.change,
        p: tested.p,
        ..compared.ratio.clone()
    };
    (tested.change == Change::Worse).then_some((ratio, figure))
}

/// The reason why a percentile was lost to slowness. Each repeat of the other that lacks it must have served fewer
/// operations than every repeat of the base, which has it in all.
pub fn lost_while_slower(row: &ComparedRow, compared: &Compared) -> Option<String> {
    let Compared { base, other, .. } = compared;
    if other.at_least.is_empty() || base.values.iter().any(|value| value.value().is_none()) {
        return None;
    }
    let rate = row.metrics.iter().find(|compared| compared.ratio.metric == "ops_per_s")?;
    let slowest = rate.base.numbers().into_iter().min_by(f64::total_cmp)?;
    let lost = || other.values.iter().zip(&rate.other.values).filter(|(value, _)| value.value().is_none());
    let is_slower = lost().all(|(_, rate)| rate.value().is_some_and(|rate| rate < slowest));
    let why = lost().find_map(|(value, _)| value.reason())?;
    is_slower.then(|| {
        format!(
            "in the other, {} repeats that served fewer operations than any of the base have none: {why}",
            lost().count()
        )
    })
}

#[cfg(test)]
mod tests {
    use rumba_results::gate::Found;
    use rumba_results::record::{OpStats, Record};
    use rumba_results::results::Results;

    use crate::testing::{record, results, taking_turns};
    use crate::{Gate, compare};

    /// Operations per second, and a change of the percentiles of its reads.
    type Repeat = (f64, fn(&mut OpStats));

    fn run(repeats: [Repeat; 7]) -> Results {
        let record = |(repeat, (rate, change)): (u32, Repeat)| -> Record {
            let mut record = record("a", 8, repeat);
            for phase in &mut record.phases {
                phase.metrics.ops_per_s = (rate * (1.0 + f64::from(repeat) / 1e3)).into();
                phase.op_types.values_mut().for_each(change);
            }
            record
        };
        results((1..).zip(repeats).map(record).collect())
    }

    fn served(op: &mut OpStats, p95_ms: f64, p99_ms: f64) {
        let noise = 1.0 + (op.count % 7) as f64 * 1e-3;
        (op.response.p95_ms, op.response.p99_ms) = ((p95_ms * noise).into(), (p99_ms * noise).into());
    }

    const FEW: &str = "874 samples are too few for p99: fewer than 10 lie beyond it";

    fn fast(op: &mut OpStats) {
        served(op, 1.0, 2.0);
    }

    fn slow(op: &mut OpStats) {
        served(op, 39.0, 41.4);
    }

    /// A slow repeat with too few operations for a 99th percentile; nineteen in twenty took at most 40 ms.
    fn slowest(op: &mut OpStats) {
        served(op, 40.0, 0.0);
        op.response.p99_ms = rumba_results::metric::Metric::absent(FEW);
    }

    /// So slow that there is no percentile at all.
    fn unknown(op: &mut OpStats) {
        slowest(op);
        op.response.p95_ms = rumba_results::metric::Metric::absent(FEW);
    }

    fn found(other: [Repeat; 7], gate: &str) -> (Found, String) {
        let (base, other) = taking_turns(run([(100.0, fast); 7]), run(other));
        let gated = Gate::parse(gate).unwrap().judge(&compare(&base, &other)).unwrap();
        let of_loops = gated.into_iter().find(|gated| !gated.reason.starts_with("of the load")).unwrap();
        (of_loops.verdict, of_loops.reason)
    }

    /// Throughput is the same here, so that only the percentile is worse.
    fn as_slow(last: fn(&mut OpStats), rate: f64) -> [Repeat; 7] {
        let mut repeats: [Repeat; 7] = [(100.0, slow); 7];
        repeats[6] = (rate, last);
        repeats
    }

    #[test]
    fn twentyfold_percentile_closes_gate_despite_few_samples() {
        for gate in ["worse", "get_node.p99_ms > 1.2"] {
            let (verdict, reason) = found(as_slow(slowest, 100.0), gate);
            assert_eq!(verdict, Found::Holds, "{gate}: {reason}");
        }
    }

    #[test]
    fn percentile_lost_with_falling_throughput_does_not_pass() {
        for gate in ["worse", "get_node.p99_ms > 1.2"] {
            let (verdict, reason) = found(as_slow(unknown, 60.0), gate);
            assert_eq!(verdict, Found::NotJudged, "{gate}: {reason}");
            assert!(reason.contains("served fewer operations than any of the base"), "{reason}");
            let (verdict, _) = found(as_slow(unknown, 120.0), gate);
            assert_eq!(verdict, Found::Undecided, "{gate}: it was no slower");
        }
    }
}
