//! Changes server variables temporarily.

use rumba_engine_api::error::{EngineError, Result};

use crate::counters::{Request, Status, query};

const CALL: &str = "SET GLOBAL";

/// A variable and its temporary value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub name: &'static str,
    pub value: f64,
    /// Whether a larger value may stay.
    pub at_least: bool,
}

/// Runs `work` with the variables in `wanted` set, as far as the server has them. Afterwards restores them in reverse
/// order, even after an error.
///
/// # Errors
/// `work`'s error; the server's error; the variables that could not be restored.
pub(super) fn with(
    admin: &mut dyn Request,
    wanted: &[Wanted],
    work: impl FnOnce(&mut dyn Request) -> Result<()>,
) -> Result<()> {
    let before = values(admin, wanted)?;
    let outcome = set(admin, wanted, &before).and_then(|()| work(admin));
    // Restore all variables, because the server may adapt some when another one is set.
    let mut left = Vec::new();
    for (name, value) in before.iter().rev() {
        if let Err(error) = query(admin, CALL, &format!("SET GLOBAL {name} = {value}")) {
            left.push(format!("{name} = {value} ({error})"));
        }
    }
    match (outcome, left.is_empty()) {
        (outcome, true) => outcome,
        (outcome, false) => {
            let cause = outcome.err().map(|error| format!("{error}; then ")).unwrap_or_default();
            let message = format!("{cause}these could not be set back: {}", left.join(", "));
            Err(EngineError::failed(CALL, message))
        }
    }
}

/// The current values, in the order of `wanted`, of the variables that the server has.
fn values(admin: &mut dyn Request, wanted: &[Wanted]) -> Result<Vec<(&'static str, f64)>> {
    let names: Vec<&str> = wanted.iter().map(|wanted| wanted.name).collect();
    let sql = format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{}')", names.join("','"));
    let now = Status::read(admin, &sql).map_err(|words| EngineError::failed("SHOW GLOBAL VARIABLES", words))?;
    Ok(names.into_iter().filter_map(|name| Some((name, now.get(name)?))).collect())
}

fn set(admin: &mut dyn Request, wanted: &[Wanted], before: &[(&'static str, f64)]) -> Result<()> {
    for Wanted { name, value, at_least } in wanted {
        let now = before.iter().find(|(known, _)| known == name).map(|(_, now)| *now);
        if now.is_some_and(|now| now != *value && !(*at_least && now > *value)) {
            query(admin, CALL, &format!("SET GLOBAL {name} = {value}"))?;
        }
    }
    Ok(())
}
