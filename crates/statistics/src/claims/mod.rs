//! Claims: an experiment's inequalities, judged over its repeats.
//!
//! The repeats of every engine are drawn again, with replacement, as in
//! [`crate::compare()`]; a claim holds when its inequality is true in at least
//! 97.5% of the draws, fails when in at most 2.5%, and is undecided between
//! them. With one repeat there is nothing to draw from: the figures alone
//! decide, and the reason says so.

mod draws;
mod expression;

use rumba_core::claim::{Claim, Judgement, Verdict};
use rumba_core::comparison::Row;
use rumba_core::metric::Metric;

pub use expression::{Mistake, Scope, check};

use crate::{LEVEL, RESAMPLES};
use draws::Draws;
use expression::{Compiled, Trouble};

/// Judges every claim over the figures of a run.
pub fn judge(claims: &[Claim], rows: &[Row]) -> Vec<Judgement> {
    claims.iter().map(|claim| judge_one(claim, rows)).collect()
}

fn judge_one(claim: &Claim, rows: &[Row]) -> Judgement {
    let undecided = |reason: String| Judgement {
        claim: claim.clone(),
        verdict: Verdict::Undecided,
        measured: Metric::absent(reason.clone()),
        reason,
        interval: None,
        support: None,
    };
    match weigh(claim, rows) {
        Ok(judgement) => judgement,
        Err(Trouble::Absent(reason)) => undecided(format!("absent because {reason}")),
        Err(Trouble::Mistake(mistake)) => undecided(format!("{}; {}", mistake.problem, mistake.remedy)),
    }
}

fn weigh(claim: &Claim, rows: &[Row]) -> Result<Judgement, Trouble> {
    let mut draws = Draws::new(rows);
    let holds = Compiled::new(&claim.holds, &draws)?;
    let measure = claim.measure.as_deref().map(|text| Compiled::new(text, &draws)).transpose()?;
    let sides = holds.sides()?;
    let plainly = holds.truth()?;
    let measured = |sides: Option<(f64, f64)>| match &measure {
        Some(measure) => measure.number().map(Some),
        None => Ok(sides.map(|(left, right)| left / right).filter(|ratio| ratio.is_finite())),
    };
    let figure = measured(sides)?;
    let mut reason = sides.map_or_else(
        || (if plainly { "it is true" } else { "it is not true" }).to_owned(),
        |(left, right)| format!("left {}, right {}", show(left), show(right)),
    );
    let mut judgement = Judgement {
        claim: claim.clone(),
        verdict: if plainly { Verdict::Holds } else { Verdict::Fails },
        reason: String::new(),
        measured: figure.map_or_else(|| Metric::absent("the claim has no single figure; add measure"), Metric::from),
        interval: None,
        support: None,
    };
    let Some(repeats) = draws.fewest_repeats().filter(|repeats| *repeats > 1) else {
        judgement.reason = format!("{reason}; one repeat, so there is no interval");
        return Ok(judgement);
    };
    let (mut truths, mut figures) = (0_u32, Vec::new());
    for _ in 0..RESAMPLES {
        draws.again();
        truths += u32::from(holds.truth()?);
        figures.extend(measured(holds.sides()?)?);
    }
    let support = f64::from(truths) / f64::from(RESAMPLES);
    let tail = (1.0 - LEVEL) / 2.0;
    judgement.verdict = match support {
        support if support >= 1.0 - tail => Verdict::Holds,
        support if support <= tail => Verdict::Fails,
        _ => Verdict::Undecided,
    };
    if judgement.verdict == Verdict::Undecided {
        reason += &format!("; true in {:.0}% of draws from {repeats} repeats", support * 100.0);
    }
    judgement.interval = interval(figures, tail);
    Ok(Judgement { support: Some(support), reason, ..judgement })
}

/// The percentile interval of the draws' figures.
fn interval(mut figures: Vec<f64>, tail: f64) -> Option<(f64, f64)> {
    figures.sort_unstable_by(f64::total_cmp);
    let last = figures.len().checked_sub(1)?;
    let at = |share: f64| figures[(share * last as f64).round() as usize];
    Some((at(tail), at(1.0 - tail)))
}

/// Three significant digits, as tables show them.
fn show(number: f64) -> String {
    let digits = if number == 0.0 { 0 } else { (2 - number.abs().log10().floor() as i32).clamp(0, 6) };
    format!("{number:.*}", digits as usize)
}

#[cfg(test)]
mod tests;
