//! Whether a verdict may use the existing figures.
//!
//! An exact test decides whether two sides differ by more than their noise. It cannot detect that the difference does
//! not come from the engines. Four conditions withhold a verdict, each with a reason that the tables, the page and the
//! JSON show:
//!
//! 1. both sides are the same engine with the same settings: the comparison is void;
//! 2. a build with assertions supports no verdict on rates, times and CPU;
//! 3. a disturbed host supports no verdict on rates, times and CPU ([`DISTURBED_PERCENT`]);
//! 4. if the drain is more than [`DRAIN_PERCENT`] of a figure that includes it, the figure without it must agree; a cost
//!    has no figure without it.
//!
//! Ratios, claims, gates and histories all use this module.

use rumba_results::comparison::{Part, Row, metric_info};
use rumba_results::metric::{Class, Metric};
use rumba_results::prices;
use rumba_results::ratio::{Change, Ratio};

use crate::ratios::ratio;

/// CPU taken by a hypervisor and by other programs, percent of all CPUs in the median trial, above which there are no
/// verdicts on rates, times and CPU. Two runs of one engine on an idle host differ by one or two percent. A host that
/// loses more CPU changes figures as much as the differences that verdicts are about.
pub const DISTURBED_PERCENT: f64 = 2.0;

/// The drain's share of a figure, in percent, above which the figure without it must agree. The drain's work depends on
/// the engine's state at the end of the loops. The larger its share, the more the sum depends on that moment.
pub const DRAIN_PERCENT: f64 = 25.0;

/// Figures that include the drain: with it, without it, and the drain's share.
const DRAINED: [[&str; 3]; 3] = [
    ["wkb_per_op_with_drain", "wkb_per_op", "wkb_drain_percent"],
    ["cpu_us_per_op_with_drain", "cpu_us_per_op", "cpu_drain_percent"],
    ["host_cpu_us_per_op_with_drain", "host_cpu_us_per_op", "host_cpu_drain_percent"],
];

/// The reason why there is no verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withheld {
    Void(String),
    /// There is something to compare, but these figures cannot decide it.
    Undecided(String),
}

impl Withheld {
    /// The text in place of a verdict.
    pub fn reason(&self) -> &str {
        match self {
            Withheld::Void(why) | Withheld::Undecided(why) => why,
        }
    }

    fn change(&self) -> Change {
        match self {
            Withheld::Void(_) => Change::Void,
            Withheld::Undecided(_) => Change::Undecided,
        }
    }
}

/// A figure that a verdict reads: its row and part, and its metric or percentile.
pub type Read<'a> = (&'a Row, Part, &'a str);

/// The reason why these figures support no verdict at all; `None` if they may.
pub fn withheld<'a>(figures: impl Iterator<Item = Read<'a>> + Clone) -> Option<Withheld> {
    let rows = || figures.clone().map(|(row, ..)| row);
    let same = |row: &'a Row| rows().find_map(|other| same_engine(row, other));
    if let Some(why) = rows().find_map(same) {
        return Some(Withheld::Void(why.to_owned()));
    }
    figures.clone().find_map(|(row, part, metric)| unreliable(row, part, metric)).map(Withheld::Undecided)
}

/// The reason why two rows of one run are the same engine.
pub fn same_engine<'a>(row: &'a Row, other: &Row) -> Option<&'a str> {
    let same = row.same_as.iter().find(|same| same.engine == other.engine && row.clients == other.clients);
    same.map(|same| same.reason.as_str())
}

/// The reason why one figure supports no verdict: its build, disturbances of the host, or a drain that cannot be left
/// out.
fn unreliable(row: &Row, part: Part, metric: &str) -> Option<String> {
    let disturbed = || row.assertions.clone().or_else(|| disturbed(row, part));
    let of_host = if class(metric).depends_on_cpu() { disturbed() } else { None };
    of_host.or_else(|| mostly_drain(row, metric))
}

/// The reason why a cost supports no verdict: the drain is a large share of it, and no cost leaves the drain out.
fn mostly_drain(row: &Row, metric: &str) -> Option<String> {
    let (_, why) = prices::inputs(metric).iter().find_map(|input| without_drain(input, std::iter::once(row)))?;
    Some(format!("{why}, and no cost leaves the drain out"))
}

/// The kind of a metric; unlisted metrics are percentiles.
fn class(metric: &str) -> Class {
    metric_info(metric).map_or(Class::Time, |info| info.class)
}

fn disturbed(row: &Row, part: Part) -> Option<String> {
    let figures = row.part(part)?;
    let percent = |name: &str| figures.median(name).value().unwrap_or(0.0);
    let (stolen, others) = (percent("stolen_cpu_percent"), percent("others_cpu_percent"));
    (stolen + others > DISTURBED_PERCENT).then(|| {
        let during = if part == Part::Load { "the load" } else { "the loops" };
        format!(
            "the host was disturbed: during {during} of {}, a hypervisor took {stolen:.1}% of its CPU and other programs \
             used {others:.1}%, together more than {DISTURBED_PERCENT}%",
            row.engine
        )
    })
}

/// Withholds the verdict of a ratio of two rows if their figures do not support one.
pub fn withhold(ratio: &mut Ratio, base: &Row, other: &Row, part: Part) {
    let why = withheld([base, other].map(|row| (row, part, ratio.metric.as_str())).into_iter());
    match why {
        // An engine compared with itself is void in every figure, also in a missing one.
        Some(why @ Withheld::Void(_)) => put(ratio, &why),
        // The reason for a missing figure is already set.
        _ if !ratio.has_figure() => {}
        Some(why) => put(ratio, &why),
        None if ratio.lacking.is_none() => {
            if let Some(why) = drained(ratio, base, other, part) {
                put(ratio, &Withheld::Undecided(why));
            }
        }
        None => {}
    }
}

pub fn void(ratio: &mut Ratio, reason: &str) {
    put(ratio, &Withheld::Void(reason.to_owned()));
}

fn put(ratio: &mut Ratio, why: &Withheld) {
    let reason = why.reason();
    (ratio.low, ratio.high) = (Metric::absent(reason), Metric::absent(reason));
    (ratio.change, ratio.p, ratio.more_repeats) = (why.change(), None, None);
    ratio.lacking = Some(reason.to_owned());
}

/// The figure without the drain that must agree with this one, and the reason: the drain is too large a share in one of
/// these rows.
pub fn without_drain<'a>(metric: &str, rows: impl Iterator<Item = &'a Row>) -> Option<(&'static str, String)> {
    let [with, without, share] = DRAINED.into_iter().find(|[with, ..]| *with == metric)?;
    let percent = |row: &'a Row| Some((row, row.part(Part::Run)?.median(share).value()?));
    let large = rows.filter_map(percent).filter(|(_, percent)| *percent > DRAIN_PERCENT);
    let (row, percent) = large.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some((without, format!("the drain is {percent:.0}% of {with} of {}", row.engine)))
}

fn drained(ratio: &Ratio, base: &Row, other: &Row, part: Part) -> Option<String> {
    if part == Part::Load || matches!(ratio.change, Change::Undecided | Change::SingleRun) {
        return None;
    }
    let (without, why) = without_drain(&ratio.metric, [base, other].into_iter())?;
    let figure = |row: &Row| row.part(part).and_then(|part| part.metrics.get(without)).cloned();
    let starts = [base, other].map(|row| row.starts(part));
    let apart = match (figure(base), figure(other)) {
        (Some(base), Some(other)) => self::ratio(without, &ratio.unit, true, (&base, &other), starts).change,
        _ => Change::Undecided,
    };
    (apart != ratio.change).then(|| format!("{why}, and {without}, which leaves it out, does not say the same"))
}

#[cfg(test)]
mod tests {
    use rumba_results::claim::{Claim, Judgement, Verdict};
    use rumba_results::prices::{PRICED, Prices};
    use rumba_results::record::{PhaseKind, Record};
    use rumba_results::results::Results;

    use super::*;
    use crate::testing::{record, results};
    use crate::{Found, Gate, compare, summarise};

    /// Four repeats each of engines `a` and `b`, with `b` twice as good in everything, and with this change.
    fn records(change: impl Fn(&mut Record)) -> Vec<Record> {
        let of = |engine: &'static str, factor: f64| {
            (1..=4).map(move |repeat| {
                let mut record = record(engine, 8, repeat);
                let noise = 1.0 + f64::from(repeat) / 1000.0;
                for phase in &mut record.phases {
                    phase.metrics.ops_per_s = Metric::Value(100.0 * factor * noise);
                    phase.metrics.cpu_us_per_op = Metric::Value(50.0 / factor * noise);
                    phase.metrics.size_bytes = Metric::Value(1e9 / factor * noise);
                    phase.metrics.rss_bytes = Metric::Value(1e8 / factor * noise);
                    for spent in [&mut phase.spent.device_write_bytes, &mut phase.spent.cpu_s] {
                        *spent = spent.map(|spent| spent / factor * noise);
                    }
                    phase.metrics.wkb_per_op = phase.metrics.wkb_per_op.map(|value| value / factor * noise);
                }
                record
            })
        };
        let mut records: Vec<Record> = of("a", 1.0).chain(of("b", 2.0)).collect();
        records.iter_mut().for_each(change);
        records
    }

    const CLAIMS: [&str; 4] = [
        r#"ops_per_s("b") > ops_per_s("a")"#,
        r#"cpu_us_per_op("b") < cpu_us_per_op("a")"#,
        r#"size_bytes("b") < size_bytes("a")"#,
        r#"wkb_per_op("b") < wkb_per_op("a")"#,
    ];

    fn judged(records: Vec<Record>, holds: &[&str]) -> Vec<Judgement> {
        let claims = holds.iter().map(|holds| Claim { holds: (*holds).to_owned(), ..Claim::default() });
        summarise(&Results { claims: claims.collect(), ..results(records) }).claims
    }

    fn of_metric(records: Vec<Record>, metric: &str) -> Ratio {
        summarise(&results(records)).relative("a", "b", 8).unwrap().metric(metric).unwrap().clone()
    }

    /// The host's CPU that a hypervisor and other programs took during the loops of each trial of `b`, percent.
    fn disturbed(stolen: f64, others: f64) -> impl Fn(&mut Record) {
        move |record| {
            if record.plan.engine.name == "b" {
                let loops = record.phases.iter_mut().find(|phase| phase.phase == PhaseKind::Loops).unwrap();
                loops.metrics.stolen_cpu_percent = Metric::Value(stolen);
                loops.metrics.others_cpu_percent = Metric::Value(others);
            }
        }
    }

    #[test]
    fn disturbed_host_or_assertions_decide_sizes_but_no_rates() {
        let with_assertions = |change: fn(&mut Record)| {
            records(|record| {
                if record.plan.engine.name == "a" {
                    change(record)
                }
            })
        };
        let setting = |record: &mut Record| {
            record.effective_settings.push(("built_with_assertions".to_owned(), "true".to_owned()))
        };
        for (records, why) in [
            (records(disturbed(8.1, 0.0)), "the host was disturbed"),
            (records(disturbed(0.0, 35.0)), "the host was disturbed"),
            (records(disturbed(1.5, 1.5)), "the host was disturbed"),
            (with_assertions(setting), "with assertions"),
            (with_assertions(|record| record.version = Some("10.11.6-MariaDB-debug".to_owned())), "with assertions"),
        ] {
            for (metric, expected) in [
                ("ops_per_s", Change::Undecided),
                ("cpu_us_per_op", Change::Undecided),
                ("get_node.p99_ms", Change::Undecided),
                ("size_bytes", Change::Better),
                ("wkb_per_op_with_drain", Change::Better),
                ("rss_bytes", Change::Better),
            ] {
                let ratio = of_metric(records.clone(), metric);
                assert_eq!(ratio.change, expected, "{metric}: {ratio:?}");
                let is_reported = ratio.lacking.is_some_and(|lacking| lacking.contains(why));
                assert_eq!(is_reported, expected == Change::Undecided, "{metric}");
            }
            let judged = judged(records, &CLAIMS);
            let verdicts: Vec<Verdict> = judged.iter().map(|judged| judged.verdict).collect();
            use Verdict::{Holds, Undecided};
            assert_eq!(verdicts, [Undecided, Undecided, Holds, Holds]);
            assert!(judged[0].reason.contains(why), "{}", judged[0].reason);
        }
        let calm = judged(records(disturbed(1.0, 0.9)), &CLAIMS);
        assert!(calm.iter().all(|judged| judged.verdict == Verdict::Holds), "{calm:?}");
    }

    #[test]
    fn a_disturbed_run_leaves_a_gate_on_its_throughput_undecided() {
        let of = |engine: &str, change: &dyn Fn(&mut Record)| {
            let mut own: Vec<Record> = records(|_| ()).into_iter().filter(|r| r.plan.engine.name == engine).collect();
            own.iter_mut().for_each(change);
            own.iter_mut().for_each(|record| record.plan.engine.name = "a".to_owned());
            results(own)
        };
        let (fast, slow) = (of("b", &|_| ()), of("a", &|_| ()));
        let gate = Gate::parse("ops_per_s < 0.9").unwrap();
        assert_eq!(gate.judge(&compare(&fast, &slow)).unwrap()[0].verdict, Found::Holds);
        let slow = of("a", &|record| {
            record.plan.engine.name = "b".to_owned();
            disturbed(8.1, 0.0)(record);
        });
        let gated = gate.judge(&compare(&fast, &slow)).unwrap().remove(0);
        assert_eq!(gated.verdict, Found::Undecided);
        assert!(gated.reason.contains("the host was disturbed"), "{}", gated.reason);
    }

    /// Makes the drain this large a part of the bytes that `b` writes, with this many KB per operation in the loops
    /// alone.
    fn with_drain(drain_bytes: f64, without: [f64; 2]) -> impl Fn(&mut Record) {
        move |record| {
            let is_b = record.plan.engine.name == "b";
            for phase in &mut record.phases {
                if phase.phase == PhaseKind::Drain && is_b {
                    phase.spent.device_write_bytes =
                        Metric::Value(drain_bytes * (1.0 + 1e-3 * f64::from(record.plan.repeat)));
                }
                let noise = 1.0 + f64::from(record.plan.repeat) / 1000.0;
                phase.metrics.wkb_per_op = Metric::Value(without[usize::from(is_b)] * noise);
            }
        }
    }

    const DRAINED_CLAIM: &str = r#"wkb_per_op_with_drain("b") < wkb_per_op_with_drain("a")"#;

    #[test]
    fn a_drain_above_a_quarter_needs_the_figure_without_it_to_agree() {
        // `b` wrote 150 MB in warmup and loops: with 90 MB of drain that is 38% of all, and still less than `a`.
        let verdict = |drain: f64, without: [f64; 2]| {
            let ratio = of_metric(records(with_drain(drain, without)), "wkb_per_op_with_drain");
            let claim = judged(records(with_drain(drain, without)), &[DRAINED_CLAIM]).remove(0);
            (ratio.change, claim.verdict, ratio.lacking.unwrap_or_default(), claim.reason)
        };
        let (change, claim, ..) = verdict(9e7, [5.0, 2.5]);
        assert_eq!((change, claim), (Change::Better, Verdict::Holds), "both figures say so");
        let (change, claim, lacking, reason) = verdict(9e7, [5.0, 6.0]);
        assert_eq!((change, claim), (Change::Undecided, Verdict::Undecided));
        for why in [lacking, reason] {
            assert!(why.starts_with("the drain is 38% of wkb_per_op_with_drain of b, and"), "{why}");
        }
        let (change, claim, ..) = verdict(4e7, [5.0, 6.0]);
        assert_eq!((change, claim), (Change::Better, Verdict::Holds), "a fifth");
    }

    #[test]
    fn a_cost_that_is_mostly_drain_decides_nothing() {
        let verdict = |drain: f64| {
            let drained = with_drain(drain, [5.0, 2.5]);
            let prices = Prices { drive: 1.0, drive_tb_written: 1.0, ..Prices::default() };
            let priced = |record: &mut Record| {
                drained(record);
                record.plan.run.prices = Some(prices.clone());
            };
            let ratio = of_metric(records(priced), PRICED[0]);
            (ratio.change, ratio.lacking.unwrap_or_default())
        };
        assert_eq!(verdict(4e7).0, Change::Better, "a fifth");
        let (change, why) = verdict(9e7);
        let expected = "the drain is 38% of wkb_per_op_with_drain of b, and no cost leaves the drain out";
        assert_eq!((change, why.as_str()), (Change::Undecided, expected));
    }
}
