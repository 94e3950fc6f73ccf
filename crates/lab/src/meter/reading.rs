//! A reading of all meters, and the difference of two readings.

use rumba_results::metric::Metric;
use rumba_results::record::Spent;

use super::cpu_roll::CpuTimes;
use super::process::{HostCpu, IoCounters};
use super::{EMBEDDED, Known};
use crate::host::diskstats::{DeviceCounters, DeviceTimes};

/// Why figures of this host leave out a fleet's clients.
const ELSEWHERE: &str = "the clients run on other hosts";

/// The counters at one moment, cumulative.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub(super) device: Known<DeviceCounters>,
    pub(super) io: Known<IoCounters>,
    pub(super) cpu: CpuTimes,
    /// `None` when the engine is embedded.
    pub(super) apart: Option<Apart>,
    pub(super) host_cpu: Known<HostCpu>,
    /// Whether the clients' CPU time is that of other hosts, so that it is no part of this host's.
    pub(super) clients_elsewhere: bool,
    pub(super) ctx_switches: Known<u64>,
    pub(super) rss_bytes: Known<u64>,
}

/// Figures that a server and its clients' process have separately.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Apart {
    /// CPU time of the server's processes.
    pub cpu_ns: Known<u64>,
    /// Memory of rumba's own process.
    pub client_rss_bytes: Known<u64>,
    /// How long rumba's client threads waited for a CPU.
    pub client_run_delay_ns: Known<u64>,
}

impl Reading {
    pub fn since(&self, earlier: &Reading) -> Spent {
        let device = |figure: fn(&DeviceCounters) -> u64| grown(&self.device, &earlier.device, figure);
        let (timed, timed_before) = (times(&self.device), times(&earlier.device));
        let device_s = |figure: fn(&DeviceTimes) -> u64| grown(&timed, &timed_before, figure).map(|ms| ms / 1e3);
        let io = |figure: fn(&IoCounters) -> u64| grown(&self.io, &earlier.io, figure);
        let client_cpu_s = seconds(self.cpu.client_ns, earlier.cpu.client_ns);
        let background_cpu_s = seconds(self.cpu.background_ns, earlier.cpu.background_ns);
        let own_cpu_s = client_cpu_s.plus(&background_cpu_s);
        let server_cpu_s = self.apart_s_since(earlier, |apart| &apart.cpu_ns, EMBEDDED);
        let no_answers = "the engine is embedded: its clients receive no answers";
        Spent {
            device_reads: device(|device| device.reads),
            device_writes: device(|device| device.writes),
            device_submitted: device(|device| device.submitted),
            device_read_bytes: device(|device| device.read_bytes),
            device_write_bytes: device(|device| device.write_bytes),
            device_discard_bytes: grown(&discards(&self.device), &discards(&earlier.device), |bytes| *bytes),
            device_read_s: device_s(|times| times.read_ms),
            device_write_s: device_s(|times| times.write_ms),
            device_queue_s: device_s(|times| times.queue_ms),
            device_busy_s: device_s(|times| times.busy_ms),
            process_read_bytes: io(|io| io.read_bytes),
            process_write_bytes: io(|io| io.write_bytes),
            cpu_s: if self.apart.is_some() { own_cpu_s.plus(&server_cpu_s) } else { own_cpu_s },
            client_cpu_s,
            background_cpu_s,
            server_cpu_s,
            client_run_delay_s: self.apart_s_since(earlier, |apart| &apart.client_run_delay_ns, no_answers),
            harness_cpu_s: seconds(self.cpu.harness_ns, earlier.cpu.harness_ns),
            steal_s: self.steal_s_since(earlier),
            others_cpu_s: Metric::absent("counted over whole phases alone"),
            host_cpu_s: match self.clients_elsewhere {
                true => Metric::absent(ELSEWHERE),
                false => self.host_cpu_since(earlier, HostCpu::busy_s_since),
            },
            ctx_switches: grown(&self.ctx_switches, &earlier.ctx_switches, |switches| *switches),
            server_ctx_switches: Metric::absent(match self.apart {
                Some(_) => "counted over warmup and loops alone",
                None => EMBEDDED,
            }),
            host_ctx_switches: grown(&self.host_cpu, &earlier.host_cpu, |host| host.ctx_switches),
            rss_bytes: self.rss_bytes.clone().map(|bytes| bytes as f64).into(),
            client_rss_bytes: match &self.apart {
                Some(apart) => apart.client_rss_bytes.clone().map(|bytes| bytes as f64).into(),
                None => Metric::absent(EMBEDDED),
            },
        }
    }

    /// The same with the CPU time of clients on other hosts. This process's own memory and waits are not theirs.
    #[must_use]
    pub fn with_clients_elsewhere(mut self, cpu_ns: u64) -> Self {
        self.cpu.client_ns += cpu_ns;
        self.clients_elsewhere = true;
        if let Some(apart) = &mut self.apart {
            apart.client_rss_bytes = Err(ELSEWHERE.to_owned());
            apart.client_run_delay_ns = Err(ELSEWHERE.to_owned());
        }
        self
    }

    /// Seconds by a counter of a server; absent for an embedded engine, with this reason.
    fn apart_s_since(&self, earlier: &Reading, ns: fn(&Apart) -> &Known<u64>, embedded: &str) -> Metric {
        match (&self.apart, &earlier.apart) {
            (Some(later), Some(earlier)) => grown(ns(later), ns(earlier), |ns| *ns).map(|ns| ns / 1e9),
            _ => Metric::absent(embedded),
        }
    }

    /// CPU seconds that a hypervisor gave to other guests since an earlier reading while this host wanted to run.
    pub fn steal_s_since(&self, earlier: &Reading) -> Metric {
        self.host_cpu_since(earlier, |later, earlier| Ok(later.steal_s - earlier.steal_s))
    }

    fn host_cpu_since(&self, earlier: &Reading, growth: fn(&HostCpu, &HostCpu) -> Known<f64>) -> Metric {
        match (&self.host_cpu, &earlier.host_cpu) {
            (Ok(later), Ok(earlier)) => growth(later, earlier).into(),
            (Err(reason), _) | (_, Err(reason)) => Metric::absent(reason),
        }
    }
}

fn discards(device: &Known<DeviceCounters>) -> Known<u64> {
    let bytes = device.as_ref().map_err(Clone::clone)?.discard_bytes;
    bytes.ok_or_else(|| "/proc/diskstats has no discards before Linux 4.18".to_owned())
}

fn times(device: &Known<DeviceCounters>) -> Known<DeviceTimes> {
    let times = device.as_ref().map_err(Clone::clone)?.times;
    times.ok_or_else(|| "the device's driver counts requests and not the time that they take".to_owned())
}

/// The growth of a counter; absent when it went back, as it does when a device is attached again.
fn grown<T>(later: &Known<T>, earlier: &Known<T>, figure: impl Fn(&T) -> u64) -> Metric {
    match (later, earlier) {
        (Ok(later), Ok(earlier)) => match figure(later).checked_sub(figure(earlier)) {
            Some(growth) => Metric::from(growth as f64),
            None => Metric::absent("the kernel's counter went back"),
        },
        (Err(reason), _) | (_, Err(reason)) => Metric::absent(reason),
    }
}

/// CPU seconds. Background time is a difference of clocks that are read some microseconds apart. It can seem to go back
/// by as much, which counts as zero.
fn seconds(later_ns: u64, earlier_ns: u64) -> Metric {
    Metric::from(later_ns.saturating_sub(earlier_ns) as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(device: Known<DeviceCounters>) -> Reading {
        Reading {
            device,
            io: Err("/proc/self/io: Permission denied (os error 13)".to_owned()),
            cpu: CpuTimes { client_ns: 5_000_000_000, harness_ns: 10, background_ns: 100 },
            apart: None,
            host_cpu: Err("/proc/stat: not as expected".to_owned()),
            clients_elsewhere: false,
            ctx_switches: Ok(7),
            rss_bytes: Ok(4096),
        }
    }

    fn device(reads: u64, discard_bytes: Option<u64>) -> Known<DeviceCounters> {
        Ok(DeviceCounters {
            reads,
            writes: 1,
            submitted: reads + 1,
            read_bytes: reads * 4096,
            write_bytes: 1,
            discard_bytes,
            times: None,
        })
    }

    #[test]
    fn unreadable_meter_is_absent_with_reason_and_affects_no_other() {
        let spent = reading(device(9, None)).since(&reading(device(4, None)));
        assert_eq!(spent.device_reads, Metric::Value(5.0));
        assert_eq!(spent.device_read_bytes, Metric::Value(5.0 * 4096.0));
        assert_eq!(spent.device_write_bytes, Metric::Value(0.0));
        assert_eq!(spent.device_discard_bytes, Metric::absent("/proc/diskstats has no discards before Linux 4.18"));
        assert!(spent.device_busy_s.reason().unwrap().contains("not the time"), "{:?}", spent.device_busy_s);
        assert_eq!(spent.process_read_bytes, Metric::absent("/proc/self/io: Permission denied (os error 13)"));
        assert_eq!(spent.rss_bytes, Metric::Value(4096.0));
    }

    /// 200 s of clients on other hosts once made this host's CPU seem less than that of its processes.
    #[test]
    fn host_cpu_is_absent_if_the_clients_run_elsewhere() {
        let host_cpu_s = |reading: fn(u64) -> Reading| reading(9).since(&reading(4)).host_cpu_s;
        let here = host_cpu_s(|reads| reading(device(reads, None)));
        assert_eq!(here, Metric::absent("/proc/stat: not as expected"));
        let elsewhere = host_cpu_s(|reads| reading(device(reads, None)).with_clients_elsewhere(reads));
        assert_eq!(elsewhere, Metric::absent(ELSEWHERE));
    }

    #[test]
    fn a_counter_that_went_back_is_no_negative_figure() {
        let spent = reading(device(4, Some(0))).since(&reading(device(9, Some(0))));
        assert_eq!(spent.device_reads, Metric::absent("the kernel's counter went back"));
        assert_eq!(spent.device_discard_bytes, Metric::Value(0.0));
    }
}
