//! Trying again after a conflict.

use std::time::Duration;

use rand::SeedableRng;
use rumba_engine_api::conflict::tried_again;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::wait::sleep;

use crate::random::{Random, below};

/// The longest that the first retry waits.
const FIRST: Duration = Duration::from_micros(50);
/// The longest that any retry waits.
const LONGEST: Duration = Duration::from_millis(10);

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

    /// Waits before retry number `retry` (from 1) after this conflict, and counts the conflict; returns false after the
    /// last retry. Only the client waits, and its thread only if it has no other clients.
    pub async fn wait(&mut self, retry: u32, error: &EngineError) -> bool {
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
    #![allow(clippy::unwrap_used)]
    use rumba_engine_api::worker::block_on;

    use super::*;

    #[test]
    fn an_operation_is_given_up_after_its_retries() {
        let mut retry = Retry::new(2, 1);
        let busy = EngineError::conflict("busy");
        assert!(block_on(retry.wait(1, &busy)) && block_on(retry.wait(2, &busy)));
        assert!(!block_on(retry.wait(3, &busy)));
        assert!(!block_on(Retry::new(0, 1).wait(1, &busy)));
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
