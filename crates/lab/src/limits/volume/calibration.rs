//! Measures the actual speed of throttled storage: random direct reads of 4 KiB.
//!
//! It runs in the trial's own process, because version 2 throttles by process.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rumba_engine_api::limits::CalibrationPoint;

use super::aligned::AlignedBuffer;

/// The size of the file that is read, bytes; less if the storage writes too slowly.
const FILE_BYTES: u64 = 64 << 20;
/// Bytes per write.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes per read: one page, as in the published comparisons.
const READ_BYTES: usize = 4096;
/// The depths that are measured.
pub const DEPTHS: [u32; 2] = [1, 8];
/// The file's name in the directory.
const NAME: &str = ".rumba-calibration";

/// Measures the storage of a directory at both depths, each for at most `each`. Writing the file takes at most as long
/// again.
///
/// # Errors
/// When the directory's filesystem has no direct I/O or no space.
pub fn measure(dir: &Path, each: Duration) -> io::Result<Vec<CalibrationPoint>> {
    let file = CalibrationFile::write(&dir.join(NAME), each)?;
    DEPTHS.iter().map(|&depth| at_depth(&file, depth, each)).collect()
}

/// A file of written blocks; reserved blocks would be read without the device.
struct CalibrationFile {
    path: PathBuf,
    pages: u64,
}

impl CalibrationFile {
    fn write(path: &Path, at_most: Duration) -> io::Result<Self> {
        let mut file = Self { path: path.to_owned(), pages: 0 };
        let mut options = OpenOptions::new();
        let writer = options.write(true).create(true).truncate(true).custom_flags(libc::O_DIRECT).open(path)?;
        let mut chunk = AlignedBuffer::new(CHUNK_BYTES);
        Xoshiro256PlusPlus::seed_from_u64(1).fill(chunk.bytes());
        let deadline = Instant::now() + at_most;
        for offset in (0..FILE_BYTES).step_by(CHUNK_BYTES) {
            writer.write_all_at(chunk.bytes(), offset)?;
            file.pages = (offset + CHUNK_BYTES as u64) / READ_BYTES as u64;
            if Instant::now() > deadline {
                break;
            }
        }
        writer.sync_all()?;
        Ok(file)
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&self.path)
    }
}

impl Drop for CalibrationFile {
    fn drop(&mut self) {
        // If this fails, the file is removed with its filesystem.
        let _ = fs::remove_file(&self.path);
    }
}

fn at_depth(file: &CalibrationFile, depth: u32, each: Duration) -> io::Result<CalibrationPoint> {
    let start = Instant::now();
    let readers: Vec<_> = thread::scope(|scope| {
        let readers: Vec<_> = (0..depth).map(|reader| scope.spawn(move || read(file, reader, start + each))).collect();
        readers.into_iter().map(|reader| reader.join().unwrap_or_else(|_| Ok(Vec::new()))).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let mut times_us = Vec::new();
    for reader in readers {
        times_us.extend(reader?);
    }
    times_us.sort_unstable_by(f64::total_cmp);
    let reads = times_us.len();
    // Each reader completes at least one read, so the list is not empty.
    let quantile = |share: f64| times_us.get(((reads as f64 * share) as usize).min(reads.saturating_sub(1)));
    Ok(CalibrationPoint {
        depth,
        read_iops: reads as f64 / seconds,
        mean_us: times_us.iter().sum::<f64>() / reads.max(1) as f64,
        p50_us: quantile(0.5).copied().unwrap_or_default(),
        p99_us: quantile(0.99).copied().unwrap_or_default(),
        reads: reads as u64,
    })
}

/// Reads until the deadline; returns the microseconds of each read.
fn read(file: &CalibrationFile, reader: u32, deadline: Instant) -> io::Result<Vec<f64>> {
    let (handle, mut page) = (file.open()?, AlignedBuffer::new(READ_BYTES));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(reader));
    let mut times_us = Vec::new();
    loop {
        let start = Instant::now();
        handle.read_exact_at(page.bytes(), random.random_range(0..file.pages) * READ_BYTES as u64)?;
        times_us.push(start.elapsed().as_secs_f64() * 1e6);
        if Instant::now() > deadline {
            return Ok(times_us);
        }
    }
}
