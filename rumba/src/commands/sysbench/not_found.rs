//! The warning for a run whose statements look for rows by ids that the tables do not have.

use rumba_engine_api::error::Result;
use rumba_workload_sysbench::cli::OptionSet;
use rumba_workload_sysbench::cli::command_line::short_name;
use rumba_workload_sysbench::cli::options::Group;
use rumba_workload_sysbench::counters::Counter;
use rumba_workload_sysbench::gaps::{Ids, grouped};
use rumba_workload_sysbench::host::Host;

use super::clients::Figures;
use super::host::Drivers;

/// The clients' statements so far, and how many of them looked for rows and found none.
#[derive(Clone, Copy, Default)]
pub struct Searches {
    statements: u64,
    not_found: u64,
}

impl Searches {
    /// The counts at this moment.
    pub fn of(figures: &Figures) -> Self {
        let statements = [Counter::Read, Counter::Write, Counter::Other].map(|of| figures.counters[of as usize]);
        Self { statements: statements.iter().sum(), not_found: figures.not_found }
    }

    /// The counts since an earlier moment.
    pub fn since(self, before: Self) -> Self {
        Self {
            statements: self.statements.saturating_sub(before.statements),
            not_found: self.not_found.saturating_sub(before.not_found),
        }
    }

    /// How many statements found no row and why; `None` if all found one, or if the reason is not in the ids.
    pub fn warning(self, script: &str, options: &OptionSet, drivers: &Drivers) -> Option<String> {
        if self.not_found == 0 {
            return None;
        }
        let rows = rows_sought(options)?;
        // Tables of another name or form are not sysbench's, so nothing is known about their ids.
        let ids = ids(drivers).ok()??;
        // oltp_delete finds rows gone that it has deleted itself.
        let deletes = short_name(script).trim_end_matches(".lua") == "oltp_delete";
        let shortage = || ids.shortage(rows).filter(|_| !deletes);
        let why = ids.gaps(rows).or_else(shortage)?;
        let [not_found, statements] = [self.not_found, self.statements].map(|count| grouped(count.cast_signed()));
        Some(format!("{not_found} of {statements} statements found no row: {why}"))
    }
}

/// The rows of each table, for a script with sysbench's option for them.
fn rows_sought(options: &OptionSet) -> Option<i64> {
    options.info("table-size").filter(|info| info.group == Group::Script)?;
    Some(options.double("table-size") as i64).filter(|rows| *rows > 0)
}

fn ids(drivers: &Drivers) -> Result<Option<Ids>> {
    let Some(driver) = drivers.default_driver() else { return Ok(None) };
    Ids::read(&mut *drivers.connect(driver, 0, 0)?)
}
