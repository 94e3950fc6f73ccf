//! Gates of a comparison: `ops_per_s < 0.95` is so, is not so, or is undecided.
//!
//! The test of a gate errs in 5% of cases where the two runs took turns. Where they did not, the host may have drifted
//! between them, which no repeat shows: then what a gate says has to hold beyond an allowance for that.

mod drift;
mod worse;

use rumba_core::claim::Verdict;
use rumba_core::comparison::{CHARGED, ComparedRow, Comparison, Figure, Part, Unmatched, metric_info};
pub use rumba_core::gate::{Found, Gated};
use rumba_core::metric::{METRICS, Metric, TOO_FEW_SAMPLES};

pub use self::drift::Drift;
use crate::claims::samples::{Alphas, Samples};
use crate::claims::{ALPHA, Relation};

/// What a comparison is not to find.
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

/// What is wrong with a gate, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateError {
    /// What is wrong.
    pub problem: String,
    /// What to write instead.
    pub remedy: String,
}

impl Gate {
    /// Reads `METRIC < NUMBER`, or the word `worse`.
    ///
    /// # Errors
    /// When it is not of this form, or the metric is not there.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let what = match text.trim() {
            worse::WORD => What::Worse,
            _ => What::Bound(Bound::parse(text)?),
        };
        Ok(Self { what, drift: Drift::default() })
    }

    /// The same with another allowance for what the host does between runs that did not take turns.
    pub fn allowing(self, drift: Drift) -> Self {
        Self { drift, ..self }
    }

    /// What comes of it for every engine that the base has figures of.
    ///
    /// # Errors
    /// When there is nothing that it could be about: a gate that cannot close is a mistake.
    pub fn judge(&self, comparison: &Comparison) -> Result<Vec<Gated>, GateError> {
        match &self.what {
            What::Bound(bound) => bound.judge(comparison, self.drift),
            What::Worse => worse::judge(comparison, self.drift),
        }
    }
}

/// That no engine is in both runs.
fn nothing_compared(gate: &str) -> GateError {
    GateError {
        problem: format!("`{gate}`: no engine has the same name and number of clients in both runs"),
        remedy: "compare runs of the same engines".to_owned(),
    }
}

impl Bound {
    fn parse(text: &str) -> Result<Self, GateError> {
        let wrong = |problem: String, remedy: &str| GateError { problem, remedy: remedy.to_owned() };
        let example = "write for example 'ops_per_s < 0.95': other over base; or worse";
        let form = || wrong(format!("`{text}` is not METRIC < NUMBER"), example);
        let start = text.find(['<', '>', '=', '!']).ok_or_else(form)?;
        let length = text[start..].find(|c: char| !"<>=!".contains(c)).unwrap_or(text.len() - start);
        let (metric, sign) = (text[..start].trim(), &text[start..start + length]);
        let number = text[start + length..].trim();
        let relation = match Relation::of(sign) {
            Some(relation) if relation != Relation::Equal && relation != Relation::Unequal => relation,
            _ => return Err(wrong(format!("`{sign}` is no bound"), "write <, <=, > or >=")),
        };
        let bound = number.parse::<f64>().ok().filter(|bound| bound.is_finite() && *bound > 0.0);
        let bound = bound.ok_or_else(|| {
            wrong(format!("`{number}` is not a ratio"), "write a number above zero, such as 0.95: other over base")
        })?;
        let (load, name) = match metric.strip_prefix("load_") {
            Some(name) => (true, name),
            None => (metric.ends_with("_with_settle"), metric),
        };
        if !name.ends_with(".p99_ms") && metric_info(name).is_none() {
            let known = METRICS.iter().chain(CHARGED).map(|info| info.name);
            let remedy = rumba_core::nearest(name, known)
                .map_or_else(|| example.to_owned(), |near| format!("did you mean `{near}`?"));
            return Err(GateError { problem: format!("there is no metric `{metric}`"), remedy });
        }
        Ok(Self { text: text.to_owned(), metric: name.to_owned(), load, relation, bound })
    }

    fn judge(&self, comparison: &Comparison, drift: Drift) -> Result<Vec<Gated>, GateError> {
        let part = if self.load { Part::Load } else { Part::Run };
        let rows: Vec<&ComparedRow> = comparison.rows.iter().filter(|row| row.part == part).collect();
        let metrics = || rows.iter().flat_map(|row| &row.metrics).map(|compared| compared.ratio.metric.as_str());
        let unmatched: Vec<&Unmatched> = comparison.unmatched.iter().filter(|one| one.part == part).collect();
        if metrics().any(|metric| metric == self.metric) || (rows.is_empty() && !unmatched.is_empty()) {
            let of_unmatched = |one: &&Unmatched| self.gated(&one.engine, one.clients, Found::NotJudged, &one.reason);
            let of_rows = rows.iter().map(|row| self.of_row(row, drift.between(row)));
            return Ok(of_rows.chain(unmatched.iter().map(of_unmatched)).collect());
        }
        if rows.is_empty() {
            return Err(nothing_compared(&self.text));
        }
        let remedy = rumba_core::nearest(&self.metric, metrics()).map_or_else(
            || "`rumba compare --details` lists what they have".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Err(GateError { problem: format!("no engine has `{}` in either run", self.metric), remedy })
    }

    fn of_row(&self, row: &ComparedRow, drift: Option<Drift>) -> Gated {
        let (verdict, reason) = self.weigh(row, drift);
        self.gated(&row.engine, row.clients, verdict, &reason)
    }

    fn gated(&self, engine: &str, clients: u32, verdict: Found, reason: &str) -> Gated {
        Gated { gate: self.text.clone(), engine: engine.to_owned(), clients, verdict, reason: reason.to_owned() }
    }

    fn weigh(&self, row: &ComparedRow, drift: Option<Drift>) -> (Found, String) {
        if let Some(why) = &row.unsound {
            return (Found::NotJudged, why.clone());
        }
        let Some(compared) = row.metrics.iter().find(|compared| compared.ratio.metric == self.metric) else {
            return (Found::Undecided, format!("{} has no {}", row.engine, self.metric));
        };
        let Some(ratio) = compared.ratio.ratio.value() else {
            let why = compared.ratio.ratio.reason().unwrap_or_default().to_owned();
            return match lost(&compared.base, &compared.other) {
                Some(why) => (Found::NotJudged, why),
                None => (Found::Undecided, why),
            };
        };
        if let Some(why) = lost(&compared.base, &compared.other) {
            return (Found::NotJudged, why);
        }
        if let Some(why) = &compared.ratio.lacking {
            return (Found::Undecided, why.clone());
        }
        let starts = [row.other_starts, row.base_starts];
        let (other, base) = (compared.other.numbers(), compared.base.numbers());
        let against = |bound: f64| Samples::scaled(&other, &base, bound, starts);
        let samples = against(self.bound);
        let seen = format!("the ratio of the medians is {ratio:.3}");
        if samples.fewest() < 2 {
            return (Found::SeenOnce, format!("{seen}, seen once"));
        }
        let alphas = Alphas { holds: ALPHA, fails: ALPHA };
        let test = samples.test();
        let Some(drift) = drift else {
            let verdict = samples.verdict(self.relation, alphas);
            let more = samples.more_repeats(self.relation, alphas).filter(|_| verdict == Verdict::Undecided);
            let more =
                more.map(|more| format!("; about {more} more repeats of each would decide it")).unwrap_or_default();
            return (verdict.into(), format!("{seen}; {test}{more}"));
        };
        // What is so is so against a bound that the drift has moved away from it, and what is not so likewise.
        let (lower, upper) = (self.bound / drift.factor(), self.bound * drift.factor());
        let is_above = matches!(self.relation, Relation::Greater | Relation::AtLeast);
        let (so, not_so) = if is_above { (upper, lower) } else { (lower, upper) };
        let verdict_at = |bound: f64| against(bound).verdict(self.relation, alphas);
        let found = match (verdict_at(so), verdict_at(not_so)) {
            (Verdict::Holds, _) => Found::Holds,
            (_, Verdict::Fails) => Found::Fails,
            _ => Found::Undecided,
        };
        (found, format!("{seen}; {test}; {drift}"))
    }
}

/// Why repeats of the other lack a figure that the base has: all of them, or some where all of the base's have it. What a
/// gate guards may be what took it from them; from some, that there were merely too few operations.
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
    #![allow(clippy::unwrap_used)]
    use rumba_core::record::{PhaseKind, Status};
    use rumba_core::results::Results;

    use super::*;
    use crate::compare;
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

    /// The same of one run after the other, with this allowance for what the host did meanwhile.
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
        assert!(near.reason.contains("permutation test, 3 and 3 repeats, each from its own load"), "{}", near.reason);
        assert_eq!(gated("ops_per_s < 0.95", &[100.0], &[10.0]).verdict, Found::SeenOnce);
        assert_eq!(gated("load_ops_per_s >= 1", &base, &base).verdict, Found::Undecided);
        assert_eq!(gated("get_node.p99_ms > 1.1", &base, &base).verdict, Found::Fails);
    }

    /// The host may have drifted between them, which no repeat of either shows.
    #[test]
    fn of_runs_that_did_not_take_turns_a_gate_says_only_what_holds_beyond_an_allowance_and_says_which() {
        let (base, less) = ([100.0, 101.0, 99.0, 100.0], [93.0, 94.0, 92.0, 93.0]);
        assert_eq!(gated("ops_per_s < 0.95", &base, &less).verdict, Found::Holds, "in turns");
        let apart = gated_apart("ops_per_s < 0.95", "5%", &base, &less);
        assert_eq!(apart.verdict, Found::Undecided);
        let told = "permutation test, 4 and 4 repeats, each from its own load; the runs did not take turns, so that \
                    the host alone is allowed to have moved it by 5% (--allow-drift; `rumba ab` takes turns)";
        assert!(apart.reason.ends_with(told), "{}", apart.reason);
        for drift in ["1%", "0%"] {
            assert_eq!(gated_apart("ops_per_s < 0.95", drift, &base, &less).verdict, Found::Holds, "{drift}");
        }
        let much_less = gated_apart("ops_per_s < 0.95", "5%", &base, &[80.0, 81.0, 79.0, 80.0]);
        assert!(much_less.verdict == Found::Holds && much_less.reason.contains("did not take turns"), "{much_less:?}");
        // What is not so must not be so beyond it either.
        let as_good = [99.0, 100.0, 98.0, 99.0];
        assert_eq!(gated("ops_per_s < 0.95", &base, &as_good).verdict, Found::Fails, "in turns");
        assert_eq!(gated_apart("ops_per_s < 0.95", "5%", &base, &as_good).verdict, Found::Undecided);
        let better = [105.0, 106.0, 104.0, 105.0];
        assert_eq!(gated_apart("ops_per_s < 0.95", "5%", &base, &better).verdict, Found::Fails);
        assert_eq!(gated_apart("ops_per_s > 1.0", "5%", &base, &better).verdict, Found::Undecided);
        assert_eq!(gated_apart("ops_per_s > 1.0", "4%", &base, &[106.0, 107.0, 105.5, 106.0]).verdict, Found::Holds);
    }

    /// How often a gate closes over two runs of one engine, one after the other: with this allowance and without any.
    fn closed_in_vain(repeats: usize, deviation: f64, phi: f64) -> [f64; 2] {
        const DRAWS: u32 = 500;
        let gate = |drift| Gate::parse("ops_per_s < 1").unwrap().allowing(Drift::parse(drift).unwrap());
        let gates = ["5%", "0%"].map(gate);
        let (mut noise, mut closed) = (Noise::new(repeats as u64, phi), [0_u32; 2]);
        for _ in 0..DRAWS {
            let rate = |noise: &f64| 100.0 * (deviation * noise).exp();
            let rates: Vec<f64> = noise.draw(2 * repeats).iter().map(rate).collect();
            let (base, other) = rates.split_at(repeats);
            let comparison = compare(&runs(base), &runs(other));
            for (closed, gate) in closed.iter_mut().zip(&gates) {
                *closed += u32::from(gate.judge(&comparison).unwrap()[0].verdict.closes());
            }
        }
        closed.map(|closed| f64::from(closed) / f64::from(DRAWS))
    }

    /// docs/aa.txt has noise of 5%; that of 10% is printed for who measures on a host that has it.
    #[test]
    fn the_allowance_keeps_a_gate_over_runs_one_after_the_other_at_its_level() {
        for deviation in [0.05, 0.10] {
            for phi in [0.5, 0.9] {
                for repeats in [4, 6] {
                    let [with, without] = closed_in_vain(repeats, deviation, phi);
                    let cell = format!("noise {deviation:.2}, autocorrelation {phi}, {repeats} repeats");
                    println!("{cell}: closed though nothing changed {without:.3}, with the allowance {with:.3}");
                    assert!(with < without, "{cell}: {with} of {without}");
                    assert!(with <= 0.05 || deviation > 0.05, "{cell}: {with}");
                    assert!(without > 0.10 || phi < 0.9, "{cell}: it is not what the allowance is for: {without}");
                }
            }
        }
    }

    #[test]
    fn an_allowance_is_a_percentage() {
        assert_eq!(Drift::parse("5%"), Ok(Drift::default()));
        assert!(["5", "-1%", "100%", "five%", "NaN%", ""].into_iter().all(|text| Drift::parse(text).is_err()));
    }

    /// Engines `a` and `b`; of `b` every repeat ended as this makes it.
    fn two_engines(end: fn(&mut rumba_core::record::Record)) -> Results {
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
    fn a_gate_that_cannot_be_read_says_what_to_write() {
        let error = |text: &str| Gate::parse(text).unwrap_err();
        assert_eq!(error("ops_per_second < 0.95").remedy, "did you mean `ops_per_s`?");
        assert!(error("ops_per_s").problem.contains("is not METRIC < NUMBER"));
        assert!(error("ops_per_s == 1").remedy.contains("<="));
        assert!(error("ops_per_s < 95%").problem.contains("95%"));
    }
}
