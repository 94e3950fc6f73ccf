//! What a call through the session costs in CPU, on cached rows with one client:
//! `cargo run --release -p rumba-engine-wiredtiger --example wiredtiger_cost`.
//!
//! CPU of the calling thread alone, from its own clock; the library's threads
//! and the device are not in it.

use std::error::Error;
use std::time::Duration;

use rumba_core::engine::{Durability, Engine, EngineConfig, Schema, Session};
use rumba_core::kv::{Batch, KeySpace, KvSession, Scan};
use rumba_engine_wiredtiger::WiredTiger;
use rustix::time::{ClockId, clock_gettime};

const ROWS: u64 = 100_000;
const CALLS: u64 = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    for durability in [Durability::None, Durability::NoSync] {
        measure(durability)?;
    }
    Ok(())
}

fn measure(durability: Durability) -> Result<(), Box<dyn Error>> {
    let config = EngineConfig { cache: 256 << 20, durability, ..EngineConfig::new("wiredtiger") };
    let dir = tempfile::tempdir()?;
    let instance = WiredTiger.open(
        dir.path(),
        &config,
        Schema::KeyValue(&[KeySpace { name: "rows", scan_prefix: 0, derived: false }]),
    )?;
    let Session::Kv(mut session) = instance.session()? else { return Err("not a key-value engine".into()) };
    load(&mut *session)?;
    instance.settle()?;

    let (mut value, mut number) = (Vec::new(), 0u64);
    let mut key = || {
        number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
        (number % ROWS).to_be_bytes()
    };
    println!("durability {}: CPU per call", durability.name());
    report("get", CALLS, || session.get(0, &key(), &mut value).map(drop))?;
    report("scan of 10", CALLS / 10, || {
        let scan = Scan { from: &key(), to: &[255], limit: 10 };
        session.scan(0, scan, &mut |_, _| {}).map(drop)
    })?;
    report("begin, commit", CALLS, || {
        session.begin()?;
        session.commit()
    })?;
    report("begin, get_for_update, put, commit", CALLS / 10, || {
        let key = key();
        session.begin()?;
        session.get_for_update(0, &key, &mut value)?;
        session.put(0, &key, &value)?;
        session.commit()
    })?;
    drop(session);
    Ok(instance.close()?)
}

fn load(session: &mut dyn KvSession) -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::default();
    for row in 0..ROWS {
        batch.push(0, &row.to_be_bytes(), &[b'v'; 120]);
        if batch.len() == 1000 {
            session.load(&batch)?;
            batch.clear();
        }
    }
    Ok(session.load(&batch)?)
}

fn report<E: Error + 'static>(
    name: &str,
    calls: u64,
    mut call: impl FnMut() -> Result<(), E>,
) -> Result<(), Box<dyn Error>> {
    let before = thread_cpu();
    for _ in 0..calls {
        call()?;
    }
    let spent = thread_cpu() - before;
    println!("  {name:<36} {:>7.2} us", spent.as_secs_f64() * 1e6 / calls as f64);
    Ok(())
}

fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}
