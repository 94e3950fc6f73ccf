//! The counters of block devices: `/proc/diskstats`.

use std::fmt;

/// Bytes in one sector of the kernel's counters, independent of the device's own sector size
/// (Documentation/admin-guide/iostats.rst).
pub const SECTOR_BYTES: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceNumber {
    /// The driver's number; 0 for filesystems without a block device.
    pub major: u32,
    /// The device's number within the driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// Splits the number that stat(2) returns.
    pub fn from_stat(number: u64) -> Self {
        Self { major: rustix::fs::major(number), minor: rustix::fs::minor(number) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Reads completed, after merging.
    pub reads: u64,
    /// Writes completed, after merging. The kernel counts a flush of the device's cache among them, as a write of 0 bytes.
    pub writes: u64,
    /// Reads and writes before merging, as a throttle counts them.
    pub submitted: u64,
    pub read_bytes: u64,
    /// Bytes written; discards are not among them.
    pub write_bytes: u64,
    /// Bytes discarded; `None` before Linux 4.18.
    pub discard_bytes: Option<u64>,
    /// `None` where the device counts its requests but not their time.
    pub times: Option<DeviceTimes>,
}

/// Durations of a device's requests since it appeared, in milliseconds. The time of a request runs from its submission
/// to its completion, so waiting in the queue is included. It is added when the request completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTimes {
    /// Sum over all reads.
    pub read_ms: u64,
    /// Sum over all writes.
    pub write_ms: u64,
    /// Sum over all requests, discards and flushes included.
    pub queue_ms: u64,
    /// Time with at least one request of any kind in flight.
    pub busy_ms: u64,
}

/// A device with this many requests and no request time does not measure time, because each request takes at least a
/// microsecond.
const UNTIMED_REQUESTS: u64 = 10_000;

/// The row of a device: its name and its counters.
///
/// Fields as in Documentation/admin-guide/iostats.rst: number and name, four of
/// reads, four of writes, three of the queue, then four of discards.
pub fn row(diskstats: &str, number: DeviceNumber) -> Option<(&str, DeviceCounters)> {
    diskstats.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let major: u32 = fields.next()?.parse().ok()?;
        let minor: u32 = fields.next()?.parse().ok()?;
        if (DeviceNumber { major, minor }) != number {
            return None;
        }
        let name = fields.next()?;
        let mut figures = fields.map(|field| field.parse::<u64>().ok());
        // Each direction: completed, merged, sectors, milliseconds.
        let (reads, reads_merged, sectors_read) = (figures.next()??, figures.next()??, figures.next()??);
        let read_ms = figures.next()??;
        let (writes, writes_merged, sectors_written) = (figures.next()??, figures.next()??, figures.next()??);
        let (write_ms, _in_flight, busy_ms, queue_ms) =
            (figures.next()??, figures.next()??, figures.next()??, figures.next()??);
        let times = DeviceTimes { read_ms, write_ms, queue_ms, busy_ms };
        let is_timed = read_ms + write_ms > 0 || reads + writes < UNTIMED_REQUESTS;
        let sectors_discarded = figures.nth(2).flatten();
        Some((
            name,
            DeviceCounters {
                reads,
                writes,
                submitted: reads + reads_merged + writes + writes_merged,
                read_bytes: sectors_read * SECTOR_BYTES,
                write_bytes: sectors_written * SECTOR_BYTES,
                discard_bytes: sectors_discarded.map(|sectors| sectors * SECTOR_BYTES),
                times: is_timed.then_some(times),
            },
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISKSTATS: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 54952 9874 5771434 21457 28290 14793 3258744 7275 0 9540 29533 8250 100 748424 644 3769 155
   8       1 sda1 10 20 30 40 50 60 70 80 0 90 100
";

    #[test]
    fn discards_are_apart_from_writes() {
        let (name, counters) = row(DISKSTATS, DeviceNumber { major: 254, minor: 0 }).unwrap();
        assert_eq!(name, "vda");
        assert_eq!(
            counters,
            DeviceCounters {
                reads: 54952,
                writes: 28290,
                submitted: 54952 + 9874 + 28290 + 14793,
                read_bytes: 5_771_434 * 512,
                write_bytes: 3_258_744 * 512,
                discard_bytes: Some(748_424 * 512),
                times: Some(DeviceTimes { read_ms: 21457, write_ms: 7275, queue_ms: 29533, busy_ms: 9540 }),
            }
        );
    }

    #[test]
    fn an_old_kernel_has_no_discards_rather_than_zero() {
        let (_, counters) = row(DISKSTATS, DeviceNumber { major: 8, minor: 1 }).unwrap();
        assert_eq!((counters.reads, counters.read_bytes, counters.write_bytes), (10, 30 * 512, 70 * 512));
        assert_eq!(counters.discard_bytes, None);
    }

    #[test]
    fn a_device_that_does_not_time_its_requests_has_no_times() {
        let times = |row_text: &str| row(row_text, DeviceNumber { major: 8, minor: 0 }).unwrap().1.times;
        assert_eq!(times(" 8 0 sda 9000 0 8 0 2000 0 8 0 0 0 0\n"), None);
        assert_eq!(times(" 8 0 sda 9 0 8 0 2 0 8 0 0 0 0\n"), Some(DeviceTimes::default()), "too few for a time");
    }

    #[test]
    fn a_device_without_a_row_is_nothing() {
        assert_eq!(row(DISKSTATS, DeviceNumber { major: 8, minor: 2 }), None);
    }
}
