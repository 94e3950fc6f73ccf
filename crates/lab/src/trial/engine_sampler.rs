//! Samples the engine while clients work: its size on disk, its deferred work and its counters, about once a second.
//!
//! A separate thread takes the samples; its CPU counts as rumba's. No client waits for it, and a stalled engine delays
//! only the sample. The engine's cost of answering is in its figures, and must not be visible there. Slow samples are
//! therefore taken less often, for at most one of [`REST`] parts of the time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::Gauge;
use rumba_results::engine_samples::EngineSample;
use rumba_results::event::Event;

use super::pending_stats::Answer;
use super::{Shared, Trial};
use crate::meter::{Role, ThreadCpuRegistry, allocated, data_dir};

/// The interval between samples that take no time.
const EVERY: Duration = Duration::from_secs(1);
/// The least ratio of the interval to a sample's duration.
const REST: u32 = 200;

/// A thread that samples the engine.
pub(super) struct EngineSampler {
    stop: Arc<Stop>,
    seen: Receiver<EngineSample>,
    thread: JoinHandle<()>,
}

impl EngineSampler {
    /// Starts sampling; `None` if the host provides no thread for it.
    fn begin(instance: &Shared, dir: Option<PathBuf>, epoch: Instant, roll: &Arc<ThreadCpuRegistry>) -> Option<Self> {
        let (notify, seen) = channel();
        let stop = Arc::new(Stop::default());
        let (instance, roll, reported) = (instance.clone(), roll.clone(), stop.clone());
        let body = move || {
            let _present = roll.enter(Role::Harness);
            look_on(&instance, dir.as_deref(), epoch, &reported, &notify);
        };
        let thread = std::thread::Builder::new().name("looks".to_owned()).spawn(body).ok()?;
        Some(Self { stop, seen, thread })
    }
}

fn look_on(instance: &Shared, dir: Option<&Path>, epoch: Instant, stop: &Stop, notify: &Sender<EngineSample>) {
    let (mut engine, mut size) = (Turn::default(), Turn::default());
    loop {
        let answer = engine.take(|| Answer::of(instance)).unwrap_or_default();
        let allocated = |dir| allocated(dir, &|file| instance.is_log(file)).ok();
        let size_bytes = size.take(|| dir.and_then(allocated)).flatten().map(|size| size.total as f64);
        let at_s = Instant::now().saturating_duration_since(epoch).as_secs_f64();
        let look = EngineSample { at_s, size_bytes, debt: named(answer.debt), counters: named(answer.counters) };
        // The receiver may be gone.
        if !look.is_empty() && notify.send(look).is_err() || stop.is_reported_until(engine.next.min(size.next)) {
            return;
        }
    }
}

fn named(gauges: Vec<Gauge>) -> BTreeMap<String, f64> {
    gauges.into_iter().filter(|gauge| gauge.value.is_finite()).map(|gauge| (gauge.name, gauge.value)).collect()
}

/// The time of the next sample.
struct Turn {
    next: Instant,
}

impl Default for Turn {
    fn default() -> Self {
        Self { next: Instant::now() }
    }
}

impl Turn {
    /// Takes a sample, if it is time.
    fn take<T>(&mut self, look: impl FnOnce() -> T) -> Option<T> {
        let began = Instant::now();
        if began < self.next {
            return None;
        }
        let seen = look();
        self.next = began + pause(began.elapsed());
        Some(seen)
    }
}

/// The interval from the start of a sample of this duration to the next.
fn pause(took: Duration) -> Duration {
    EVERY.max(took.saturating_mul(REST))
}

/// The signal to stop sampling.
#[derive(Default)]
struct Stop {
    is_reported: Mutex<bool>,
    reported: Condvar,
}

impl Stop {
    fn notify(&self) {
        *self.is_reported.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.reported.notify_all();
    }

    /// Waits until this time or the signal; returns whether the signal came.
    fn is_reported_until(&self, then: Instant) -> bool {
        let is_reported = self.is_reported.lock().unwrap_or_else(PoisonError::into_inner);
        let left = then.saturating_duration_since(Instant::now());
        let waited = self.reported.wait_timeout_while(is_reported, left, |is_reported| !*is_reported);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Trial<'_> {
    /// Starts to sample the engine, if it has data to sample.
    pub(super) fn begin_looking(&mut self) {
        if self.job.engine.info().keeps_data {
            let dir = data_dir(&self.place, self.job.data_dir).ok().map(Path::to_owned);
            self.sampler = EngineSampler::begin(&self.instance, dir, self.job.epoch, &self.roll);
        }
    }

    /// Emits the samples until now.
    pub(super) fn report_looks(&mut self) {
        let seen: Vec<EngineSample> = self.sampler.iter().flat_map(|sampler| sampler.seen.try_iter()).collect();
        seen.into_iter().for_each(|look| self.emit(Event::Looked(Box::new(look))));
    }

    /// Stops sampling; a sample in progress may still arrive.
    pub(super) fn stop_looking(&self) {
        self.sampler.iter().for_each(|sampler| sampler.stop.notify());
    }

    /// Stops sampling, and waits until the thread has released the instance.
    pub(super) fn end_looking(&mut self) {
        self.stop_looking();
        self.report_looks();
        if let Some(sampler) = self.sampler.take() {
            // A panic came from the engine.
            let _ = sampler.thread.join();
            sampler.seen.try_iter().for_each(|look| self.emit(Event::Looked(Box::new(look))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_engine_sampling_takes_at_most_a_200th_of_the_time() {
        for (took_ms, pause_ms) in [(0, 1000), (5, 1000), (50, 10_000), (3000, 600_000)] {
            assert_eq!(pause(Duration::from_millis(took_ms)), Duration::from_millis(pause_ms), "{took_ms} ms");
        }
        let mut turn = Turn::default();
        assert_eq!(turn.take(|| 7), Some(7));
        assert_eq!(turn.take(|| 7), None, "it is not time yet");
        turn.next -= EVERY;
        assert_eq!(turn.take(|| 7), Some(7));
    }

    #[test]
    fn waiting_sampler_is_woken_by_stop() {
        let stop = Arc::new(Stop::default());
        assert!(!stop.is_reported_until(Instant::now()));
        let reported = stop.clone();
        let waits = std::thread::spawn(move || reported.is_reported_until(Instant::now() + Duration::from_secs(3600)));
        stop.notify();
        assert!(waits.join().unwrap_or_default() && stop.is_reported_until(Instant::now()));
    }
}
