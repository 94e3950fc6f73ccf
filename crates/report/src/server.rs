//! Engines that run in a server.

use rumba_engine_api::engine::{EngineFacts, Form};
use rumba_results::record::Record;

/// Whether the trial's engine is a server, because only then do its clients have a separate process.
pub fn in_server(record: &Record) -> bool {
    record.plan.facts.as_ref().is_some_and(is_server)
}

/// The same for an engine.
pub fn is_server(facts: &EngineFacts) -> bool {
    facts.form == Form::Server
}
