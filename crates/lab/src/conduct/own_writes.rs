//! Counts the bytes that this process writes to the data's device during a trial: intervals, histograms and records.
//! They are stored there unless the data has a separate device. The trial's process writes none of them.

use std::path::Path;

use rumba_engine_api::units::show_bytes;
use rumba_results::event::Event;
use rumba_results::metric::Metric;
use rumba_results::record::PhaseKind;
use rumba_results::warning::Warning;

use crate::host::block::device_of;
use crate::meter::IoMeter;
use crate::trial::child::Order;

/// This share of the device's writes is worth a warning.
const SHARE: f64 = 0.01;
/// KB per operation; a smaller amount changes no figure.
const KB_PER_OP: f64 = 0.01;

/// Compares the bytes written by this process with the bytes written to the device, from the warmup to the drain.
pub(super) struct OwnWrites {
    /// Bytes that this process has written since it began. `None` if they go to another device, or cannot be read.
    written: Box<dyn Fn() -> Option<u64>>,
    /// Bytes written when the clients began.
    before: Option<u64>,
    own_bytes: Option<f64>,
    device_bytes: Metric,
    ops: u64,
}

impl OwnWrites {
    /// For a trial with this results directory.
    pub fn of(order: &Order, results: &Path) -> Self {
        let meter = is_shared(order, results).then(|| IoMeter::of("self").ok()).flatten();
        Self::counting(move || Some(meter.as_ref()?.read().ok()?.write_bytes))
    }

    fn counting(written: impl Fn() -> Option<u64> + 'static) -> Self {
        let (written, device_bytes) = (Box::new(written), Metric::Value(0.0));
        Self { written, before: None, own_bytes: None, device_bytes, ops: 0 }
    }

    /// Takes an event before anything is written for it.
    pub fn receive(&mut self, event: &Event) {
        match event {
            Event::PhaseStarted { phase: PhaseKind::Warmup | PhaseKind::Loop(_), .. } if self.before.is_none() => {
                self.before = (self.written)();
            }
            Event::PhaseEnded(ended) if is_charged(ended.phase) => {
                self.device_bytes = self.device_bytes.plus(&ended.spent.device_write_bytes);
                self.ops = self.ops.saturating_add(ended.ops);
                let both = self.before.zip((self.written)());
                self.own_bytes = both.map(|(before, now)| now.saturating_sub(before) as f64);
            }
            _ => {}
        }
    }

    /// The bytes written, as text; `None` if they are in no figure.
    pub fn words(&self) -> Option<String> {
        let (own, device) = self.both()?;
        Some(format!("{} of the device's {}", show_bytes(own), show_bytes(device)))
    }

    /// The warning that these bytes are visible in the figures.
    pub fn warning(&self) -> Option<Warning> {
        let (own, device) = self.both()?;
        let kb_per_op = own / 1024.0 / self.ops as f64;
        (self.ops > 0 && own > 0.0 && own >= SHARE * device && kb_per_op >= KB_PER_OP).then(|| {
            Warning::new(
                "results-on-device",
                format!(
                    "rumba's own results were {} of the {} that the device of the data wrote from the warmup to the \
                     drain: {kb_per_op:.3} KB per operation",
                    show_bytes(own),
                    show_bytes(device)
                ),
                "put the data on its own device: limits.storage, data_dir, or --out on another device",
            )
        })
    }

    fn both(&self) -> Option<(f64, f64)> {
        Some((self.own_bytes?, self.device_bytes.value()?))
    }
}

/// Phases whose bytes are charged to operations; `loops` is the sum of others.
fn is_charged(phase: PhaseKind) -> bool {
    matches!(phase, PhaseKind::Warmup | PhaseKind::Loop(_) | PhaseKind::Backlog | PhaseKind::Drain)
}

/// Whether the metered device also holds the results. Only the trial's process knows the data directory of an existing
/// server.
fn is_shared(order: &Order, results: &Path) -> bool {
    let (data, results) = (device_of(&order.data_dir), device_of(results));
    !order.plan.engine.is_existing()
        && data.is_ok_and(|data| results.is_ok_and(|results| data.number == results.number))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use rumba_results::record::{PhaseRecord, Spent};
    use rumba_results::samples;

    use super::*;

    /// This process has written `own` bytes more by the end of each of warmup, loop and drain, and 1 GB before them.
    /// The device wrote a MiB in each of the three.
    fn received(own: u64, ops: u64) -> OwnWrites {
        let count = Rc::new(Cell::new(1_000_000_000));
        let read = count.clone();
        let mut writes = OwnWrites::counting(move || Some(read.get()));
        for phase in [PhaseKind::Load, PhaseKind::Warmup, PhaseKind::Loop(1), PhaseKind::Loops, PhaseKind::Drain] {
            writes.receive(&Event::PhaseStarted { phase, seconds: None, rows: None });
            if is_charged(phase) {
                count.set(count.get() + own);
            }
            let spent = Spent { device_write_bytes: Metric::Value((1 << 20) as f64), ..Spent::default() };
            let ops = if phase == PhaseKind::Loop(1) { ops } else { 0 };
            writes.receive(&Event::PhaseEnded(Box::new(PhaseRecord { ops, spent, ..samples::phase(phase, 1.0) })));
        }
        // Later writes, such as the record's, must not count.
        count.set(u64::MAX);
        writes
    }

    #[test]
    fn own_writes_from_warmup_to_drain_are_reported_with_device() {
        let writes = received(16 << 10, 100);
        assert_eq!(writes.words().as_deref(), Some("48.0 KiB of the device's 3.00 MiB"));
        let warning = writes.warning().expect("1.6% of the device's, 0.48 KB per operation");
        assert_eq!(warning.code, "results-on-device");
        assert!(warning.message.contains("48.0 KiB of the 3.00 MiB"), "{}", warning.message);
        assert!(warning.message.ends_with("0.480 KB per operation"), "{}", warning.message);
    }

    #[test]
    fn own_writes_too_small_to_show_raise_no_warning() {
        assert_eq!(received(10 << 10, 100).warning(), None, "under 1% of what the device wrote");
        assert_eq!(received(16 << 10, 10_000).warning(), None, "under 0.01 KB per operation");
        assert_eq!(received(0, 100).warning(), None, "nothing");
        assert_eq!(received(16 << 10, 0).warning(), None, "no operation is charged");
    }

    #[test]
    fn own_writes_are_omitted_if_data_has_own_device_or_none() {
        let counted = Metric::Value((1 << 20) as f64);
        let uncounted = Metric::absent("tmpfs is memory and has no device");
        for (own, device) in [(None, counted), (Some(1 << 20), uncounted)] {
            let mut writes = OwnWrites::counting(move || own);
            let phase = PhaseKind::Warmup;
            writes.receive(&Event::PhaseStarted { phase, seconds: None, rows: None });
            let spent = Spent { device_write_bytes: device, ..Spent::default() };
            writes.receive(&Event::PhaseEnded(Box::new(PhaseRecord { ops: 1, spent, ..samples::phase(phase, 1.0) })));
            assert_eq!((writes.words(), writes.warning()), (None, None));
        }
    }
}
