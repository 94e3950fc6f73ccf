//! Waiting for work that the server does in the background, for as long as it gets on.

use std::thread::sleep;
use std::time::{Duration, Instant};

use rumba_core::error::EngineError;

/// How waiting is done.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Between two looks at the server.
    pub poll: Duration,
    /// How long nothing may move before that is called stuck.
    pub stuck_after: Duration,
}

impl Default for Patience {
    /// A look costs the server about a millisecond; a minute is longer than any pause
    /// that a server makes by itself.
    fn default() -> Self {
        Self { poll: Duration::from_millis(100), stuck_after: Duration::from_secs(60) }
    }
}

/// Something that is to fall.
#[derive(Clone, Debug, PartialEq)]
pub struct Owed {
    /// What it is, for a person.
    pub name: &'static str,
    /// How much is left, in a unit of its own; only that it falls matters.
    pub left: f64,
    /// What may stay.
    pub floor: f64,
}

/// A look at the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackgroundWork {
    /// What is to fall.
    pub owed: Vec<Owed>,
    /// What grows while work is done that shows in none of them yet.
    pub work: f64,
}

impl BackgroundWork {
    /// Adds something that is to fall: what is left of it, and what may stay.
    pub fn owe(&mut self, name: &'static str, left: f64, floor: f64) {
        self.owed.push(Owed { name, left, floor });
    }

    fn is_paid(&self) -> bool {
        self.owed.iter().all(|owed| owed.left <= owed.floor)
    }

    fn gets_on(&self, best: &BackgroundWork) -> bool {
        let less = |owed: &Owed| best.owed.iter().any(|known| known.name == owed.name && owed.left < known.left);
        self.work > best.work || self.owed.iter().any(less)
    }

    /// The least of each that was seen, so that swinging up and down is no progress.
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

/// Looks until nothing is owed.
///
/// # Errors
/// What `look` says; what is left when nothing moved for too long.
pub fn until_paid(
    patience: &Patience,
    mut look: impl FnMut() -> Result<BackgroundWork, EngineError>,
) -> Result<(), WaitError> {
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
                "nothing has moved for {} s; left: {}",
                patience.stuck_after.as_secs_f64(),
                now.what_is_left()
            )));
        }
        best.keep_best(&now);
        sleep(patience.poll);
    }
}

/// Why waiting ended before all was paid.
#[derive(Debug)]
pub enum WaitError {
    /// A look failed.
    Failed(EngineError),
    /// Nothing moves: what is left.
    Stuck(String),
}

impl WaitError {
    /// As an error; `hint` says what to look at when nothing moves.
    pub fn into_error(self, call: &'static str, hint: &str) -> EngineError {
        match self {
            WaitError::Failed(error) => error,
            WaitError::Stuck(words) => EngineError::failed(call, format!("{words}; {hint}")),
        }
    }
}
