//! Compares the effective settings after the start with the requested ones.

use std::collections::BTreeMap;

use rumba_engine_api::engine::{AT_DEFAULT, WITH_ASSERTIONS};
use rumba_engine_api::error::Result;
use rumba_server_kit::readback::{Match, compare, refused};

use crate::control::Control;
use crate::plan::{Line, Plan};
use crate::quantity::quantity;

/// Settings that the record must hold because they determine the meaning of the results, even if the experiment does
/// not set them.
const TELLING: [&str; 22] = [
    "shared_buffers",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_compression",
    "default_toast_compression",
    "wal_level",
    "max_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "autovacuum",
    "data_checksums",
    "block_size",
    "wal_segment_size",
    "huge_pages",
    "huge_pages_status",
    "io_method",
    "default_transaction_isolation",
    "server_encoding",
    "lc_collate",
    "jit",
    "track_io_timing",
];

/// The relative rounding that a server may apply to a number.
const ROUNDING: f64 = 0.1;

struct InForce {
    value: String,
    unit: Option<String>,
    shown: String,
    /// Its default value, in the same unit.
    default: String,
}

/// Reads back the configured settings. Returns the effective settings, and those that determine the meaning of results.
///
/// # Errors
/// The first setting that the server changed or ignored.
pub fn settings_in_force(control: &mut Control, plan: &Plan) -> Result<Vec<(String, String)>> {
    let call = "reading the settings back";
    let sql = "SELECT name, setting, unit, current_setting(name, true), boot_val FROM pg_settings";
    let rows = control.run(call, sql)?.rows;
    let known: BTreeMap<String, InForce> = rows.into_iter().filter_map(in_force).collect();
    let mut settings: Vec<(String, String)> = Vec::new();
    for line in &plan.lines {
        // The server accepts settings of a module that is not loaded, and they have no effect.
        let Some(found) = known.get(&line.name.to_ascii_lowercase()) else { continue };
        settings.push((line.name.clone(), hold(call, line, found)?));
    }
    for name in TELLING {
        let found = known.get(name).filter(|_| settings.iter().all(|(set, _)| set != name));
        settings.extend(found.map(|found| (name.to_owned(), found.shown.clone())));
    }
    let is_default = |line: &&Line| {
        let found = known.get(&line.name.to_ascii_lowercase());
        line.must_hold && found.is_some_and(|found| found.value == found.default)
    };
    let at_default: Vec<&str> = plan.lines.iter().filter(is_default).map(|line| line.name.as_str()).collect();
    if !at_default.is_empty() {
        settings.push((AT_DEFAULT.to_owned(), at_default.join(", ")));
    }
    if known.get("debug_assertions").is_some_and(|found| found.value == "on") {
        settings.push((WITH_ASSERTIONS.to_owned(), "true".to_owned()));
    }
    Ok(settings)
}

fn in_force(row: Vec<Option<String>>) -> Option<(String, InForce)> {
    let mut cells = row.into_iter();
    let (name, value, unit) = (cells.next()??, cells.next()?.unwrap_or_default(), cells.next()?);
    let shown = cells.next()?.unwrap_or_else(|| value.clone());
    let default = cells.next()?.unwrap_or_default();
    Some((name.to_ascii_lowercase(), InForce { value, unit, shown, default }))
}

/// Returns the displayed value of a setting that took effect.
fn hold(call: &'static str, line: &Line, found: &InForce) -> Result<String> {
    match matches(&line.value, found) {
        Match::Rounded => Ok(format!("{} (requested: {})", found.shown, line.value)),
        Match::Other if line.must_hold => Err(refused(call, &line.name, &line.value, &found.shown)),
        Match::Same | Match::Other => Ok(found.shown.clone()),
    }
}

fn matches(requested: &str, found: &InForce) -> Match {
    let unit = found.unit.as_deref();
    match (quantity(requested, unit), quantity(&found.value, unit)) {
        (Some(requested), Some(found)) if requested == found => Match::Same,
        (Some(requested), Some(found)) if (requested - found).abs() <= requested.abs() * ROUNDING => Match::Rounded,
        (Some(_), Some(_)) => Match::Other,
        _ => compare(requested, &found.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equal_in_every_unit() {
        let found =
            InForce { value: "16384".into(), unit: Some("8kB".into()), shown: "128MB".into(), default: String::new() };
        assert_eq!(matches("134217728B", &found), Match::Same);
        assert_eq!(matches("134217000B", &found), Match::Rounded);
        assert_eq!(matches("64MB", &found), Match::Other);
        let switch = InForce { value: "off".into(), unit: None, shown: "off".into(), default: String::new() };
        assert_eq!((matches("false", &switch), matches("on", &switch)), (Match::Same, Match::Other));
    }
}
