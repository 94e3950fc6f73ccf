//! Hardware counters of the server's processes and of the clients' process, in user and in kernel mode.

use rumba_results::metric::Metric;

use super::perf_event::{Count, Counters, Event, Mode};
use super::{EMBEDDED, Known};

/// The events, each in user and in kernel mode.
const KINDS: usize = 4;
const EVENTS: usize = 2 * KINDS;
/// The two events of a ratio are counted at the same times. The other events are in separate groups, because a group of
/// more events than the CPU has counters is never counted.
const GROUPS: &[&[Event]] = &[
    &[Event::instructions(Mode::User), Event::cycles(Mode::User)],
    &[Event::llc_load_misses(Mode::User)],
    &[Event::dtlb_load_misses(Mode::User)],
    &[Event::instructions(Mode::Kernel), Event::cycles(Mode::Kernel)],
    &[Event::llc_load_misses(Mode::Kernel)],
    &[Event::dtlb_load_misses(Mode::Kernel)],
];

/// The threads to count, by owner.
pub struct HardwareThreads {
    /// The threads of the server's processes; `None` when the engine is embedded.
    pub(super) server: Option<Known<Vec<u32>>>,
    /// The threads of the clients' process without rumba's own.
    pub(super) client: Vec<u32>,
}

impl HardwareThreads {
    /// The number of file descriptors that their counters take.
    pub fn descriptors(&self) -> u64 {
        let server = self.server.iter().flatten().map(Vec::len).sum::<usize>();
        ((server + self.client.len()) * EVENTS) as u64
    }
}

/// Counts while it exists. Each switch between threads saves and loads the CPU's counters, which costs time.
pub struct HardwareMeter {
    server: Option<Known<Counters<EVENTS>>>,
    client: Counters<EVENTS>,
}

/// A reading, cumulative since the meter was opened.
#[derive(Clone, Debug)]
pub struct HardwareCounts {
    server: Option<Known<[Known<Count>; EVENTS]>>,
    client: [Known<Count>; EVENTS],
}

impl HardwareMeter {
    /// Counts the hardware's events of these threads from now on.
    pub fn open(threads: &HardwareThreads) -> Self {
        Self::of(GROUPS, threads)
    }

    fn of(groups: &[&[Event]], threads: &HardwareThreads) -> Self {
        let open = |threads: &Vec<u32>| Counters::open(groups, threads);
        Self {
            server: threads.server.as_ref().map(|threads| threads.as_ref().map(open).map_err(Clone::clone)),
            client: open(&threads.client),
        }
    }

    pub fn read(&self) -> HardwareCounts {
        let server = self.server.as_ref().map(|server| server.as_ref().map(Counters::read).map_err(Clone::clone));
        HardwareCounts { server, client: self.client.read() }
    }
}

/// The events of one owner between two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct EventsSpent {
    pub instructions: Metric,
    pub cycles: Metric,
    pub llc_misses: Metric,
    pub dtlb_misses: Metric,
}

/// The events between two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct HardwareSpent {
    /// The server's processes in user mode.
    pub server: EventsSpent,
    /// The clients' process in user mode.
    pub client: EventsSpent,
    /// Both in kernel mode.
    pub kernel: EventsSpent,
    /// The share of the threads' CPU time in which the least counted event was counted, percent.
    pub counted_percent: Metric,
}

impl HardwareCounts {
    /// The events since an earlier reading of the same meter.
    pub fn since(&self, earlier: &Self) -> HardwareSpent {
        let client = spent(&self.client, &earlier.client);
        let server = match (&self.server, &earlier.server) {
            (Some(Ok(later)), Some(Ok(earlier))) => spent(later, earlier),
            (Some(Err(reason)), _) | (_, Some(Err(reason))) => std::array::from_fn(|_| Err(reason.clone())),
            (None, _) | (_, None) => std::array::from_fn(|_| Err(EMBEDDED.to_owned())),
        };
        let shares = server.iter().chain(&client).flatten().map(|(_, share)| *share);
        let counted_percent = match shares.reduce(f64::min) {
            Some(share) => Metric::from(share * 100.0),
            None => client[0].clone().map(|(_, share)| share).into(),
        };
        let [server, client] =
            [server, client].map(|spent| spent.map(|known| Metric::from(known.map(|(value, _)| value))));
        let kernel = match self.server {
            Some(_) => std::array::from_fn(|event| client[event].plus(&server[event])),
            None => client.clone(),
        };
        let of = |events: &[Metric; EVENTS], mode: Mode| {
            let at = |kind: usize| events[kind + if mode == Mode::Kernel { KINDS } else { 0 }].clone();
            EventsSpent { instructions: at(0), cycles: at(1), llc_misses: at(2), dtlb_misses: at(3) }
        };
        HardwareSpent {
            server: of(&server, Mode::User),
            client: of(&client, Mode::User),
            kernel: of(&kernel, Mode::Kernel),
            counted_percent,
        }
    }

    /// The reasons for events that cannot be counted, each once.
    pub fn refused(&self) -> Vec<String> {
        let server: Vec<&String> = match &self.server {
            None => Vec::new(),
            Some(Err(reason)) => vec![reason],
            Some(Ok(counts)) => counts.iter().filter_map(|count| count.as_ref().err()).collect(),
        };
        let client = self.client.iter().filter_map(|count| count.as_ref().err());
        let mut reasons: Vec<String> = Vec::new();
        for reason in server.into_iter().chain(client) {
            if !reasons.contains(reason) {
                reasons.push(reason.clone());
            }
        }
        reasons
    }
}

/// Each event's growth, and the share of the time in which it was counted.
fn spent(later: &[Known<Count>; EVENTS], earlier: &[Known<Count>; EVENTS]) -> [Known<(f64, f64)>; EVENTS] {
    std::array::from_fn(|event| later[event].clone()?.since(earlier[event].clone()?))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use rumba_engine_api::engine::ProcessLocation;

    use super::*;
    use crate::meter::{Meters, ThreadCpuRegistry};

    /// The kernel's events in the places of the hardware's, which a virtual machine lacks: CPU time for instructions and
    /// the misses, context switches for cycles.
    const SOFTWARE: &[&[Event]] = &[
        &[Event::task_clock(Mode::User), Event::context_switches(Mode::User)],
        &[Event::task_clock(Mode::User)],
        &[Event::task_clock(Mode::User)],
        &[Event::task_clock(Mode::Kernel), Event::context_switches(Mode::Kernel)],
        &[Event::task_clock(Mode::Kernel)],
        &[Event::task_clock(Mode::Kernel)],
    ];

    /// A server that starts a process for its work, as PostgreSQL does for a session.
    const SERVER: &str = "read order; (i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done); echo done; read order";

    #[test]
    fn counts_a_servers_processes_and_the_clients_threads() {
        let mut server =
            Command::new("sh").args(["-c", SERVER]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut orders, words) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let place = ProcessLocation::Server { pid: Some(server.id()), data_dir: None };
        let mut meters = Meters::of(&place, Path::new("/"), ThreadCpuRegistry::new());
        let threads = meters.hardware_threads();
        assert_eq!(threads.server, Some(Ok(vec![server.id()])));
        let meter = HardwareMeter::of(SOFTWARE, &threads);
        let (first, cpu, begun) = (meter.read(), meters.read(), Instant::now());
        orders.write_all(b"work\n").unwrap();
        assert_eq!(BufReader::new(words).lines().next().unwrap().unwrap(), "done");
        let cpu_ns = meters.read().since(&cpu).server_cpu_s.value().unwrap() * 1e9;
        let spent = meter.read().since(&first);
        let most_ns = 2.0 * begun.elapsed().as_nanos() as f64;
        drop(orders);
        server.wait().unwrap();

        let clock_ns = spent.server.instructions.value().unwrap();
        // The CPU time of a process that has ended is in ticks.
        assert!(clock_ns >= 0.98 * cpu_ns - 2e7 && clock_ns > 2e7, "{clock_ns} of {cpu_ns}");
        assert!(clock_ns <= most_ns, "{clock_ns} of {most_ns}");
        assert!(spent.client.instructions.value().unwrap() > 0.0, "this thread ran: {:?}", spent.client);
        assert!(spent.kernel.cycles.value().unwrap() >= 2.0, "server and client waited: {:?}", spent.kernel);
        assert!(spent.counted_percent.value().unwrap() > 99.0, "{:?}", spent.counted_percent);
        let ended = meter.read().since(&first).server.instructions.value().unwrap();
        assert!(ended >= clock_ns, "an ended server keeps its counts");
    }

    #[test]
    fn hardware_events_count_or_have_a_reason_and_are_never_zero() {
        let roll = ThreadCpuRegistry::new();
        let meter = HardwareMeter::open(&Meters::new(Path::new("/"), roll).hardware_threads());
        let first = meter.read();
        let sum = (0..10_000_000_u64).fold(0, |sum: u64, n| sum.wrapping_mul(31).wrapping_add(n));
        assert_ne!(std::hint::black_box(sum), 0);
        let spent = meter.read().since(&first);
        assert_eq!(spent.server.cycles, Metric::absent(EMBEDDED));
        match &spent.client.instructions {
            Metric::Value(instructions) => assert!(*instructions >= 1e7, "{instructions}"),
            Metric::Absent { absent } => assert!(absent.contains("perf_event_open"), "{absent}"),
        }
        assert_eq!(first.refused().is_empty(), spent_all(&spent), "{spent:?}");
    }

    fn spent_all(spent: &HardwareSpent) -> bool {
        [&spent.client, &spent.kernel].iter().all(|of| {
            [&of.instructions, &of.cycles, &of.llc_misses, &of.dtlb_misses].iter().all(|it| it.value().is_some())
        })
    }

    #[test]
    fn kernel_mode_is_absent_if_one_process_is_out_of_reach() {
        let threads = HardwareThreads { server: Some(Err("on another host".to_owned())), client: vec![gettid()] };
        let meter = HardwareMeter::of(SOFTWARE, &threads);
        let spent = meter.read().since(&meter.read());
        assert_eq!(spent.kernel.instructions, Metric::absent("on another host"), "the sum would be too low");
        assert_eq!(spent.server.cycles, Metric::absent("on another host"));
        assert!(spent.client.cycles.value().is_some());
    }

    fn gettid() -> u32 {
        rustix::thread::gettid().as_raw_pid() as u32
    }
}
