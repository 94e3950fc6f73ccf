//! Checks that the host can hold the clients, before the load, because a later failure would waste it.

use rumba_engine_api::engine::{Instance, ProcessLocation};
use rumba_engine_api::error::EngineError;
use rumba_results::record::TrialPart;

use super::Job;
use crate::run::{Driving, descriptors, room};

/// Refuses clients or loaders that the instance or this host cannot have; `kinds` is the number of operation types that
/// a client counts.
///
/// # Errors
/// The limit that applies, and the number that would work.
pub fn check(job: &Job<'_>, instance: &dyn Instance, kinds: usize) -> Result<(), EngineError> {
    let run = &job.plan.run;
    let (loaders, clients) = (("load_clients", run.load_clients), ("clients", job.plan.clients));
    let requested = match job.plan.part {
        TrialPart::Load if run.age_s.is_none() => vec![loaders],
        TrialPart::Run => vec![clients],
        TrialPart::Load | TrialPart::Whole => vec![loaders, clients],
    };
    let place = instance.place();
    let of_instance = instance.most_clients();
    for (key, number) in requested {
        let threads = match Driving::choose(run.driver, &place, number) {
            Driving::Threads { .. } => room::of_threads(kinds),
            Driving::Loops { .. } => None,
        };
        let refused = of_instance.iter().chain(&threads).find_map(|most| most.refusal(number));
        if let Some((problem, remedy)) = refused {
            return Err(EngineError::failed("room for the clients", format!("{key}: {problem}; {remedy}")));
        }
        if place != ProcessLocation::Embedded {
            descriptors::allow(number)?;
        }
    }
    Ok(())
}
