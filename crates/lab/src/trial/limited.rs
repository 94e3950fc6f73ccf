//! Prepares a trial's limits before the engine is opened: measures the storage, and evicts files that other processes
//! have cached.

use std::path::Path;

use rumba_results::condition;
use rumba_results::event::Event;
use rumba_results::warning::Warning;

use super::Job;
use crate::limits;

/// Returns the conditions that follow from the limits.
pub fn prepare(job: &mut Job<'_>) -> Vec<(String, String)> {
    let requested = &job.plan.engine.limits;
    let mut conditions: Vec<(String, String)> = Vec::new();
    conditions.extend((1..).zip(job.limits).map(|(number, words)| (format!("limit {number}"), words.clone())));
    if requested.memory_bytes.is_some() {
        evict_software(job);
    }
    let Some(storage) = &requested.storage else { return conditions };
    let warnings = match limits::calibrate(job.data_dir, storage) {
        Ok(points) => {
            let words: Vec<String> = points.iter().map(ToString::to_string).collect();
            conditions.push((condition::STORAGE_MEASURED.to_owned(), words.join("; ")));
            [limits::slower_than_requested(storage, &points), limits::missed_latency(storage, &points)]
        }
        Err(error) => [
            None,
            Some(Warning::new(
                "not-calibrated",
                format!("the limited storage could not be measured before the trial: {error}"),
                "read its throughput out of the trial's own reads per second",
            )),
        ],
    };
    warnings.into_iter().flatten().for_each(|warning| (job.emit)(Event::Warning(warning)));
    conditions
}

/// Evicts the engine's own program or library, because pages that were cached outside the memory group would not be
/// charged to it.
fn evict_software(job: &Job<'_>) {
    let source = job.engine.availability((&job.plan.engine).into()).source;
    let path = Path::new(&source);
    if path.is_file() {
        // A program of root may be unreadable for this user; its pages then stay cached.
        let _ = limits::evict(path);
    }
}
