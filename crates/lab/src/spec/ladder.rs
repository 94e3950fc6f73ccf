//! Numbers of clients: a number, a ladder such as `"1..1024 x2"`, or a list of either.

use rumba_engine_api::setting::Value;

use super::error::{Origin, SpecError};
use super::node::{Node, Tree};
use super::take;

/// The most clients that one trial may have.
pub const MOST: u32 = 65_536;

const LADDER: &str = "from, to and a step, as in \"1..1024 x2\" (twice as many each time) or \"8..64 +8\"; both ends are \
                      in it";

/// The numbers in order, each with its place.
///
/// # Errors
/// A value that is neither a number nor a ladder, a number twice, and an empty list.
pub fn rungs(node: &Node) -> Result<Vec<(u32, Origin)>, SpecError> {
    let mut rungs: Vec<(u32, Origin)> = Vec::new();
    for node in take::list(node) {
        for number in numbers(node)? {
            if rungs.iter().any(|(before, _)| *before == number) {
                return Err(SpecError::new(
                    &node.origin,
                    format!("clients has {number} twice"),
                    "give each number once; repeats = 2 or more runs it again",
                ));
            }
            rungs.push((number, node.origin.clone()));
        }
    }
    if rungs.is_empty() {
        return Err(SpecError::new(&node.origin, "clients is an empty list", "give at least one number of clients"));
    }
    Ok(rungs)
}

fn numbers(node: &Node) -> Result<Vec<u32>, SpecError> {
    let Tree::Scalar(Value::Text(text)) = &node.tree else {
        return take::int("clients", node, 1, i64::from(MOST)).map(|number| vec![number as u32]);
    };
    climbed(text).ok_or_else(|| {
        SpecError::new(
            &node.origin,
            format!("invalid clients `{text}`; expected a number, a list such as [1, 8], or a range"),
            format!("clients takes whole numbers from 1 to {MOST}, and ladders: {LADDER}"),
        )
    })
}

/// The rungs of `1..1024 x2`; `None` if the text is no finite ladder.
fn climbed(text: &str) -> Option<Vec<u32>> {
    let (first, rest) = text.split_once("..")?;
    let (last, step) = rest.split_at(rest.find(['x', '+'])?);
    let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let (is_factor, by) = match step.strip_prefix('x') {
        Some(factor) => (true, factor),
        None => (false, step.strip_prefix('+')?),
    };
    let by: f64 = by.trim().parse().ok()?;
    let climbs = by.is_finite() && if is_factor { by > 1.0 } else { by >= 1.0 };
    if !climbs || first == 0 || first > last || last > MOST {
        return None;
    }
    let mut rungs = Vec::new();
    let mut at = f64::from(first);
    while at < f64::from(last) {
        let rung = at.round() as u32;
        // Small factors give the same number more than once.
        if rungs.last() != Some(&rung) && rung < last {
            rungs.push(rung);
        }
        at = if is_factor { at * by } else { at + by };
    }
    rungs.push(last);
    Some(rungs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ladder_has_both_of_its_ends() {
        assert_eq!(climbed("1..1024 x2").unwrap(), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]);
        assert_eq!(climbed("1..1000x4").unwrap(), [1, 4, 16, 64, 256, 1000]);
        assert_eq!(climbed("8 .. 32 + 8").unwrap(), [8, 16, 24, 32]);
        assert_eq!(climbed("1..6 x1.5").unwrap(), [1, 2, 3, 5, 6]);
        assert_eq!(climbed("4..4 x2").unwrap(), [4]);
    }

    #[test]
    fn ladder_that_does_not_climb_is_refused() {
        for wrong in ["", "64", "1..64", "0..64 x2", "64..1 x2", "1..64 x1", "1..64 +0", "1..64 xinf", "1..99999 x2"] {
            assert_eq!(climbed(wrong), None, "{wrong}");
        }
    }
}
