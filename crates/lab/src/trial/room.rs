//! Checks that server and host can hold the clients, before the load, because a later failure would waste it.

use rumba_engine_api::engine::Instance;
use rumba_engine_api::error::EngineError;
use rumba_results::record::TrialPart;

use super::Job;
use crate::run::room;

/// Refuses clients or loaders that the instance or this host cannot have; `kinds` is the number of operation types that
/// a client counts. Clients on other hosts are checked there.
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
        if let Some(refusal) = of_instance.as_ref().and_then(|most| most.refusal(number)) {
            return Err(room::refused(key, &refusal));
        }
        if run.fleet.is_none() {
            room::check((key, number), run.driver, &place, kinds)?;
        }
    }
    Ok(())
}
