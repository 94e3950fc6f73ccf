//! The engines of one run compared with each other.

use std::collections::BTreeMap;

use rumba_engine_api::workload::engine_in_test;
use rumba_results::comparability::{Setup, unequal};
use rumba_results::comparison::{Figure, OpFigures, Part, PhaseFigures, Relative, RelativeRow, Row, metric_info};
use rumba_results::distinct;
use rumba_results::headline::CpuHeadline;
use rumba_results::prices::PRICED;
use rumba_results::ratio::{Change, HEADLINE_CPU, HEADLINE_LOAD, HEADLINE_RUN, MAIN_SHARE, Ratio};
use rumba_results::record::{Record, TrialPart};

use crate::ratios::{discover, headline_verdicts, ratio};
use crate::validity::withhold;

/// Metrics compared with the baseline in addition to the headlines.
const DETAILS: &[&str] = &["rkb_per_op", "wkb_per_op", "proc_wkb_per_op", "cpu_us_per_op", "rss_bytes", "size_bytes"];

/// The setup of an engine, with its test, in its trials. Trials that run the mix take precedence, because one that only
/// loads may run without the limits.
pub fn setup<'a>(records: impl IntoIterator<Item = &'a Record>, engine: &str) -> Option<Setup> {
    let mut of_engine = records.into_iter().filter(|record| record.plan.engine.name == engine);
    of_engine.find(|record| record.plan.part != TrialPart::Load).map(Setup::of_record)
}

/// Every engine compared with every other in the same test, with each as the baseline.
pub fn relative(rows: &[Row], records: &[&Record]) -> Vec<Relative> {
    let baselines = distinct(rows.iter().map(Row::engine_alone));
    if baselines.len() < 2 {
        return Vec::new();
    }
    let setups = rows.iter().filter_map(|row| Some((&*row.engine, setup(records.iter().copied(), &row.engine)?)));
    let setups: Setups = setups.collect();
    baselines.into_iter().map(|baseline| to_baseline(rows, baseline, &setups)).collect()
}

type Setups<'a> = BTreeMap<&'a str, Setup>;

fn to_baseline(rows: &[Row], baseline: &str, setups: &Setups<'_>) -> Relative {
    let others = rows.iter().filter(|row| row.engine_alone() != baseline);
    let row = |row: &Row| {
        let name = engine_in_test(baseline, row.test.as_deref());
        let base = rows.iter().find(|base| base.engine == name && base.clients == row.clients)?;
        let unsound = base.why_not_judged(Part::Run).or_else(|| row.why_not_judged(Part::Run));
        let is_of_group = |other: &&Row| (other.clients, &other.test) == (row.clients, &row.test);
        let mut metrics = ratios(base, row, &CpuHeadline::of_rows(rows.iter().filter(is_of_group)))?;
        if unsound.is_some() {
            for ratio in &mut metrics {
                (ratio.change, ratio.more_repeats) = (Change::Undecided, None);
            }
        }
        let both = setups.get(&*row.engine).zip(setups.get(&*base.engine));
        let comparability = both.map_or_else(Vec::new, |(own, base)| unequal(own, base));
        Some(RelativeRow { engine: row.engine.clone(), clients: row.clients, unsound, comparability, metrics })
    };
    let rows: Vec<RelativeRow> = others.filter_map(row).collect();
    let tested = rows.iter().filter(|row| row.unsound.is_none()).flat_map(|row| &row.metrics);
    Relative { baseline: baseline.to_owned(), headline_verdicts: headline_verdicts(tested), rows }
}

fn ratios(base_row: &Row, other_row: &Row, cpu: &CpuHeadline) -> Option<Vec<Ratio>> {
    let (base, other) = (base_row.run.as_ref()?, other_row.run.as_ref()?);
    let starts = [base_row, other_row].map(|row| row.starts(Part::Run));
    let mut all = Vec::new();
    for &name in HEADLINE_RUN.iter().chain(DETAILS).chain(&PRICED) {
        if let (Some(base), Some(other)) = (base.metrics.get(name), other.metrics.get(name)) {
            let unit = metric_info(name).map_or("", |info| info.unit);
            let is_headline = HEADLINE_RUN.contains(&name) && !cpu.excludes(name);
            all.push(ratio(name, unit, is_headline, (base, other), starts));
        }
    }
    for (op, base_p99, other_p99) in p99s(base, other).filter(|(op, ..)| is_main(base, op)) {
        all.push(ratio(&format!("{op}.p99_ms"), "ms", true, (base_p99, other_p99), starts));
    }
    all.iter_mut().for_each(|ratio| withhold(ratio, base_row, other_row, Part::Run));
    discover(all.iter_mut());
    Some(all)
}

/// The 99th percentiles of the response times that both have, by type of operation.
pub fn p99s<'a>(
    base: &'a PhaseFigures,
    other: &'a PhaseFigures,
) -> impl Iterator<Item = (&'a str, &'a Figure, &'a Figure)> {
    base.op_types.iter().filter_map(|(op, figures)| {
        Some((op.as_str(), figures.response.get("p99_ms")?, other.op_types.get(op)?.response.get("p99_ms")?))
    })
}

/// The headline metrics of a part, without the percentiles of a run.
pub fn headline_names(part: Part) -> &'static [&'static str] {
    match part {
        Part::Load => HEADLINE_LOAD,
        Part::Run => HEADLINE_RUN,
    }
}

/// A headline metric of a part of a row.
pub struct Headline<'a> {
    pub metric: String,
    pub unit: &'static str,
    pub figure: &'a Figure,
}

/// The headline metrics of a part, in the order of a comparison. They are those of its kind, including only the CPU
/// metric that the comparison uses. A run also has the 99th percentiles of the main operations.
pub fn headlines<'a>(
    figures: &'a PhaseFigures,
    part: Part,
    cpu: &CpuHeadline,
) -> impl Iterator<Item = Headline<'a>> + use<'a> {
    let excluded = HEADLINE_CPU.into_iter().find(|metric| cpu.excludes(metric));
    let listed = headline_names(part).iter().filter(move |name| Some(**name) != excluded).filter_map(|name| {
        let unit = metric_info(name)?.unit;
        Some(Headline { metric: (*name).to_owned(), unit, figure: figures.metrics.get(*name)? })
    });
    let main = p99s(figures, figures).filter(move |(op, ..)| part == Part::Run && is_main(figures, op));
    listed.chain(main.map(|(op, figure, _)| Headline { metric: format!("{op}.p99_ms"), unit: "ms", figure }))
}

/// Whether a type of operation is one of the main ones: [`MAIN_SHARE`] of all.
pub fn is_main(figures: &PhaseFigures, op: &str) -> bool {
    let count = |figures: &OpFigures| figures.count.median.value().unwrap_or(0.0);
    let all: f64 = figures.op_types.values().map(count).sum();
    figures.op_types.get(op).is_some_and(|op| count(op) >= MAIN_SHARE * all)
}

#[cfg(test)]
mod tests {
    use rumba_results::metric::Metric;

    use crate::testing::{at_rates, record, results};
    use crate::{Summary, summarise};

    use super::*;

    fn change(summary: &Summary, baseline: &str, engine: &str) -> Change {
        summary.relative(baseline, engine, 8).unwrap().metric("ops_per_s").unwrap().change
    }

    #[test]
    fn each_engine_is_a_baseline_of_the_others() {
        let records = [at_rates("a", &[100.0, 101.0, 99.0, 100.0]), at_rates("b", &[150.0, 151.0, 149.0, 150.0])];
        let summary = summarise(&results(records.concat()));
        assert_eq!(change(&summary, "a", "b"), Change::Better);
        assert_eq!(change(&summary, "b", "a"), Change::Worse);
        assert!(summary.relative("a", "a", 8).is_none());
        let same = summary.relative("a", "b", 8).unwrap().metric("get_node.p99_ms").unwrap();
        assert_eq!((same.change, same.headline), (Change::Same, true));
    }

    /// An engine that writes through the page cache, so that kernel threads add 66% to its own CPU, against one that
    /// does all its work itself.
    fn hides_in_the_kernel() -> Vec<Record> {
        let of = |engine: &'static str, own_s: f64, uncharged_s: f64| {
            (1..=4).map(move |repeat| {
                let mut record = record(engine, 8, repeat);
                for phase in &mut record.phases {
                    let noise = 1.0 + 0.001 * f64::from(repeat);
                    let seconds = own_s * noise * phase.seconds;
                    phase.spent.cpu_s = Metric::Value(seconds);
                    phase.spent.host_cpu_s = Metric::Value(seconds + uncharged_s * phase.seconds + 0.2);
                    phase.spent.harness_cpu_s = Metric::Value(0.1);
                    phase.spent.others_cpu_s = Metric::Value(0.1);
                }
                record
            })
        };
        of("cached", 1.0, 0.66).chain(of("direct", 1.2, 0.05)).collect()
    }

    fn cpu_headline(summary: &Summary) -> (String, Change) {
        let row = summary.relative("cached", "direct", 8).unwrap();
        let headline = row.metrics.iter().find(|ratio| ratio.headline && ratio.metric.contains("cpu_us")).unwrap();
        assert_eq!(row.metrics.iter().filter(|ratio| ratio.headline && ratio.metric.contains("cpu_us")).count(), 1);
        (headline.metric.clone(), headline.change)
    }

    /// With only its processes' CPU counted, the engine that leaves work to the kernel won.
    #[test]
    fn cpu_verdict_uses_host_cpu_if_every_trial_was_undisturbed() {
        let mut records = hides_in_the_kernel();
        let summary = summarise(&results(records.clone()));
        assert_eq!(cpu_headline(&summary), ("host_cpu_us_per_op_with_drain".to_owned(), Change::Better));
        let charged = summary.relative("cached", "direct", 8).unwrap().metric("cpu_us_per_op_with_drain").unwrap();
        assert!(charged.ratio.value().unwrap() > 1.15 && !charged.headline, "the order changes sign: {charged:?}");
        // If one trial of either side is disturbed, both sides use the other metric.
        records[6].warnings.push(rumba_results::warning::Warning::new("stolen-cpu", "3.0% to others", "wait"));
        let summary = summarise(&results(records.clone()));
        assert_eq!(cpu_headline(&summary).0, "cpu_us_per_op_with_drain");
        let why = CpuHeadline::of_rows(&summary.rows).why_not_host.unwrap();
        assert_eq!(why, "direct: 1 of 4 repeats have none: the host was disturbed: 3.0% to others");
        // A server on another host lacks this figure completely.
        for record in records.iter_mut().filter(|record| record.plan.engine.name == "cached") {
            record.phases.iter_mut().for_each(|phase| phase.spent.others_cpu_s = Metric::absent("it is elsewhere"));
        }
        let summary = summarise(&results(records));
        assert_eq!(cpu_headline(&summary).0, "cpu_us_per_op_with_drain");
        assert!(CpuHeadline::of_rows(&summary.rows).why_not_host.unwrap().ends_with("cached: it is elsewhere"));
    }
}
