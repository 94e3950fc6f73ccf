//! Trying again after a conflict.

use std::time::Duration;

use rand::SeedableRng;
use rumba_engine_api::conflict::tried_again;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::wait::sleep;
use rumba_engine_api::worker::ClientAddress;

use crate::random::{Random, below, client_seed, stream_seed};

/// The longest that the first retry waits.
const FIRST: Duration = Duration::from_micros(50);
/// The longest that any retry waits.
const LONGEST: Duration = Duration::from_millis(10);
/// Retries of one batch of a load: some five minutes of waiting, as pauses grow to 5 ms on average. A load that leaves
/// rows out would be worse than a slow one.
const OF_LOAD: u32 = 60_000;

/// A bounded number of retries with a randomised back-off that doubles.
///
/// It has its own random numbers, so that conflicts do not change a client's later draws.
#[derive(Debug)]
pub struct Retry {
    random: Random,
    most: u32,
}

impl Retry {
    /// At most `most` retries per operation.
    pub fn new(most: u32, seed: u64) -> Self {
        Self { random: Random::seed_from_u64(seed), most }
    }

    /// The retries of the loader at an address. Loaders in conflict must not wait in step, so their pauses differ.
    pub fn of_loader(at: ClientAddress, seed: u64) -> Self {
        Self::new(OF_LOAD, stream_seed(client_seed(seed, at), 1))
    }

    /// Whether an operation is tried again after this error; counts the retry. It is not after a lost connection: the
    /// session continues, and the outcome of the operation stays in doubt.
    ///
    /// # Errors
    /// Any error but a conflict and a lost connection.
    pub async fn operation(&mut self, retries: &mut u32, error: EngineError) -> Result<bool> {
        if matches!(error, EngineError::CutOff(_)) {
            return Ok(false);
        }
        if !error.is_conflict() {
            return Err(error);
        }
        let tries_again = self.wait(*retries + 1, &error).await;
        *retries += u32::from(tries_again);
        Ok(tries_again)
    }

    /// Counts a retry of loading `rows` after this error.
    ///
    /// # Errors
    /// The last retry has failed, or the error is no conflict. A lost connection ends the load, because a loader can
    /// neither skip nor repeat rows that may be in the database.
    pub async fn load(&mut self, rows: &str, retries: &mut u32, error: EngineError) -> Result<()> {
        let words = match error {
            EngineError::CutOff(why) => {
                format!(
                    "{why}; whether the {rows} at hand were written is not known, so the load cannot go on: run it again"
                )
            }
            error if !error.is_conflict() => return Err(error),
            error => {
                if self.wait(*retries + 1, &error).await {
                    *retries += 1;
                    return Ok(());
                }
                let remedy = "load with fewer loaders, or give the engine more cache";
                format!("{rows} were given up after {retries} retries ({error}); {remedy}")
            }
        };
        Err(EngineError::failed("load", words))
    }

    /// Waits before retry number `retry` (from 1) after this conflict, and counts the conflict; returns false after the
    /// last retry. Only the client waits, and its thread only if it has no other clients.
    async fn wait(&mut self, retry: u32, error: &EngineError) -> bool {
        if retry > self.most {
            return false;
        }
        tried_again(error);
        sleep(self.pause(retry)).await;
        true
    }

    /// A random pause between 0 and the bound of this retry.
    pub fn pause(&mut self, retry: u32) -> Duration {
        let bound = FIRST.saturating_mul(1 << (retry - 1).min(20)).min(LONGEST);
        Duration::from_nanos(below(&mut self.random, bound.as_nanos() as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::worker::block_on;

    use super::*;

    #[test]
    fn operation_is_given_up_after_retries_or_a_lost_connection() {
        let (mut retry, mut retries) = (Retry::new(2, 1), 0);
        let mut after = |error| block_on(retry.operation(&mut retries, error)).map(|again| (again, retries));
        for expected in [(true, 1), (true, 2), (false, 2)] {
            assert_eq!(after(EngineError::conflict("busy")).unwrap(), expected);
        }
        assert_eq!(after(EngineError::CutOff("server gone")).unwrap(), (false, 2));
        assert!(after(EngineError::failed("commit", "gone")).is_err());
    }

    #[test]
    fn load_that_cannot_continue_names_a_remedy() {
        let (mut retry, mut retries) = (Retry::new(1, 1), 0);
        let mut after = |error| block_on(retry.load("rows", &mut retries, error)).map_err(|error| error.to_string());
        after(EngineError::conflict("busy")).unwrap();
        let given_up = after(EngineError::conflict("busy")).unwrap_err();
        assert!(given_up.contains("rows were given up after 1 retries (conflict: busy)"), "{given_up}");
        assert!(given_up.contains("fewer loaders"), "{given_up}");
        let in_doubt = after(EngineError::CutOff("server gone")).unwrap_err();
        assert!(in_doubt.contains("server gone; whether the rows at hand were written is not known"), "{in_doubt}");
        assert!(after(EngineError::failed("commit", "gone")).unwrap_err().contains("gone"));
        let pauses = |client| {
            let mut retry = Retry::of_loader(ClientAddress { host: 0, driver: client, client, clients: 2 }, 7);
            (1..20).map(|number| retry.pause(number)).collect::<Vec<_>>()
        };
        assert_eq!(pauses(0), pauses(0));
        assert!(pauses(0).iter().zip(pauses(1)).all(|(one, other)| *one != other), "they wait in step");
    }

    #[test]
    fn waits_grow_are_random_and_stay_bounded() {
        let mut retry = Retry::new(1000, 1);
        let longest = |retry: &mut Retry, number| (0..200).map(|_| retry.pause(number)).max().unwrap();
        assert!(longest(&mut retry, 1) <= FIRST);
        assert!(longest(&mut retry, 5) > FIRST * 8);
        assert!(longest(&mut retry, u32::MAX) <= LONGEST);
        assert!(longest(&mut retry, u32::MAX) > LONGEST / 2);
    }
}
