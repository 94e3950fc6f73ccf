//! A device that fills up under an engine of keys and values.

use rumba_core::engine::{Engine, EngineConfig, Instance, Schema};
use rumba_core::error::EngineError;
use rumba_core::kv::{Batch, KvSession};

use crate::key_value::{SPACES, get, session};
use crate::mounts::Tmpfs;

/// Of each row.
const VALUE: [u8; 3000] = [7; 3000];

/// Spread over the tree, so that pages are evicted and not only appended.
fn key(row: u64) -> [u8; 8] {
    row.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()
}

/// Commits rows of 3000 bytes until something goes wrong, which is left to be rolled back; what it was, and how many
/// rows were committed. A conflict is none: a cache full of dirty pages is one, and eviction makes room in it.
///
/// # Panics
/// There is room for a million.
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

fn commit(session: &mut dyn KvSession, row: u64) -> Result<(), EngineError> {
    session.begin()?;
    session.put(0, &key(row), &VALUE)?;
    session.commit()
}

/// An instance on a device that is full.
pub struct Full {
    /// It works on.
    pub instance: Box<dyn Instance>,
    /// Where it is.
    pub device: Tmpfs,
}

/// Fills a device of so many MiB, by rows and by a batch.
///
/// # Panics
/// An error does not say that the device is full; something that was committed cannot be read.
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
