//! Whether verdicts keep their error rate; the whole table is in docs/method.md.

use super::measure::Bench;
use super::{Failure, Line};
use crate::simulate::simulate;

/// The worst cell of the simulation, and what it finds.
pub fn verdicts(_: &Bench) -> Result<Vec<Line>, Failure> {
    let simulated = simulate();
    let command = "cargo run --release -p xtask -- simulate".to_owned();
    Ok(vec![
        Line {
            what: "false verdicts of engines that are alike, the worst cell of 2 to 8 repeats".to_owned(),
            goal: "at most 5%, and three standard errors of the simulation".to_owned(),
            measured: format!("{:.1}%", 100.0 * simulated.worst),
            met: Some(simulated.keeps_level()),
            command: command.clone(),
        },
        Line {
            what: "a change of 5% found with 5 repeats of 1% noise".to_owned(),
            goal: "at least 90%".to_owned(),
            measured: format!("{:.1}%", 100.0 * simulated.found),
            met: Some(simulated.found >= 0.9),
            command,
        },
    ])
}
