//! Waits for a server's background work as long as it makes progress.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_engine_api::error::{EngineError, Result};

/// The parameters of a wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Pause between two samples of the server.
    pub poll: Duration,
    /// The time without progress after which the work counts as stuck.
    pub stuck_after: Duration,
}

impl Default for Patience {
    /// A sample costs the server about a millisecond. A minute is longer than any pause that a server makes on its own.
    fn default() -> Self {
        Self { poll: Duration::from_millis(100), stuck_after: Duration::from_secs(60) }
    }
}

/// An amount of work that must decrease.
#[derive(Clone, Debug, PartialEq)]
pub struct Owed {
    /// Its name for people.
    pub name: &'static str,
    /// The remaining amount, in any unit; only its decrease matters.
    pub left: f64,
    /// The amount that may remain.
    pub floor: f64,
}

/// A sample of the server's background work.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackgroundWork {
    /// The amounts that must decrease.
    pub owed: Vec<Owed>,
    /// A counter that grows while work proceeds that does not yet show in any amount.
    pub work: f64,
}

impl BackgroundWork {
    /// Adds an amount that must decrease, and how much of it may remain.
    pub fn owe(&mut self, name: &'static str, left: f64, floor: f64) {
        self.owed.push(Owed { name, left, floor });
    }

    /// Whether no work remains.
    pub fn is_paid(&self) -> bool {
        self.owed.iter().all(|owed| owed.left <= owed.floor)
    }

    fn gets_on(&self, best: &BackgroundWork) -> bool {
        let less = |owed: &Owed| best.owed.iter().any(|known| known.name == owed.name && owed.left < known.left);
        self.work > best.work || self.owed.iter().any(less)
    }

    /// Keeps the lowest value of each amount, so that fluctuation does not count as progress.
    fn keep_best(&mut self, look: &BackgroundWork) {
        self.work = self.work.max(look.work);
        for owed in &look.owed {
            match self.owed.iter_mut().find(|known| known.name == owed.name) {
                Some(known) => known.left = known.left.min(owed.left),
                None => self.owed.push(owed.clone()),
            }
        }
    }

    fn what_is_left(&self) -> String {
        let left = self.owed.iter().filter(|owed| owed.left > owed.floor);
        left.map(|owed| format!("{} {}", owed.left, owed.name)).collect::<Vec<_>>().join(", ")
    }
}

/// Samples until no work remains.
///
/// # Errors
/// The error of `look`; the remaining work if there was no progress for too long.
pub fn until_paid(patience: &Patience, mut look: impl FnMut() -> Result<BackgroundWork>) -> Result<(), WaitError> {
    let mut best = BackgroundWork::default();
    let mut moved = Instant::now();
    loop {
        let now = look().map_err(WaitError::Failed)?;
        if now.is_paid() {
            return Ok(());
        }
        if now.gets_on(&best) || best == BackgroundWork::default() {
            moved = Instant::now();
        } else if moved.elapsed() > patience.stuck_after {
            return Err(WaitError::Stuck(format!(
                "no progress for {} s; left: {}",
                patience.stuck_after.as_secs_f64(),
                now.what_is_left()
            )));
        }
        best.keep_best(&now);
        sleep(patience.poll);
    }
}

/// Why a wait ended early.
#[derive(Debug)]
pub enum WaitError {
    /// A sample failed.
    Failed(EngineError),
    /// There is no progress; the text describes the remaining work.
    Stuck(String),
}

impl WaitError {
    /// Converts to an engine error; `hint` says what to check if there is no progress.
    pub fn into_error(self, call: &'static str, hint: &str) -> EngineError {
        match self {
            WaitError::Failed(error) => error,
            WaitError::Stuck(words) => EngineError::failed(call, format!("{words}; {hint}")),
        }
    }
}
