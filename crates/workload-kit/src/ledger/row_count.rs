//! The number of rows that a table must have.

use rumba_engine_api::check::Check;

/// How many rows a table must have.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowCount {
    /// Rows that the load was to write.
    pub loaded: u64,
    /// Rows that clients inserted.
    pub added: u64,
    /// Rows that clients deleted.
    pub deleted: u64,
    /// Operations that may have added a row or not.
    pub adds_in_doubt: u64,
    /// Operations that may have deleted a row or not.
    pub deletes_in_doubt: u64,
}

impl RowCount {
    /// Compares with the rows that were found.
    pub fn check(&self, name: &str, found: u64) -> Check {
        let mut check = Check::new(name);
        let Self { loaded, added, deleted, adds_in_doubt, deletes_in_doubt } = *self;
        let in_doubt = adds_in_doubt + deletes_in_doubt;
        if in_doubt > 0 {
            // The trial has failed for another reason, so this check must not report a false one.
            check.name += &format!(", leaving open {in_doubt} that ended in an engine's error or not at all");
        }
        let right = (loaded + added).saturating_sub(deleted);
        let (least, most) = (right.saturating_sub(deletes_in_doubt), right + adds_in_doubt);
        check.examined = found;
        check.wrong = least.saturating_sub(found) + found.saturating_sub(most);
        if check.wrong > 0 {
            let right = if least == most { right.to_string() } else { format!("{least} to {most}") };
            let deleted = if deleted > 0 { format!(", {deleted} deleted") } else { String::new() };
            check.examples.push(format!(
                "{found} rows are there, {right} should be: {loaded} loaded, {added} inserted since{deleted}"
            ));
        }
        check
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: RowCount = RowCount { loaded: 100, added: 20, deleted: 5, adds_in_doubt: 2, deletes_in_doubt: 1 };

    #[test]
    fn missing_rows_are_lost_unless_their_write_is_in_doubt() {
        for (found, wrong) in [(112, 2), (113, 1), (114, 0), (115, 0), (117, 0), (118, 1)] {
            let check = ROWS.check("rows", found);
            assert_eq!((check.examined, check.wrong), (found, wrong), "{check:?}");
            assert!(check.name.contains("leaving open 3 that ended"), "{check:?}");
        }
    }

    #[test]
    fn loss_states_what_was_expected_and_why() {
        let rows = RowCount { adds_in_doubt: 0, deletes_in_doubt: 0, ..ROWS };
        let check = rows.check("rows", 114);
        assert_eq!((check.name.as_str(), check.wrong), ("rows", 1));
        let why = "100 loaded, 20 inserted since, 5 deleted";
        assert_eq!(check.examples, [format!("114 rows are there, 115 should be: {why}")]);
        assert_eq!(ROWS.check("rows", 1).examples, [format!("1 rows are there, 114 to 117 should be: {why}")]);
    }
}
