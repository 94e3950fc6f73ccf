//! A meeting of two transactions: one pauses at a point; the other begins, and completes, waits or is refused.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rumba_engine_api::error::{EngineError, Result};

use super::Lab;
use crate::actor::Actor;
use crate::stop::{Point, Stop, Word};
use crate::store::Store;

/// How long the second transaction may take during the pause before it counts as waiting. On a busy host, opening a
/// session alone may take half a second.
const PATIENCE: Duration = Duration::from_millis(1500);
/// The time limit of every step, longer than any engine waits for a lock.
const MOST: Duration = Duration::from_secs(90);
/// The pause between two attempts of a refused transaction.
const PAUSE: Duration = Duration::from_millis(20);

/// The behaviour of the second transaction while the first paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It ended.
    WentOn,
    /// It had not ended.
    Waited,
    /// It was rolled back, and retried until it ended.
    Refused(u32),
}

impl How {
    pub fn word(self) -> &'static str {
        match self {
            How::WentOn => "apart",
            How::Waited => "waited",
            How::Refused(_) => "refused",
        }
    }

    /// The end of a sentence: `the other …`.
    pub fn reported(self) -> String {
        match self {
            How::WentOn => "did not wait for it".to_owned(),
            How::Waited => "waited for its end".to_owned(),
            How::Refused(1) => "was refused once, and tried again".to_owned(),
            How::Refused(times) => format!("was refused {times} times, and tried again"),
        }
    }
}

/// The point at which the first transaction pauses, its action there, and its end.
#[derive(Clone, Copy)]
pub struct Stand {
    pub at: Point,
    /// The action after the pause.
    pub then: Word,
    /// The action at the end, given the values seen at the point.
    pub end: fn(&[i64]) -> Word,
}

impl Stand {
    /// Pauses at this point, then continues.
    pub fn at(at: Point) -> Self {
        Self { at, then: Word::GoOn, end: |_| Word::GoOn }
    }

    /// Pauses at the end, then takes this action.
    pub fn at_end(then: Word) -> Self {
        Self { then, ..Self::at(Point::End) }
    }
}

/// The result of a meeting.
pub struct Met<A, B> {
    /// The answer of the first transaction.
    pub first: Result<A>,
    /// The result of the second transaction.
    pub second: B,
    /// The behaviour of the second meanwhile.
    pub how: How,
    /// The value that the first transaction saw at each arrival at the point.
    pub seen: Vec<i64>,
}

/// The first's side of the meeting.
struct Standing {
    stand: Stand,
    stood: bool,
    notify: Sender<()>,
    receive: Receiver<()>,
    seen: Arc<Mutex<Vec<i64>>>,
}

impl Standing {
    fn at(&mut self, point: Point, value: i64) -> Word {
        let Stand { at, then, end } = self.stand;
        if point != at {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            return if point == Point::End { end(&seen) } else { Word::GoOn };
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(value);
        if std::mem::replace(&mut self.stood, true) {
            return Word::GoOn;
        }
        // Errors mean that the test has been given up; the transaction then ends as usual.
        let _ = self.notify.send(());
        let _ = self.receive.recv_timeout(MOST);
        then
    }
}

/// Lets two transactions meet. The second is retried while it is refused.
///
/// # Errors
/// The engine's error for the second transaction, or that the first did not reach the point.
pub fn meet<S: Store, I, A: Send, B: Send>(
    lab: &Lab<'_, S, I>,
    stand: Stand,
    first: impl FnOnce(&mut Actor<S>) -> Result<A> + Send,
    second: impl FnMut() -> Result<B> + Send,
) -> Result<Met<A, B>> {
    let ((notify, reached), (go, receive)) = (channel(), channel());
    let seen = Arc::<Mutex<Vec<i64>>>::default();
    let mut standing = Standing { stand, stood: false, notify, receive, seen: seen.clone() };
    let stop: Stop = Box::new(move |point, value| standing.at(point, value));
    let (first, second, how) = std::thread::scope(|scope| {
        let one = scope.spawn(move || {
            let mut actor = (lab.actor)()?;
            actor.store.stop_with(stop);
            first(&mut actor)
        });
        if reached.recv_timeout(MOST).is_err() {
            drop(go);
            let words = "the first transaction did not reach the point where it should pause";
            return Err(joined(one).err().unwrap_or_else(|| EngineError::failed("clause 3.4", words)));
        }
        let refused = AtomicU32::new(0);
        let (reported, ended) = channel();
        let (second, how) = std::thread::scope(|inner| {
            let refused = &refused;
            let two = inner.spawn(move || {
                let answer = until_it_ends(second, refused);
                let _ = reported.send(());
                answer
            });
            let has_ended = ended.recv_timeout(PATIENCE).is_ok();
            let _ = go.send(());
            (joined(two), has_ended)
        });
        let how = match (how, refused.load(Relaxed)) {
            (true, _) => How::WentOn,
            (false, 0) => How::Waited,
            (false, times) => How::Refused(times),
        };
        Ok((joined(one), second?, how))
    })?;
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Met { first, second, how, seen })
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(EngineError::failed("clause 3.4", "a transaction's thread panicked")))
}

/// Tries until it is not refused.
pub fn until_it_ends<T>(mut attempt: impl FnMut() -> Result<T>, refused: &AtomicU32) -> Result<T> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(error) if error.is_conflict() && begun.elapsed() < MOST => {
                refused.fetch_add(1, Relaxed);
                std::thread::sleep(PAUSE);
            }
            answer => return answer,
        }
    }
}
