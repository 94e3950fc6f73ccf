//! A device that fills up under a key-value engine.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Schema};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::{Batch, KvSession};

use crate::key_value::{SPACES, get, session};
use crate::mounts::Tmpfs;
use crate::process;

/// The value of each row, which no compression makes smaller.
const VALUE: [u8; 3000] = {
    let (mut value, mut state, mut position) = ([0; 3000], 1_u32, 0);
    while position < value.len() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        value[position] = (state >> 24) as u8;
        position += 1;
    }
    value
};

/// Spread over the tree, so that pages are evicted and not only appended.
fn key(row: u64) -> [u8; 8] {
    row.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// Commits rows of 3000 bytes until an error, whose transaction is left to be rolled back. Returns the error and the
/// number of committed rows. A conflict does not count: a cache full of dirty pages causes one, and eviction makes room
/// in it.
pub fn fill(session: &mut dyn KvSession) -> (EngineError, u64) {
    let mut rows = 0;
    while rows < 1_000_000 {
        match commit(session, rows) {
            Ok(()) => rows += 1,
            Err(error) if error.is_conflict() => {
                session.rollback().expect("to roll back");
                std::thread::yield_now();
            }
            Err(error) => return (error, rows),
        }
    }
    panic!("a million rows fit into a small device");
}

fn commit(session: &mut dyn KvSession, row: u64) -> Result<()> {
    session.begin()?;
    session.put(0, &key(row), &VALUE)?;
    session.commit()
}

/// An instance on a device that is full.
pub struct Full {
    /// It works on.
    pub instance: Box<dyn Instance>,
    /// The device of its directory.
    pub device: Tmpfs,
}

/// Fills a device of this many MiB, by rows and by a batch.
///
/// # Panics
/// An error does not say that the device is full; committed data cannot be read.
pub fn is_named(engine: &dyn Engine, config: &EngineConfig, mebibytes: u32) -> Full {
    let device = Tmpfs::of_mebibytes(mebibytes);
    let instance = engine.open(device.path(), config, Schema::KeyValue(&SPACES)).expect("to open");
    let mut session = session(&*instance);
    let (error, rows) = fill(&mut *session);
    let durability = config.durability.name();
    assert!(matches!(error, EngineError::DiskFull(_)), "{durability}: {error:?}");
    session.rollback().expect("to roll back");
    let mut batch = Batch::default();
    let more = u64::from(mebibytes) * (1 << 20) / VALUE.len() as u64;
    (0..more).for_each(|row| batch.push(1, &key(row), &VALUE));
    let error = session.load(&batch).expect_err("a batch as large as the device");
    assert!(matches!(error, EngineError::DiskFull(_)), "{durability}: {error:?}");
    assert!(rows > 0, "{durability}: the device was full at once");
    let lost = (0..rows).find(|row| get(&mut *session, 0, &key(*row)).is_none());
    assert_eq!(lost, None, "{durability}: this row of {rows} was committed");
    assert_eq!(get(&mut *session, 0, &key(rows)), None, "{durability}: the row that there was no room for");
    drop(session);
    Full { instance, device }
}

/// The variables that name the directory and the durability for the other process.
const DIRECTORY: &str = "RUMBA_TEST_FULL_DIRECTORY";
const DURABILITY: &str = "RUMBA_TEST_FULL_DURABILITY";

/// Fills a device of this many MiB in another process, because a library may give up for good on a full device, or wait
/// for room. `filler` is an ignored test of this program that calls [`fill_and_close`].
///
/// # Panics
/// It hangs, does not say that the device is full, or does not return from the close.
pub fn is_named_by_a_process(filler: &str, durability: Durability, mebibytes: u32) {
    let (device, name) = (Tmpfs::of_mebibytes(mebibytes), durability.name());
    let mut filler = process::with_test(filler);
    filler.env(DIRECTORY, device.path()).env(DURABILITY, name).stdout(Stdio::piped());
    let mut child = filler.spawn().expect("this program once more");
    // This bounds a hang, which the test looks for; it measures nothing.
    let deadline = Instant::now() + Duration::from_secs(120);
    while child.try_wait().expect("a child of this process").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("to end it");
            child.wait().expect("a child of this process");
            panic!("durability {name}: hung on a full device");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("what it said");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("full: the device is full"), "{name}: {printed}");
    assert!(printed.contains("closed: "), "{name}: {printed}");
}

/// In that process, fills the directory with the instance that `open` makes in it, and prints how that ended. Elsewhere
/// it does nothing.
pub fn fill_and_close(open: impl FnOnce(&Path, Durability) -> Box<dyn Instance>) {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let reported = std::env::var(DURABILITY).expect("a durability");
    let durability = Durability::NAMES.into_iter().find(|(name, _)| *name == reported).expect("the name of one").1;
    let instance = open(&directory, durability);
    let (full, _) = fill(&mut *session(&*instance));
    println!("full: {full}");
    println!("closed: {:?}", instance.close());
}
