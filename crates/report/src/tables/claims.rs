//! The claims of an experiment with their verdicts.

use std::fmt::Write as _;

use rumba_results::claim::{Judgement, Verdict};
use rumba_results::comparison::Summary;

use super::grid::Grid;
use crate::format::significant;

/// The legend of a verdict over starts of one load.
pub const THIS_LOAD: &str = "  For this load: the repeats are starts of one load, so nothing is known about other loads; repeats_from = \"load\" asks.\n";

/// A verdict in a word.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "FAILS",
        Verdict::Undecided => "undecided",
        Verdict::SingleRun => "single run",
        Verdict::Void => "void",
        Verdict::TrueForThisLoad => "true for this load",
        Verdict::FalseForThisLoad => "FALSE for this load",
    }
}

/// One line for each claim, with the published figure next to the measured one. Below them are the inequalities and
/// their tests. Empty without claims.
pub fn claims(summary: &Summary) -> String {
    if summary.claims.is_empty() {
        return String::new();
    }
    let heads = ["verdict", "measured", "90% interval", "published", "claim"];
    let mut grid = Grid::new(heads.map(str::to_owned).to_vec()).left(0);
    for judged in &summary.claims {
        grid.push(vec![
            word(judged.verdict).to_owned(),
            judged.measured.value().map_or_else(|| "-".to_owned(), significant),
            judged
                .interval
                .map_or_else(|| "-".to_owned(), |(low, high)| format!("{}–{}", significant(low), significant(high))),
            judged.claim.published.map_or_else(|| "-".to_owned(), significant),
            judged.claim.text.clone(),
        ]);
    }
    let mut text = format!("\nClaims\n{}", grid.render());
    text.push_str(
        "  A verdict is false in at most 5% of cases: a test over the repeats rejects the opposite. \
         Single run: one repeat, nothing to test.\n",
    );
    let is_of_one_load =
        |judged: &Judgement| matches!(judged.verdict, Verdict::TrueForThisLoad | Verdict::FalseForThisLoad);
    if summary.claims.iter().any(is_of_one_load) {
        text.push_str(THIS_LOAD);
    }
    text.extend(summary.claim_verdicts.sentence().map(|sentence| format!("  {sentence}\n")));
    for (number, judged) in (1..).zip(&summary.claims) {
        let Judgement { claim, reason, verdict, test, .. } = judged;
        let test = test.as_deref().map(|test| format!("; {test}")).unwrap_or_default();
        let _ = writeln!(text, "  {number}. {}: {} ({reason}{test})", claim.holds, word(*verdict));
        if let Some(measure) = &claim.measure {
            let _ = writeln!(text, "     measured is {measure}");
        }
        if let Some(source) = &claim.source {
            let _ = writeln!(text, "     {source}");
        }
    }
    text
}
