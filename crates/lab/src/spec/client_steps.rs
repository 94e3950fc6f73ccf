//! `clients` with points: numbers of active clients that change within one trial.

use rumba_results::client_steps::ClientSteps;

use super::error::{Origin, SpecError};
use super::node::{Node, Table, Tree};
use super::{ladder, take};

const EXAMPLE: &str =
    "give steps as in clients = [[\"0s\", 1], [\"30s\", 4]]: a time since the loops' start, and a number of clients";

type Step = ((f64, u32), Origin);

/// The steps of `clients`, each with its place; `None` if it has plain numbers.
///
/// # Errors
/// The first element that is no step.
pub fn steps(node: &Node) -> Option<Result<Vec<Step>, SpecError>> {
    let Tree::List(nodes) = &node.tree else { return None };
    let has_steps = nodes.iter().any(|node| matches!(node.tree, Tree::List(_)));
    has_steps.then(|| nodes.iter().map(step).collect())
}

/// `["30s", 4]`.
fn step(node: &Node) -> Result<Step, SpecError> {
    let Tree::List(pair) = &node.tree else {
        let problem = format!("clients holds {} where a step is needed", node.kind());
        return Err(SpecError::new(&node.origin, problem, EXAMPLE));
    };
    let [at, clients] = pair.as_slice() else {
        let problem = format!("a step of clients has {} values, not a time and a number", pair.len());
        return Err(SpecError::new(&node.origin, problem, EXAMPLE));
    };
    let clients = take::int("clients", clients, 1, i64::from(ladder::MOST))? as u32;
    Ok(((take::seconds("clients", at)?, clients), node.origin.clone()))
}

/// Reads `clients` with points, given the seconds of the loops; `None` if it has plain numbers.
pub fn requested(table: &Table, loops_s: f64) -> Result<Option<ClientSteps>, SpecError> {
    let Some(node) = table.get("clients") else { return Ok(None) };
    let Some(steps) = steps(node).transpose()? else { return Ok(None) };
    refuse_times(&steps, loops_s)?;
    refuse_others(table)?;
    Ok(Some(ClientSteps { points: steps.into_iter().map(|(step, _)| step).collect() }))
}

/// Refuses times that do not ascend from zero within the loops.
fn refuse_times(steps: &[Step], loops_s: f64) -> Result<(), SpecError> {
    let mut before_s = None;
    for ((at_s, _), origin) in steps {
        let (problem, remedy) = match before_s {
            None if *at_s != 0.0 => (format!("clients begins at {at_s} s"), "begin with a step at \"0s\""),
            Some(before_s) if *at_s <= before_s => {
                (format!("clients goes from {before_s} s to {at_s} s"), "put the steps in the order of time")
            }
            _ if *at_s >= loops_s => (
                format!("clients has a step at {at_s} s, and the loops end at {loops_s} s"),
                "have each step begin within the loops, or run more or longer loops",
            ),
            _ => {
                before_s = Some(*at_s);
                continue;
            }
        };
        return Err(SpecError::new(origin, problem, remedy));
    }
    Ok(())
}

/// Refuses keys that need one number of clients.
fn refuse_others(table: &Table) -> Result<(), SpecError> {
    let refused = [
        ("rate", "clients in steps work as fast as they can, and rate sets when operations start"),
        ("active", "clients in steps and active both set how many clients work"),
        ("until_decided", "until_decided needs one number of clients, and clients has steps"),
    ];
    for (key, problem) in refused {
        let is_off = |node: &Node| key == "until_decided" && take::bool(key, node) == Ok(false);
        if let Some(node) = table.get(key).filter(|node| !is_off(node)) {
            return Err(SpecError::new(
                &node.key_origin,
                problem,
                format!("take {key} out, or give clients one number"),
            ));
        }
    }
    Ok(())
}
