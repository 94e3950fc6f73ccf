//! Claims: an experiment's inequalities, judged over its repeats by exact tests.
//!
//! A claim holds when the one-sided test rejects at 5% that it does not, and fails when the opposite test rejects that
//! it does. Only one of the two can be false. In a claim joined by `&&` every part must hold, each at 5%, and a part
//! fails at 5% divided by the number of parts; `||` is the reverse. A part without its figures is unknown: `true ||
//! unknown` holds, `false && unknown` fails, and all other combinations with it are undecided.

mod always;
mod figures;
pub(crate) mod language;
pub(crate) mod lexer;
mod names;
pub(crate) mod samples;

use rumba_engine_api::units::counted;
use rumba_results::claim::{Claim, Judgement, Verdict};
use rumba_results::comparison::Row;
use rumba_results::distinct;
use rumba_results::metric::Metric;
use rumba_results::ratio::what_would_decide;
use rumba_results::starts::Scope as LoadScope;

pub(crate) use language::Relation;
pub use language::{Number, number};
pub use names::{MetricRef, Missing, Mistake, Scope};

use crate::validity::{Withheld, withheld};
use always::always;
use figures::{Absent, Figures, Which, phases_of, rows_of};
use language::{Operator, Truth};
use lexer::EXAMPLE;
use samples::{Alphas, Samples};

/// The error rate of a verdict.
pub(crate) const ALPHA: f64 = 0.05;

/// Checks an expression before anything runs: its grammar, its metrics and its engines.
pub fn check(text: &str, wants_truth: bool, scope: &Scope) -> Result<(), Mistake> {
    if !wants_truth {
        return language::number(text, scope).map(drop);
    }
    let wrong = match always(&language::truth(text, scope)?) {
        None => return Ok(()),
        Some(true) => "all or part of it is true for any data, so it asserts nothing",
        Some(false) => "it, or a part of it, is true of no data, so it cannot hold",
    };
    Err(Mistake::new(0, wrong, format!("compare figures that could turn out otherwise: {EXAMPLE}")))
}

/// The reason why so few repeats can never decide an expression; `None` if they can, or if it cannot be parsed. Two
/// engines, one on each side, are tested against each other, which four repeats decide. An engine against a number, or
/// on both sides, is tested within each repeat by signs; with four repeats, one in sixteen agrees by chance.
pub fn why_never_decided(text: &str, scope: &Scope, repeats: u32) -> Option<Mistake> {
    let truth = language::truth(text, scope).ok()?;
    let least = samples::least(1.0, ALPHA);
    let mut inequalities = inequalities(&truth).into_iter();
    let is_within = inequalities.any(|(left, right)| samples::are_within_repeats(left, right));
    (is_within && repeats < least).then(|| {
        let problem = format!(
            "{} cannot decide it: a figure against a number, or an engine on both sides, takes {least}",
            counted(repeats as usize, "repeat")
        );
        Mistake::new(0, problem, format!("set repeats = {least}, or compare with the figure of another engine"))
    })
}

fn inequalities(truth: &Truth) -> Vec<(&Number, &Number)> {
    match truth {
        Truth::Is(_, left, right) => vec![(left, right)],
        Truth::Not(inner) => inequalities(inner),
        Truth::All(parts) | Truth::Any(parts) => parts.iter().flat_map(inequalities).collect(),
    }
}

/// The engines and numbers of clients that claims over these rows may name.
pub fn scope(rows: &[Row]) -> Scope {
    let mut scope = Scope::default();
    rows.iter().for_each(|row| scope.add(&row.engine, row.clients));
    scope
}

/// Judges every claim over the figures of a run.
pub fn judge(claims: &[Claim], rows: &[Row]) -> Vec<Judgement> {
    let scope = scope(rows);
    claims.iter().map(|claim| judge_one(claim, rows, &scope)).collect()
}

fn judge_one(claim: &Claim, rows: &[Row], scope: &Scope) -> Judgement {
    let holds = language::truth(&claim.holds, scope);
    let measure = claim.measure.as_deref().map(|text| language::number(text, scope)).transpose();
    match (holds, measure) {
        (Ok(holds), Ok(measure)) => weigh(claim, &holds, measure.or_else(|| over(&holds)).as_ref(), Figures(rows))
            .unwrap_or_else(|reason| undecided(claim, reason)),
        (Err(mistake), _) | (_, Err(mistake)) => undecided(claim, format!("{}; {}", mistake.problem, mistake.remedy)),
    }
}

fn undecided(claim: &Claim, reason: String) -> Judgement {
    Judgement {
        claim: claim.clone(),
        verdict: Verdict::Undecided,
        measured: Metric::absent(reason.clone()),
        reason,
        seen: None,
        test: None,
        more_repeats: None,
        interval: None,
    }
}

/// The left side divided by the right side, if the claim is one inequality.
fn over(truth: &Truth) -> Option<Number> {
    match truth {
        Truth::Is(_, left, right) => Some(Number::Two(Operator::Over, Box::new(left.clone()), Box::new(right.clone()))),
        _ => None,
    }
}

fn weigh(claim: &Claim, holds: &Truth, measure: Option<&Number>, figures: Figures<'_>) -> Result<Judgement, Absent> {
    if let Some(why) = unsound(figures, holds, measure) {
        return Err(why);
    }
    let outcome = outcome(figures, holds, Alphas { holds: ALPHA, fails: ALPHA })?;
    if let (Verdict::Void, Some(why)) = (outcome.verdict, &outcome.unknown) {
        return Ok(Judgement { verdict: Verdict::Void, ..undecided(claim, why.clone()) });
    }
    // Values within a percent count as equal, so the verdict can differ from the medians. A missing part is therefore
    // judged by the verdict.
    let decided = matches!(outcome.verdict, Verdict::Holds | Verdict::Fails);
    let seen = match figures.truth(holds) {
        Err(_) if decided => outcome.verdict == Verdict::Holds,
        seen => seen?,
    };
    let measured = match measure {
        // A decided claim may have no ratio, for example `x > 0`.
        Some(measure) => Metric::from(figures.number(measure, Which::Medians)),
        None => Metric::absent("the claim has no single figure; add measure"),
    };
    let interval = measure
        .filter(|_| outcome.verdict != Verdict::SingleRun)
        .filter(|measure| figures.complete(&[measure]).is_ok())
        .and_then(|measure| Samples::of(figures, measure, &Number::Plain(1.0)).ok()?.interval(ALPHA));
    let mut reason =
        sides(figures, holds)?.unwrap_or_else(|| (if seen { "it is true" } else { "it is not true" }).to_owned());
    match (outcome.verdict, outcome.more_repeats) {
        (Verdict::SingleRun, _) => {
            reason += if seen { "; true in the one repeat" } else { "; not true in the one repeat" };
        }
        (Verdict::Undecided, more) => {
            reason += &format!("; {}", what_would_decide(more));
        }
        _ => {}
    }
    if let Some(why) = outcome.unknown.as_ref().filter(|_| decided) {
        reason += &format!("; decided without a part that is unknown: {why}");
    }
    Ok(Judgement {
        claim: claim.clone(),
        verdict: outcome.verdict.within(outcome.scope),
        reason,
        seen: Some(seen),
        test: (!outcome.tests.is_empty()).then(|| outcome.tests.join("; ")),
        more_repeats: outcome.more_repeats.filter(|_| outcome.verdict == Verdict::Undecided),
        measured,
        interval,
    })
}

/// The reason why these figures support no verdict: the data of an engine that the claim reads failed its verification.
fn unsound(figures: Figures<'_>, holds: &Truth, measure: Option<&Number>) -> Option<String> {
    let compared = inequalities(holds).into_iter().flat_map(|(left, right)| [left, right]);
    let mut read = compared.chain(measure).flat_map(phases_of);
    read.find_map(|(engine, clients, part)| figures.row((engine, clients))?.why_not_judged(part))
}

/// The two sides in words, if the claim is one inequality.
fn sides(figures: Figures<'_>, truth: &Truth) -> Result<Option<String>, Absent> {
    let Truth::Is(_, left, right) = truth else { return Ok(None) };
    let (left, right) = (figures.number(left, Which::Medians)?, figures.number(right, Which::Medians)?);
    Ok(Some(format!("left {}, right {}", show(left), show(right))))
}

/// The result of the tests of a claim's parts.
struct Outcome {
    /// The verdict as if it held for other loads too.
    verdict: Verdict,
    scope: LoadScope,
    tests: Vec<String>,
    more_repeats: Option<u32>,
    /// The reason why an unnecessary part has no value.
    unknown: Option<Absent>,
}

impl Outcome {
    /// A verdict without a test.
    fn of(verdict: Verdict) -> Self {
        Self { verdict, scope: LoadScope::Loads, tests: Vec::new(), more_repeats: None, unknown: None }
    }

    /// The outcome for a part that compares an engine with itself.
    fn void(why: Absent) -> Self {
        Self { unknown: Some(why), ..Self::of(Verdict::Void) }
    }
}

fn outcome(figures: Figures<'_>, truth: &Truth, alphas: Alphas) -> Result<Outcome, Absent> {
    let of_parts = |parts: &[Truth], alphas: Alphas| -> Vec<Result<Outcome, Absent>> {
        parts.iter().map(|part| outcome(figures, part, alphas)).collect()
    };
    match truth {
        Truth::Is(relation, left, right) => inequality(figures, *relation, left, right, alphas),
        Truth::Not(inner) => {
            let turned = Alphas { holds: alphas.fails, fails: alphas.holds };
            let inner = outcome(figures, inner, turned)?;
            Ok(Outcome { verdict: opposite(inner.verdict), ..inner })
        }
        Truth::All(parts) => {
            let split = Alphas { fails: alphas.fails / parts.len() as f64, ..alphas };
            join(of_parts(parts, split), Verdict::Fails, Verdict::Holds)
        }
        Truth::Any(parts) => {
            let split = Alphas { holds: alphas.holds / parts.len() as f64, ..alphas };
            join(of_parts(parts, split), Verdict::Holds, Verdict::Fails)
        }
    }
}

fn opposite(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Holds => Verdict::Fails,
        Verdict::Fails => Verdict::Holds,
        other => other,
    }
}

/// One part with the `decisive` verdict decides alone, even if another part is unknown. All parts together decide if
/// they all have the `other` verdict.
fn join(parts: Vec<Result<Outcome, Absent>>, decisive: Verdict, other: Verdict) -> Result<Outcome, Absent> {
    let is_decisive = |part: &Result<Outcome, Absent>| part.as_ref().is_ok_and(|part| part.verdict == decisive);
    let mut unknown = parts.iter().find_map(|part| part.as_ref().err().cloned());
    if let Some(why) = unknown.clone().filter(|_| !parts.iter().any(is_decisive)) {
        return Err(why);
    }
    let parts: Vec<Outcome> = parts.into_iter().flatten().collect();
    unknown = unknown.or_else(|| parts.iter().find_map(|part| part.unknown.clone()));
    let any = |verdict: Verdict| parts.iter().any(|part| part.verdict == verdict);
    let verdict = match () {
        () if any(Verdict::Void) => Verdict::Void,
        () if any(decisive) => decisive,
        () if any(Verdict::SingleRun) => Verdict::SingleRun,
        () if any(Verdict::Undecided) => Verdict::Undecided,
        () => other,
    };
    // A part that decides alone for other loads too makes the others unnecessary.
    let decides = |part: &&Outcome| verdict != decisive || part.verdict == decisive;
    let deciding = || parts.iter().filter(decides).map(|part| part.scope);
    let is_of_loads = match verdict == decisive {
        true => deciding().any(|scope| scope == LoadScope::Loads),
        false => deciding().all(|scope| scope == LoadScope::Loads),
    };
    let scope = if is_of_loads { LoadScope::Loads } else { LoadScope::ThisLoad };
    let undecided = || parts.iter().filter(|part| part.verdict == Verdict::Undecided);
    // A part that no number of repeats would decide leaves the whole undecided.
    let more_repeats = undecided()
        .map(|part| part.more_repeats)
        .try_fold(0, |most, more| Some(most.max(more?)))
        .filter(|more| *more > 0);
    let tests = distinct(parts.into_iter().flat_map(|part| part.tests));
    Ok(Outcome { verdict, scope, tests, more_repeats, unknown })
}

fn inequality(
    figures: Figures<'_>,
    relation: Relation,
    left: &Number,
    right: &Number,
    alphas: Alphas,
) -> Result<Outcome, Absent> {
    let plainly = relation.is_so(figures.number(left, Which::Medians)?, figures.number(right, Which::Medians)?);
    if rows_of([left, right]).is_empty() {
        let verdict = if plainly { Verdict::Holds } else { Verdict::Fails };
        return Ok(Outcome::of(verdict));
    }
    figures.complete(&[left, right])?;
    if let Some(why) = withheld(figures.reads(&[left, right]).into_iter()) {
        return match why {
            Withheld::Void(why) => Ok(Outcome::void(why)),
            Withheld::Undecided(why) => Err(why),
        };
    }
    let samples = Samples::of(figures, left, right)?;
    if samples.fewest() < 2 {
        return Ok(Outcome::of(Verdict::SingleRun));
    }
    let verdict = samples.verdict(relation, alphas);
    let more_repeats = samples.more_repeats(relation, alphas);
    let (scope, tests) = (samples.scope(), vec![samples.test()]);
    let decided = Outcome { verdict, scope, tests, more_repeats, unknown: None };
    match figures.without_drain(&[left, right]) {
        Some(without) if matches!(verdict, Verdict::Holds | Verdict::Fails) => {
            let [apart_left, apart_right] = [left, right].map(|number| without.apply(number));
            let apart = Samples::of(figures, &apart_left, &apart_right).map(|apart| apart.verdict(relation, alphas));
            match apart == Ok(verdict) {
                true => Ok(decided),
                false => Err(format!("{}, and the figures without it do not say the same", without.reason)),
            }
        }
        _ => Ok(decided),
    }
}

/// Three significant digits, as tables show them.
fn show(number: f64) -> String {
    let digits = if number == 0.0 { 0 } else { (2 - number.abs().log10().floor() as i32).clamp(0, 6) };
    format!("{number:.*}", digits as usize)
}

#[cfg(test)]
mod tests;
