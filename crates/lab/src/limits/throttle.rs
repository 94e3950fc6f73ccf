//! What is written to throttle a device.

use std::fs;
use std::path::{Path, PathBuf};

use rumba_core::limits::StorageLimit;

use super::error::{LimitError, STORAGE, refused};
use crate::provision::{LoopDevice, THROTTLES};

/// Throttles a device in groups of version 1. Every rate is written, also those
/// without a limit: whatever an earlier user left on this device is replaced.
pub fn set_version_one(groups: &[PathBuf], device: &LoopDevice, storage: &StorageLimit) -> Result<(), LimitError> {
    let lock = device.lock().map_err(refused(STORAGE, format!("lock {}", device.node.display())))?;
    for group in groups {
        for (file, rate) in THROTTLES.iter().zip(rates(storage)) {
            let file = group.join(file);
            fs::write(&file, format!("{} {}", device.number, rate.unwrap_or(0)))
                .map_err(refused(STORAGE, format!("set the throttle in {}", file.display())))?;
        }
    }
    drop(lock);
    Ok(())
}

/// Throttles a device for a group of version 2.
pub fn set_version_two(group: &Path, device: &LoopDevice, storage: &StorageLimit) -> Result<(), LimitError> {
    let file = group.join("io.max");
    fs::write(&file, io_max(&device.number, storage))
        .map_err(refused(STORAGE, format!("set the throttle in {}", file.display())))
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
    fn version_two_is_told_every_rate() {
        let storage = StorageLimit { read_bps: Some(1 << 20), ..StorageLimit::tier("disk-array").unwrap() };
        assert_eq!(io_max("7:3", &storage), "7:3 riops=1000 wiops=1000 rbps=1048576 wbps=max");
    }
}
