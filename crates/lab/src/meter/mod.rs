//! Meters: what the hardware spent, read from the kernel's cumulative counters.
//!
//! A trial runs in a process of its own and embedded engines run inside it, so
//! the figures of the process are the engine's and rumba's together; CPU time
//! alone is told apart, by the [`CpuRoll`]. What cannot be read is absent with
//! its reason, never zero.

mod clock;
mod cpu_roll;
mod device;
mod kept_file;
mod process;
mod reading;
mod size;

use std::path::Path;
use std::sync::Arc;

pub use cpu_roll::{CpuRoll, CpuTimes, Entered, Role};
pub use reading::Reading;
pub use size::{DiskSize, allocated};

use device::DeviceMeter;
use process::{HostCpuMeter, IoMeter, ResidentMeter};

/// A figure, or why there is none.
type Known<T> = Result<T, String>;

/// The meters of one trial. Files are opened once and read again by offset, so
/// that a reading costs a handful of system calls.
pub struct Meters {
    device: Known<DeviceMeter>,
    io: Known<IoMeter>,
    resident: Known<ResidentMeter>,
    host_cpu: Known<HostCpuMeter>,
    cpu: Arc<CpuRoll>,
}

impl Meters {
    /// The meters of this process and of the device that holds `data_dir`,
    /// which must exist. A meter that cannot be had yields absences.
    pub fn new(data_dir: &Path, cpu: Arc<CpuRoll>) -> Self {
        Self {
            device: DeviceMeter::of(data_dir),
            io: IoMeter::open(),
            resident: ResidentMeter::open(),
            host_cpu: HostCpuMeter::open(),
            cpu,
        }
    }

    /// All counters now.
    pub fn read(&self) -> Reading {
        Reading {
            device: reading(&self.device, DeviceMeter::read),
            io: reading(&self.io, IoMeter::read),
            cpu: self.cpu.read(),
            host_cpu: reading(&self.host_cpu, HostCpuMeter::read),
            ctx_switches: process::ctx_switches(),
            rss_bytes: reading(&self.resident, ResidentMeter::read),
        }
    }
}

fn reading<M, T>(meter: &Known<M>, read: impl FnOnce(&M) -> Known<T>) -> Known<T> {
    meter.as_ref().map_err(Clone::clone).and_then(read)
}
