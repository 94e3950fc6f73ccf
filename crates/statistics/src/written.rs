//! Finds the kinds of bytes written that account for a change of the total.

use rumba_results::comparison::{Compared, Part};
use rumba_results::counted::WRITTEN;
use rumba_results::ratio::{Change, SAME_MARGIN};
use rumba_results::written::{WrittenChange, WrittenKind};

/// The metric whose change is explained.
const ALL: &str = "wkb_per_op_with_drain";
/// A kind is reported if it reduces the unexplained rest by at least this share of the change.
const WORTH: f64 = 0.1;

/// The causes of a change in bytes written per operation; `None` if there is no change beyond noise, or if the engine
/// does not count.
pub fn written_change(part: Part, metrics: &[Compared]) -> Option<WrittenChange> {
    let all = metrics.iter().find(|compared| part == Part::Run && compared.ratio.metric == ALL)?;
    let (base, other) = medians(all)?;
    let is_change = match all.ratio.change {
        Change::Better | Change::Worse | Change::Differs => true,
        Change::SingleRun => all.ratio.ratio.value().is_some_and(|ratio| (ratio - 1.0).abs() > SAME_MARGIN),
        Change::Same | Change::Undecided | Change::Void => false,
    };
    if !is_change || base == other {
        return None;
    }
    let kinds: Vec<WrittenKind> = metrics.iter().filter_map(|compared| kind(compared, other - base)).collect();
    if kinds.is_empty() {
        return None;
    }
    let (kinds, rest) = fewest(kinds);
    Some(WrittenChange { base, other, kinds, rest })
}

fn medians(compared: &Compared) -> Option<(f64, f64)> {
    Some((compared.base.median.value()?, compared.other.median.value()?))
}

fn kind(compared: &Compared, change: f64) -> Option<WrittenKind> {
    let kind = WRITTEN.what(&compared.ratio.metric)?.to_owned();
    let (base, other) = medians(compared)?;
    Some(WrittenKind { kind, base, other, share: (other - base) / change })
}

/// The fewest kinds that add up to the whole, and the rest. Adds the kind that leaves the smallest rest, one after the
/// other, while it is worth reporting. An engine may also count parts of a kind, such as one level's share of all
/// compactions. Their sum with the kind would count them twice.
fn fewest(mut kinds: Vec<WrittenKind>) -> (Vec<WrittenKind>, f64) {
    let names: Vec<String> = kinds.iter().map(|kind| format!("{}_", kind.kind)).collect();
    kinds.retain(|kind| !names.iter().any(|whole| kind.kind.starts_with(whole.as_str())));
    let (mut reported, mut rest) = (Vec::new(), 1.0f64);
    let left = |rest: f64, kind: &WrittenKind| (rest - kind.share).abs();
    loop {
        let best = (0..kinds.len()).min_by(|&one, &two| left(rest, &kinds[one]).total_cmp(&left(rest, &kinds[two])));
        match best.filter(|&best| rest.abs() - left(rest, &kinds[best]) >= WORTH) {
            Some(best) => {
                let kind = kinds.swap_remove(best);
                rest -= kind.share;
                reported.push(kind);
            }
            None => return (reported, rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::engine::Gauge;
    use rumba_results::metric::Metric;
    use rumba_results::record::PhaseKind;
    use rumba_results::results::Results;

    use super::*;
    use crate::compare;
    use crate::testing::{record, results};

    /// A trial whose device wrote this many KB per operation, and whose engine reports these for each kind.
    fn run(kb: f64, kinds: &[(&str, f64)]) -> Results {
        let mut record = record("a", 8, 1);
        // Warmup and two loops, with the same number of operations each.
        let mut done = 0;
        for phase in &mut record.phases {
            let ops = if phase.phase == PhaseKind::Load { 0 } else { phase.ops };
            done += if phase.phase == PhaseKind::Loops { 0 } else { ops };
            let bytes = |kb_per_op: f64, ops: u64| kb_per_op * 1024.0 * ops as f64;
            phase.spent.device_write_bytes = Metric::Value(bytes(kb, ops));
            let counter = |(kind, kb): &(&str, f64)| Gauge::new(format!("written_{kind}_bytes"), bytes(*kb, done));
            phase.counters = kinds.iter().map(counter).collect();
        }
        results(vec![record])
    }

    fn explained(base: &Results, other: &Results) -> Option<WrittenChange> {
        let comparison = compare(base, other);
        comparison.rows.into_iter().find(|row| row.part == Part::Run).unwrap().written
    }

    fn reported(change: &WrittenChange) -> Vec<(&str, i64)> {
        let percent = |share: f64| (share * 100.0).round() as i64;
        change.kinds.iter().map(|kind| (kind.kind.as_str(), percent(kind.share))).collect()
    }

    #[test]
    fn the_kind_that_became_less_accounts_for_the_difference() {
        // As in docs/experiments/doublewrite.txt.
        let twice = run(14.96, &[("doublewrite", 6.90), ("pages", 7.40), ("redo", 0.55)]);
        let once = run(7.96, &[("doublewrite", 0.0), ("pages", 7.33), ("redo", 0.55)]);
        let change = explained(&twice, &once).unwrap();
        assert_eq!(reported(&change), [("doublewrite", 99)]);
        assert!((change.base - 14.96).abs() < 0.01 && (change.other - 7.96).abs() < 0.01, "{change:?}");
        assert!((change.kinds[0].base - 6.90).abs() < 0.01 && change.kinds[0].other == 0.0, "{change:?}");
        assert!((change.rest - 0.014).abs() < 0.01, "{change:?}");
        assert_eq!(reported(&explained(&once, &twice).unwrap()), [("doublewrite", 99)], "and the other way round");
        assert_eq!(explained(&twice, &twice), None, "there is nothing to explain");
    }

    #[test]
    fn subcategories_are_not_listed_next_to_their_category() {
        let kinds = |scale: f64| {
            [("wal", 1.0), ("compaction", 10.0 * scale), ("compaction_level1", 4.0 * scale), ("flush", 2.0 * scale)]
        };
        let change = explained(&run(13.0, &kinds(1.0)), &run(25.0, &kinds(2.0))).unwrap();
        assert_eq!(reported(&change), [("compaction", 83), ("flush", 17)]);
        // Counters without this form of name are left out, too.
        let kinds = |scale: f64| [("checkpointer", 5.0 * scale), ("pages", 6.0 * scale), ("wal", 4.0 * scale)];
        let change = explained(&run(10.0, &kinds(1.0)), &run(20.0, &kinds(2.0))).unwrap();
        assert_eq!(reported(&change), [("pages", 60), ("wal", 40)]);
    }

    #[test]
    fn opposite_and_uncounted_changes_are_reported() {
        let change =
            explained(&run(10.0, &[("pages", 8.0), ("redo", 2.0)]), &run(14.0, &[("pages", 14.0), ("redo", 0.0)]));
        let change = change.unwrap();
        assert_eq!(reported(&change), [("pages", 150), ("redo", -50)]);
        assert!(change.rest.abs() < 0.01);
        let change = explained(&run(10.0, &[("redo", 2.0)]), &run(20.0, &[("redo", 2.1)])).unwrap();
        assert!(change.kinds.is_empty() && change.rest == 1.0, "{change:?}");
        assert_eq!(explained(&run(10.0, &[]), &run(20.0, &[])), None, "an engine that counts nothing");
    }
}
