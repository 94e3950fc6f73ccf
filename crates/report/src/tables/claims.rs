//! The claims of an experiment with their verdicts.

use std::fmt::Write as _;

use rumba_core::claim::{Judgement, Verdict};
use rumba_core::comparison::Summary;

use super::grid::Grid;
use crate::format::significant;

/// A verdict in a word.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Fails => "FAILS",
        Verdict::Undecided => "undecided",
    }
}

/// One line for each claim, the published figure beside the measured one; below
/// them the inequalities and what decided them. Empty without claims.
pub fn claims(summary: &Summary) -> String {
    if summary.claims.is_empty() {
        return String::new();
    }
    let heads = ["verdict", "measured", "95% interval", "published", "claim"];
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
    for (number, judged) in (1..).zip(&summary.claims) {
        let Judgement { claim, reason, verdict, .. } = judged;
        let _ = writeln!(text, "  {number}. {}: {} ({reason})", claim.holds, word(*verdict));
        if let Some(measure) = &claim.measure {
            let _ = writeln!(text, "     measured is {measure}");
        }
        if let Some(source) = &claim.source {
            let _ = writeln!(text, "     {source}");
        }
    }
    text
}
