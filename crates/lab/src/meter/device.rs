//! The block device that holds the data: its row of `/proc/diskstats`.

use std::path::Path;

use super::proc_file::ProcFile;
use crate::host::block::{self, Device};
use crate::host::diskstats::{self, DeviceCounters};

pub struct DeviceMeter {
    device: Device,
    file: ProcFile,
}

impl DeviceMeter {
    pub fn of(data_dir: &Path) -> Result<Self, String> {
        Ok(Self { device: block::device_of(data_dir)?, file: ProcFile::open("/proc/diskstats")? })
    }

    pub fn read(&self) -> Result<DeviceCounters, String> {
        let rows = self.file.read()?;
        diskstats::row(&rows, self.device.number)
            .map(|(_, counters)| counters)
            .ok_or_else(|| format!("{} has gone from /proc/diskstats", self.device.name))
    }
}
