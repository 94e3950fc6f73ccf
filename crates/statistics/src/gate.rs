//! Gates of a comparison: `ops_per_s < 0.95` is so, is not so, or is undecided.

use rumba_core::claim::Verdict;
use rumba_core::comparison::{CHARGED, ComparedRow, Comparison, Part};
use rumba_core::metric::METRICS;

use crate::claims::samples::{Alphas, Samples};
use crate::claims::{ALPHA, Relation};

/// A bound on the ratio of one metric, other over base.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
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

/// What came of a gate for one engine.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Gated {
    /// The gate as written.
    pub gate: String,
    /// The engine.
    pub engine: String,
    /// Its number of clients.
    pub clients: u32,
    /// `holds`: it is so, beyond the noise; `fails`: it is not.
    pub verdict: Verdict,
    /// The figures and the test, or why there is no verdict.
    pub reason: String,
}

impl Gate {
    /// Reads `METRIC < NUMBER`.
    ///
    /// # Errors
    /// When it is not of this form, or the metric is not there.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let wrong = |problem: String, remedy: &str| GateError { problem, remedy: remedy.to_owned() };
        let example = "write for example 'ops_per_s < 0.95': other over base";
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
        let known = || METRICS.iter().chain(CHARGED).map(|info| info.name);
        if !name.ends_with(".p99_ms") && !known().any(|known| known == name) {
            let remedy = rumba_core::nearest(name, known())
                .map_or_else(|| example.to_owned(), |near| format!("did you mean `{near}`?"));
            return Err(GateError { problem: format!("there is no metric `{metric}`"), remedy });
        }
        Ok(Self { text: text.to_owned(), metric: name.to_owned(), load, relation, bound })
    }

    /// What comes of it for every engine that both runs have.
    ///
    /// # Errors
    /// When there is nothing that it could be about: a gate that cannot close is a mistake.
    pub fn judge(&self, comparison: &Comparison) -> Result<Vec<Gated>, GateError> {
        let part = if self.load { Part::Load } else { Part::Run };
        let rows: Vec<&ComparedRow> = comparison.rows.iter().filter(|row| row.part == part).collect();
        let metrics = || rows.iter().flat_map(|row| &row.metrics).map(|compared| compared.ratio.metric.as_str());
        if metrics().any(|metric| metric == self.metric) {
            return Ok(rows.into_iter().map(|row| self.of_row(row)).collect());
        }
        if rows.is_empty() {
            return Err(GateError {
                problem: format!("`{}`: no engine has the same name and number of clients in both runs", self.text),
                remedy: "compare runs of the same engines".to_owned(),
            });
        }
        let remedy = rumba_core::nearest(&self.metric, metrics()).map_or_else(
            || "`rumba compare --details` lists what they have".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Err(GateError { problem: format!("no engine has `{}` in either run", self.metric), remedy })
    }

    fn of_row(&self, row: &ComparedRow) -> Gated {
        let (verdict, reason) = self.weigh(row);
        Gated { gate: self.text.clone(), engine: row.engine.clone(), clients: row.clients, verdict, reason }
    }

    fn weigh(&self, row: &ComparedRow) -> (Verdict, String) {
        if let Some(why) = &row.unsound {
            return (Verdict::Undecided, why.clone());
        }
        let Some(compared) = row.metrics.iter().find(|compared| compared.ratio.metric == self.metric) else {
            return (Verdict::Undecided, format!("{} has no {}", row.engine, self.metric));
        };
        let Some(ratio) = compared.ratio.ratio.value() else {
            return (Verdict::Undecided, compared.ratio.ratio.reason().unwrap_or_default().to_owned());
        };
        let samples = Samples::scaled(&compared.other.numbers(), &compared.base.numbers(), self.bound);
        let seen = format!("the ratio of the medians is {ratio:.3}");
        if samples.fewest() < 2 {
            return (Verdict::SeenOnce, format!("{seen}, seen once"));
        }
        let alphas = Alphas { holds: ALPHA, fails: ALPHA };
        let verdict = samples.verdict(self.relation, alphas);
        let more = samples.more_repeats(self.relation, alphas).filter(|_| verdict == Verdict::Undecided);
        let more = more.map(|more| format!("; about {more} more repeats of each would decide it")).unwrap_or_default();
        (verdict, format!("{seen}; {}{more}", samples.test()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::metric::Metric;
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
        assert_eq!(gated("ops_per_s < 0.95", &base, &[90.0, 91.0, 89.0]).verdict, Verdict::Holds);
        assert_eq!(gated("ops_per_s < 0.95", &base, &[99.0, 100.0, 98.5]).verdict, Verdict::Fails);
        let near = gated("ops_per_s<0.95", &base, &[94.0, 96.0, 95.5]);
        assert_eq!(near.verdict, Verdict::Undecided);
        assert!(near.reason.contains("permutation test, 3 and 3 repeats"), "{}", near.reason);
        assert_eq!(gated("ops_per_s < 0.95", &[100.0], &[10.0]).verdict, Verdict::SeenOnce);
        assert_eq!(gated("load_ops_per_s >= 1", &base, &base).verdict, Verdict::Undecided);
        assert_eq!(gated("get_node.p99_ms > 1.1", &base, &base).verdict, Verdict::Fails);
    }

    #[test]
    fn a_gate_that_can_never_close_is_a_mistake_and_no_success() {
        let comparison = compare(&runs(&[100.0]), &runs(&[100.0]));
        let error = |gate: &str, of: &Comparison| Gate::parse(gate).unwrap().judge(of).unwrap_err();
        assert_eq!(error("get_nod.p99_ms > 1.1", &comparison).remedy, "did you mean `get_node.p99_ms`?");
        let nothing = Comparison { rows: Vec::new(), ..comparison };
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
