//! The name under which findings about one trial are reported.

use rumba_results::comparison::TrialName;
use rumba_results::record::Record;

/// The name of a record's trial.
pub fn trial_name(record: &Record) -> TrialName {
    TrialName {
        trial: record.plan.number,
        engine: record.plan.engine.name.clone(),
        clients: record.plan.clients,
        repeat: record.plan.repeat,
    }
}
