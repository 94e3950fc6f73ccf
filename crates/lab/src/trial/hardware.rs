//! The hardware counters of a trial's loops: opening them, and their metrics.

use rumba_results::event::Event;
use rumba_results::metric::{Metric, Metrics};
use rumba_results::warning::Warning;

use super::Trial;
use crate::meter::{EventsSpent, HardwareCounts, HardwareMeter, HardwareSpent};
use crate::run::descriptors;

/// Why there are no counts.
pub(super) const NOT_REQUESTED: &str = "not requested: set hardware_counters = true in [run]";

impl Trial<'_> {
    /// Opens the hardware counters if the experiment requests them. The clients have their threads and sessions by then.
    pub(super) fn count_hardware(&mut self) {
        if !self.job.plan.run.hardware_counters {
            return;
        }
        self.take_in_processes();
        let threads = self.meters.hardware_threads();
        let raised = descriptors::add(threads.descriptors()).map_err(|error| format!("setrlimit: {error}"));
        self.hardware = raised.map(|()| HardwareMeter::open(&threads));
        let refused = match self.hardware_counts() {
            Ok(counts) => counts.refused(),
            Err(reason) => vec![reason],
        };
        if !refused.is_empty() {
            self.emit(Event::Warning(Warning::new(
                "no-hardware-counters",
                format!("hardware counters that cannot be read: {}", refused.join("; ")),
                "do what the message says, or leave hardware_counters out",
            )));
        }
    }

    /// Closes the counters, because each costs time.
    pub(super) fn end_hardware(&mut self) {
        self.hardware = Err(NOT_REQUESTED.to_owned());
    }

    /// The counts so far.
    pub(super) fn hardware_counts(&self) -> Result<HardwareCounts, String> {
        self.hardware.as_ref().map(HardwareMeter::read).map_err(Clone::clone)
    }
}

/// The events between two readings.
pub(super) fn spent(counts: &[Result<HardwareCounts, String>; 2]) -> Result<HardwareSpent, String> {
    match counts {
        [Ok(first), Ok(last)] => Ok(last.since(first)),
        [Err(reason), _] | [_, Err(reason)] => Err(reason.clone()),
    }
}

pub(super) fn add(metrics: &mut Metrics, spent: Result<HardwareSpent, String>, ops: u64) {
    let spent = match spent {
        Ok(spent) => spent,
        Err(reason) => {
            let none = || std::array::from_fn(|_| Metric::absent(reason.as_str()));
            return set(metrics, none(), none(), none(), Metric::absent(reason.as_str()));
        }
    };
    let per_op = |events: &Metric| events.per(ops as f64, "operations in this phase");
    let of = |events: &EventsSpent| {
        let EventsSpent { instructions, cycles, llc_misses, dtlb_misses } = events;
        let ipc = instructions.over(cycles, "cycles");
        [per_op(instructions), per_op(cycles), ipc, per_op(llc_misses), per_op(dtlb_misses)]
    };
    let [server, client, kernel] = [&spent.server, &spent.client, &spent.kernel].map(of);
    set(metrics, server, client, kernel, spent.counted_percent);
}

fn set(metrics: &mut Metrics, server: [Metric; 5], client: [Metric; 5], kernel: [Metric; 5], counted_percent: Metric) {
    [
        metrics.server_instructions_per_op,
        metrics.server_cycles_per_op,
        metrics.server_ipc,
        metrics.server_llc_misses_per_op,
        metrics.server_dtlb_misses_per_op,
    ] = server;
    [
        metrics.client_instructions_per_op,
        metrics.client_cycles_per_op,
        metrics.client_ipc,
        metrics.client_llc_misses_per_op,
        metrics.client_dtlb_misses_per_op,
    ] = client;
    [
        metrics.kernel_instructions_per_op,
        metrics.kernel_cycles_per_op,
        metrics.kernel_ipc,
        metrics.kernel_llc_misses_per_op,
        metrics.kernel_dtlb_misses_per_op,
    ] = kernel;
    metrics.hardware_counted_percent = counted_percent;
}

#[cfg(test)]
mod tests {
    use rumba_results::metric::METRICS;

    use super::*;

    fn events(of: f64) -> EventsSpent {
        let [instructions, cycles, llc_misses, dtlb_misses] = [of, of / 2.0, of / 4.0, of / 8.0].map(Metric::Value);
        EventsSpent { instructions, cycles, llc_misses, dtlb_misses }
    }

    #[test]
    fn each_owner_has_its_events_per_operation() {
        let mut metrics = Metrics::default();
        let (server, client) = (events(8000.0), events(1600.0));
        let kernel = EventsSpent { cycles: Metric::absent("not permitted"), ..events(800.0) };
        add(&mut metrics, Ok(HardwareSpent { server, client, kernel, counted_percent: Metric::Value(62.0) }), 10);
        let of = |names: [&str; 5]| names.map(|name| metrics.get(name).unwrap().clone());
        let server = of([
            "server_instructions_per_op",
            "server_cycles_per_op",
            "server_ipc",
            "server_llc_misses_per_op",
            "server_dtlb_misses_per_op",
        ]);
        assert_eq!(server, [800.0, 400.0, 2.0, 200.0, 100.0].map(Metric::Value));
        assert_eq!(metrics.client_dtlb_misses_per_op, Metric::Value(20.0));
        assert_eq!(metrics.kernel_instructions_per_op, Metric::Value(80.0));
        assert_eq!(metrics.kernel_cycles_per_op, Metric::absent("not permitted"));
        assert_eq!(metrics.kernel_ipc, Metric::absent("not permitted"));
        assert_eq!(metrics.hardware_counted_percent, Metric::Value(62.0));
    }

    #[test]
    fn absent_counts_have_the_reason_of_the_meter() {
        let mut metrics = Metrics::default();
        add(&mut metrics, Err("not requested".to_owned()), 10);
        let absent = METRICS.iter().filter(|info| metrics.get(info.name) == Some(&Metric::absent("not requested")));
        assert_eq!(absent.count(), 16);
        let [server, client, kernel] = [events(1.0), events(1.0), events(1.0)];
        add(&mut metrics, Ok(HardwareSpent { server, client, kernel, counted_percent: Metric::Value(100.0) }), 0);
        assert_eq!(metrics.client_cycles_per_op, Metric::absent("no operations in this phase"));
    }
}
