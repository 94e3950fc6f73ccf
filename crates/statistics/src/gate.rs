//! Gates of a comparison: the condition `ops_per_s < 0.95` holds, does not hold, or is undecided.
//!
//! The test of a gate errs in 5% of cases if the two runs took turns. If they did not, the host may have drifted
//! between them, which no repeat shows. A gate's verdict must then hold beyond an allowance for that drift. For `worse`
//! this applies only to closing, because "no headline is worse" says only that none was found to be.

mod drift;
mod few_samples;
mod worse;

use rumba_results::claim::Verdict;
use rumba_results::comparison::{ComparedRow, Comparison, Figure, Part, Unmatched};
pub use rumba_results::gate::{Found, Gated};
use rumba_results::metric::{Metric, TOO_FEW_SAMPLES};
use rumba_results::ratio::{Change, what_would_decide};
use rumba_results::starts::Scope;

pub use self::drift::Drift;
use crate::claims::language::{self, Number, Truth};
use crate::claims::lexer;
use crate::claims::samples::{Alphas, Samples};
use crate::claims::{ALPHA, Mistake, Relation, Scope as ClaimScope};

/// A regression that a comparison must not contain.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    what: What,
    drift: Drift,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// The ratio of one metric, other over base, beyond a bound.
    Bound(Bound),
    /// Any headline metric of any engine worse.
    Worse,
}

/// A bound on the ratio of one metric, other over base.
#[derive(Clone, Debug, PartialEq)]
struct Bound {
    text: String,
    metric: String,
    load: bool,
    relation: Relation,
    bound: f64,
}

impl Gate {
    /// Parses `METRIC < NUMBER`, an expression as in claims, or the word `worse`.
    ///
    /// # Errors
    /// The text does not have this form, or the metric is unknown.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let what = match text.trim() {
            worse::WORD => What::Worse,
            _ => What::Bound(Bound::parse(text)?),
        };
        Ok(Self { what, drift: Drift::default() })
    }

    /// The same gate with another allowed drift for runs that did not take turns.
    pub fn allowing(self, drift: Drift) -> Self {
        Self { drift, ..self }
    }

    /// The verdict for every engine that the base has figures of.
    ///
    /// # Errors
    /// The gate matches nothing, because a gate that can never close is a mistake.
    pub fn judge(&self, comparison: &Comparison) -> Result<Vec<Gated>, Mistake> {
        match &self.what {
            What::Bound(bound) => bound.judge(comparison, self.drift),
            What::Worse => worse::judge(comparison, self.drift),
        }
    }
}

/// The gate's verdict on an engine.
struct Weighed {
    found: Found,
    reason: String,
    /// The allowed drift of the host, for runs that did not take turns.
    drift: Option<Drift>,
}

impl Weighed {
    /// A verdict that uses no allowance.
    fn of(found: Found, reason: impl Into<String>) -> Self {
        Self { found, reason: reason.into(), drift: None }
    }

    fn gated(self, gate: &str, engine: &str, clients: u32) -> Gated {
        let Self { found, reason, drift } = self;
        let allowed = drift.map(|drift| format!("; {drift}")).unwrap_or_default();
        Gated {
            gate: gate.to_owned(),
            engine: engine.to_owned(),
            clients,
            verdict: found,
            scope: Scope::default(),
            reason: reason + &allowed,
            allowed_drift_percent: drift.map(Drift::percent),
        }
    }
}

/// The error if no engine is in both runs.
fn nothing_compared(gate: &str) -> Mistake {
    let problem = format!("`{gate}`: no engine has the same name and number of clients in both runs");
    Mistake::new(0, problem, "compare runs of the same engines")
}

impl Bound {
    fn parse(text: &str) -> Result<Self, Mistake> {
        let example = "write for example 'ops_per_s < 0.95': other over base; or worse";
        let inequality = language::truth(text, &ClaimScope::of_ratios()).map_err(|mistake| {
            // The example of claims has engines, which a gate has not.
            let remedy = if mistake.remedy == lexer::EXAMPLE { example.to_owned() } else { mistake.remedy };
            Mistake { problem: format!("`{text}`: {}", mistake.problem), remedy, ..mistake }
        })?;
        let Truth::Is(relation, Number::Figure(figure), Number::Plain(bound)) = inequality else {
            return Err(Mistake::new(0, format!("`{text}` is not METRIC < NUMBER"), example));
        };
        if matches!(relation, Relation::Equal | Relation::Unequal) {
            return Err(Mistake::new(0, format!("`{text}` is not a bound"), "write <, <=, > or >="));
        }
        if bound <= 0.0 {
            let remedy = "write a number above zero, such as 0.95: other over base";
            return Err(Mistake::new(0, format!("`{bound}` is not a ratio"), remedy));
        }
        let metric = match &figure.op {
            Some(op) => format!("{op}.{}", figure.metric),
            None => figure.metric,
        };
        Ok(Self { text: text.to_owned(), metric, load: figure.load, relation, bound })
    }

    fn judge(&self, comparison: &Comparison, drift: Drift) -> Result<Vec<Gated>, Mistake> {
        let part = if self.load { Part::Load } else { Part::Run };
        let rows: Vec<&ComparedRow> = comparison.rows.iter().filter(|row| row.part == part).collect();
        let metrics = || rows.iter().flat_map(|row| &row.metrics).map(|compared| compared.ratio.metric.as_str());
        let unmatched: Vec<&Unmatched> = comparison.unmatched.iter().filter(|one| one.part == part).collect();
        if metrics().any(|metric| metric == self.metric) || (rows.is_empty() && !unmatched.is_empty()) {
            let of_row = |row: &&ComparedRow| {
                let weighed = self.weigh(row, drift.between(row, &self.metric));
                Gated { scope: row.scope(), ..weighed.gated(&self.text, &row.engine, row.clients) }
            };
            let of_unmatched = |one: &&Unmatched| {
                Weighed::of(Found::NotJudged, &*one.reason).gated(&self.text, &one.engine, one.clients)
            };
            return Ok(rows.iter().map(of_row).chain(unmatched.iter().map(of_unmatched)).collect());
        }
        if rows.is_empty() {
            return Err(nothing_compared(&self.text));
        }
        let remedy = rumba_engine_api::nearest(&self.metric, metrics()).map_or_else(
            || "`rumba compare --details` lists what they have".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Err(Mistake::new(0, format!("no engine has `{}` in either run", self.metric), remedy))
    }

    fn weigh(&self, row: &ComparedRow, drift: Option<Drift>) -> Weighed {
        if let Some(why) = &row.unsound {
            return Weighed::of(Found::NotJudged, &**why);
        }
        let Some(compared) = row.metrics.iter().find(|compared| compared.ratio.metric == self.metric) else {
            return Weighed::of(Found::Undecided, format!("{} has no {}", row.engine, self.metric));
        };
        if compared.ratio.change == Change::Void {
            return Weighed::of(Found::Void, compared.ratio.lacking.clone().unwrap_or_default());
        }
        if let Some(why) = lost(&compared.base, &compared.other) {
            return Weighed::of(Found::NotJudged, why);
        }
        if let Some(bounded) = few_samples::bounded(compared) {
            let starts = [row.other_starts, row.base_starts];
            let (other, base) = (bounded.figure.numbers(), compared.base.numbers());
            let above = matches!(self.relation, Relation::Greater | Relation::AtLeast);
            // A lower bound of a percentile can show that it is above a gate's bound, but never that it is below.
            if above && other.len().min(base.len()) > 1 {
                let (found, reported) = self.test(drift, |bound| Samples::scaled(&other, &base, bound, starts));
                if found == Found::Holds {
                    return Weighed { found, reason: format!("{}{reported}", bounded.words), drift };
                }
            }
        }
        if let Some(why) = few_samples::lost_while_slower(row, compared) {
            return Weighed::of(Found::NotJudged, why);
        }
        let Some(ratio) = compared.ratio.ratio.value() else {
            return Weighed::of(Found::Undecided, compared.ratio.ratio.reason().unwrap_or_default());
        };
        if let Some(why) = &compared.ratio.lacking {
            return Weighed::of(Found::Undecided, &**why);
        }
        let starts = [row.other_starts, row.base_starts];
        let (other, base) = (compared.other.numbers(), compared.base.numbers());
        let seen = format!("the ratio of the medians is {ratio:.3}");
        if other.len().min(base.len()) < 2 {
            return Weighed::of(Found::SingleRun, format!("{seen}, single run"));
        }
        let (found, reported) = self.test(drift, |bound| Samples::scaled(&other, &base, bound, starts));
        Weighed { found, reason: seen + &reported, drift }
    }

    /// Tests the other's repeats `against` the base's times a bound; returns the verdict and the test in words.
    fn test(&self, drift: Option<Drift>, against: impl Fn(f64) -> Samples) -> (Found, String) {
        // Both "holds" and "does not hold" must be true after the drift has moved the bound away from them.
        let factor = drift.map_or(1.0, Drift::factor);
        let (lower, upper) = (against(self.bound / factor), against(self.bound * factor));
        let is_above = matches!(self.relation, Relation::Greater | Relation::AtLeast);
        let (so, not_so) = if is_above { (upper, lower) } else { (lower, upper) };
        let alphas = Alphas { holds: ALPHA, fails: ALPHA };
        let test = format!("; {}", so.test());
        if so.verdict(self.relation, alphas) == Verdict::Holds {
            return (Found::Holds, test);
        }
        if not_so.verdict(self.relation, alphas) == Verdict::Fails {
            return (Found::Fails, test);
        }
        let is_beyond = |samples: &Samples, above: bool| {
            samples.seen().is_some_and(|seen| if above { seen >= 0.0 } else { seen <= 0.0 })
        };
        let decides = if is_beyond(&so, is_above) {
            so
        } else if is_beyond(&not_so, !is_above) {
            not_so
        } else {
            return (Found::Undecided, format!(", within what the host is allowed, which no repeats decide{test}"));
        };
        let more = what_would_decide(decides.more_repeats(self.relation, alphas));
        (Found::Undecided, format!("{test}; {more}"))
    }
}

/// The reason why repeats of the other lack a figure that the base has. It applies if all of them lack it, or if some
/// do and all of the base's have it. The regression that the gate guards against may have removed it. If only some lack
/// it, the reason may merely be too few operations.
fn lost(base: &Figure, other: &Figure) -> Option<String> {
    let mut reasons = other.values.iter().filter_map(Metric::reason);
    let why = match other.numbers().is_empty() {
        true => other.median.reason().map(str::to_owned),
        false if base.lacking().is_some() || reasons.all(|why| why.contains(TOO_FEW_SAMPLES)) => None,
        false => other.lacking(),
    };
    why.filter(|_| !base.numbers().is_empty()).map(|why| format!("in the other, {why}"))
}

#[cfg(test)]
mod tests {
    use rumba_results::comparison::Compared;
    use rumba_results::ratio::{Change, Ratio};
    use rumba_results::record::{PhaseKind, Status};
    use rumba_results::results::Results;
    use rumba_results::starts::Starts;

    use super::*;
    use crate::compare;
    use crate::statistics::figure;
    use crate::steady::simulated::Noise;
    use crate::testing::{record, results, taking_turns};

    fn runs(rates: &[f64]) -> Results {
        let repeats = rates.iter().zip(1..).map(|(rate, repeat)| {
            let mut record = record("a", 8, repeat);
            record.phases.iter_mut().for_each(|phase| phase.metrics.ops_per_s = Metric::Value(*rate));
            record
        });
        results(repeats.collect())
    }

    fn gated(gate: &str, base: &[f64], other: &[f64]) -> Gated {
        let (base, other) = taking_turns(runs(base), runs(other));
        Gate::parse(gate).unwrap().judge(&compare(&base, &other)).unwrap().remove(0)
    }

    /// The same for one run after the other, with this allowed drift.
    fn gated_apart(gate: &str, drift: &str, base: &[f64], other: &[f64]) -> Gated {
        let gate = Gate::parse(gate).unwrap().allowing(Drift::parse(drift).unwrap());
        gate.judge(&compare(&runs(base), &runs(other))).unwrap().remove(0)
    }

    #[test]
    fn a_gate_closes_only_on_what_is_decided() {
        let base = [100.0, 101.0, 99.0];
        assert_eq!(gated("ops_per_s < 0.95", &base, &[90.0, 91.0, 89.0]).verdict, Found::Holds);
        assert_eq!(gated("ops_per_s < 0.95", &base, &[99.0, 100.0, 98.5]).verdict, Found::Fails);
        let near = gated("ops_per_s<0.95", &base, &[94.0, 96.0, 95.5]);
        assert_eq!(near.verdict, Found::Undecided);
        assert!(
            near.reason.contains("permutation and Welch tests, 3 and 3 repeats, each from its own load"),
            "{}",
            near.reason
        );
        assert_eq!(gated("ops_per_s < 0.95", &[100.0], &[10.0]).verdict, Found::SingleRun);
        assert_eq!(gated("load_ops_per_s >= 1", &base, &base).verdict, Found::Undecided);
        assert_eq!(gated("tps < 0.95", &base, &[90.0, 91.0, 89.0]).verdict, Found::Holds, "as the tables call it");
        assert_eq!(gated("get_node.p99_ms > 1.1", &base, &base).verdict, Found::Fails);
    }

    /// The host may have drifted between the runs, which no repeat of either shows.
    #[test]
    fn sequential_runs_are_gated_beyond_an_allowance_that_is_named() {
        let (base, less) = ([100.0, 101.0, 99.0, 100.0], [92.0, 93.0, 91.0, 92.0]);
        assert_eq!(gated("ops_per_s < 0.95", &base, &less).verdict, Found::Holds, "in turns");
        let apart = gated_apart("ops_per_s < 0.95", "5%", &base, &less);
        assert_eq!(apart.verdict, Found::Undecided);
        let reported = "permutation and Welch tests, 4 and 4 repeats, each from its own load; the runs did not take turns, so that \
                    the host alone is allowed to have moved it by 5% (--allow-drift; `rumba ab` takes turns)";
        assert!(apart.reason.ends_with(reported), "{}", apart.reason);
        for drift in ["1%", "0%"] {
            assert_eq!(gated_apart("ops_per_s < 0.95", drift, &base, &less).verdict, Found::Holds, "{drift}");
        }
        let much_less = gated_apart("ops_per_s < 0.95", "5%", &base, &[80.0, 81.0, 79.0, 80.0]);
        assert!(much_less.verdict == Found::Holds && much_less.reason.contains("did not take turns"), "{much_less:?}");
        // "Does not hold" must also be true beyond the allowance.
        let as_good = [99.0, 100.0, 98.0, 99.0];
        assert_eq!(gated("ops_per_s < 0.95", &base, &as_good).verdict, Found::Fails, "in turns");
        assert_eq!(gated_apart("ops_per_s < 0.95", "5%", &base, &as_good).verdict, Found::Undecided);
        let better = [105.0, 106.0, 104.0, 105.0];
        assert_eq!(gated_apart("ops_per_s < 0.95", "5%", &base, &better).verdict, Found::Fails);
        assert_eq!(gated_apart("ops_per_s > 1.0", "5%", &base, &better).verdict, Found::Undecided);
        assert_eq!(gated_apart("ops_per_s > 1.0", "4%", &base, &[106.0, 107.0, 105.5, 106.0]).verdict, Found::Holds);
    }

    #[test]
    fn gate_reports_if_more_repeats_would_decide_beyond_allowance() {
        let (base, gate) = ([100.0, 108.0, 92.0, 100.0], "ops_per_s < 0.95");
        let reason = |share: f64| {
            let gated = gated_apart(gate, "5%", &base, &base.map(|rate| share * rate));
            assert_eq!(gated.verdict, Found::Undecided, "{gated:?}");
            gated.reason
        };
        // 0.905 and 0.9975 are the limits of the allowed drift.
        for decided in [0.83, 1.08] {
            let reason = reason(decided);
            assert!(
                reason.contains(" more repeats of each would probably decide; the runs did not take turns"),
                "{reason}"
            );
        }
        for within in [0.92, 0.98] {
            let reason = reason(within);
            assert!(reason.contains(", within what the host is allowed, which no repeats decide; perm"), "{reason}");
            assert!(!reason.contains("more repeats"), "{reason}");
        }
        let reason = reason(0.89);
        assert!(reason.contains("; too noisy to decide here; the runs did not take turns"), "{reason}");
        let in_turns = gated(gate, &base, &base.map(|rate| 0.89 * rate));
        assert!(in_turns.reason.ends_with(" more repeats of each would probably decide"), "{}", in_turns.reason);
    }

    #[test]
    fn allowance_is_in_the_json_and_sizes_have_none() {
        let sized = |bytes: f64| {
            let mut run = runs(&[100.0, 101.0, 99.0, 100.0]);
            for phase in run.trials.iter_mut().flat_map(|trial| &mut trial.record.phases) {
                phase.metrics.size_bytes = Metric::Value(bytes);
            }
            run
        };
        let (base, other) = (sized(1e6), sized(1.02e6));
        let judged = |gate: &str| Gate::parse(gate).unwrap().judge(&compare(&base, &other)).unwrap().remove(0);
        let size = judged("size_bytes > 1.01");
        assert_eq!((size.verdict, size.allowed_drift_percent), (Found::Holds, None), "{}", size.reason);
        assert!(!size.reason.contains("allowed"), "{}", size.reason);
        assert_eq!(judged("ops_per_s < 0.9").allowed_drift_percent, Some(5.0));
        let (base, other) = taking_turns(base, other);
        let in_turns = Gate::parse("ops_per_s < 0.9").unwrap().judge(&compare(&base, &other)).unwrap().remove(0);
        assert_eq!(in_turns.allowed_drift_percent, None);
    }

    /// A row of sequential runs that have only throughput.
    fn apart(base: &[f64], other: &[f64]) -> ComparedRow {
        let of = |rates: &[f64]| figure(rates.iter().map(|rate| Metric::Value(*rate)).collect());
        let ratio = Ratio {
            metric: "ops_per_s".to_owned(),
            unit: "1/s".to_owned(),
            headline: true,
            ratio: Metric::Value(1.0),
            low: Metric::absent("not requested"),
            high: Metric::absent("not requested"),
            change: Change::Undecided,
            scope: Default::default(),
            p: None,
            more_repeats: None,
            lacking: None,
        };
        ComparedRow {
            engine: "a".to_owned(),
            clients: 8,
            all_clients: vec![8],
            part: Part::Run,
            base_starts: Starts::default(),
            other_starts: Starts::default(),
            in_turns: false,
            unsound: None,
            comparability: Vec::new(),
            metrics: vec![Compared { ratio, base: of(base), other: of(other) }],
            written: None,
        }
    }

    /// The share of false alarms over two sequential runs of one engine: with the default allowance and without any.
    fn closed_in_vain(repeats: usize, deviation: f64, phi: f64) -> [f64; 2] {
        // With ten repeats or more, each test draws ten thousand deals.
        let draws: u32 = if repeats < 10 { 500 } else { 300 };
        let bound = Bound::parse("ops_per_s < 1").unwrap();
        let (mut noise, mut closed) = (Noise::new(repeats as u64, phi), [0_u32; 2]);
        for _ in 0..draws {
            let rate = |noise: &f64| 100.0 * (deviation * noise).exp();
            let rates: Vec<f64> = noise.draw(2 * repeats).iter().map(rate).collect();
            let (base, other) = rates.split_at(repeats);
            let row = apart(base, other);
            for (closed, drift) in closed.iter_mut().zip([Some(Drift::default()), None]) {
                *closed += u32::from(bound.weigh(&row, drift).found.closes());
            }
        }
        closed.map(|closed| f64::from(closed) / f64::from(draws))
    }

    /// A shared host has noise of 5%. The rates for 10% are printed for users of noisier hosts.
    #[test]
    fn allowance_keeps_the_error_rate_of_a_gate_on_sequential_runs() {
        let noises = [(0.05, 0.5), (0.05, 0.9), (0.10, 0.5), (0.10, 0.9)];
        let few = noises.into_iter().flat_map(|(deviation, phi)| [4, 6].map(|repeats| (deviation, phi, repeats)));
        for (deviation, phi, repeats) in few.chain([(0.05, 0.9, 10)]) {
            let [with, without] = closed_in_vain(repeats, deviation, phi);
            let cell = format!("noise {deviation:.2}, autocorrelation {phi}, {repeats} repeats");
            println!("{cell}: closed though nothing changed {without:.3}, with the allowance {with:.3}");
            assert!(with < without, "{cell}: {with} of {without}");
            // With ten repeats it is about 5%, and this number of draws has a standard error of 1.3%.
            let most = if repeats < 10 { 0.05 } else { 0.09 };
            assert!(with <= most || deviation > 0.05, "{cell}: {with}");
            assert!(without > 0.10 || phi < 0.9, "{cell}: it is not what the allowance is for: {without}");
        }
    }

    #[test]
    fn an_allowance_is_a_percentage() {
        assert_eq!(Drift::parse("5%"), Ok(Drift::default()));
        assert!(["5", "-1%", "100%", "five%", "NaN%", ""].into_iter().all(|text| Drift::parse(text).is_err()));
    }

    /// Engines `a` and `b`, with this status for every repeat of `b`.
    fn two_engines(end: fn(&mut rumba_results::record::Record)) -> Results {
        let of = |engine: &'static str| (1..=4).map(move |repeat| record(engine, 8, repeat));
        results(
            of("a")
                .chain(of("b").map(|mut record| {
                    end(&mut record);
                    record
                }))
                .collect(),
        )
    }

    #[test]
    fn a_gate_closes_on_an_engine_that_the_other_run_does_not_show() {
        let whole = two_engines(|_| ());
        let judged = |gate: &str, other: &Results| {
            let found = Gate::parse(gate).unwrap().judge(&compare(&whole, other)).unwrap();
            let of = |engine: &str| found.iter().find(|gated| gated.engine == engine).unwrap().clone();
            assert!(!of("a").verdict.closes());
            of("b")
        };
        let failed = two_engines(|record| {
            record.status = Status::Failed { phase: PhaseKind::Load, cause: "the device is full".to_owned() };
            record.phases.clear();
        });
        for gate in ["ops_per_s < 0.95", "load_ops_per_s < 0.95"] {
            let gated = judged(gate, &failed);
            assert_eq!((gated.verdict, gated.verdict.closes()), (Found::NotJudged, true));
            assert!(gated.reason.ends_with("it failed in load: the device is full"), "{}", gated.reason);
        }
        let missing = results((1..=4).map(|repeat| record("a", 8, repeat)).collect());
        assert_eq!(judged("ops_per_s < 0.95", &missing).reason, "b did not run in the other");
        let figureless = two_engines(|record| {
            record.phases.iter_mut().for_each(|phase| phase.metrics.ops_per_s = Metric::absent("no clock"));
        });
        assert_eq!(judged("ops_per_s < 0.95", &figureless).verdict, Found::NotJudged);
        assert_eq!(judged("ops_per_s < 0.95", &two_engines(crate::testing::break_data)).verdict, Found::NotJudged);
        let alone = Gate::parse("ops_per_s < 0.95").unwrap().judge(&compare(&runs(&[100.0]), &results(Vec::new())));
        assert_eq!(alone.unwrap()[0].verdict, Found::NotJudged, "though nothing can be compared");
        let more = Gate::parse("ops_per_s < 0.95").unwrap().judge(&compare(&missing, &whole)).unwrap();
        assert_eq!(more.len(), 1, "what only the other has was never guarded");
    }

    #[test]
    fn a_gate_that_can_never_close_is_a_mistake_and_no_success() {
        let comparison = compare(&runs(&[100.0]), &runs(&[100.0]));
        let error = |gate: &str, of: &Comparison| Gate::parse(gate).unwrap().judge(of).unwrap_err();
        assert_eq!(error("get_nod.p99_ms > 1.1", &comparison).remedy, "did you mean `get_node.p99_ms`?");
        let nothing = Comparison { rows: Vec::new(), unmatched: Vec::new(), ..comparison };
        assert!(error("ops_per_s < 1", &nothing).problem.contains("no engine has the same name"));
    }

    #[test]
    fn unreadable_gate_is_refused_with_a_suggestion() {
        let error = |text: &str| Gate::parse(text).unwrap_err();
        assert_eq!(error("ops_per_second < 0.95").remedy, "did you mean `ops_per_s`?");
        assert!(error("ops_per_s").problem.contains("`ops_per_s`: it is a number and not an inequality"));
        assert!(error("ops_per_s").remedy.starts_with("write for example 'ops_per_s < 0.95'"));
        assert!(error("1 < ops_per_s").problem.contains("is not METRIC < NUMBER"));
        assert!(error("ops_per_s == 1").remedy.contains("<="));
        assert!(error("ops_per_s < 95%").problem.contains("95%"));
    }
}
