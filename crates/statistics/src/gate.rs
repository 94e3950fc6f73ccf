//! Gates of a comparison: `ops_per_s < 0.95` is so, is not so, or is undecided.

mod worse;

use rumba_core::claim::Verdict;
use rumba_core::comparison::{CHARGED, ComparedRow, Comparison, Figure, Part, Unmatched, metric_info};
pub use rumba_core::gate::{Found, Gated};
use rumba_core::metric::{METRICS, Metric, TOO_FEW_SAMPLES};

use crate::claims::samples::{Alphas, Samples};
use crate::claims::{ALPHA, Relation};

/// What a comparison is not to find.
#[derive(Clone, Debug, PartialEq)]
pub enum Gate {
    /// The ratio of one metric, other over base, beyond a bound.
    Bound(Bound),
    /// Any headline metric of any engine worse.
    Worse,
}

/// A bound on the ratio of one metric, other over base.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
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
        match text.trim() {
            worse::WORD => Ok(Gate::Worse),
            _ => Bound::parse(text).map(Gate::Bound),
        }
    }

    /// What comes of it for every engine that the base has figures of.
    ///
    /// # Errors
    /// When there is nothing that it could be about: a gate that cannot close is a mistake.
    pub fn judge(&self, comparison: &Comparison) -> Result<Vec<Gated>, GateError> {
        match self {
            Gate::Bound(bound) => bound.judge(comparison),
            Gate::Worse => worse::judge(comparison),
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

    fn judge(&self, comparison: &Comparison) -> Result<Vec<Gated>, GateError> {
        let part = if self.load { Part::Load } else { Part::Run };
        let rows: Vec<&ComparedRow> = comparison.rows.iter().filter(|row| row.part == part).collect();
        let metrics = || rows.iter().flat_map(|row| &row.metrics).map(|compared| compared.ratio.metric.as_str());
        let unmatched: Vec<&Unmatched> = comparison.unmatched.iter().filter(|one| one.part == part).collect();
        if metrics().any(|metric| metric == self.metric) || (rows.is_empty() && !unmatched.is_empty()) {
            let of_unmatched = |one: &&Unmatched| self.gated(&one.engine, one.clients, Found::NotJudged, &one.reason);
            return Ok(rows.iter().map(|row| self.of_row(row)).chain(unmatched.iter().map(of_unmatched)).collect());
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

    fn of_row(&self, row: &ComparedRow) -> Gated {
        let (verdict, reason) = self.weigh(row);
        self.gated(&row.engine, row.clients, verdict, &reason)
    }

    fn gated(&self, engine: &str, clients: u32, verdict: Found, reason: &str) -> Gated {
        Gated { gate: self.text.clone(), engine: engine.to_owned(), clients, verdict, reason: reason.to_owned() }
    }

    fn weigh(&self, row: &ComparedRow) -> (Found, String) {
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
        let samples = Samples::scaled(&compared.other.numbers(), &compared.base.numbers(), self.bound, starts);
        let seen = format!("the ratio of the medians is {ratio:.3}");
        if samples.fewest() < 2 {
            return (Found::SeenOnce, format!("{seen}, seen once"));
        }
        let alphas = Alphas { holds: ALPHA, fails: ALPHA };
        let verdict = samples.verdict(self.relation, alphas);
        let more = samples.more_repeats(self.relation, alphas).filter(|_| verdict == Verdict::Undecided);
        let more = more.map(|more| format!("; about {more} more repeats of each would decide it")).unwrap_or_default();
        (verdict.into(), format!("{seen}; {}{more}", samples.test()))
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
    use crate::testing::{record, results};

    fn runs(rates: &[f64]) -> Results {
        let repeats = rates.iter().zip(1..).map(|(rate, repeat)| {
            let mut record = record("a", 8, repeat);
            record.phases.iter_mut().for_each(|phase| phase.metrics.ops_per_s = Metric::Value(*rate));
            record
        });
        results(repeats.collect())
    }

    fn gated(gate: &str, base: &[f64], other: &[f64]) -> Gated {
        Gate::parse(gate).unwrap().judge(&compare(&runs(base), &runs(other))).unwrap().remove(0)
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
