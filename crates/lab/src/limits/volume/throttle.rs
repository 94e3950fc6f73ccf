//! Writes the settings that throttle a device.

use std::fs;
use std::path::PathBuf;

use rumba_engine_api::limits::StorageLimit;

use super::loop_device::LoopDevice;
use super::place::THROTTLES;
use crate::limits::error::{LimitError, STORAGE, refused};

/// The kernel files for the rates of a device.
#[derive(Clone, Debug)]
pub enum Throttle {
    /// In these groups of version 1.
    Groups(Vec<PathBuf>),
    /// In `io.max` of this group of version 2.
    IoMax(PathBuf),
}

impl Throttle {
    /// Sets the rates. Every rate is written, even one without a limit, to replace the settings of an earlier user of
    /// this device.
    ///
    /// # Errors
    /// A rate that could not be written.
    pub fn set(&self, device: &LoopDevice, storage: &StorageLimit) -> Result<(), LimitError> {
        let write = |file: PathBuf, line: String| {
            fs::write(&file, line).map_err(refused(STORAGE, format!("set the throttle in {}", file.display())))
        };
        match self {
            Throttle::IoMax(group) => write(group.join("io.max"), io_max(&device.number, storage)),
            Throttle::Groups(groups) => {
                let lock = device.lock().map_err(refused(STORAGE, format!("lock {}", device.node.display())))?;
                for group in groups {
                    for (file, rate) in THROTTLES.iter().zip(rates(storage)) {
                        write(group.join(file), format!("{} {}", device.number, rate.unwrap_or(0)))?;
                    }
                }
                drop(lock);
                Ok(())
            }
        }
    }
}

/// In the order of [`THROTTLES`].
fn rates(storage: &StorageLimit) -> [Option<u64>; 4] {
    [storage.read_iops.map(u64::from), storage.write_iops.map(u64::from), storage.read_bps, storage.write_bps]
}

fn io_max(device: &str, storage: &StorageLimit) -> String {
    let mut line = device.to_owned();
    for (name, rate) in ["riops", "wiops", "rbps", "wbps"].iter().zip(rates(storage)) {
        line += &rate.map_or_else(|| format!(" {name}=max"), |rate| format!(" {name}={rate}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_max_lists_every_rate_on_cgroup_v2() {
        let storage = StorageLimit { read_iops: Some(1000), read_bps: Some(1 << 20), ..StorageLimit::unthrottled() };
        assert_eq!(io_max("7:3", &storage), "7:3 riops=1000 wiops=max rbps=1048576 wbps=max");
    }
}
