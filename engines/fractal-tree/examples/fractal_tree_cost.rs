//! What loads, gets, updates and messages cost over the session, cached rows and one client: what `plain.c` beside it does
//! over the library itself. `cargo run --release -p xtask -- bench fractal-tree` runs both in turns.
//!
//! A line for each: its name, rows per second, and µs of CPU of the calling thread per row.

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use rumba_core::delta::Delta;
use rumba_core::engine::{Engine, EngineConfig, Schema, Session};
use rumba_core::kv::{Batch, KeySpace};
use rumba_engine_fractal_tree::FractalTree;
use rustix::time::{ClockId, clock_gettime};

/// As in plain.c.
const ROWS: u64 = 200_000;
const BATCH: usize = 1000;
const VALUE: [u8; 200] = [b'v'; 200];

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).ok_or("usage: fractal_tree_cost DIRECTORY")?;
    measure(Path::new(&dir))
}

fn measure(dir: &Path) -> Result<(), Box<dyn Error>> {
    let config = EngineConfig { cache: 1 << 30, compression: Some("none".into()), ..EngineConfig::new("fractal-tree") };
    let spaces = [KeySpace { name: "rows", scan_prefix: 0, derived: false }];
    let instance = FractalTree.open(dir, &config, Schema::KeyValue(&spaces))?;
    let Session::Kv(mut session) = instance.session()? else { return Err("not a key-value engine".into()) };
    let mut batch = Batch::default();
    told("load", ROWS, || {
        for row in 0..ROWS {
            batch.push(0, &key(row), &VALUE);
            if batch.len() == BATCH {
                session.load(&batch)?;
                batch.clear();
            }
        }
        Ok(())
    })?;
    let mut value = Vec::new();
    told("get", ROWS, || (0..ROWS).try_for_each(|row| session.get(0, &key(row), &mut value).map(drop)))?;
    told("update", ROWS, || {
        (0..ROWS).try_for_each(|row| {
            session.begin()?;
            session.put(0, &key(row), &VALUE)?;
            session.commit()
        })
    })?;
    let mut delta = Delta::default();
    told("upsert", ROWS, || {
        (0..ROWS).try_for_each(|row| {
            delta.begin(None);
            delta.add(0, 1);
            session.begin()?;
            session.update(0, &key(row), &delta)?;
            session.commit()
        })
    })?;
    drop(session);
    Ok(instance.close()?)
}

/// Spread over the table.
fn key(row: u64) -> [u8; 8] {
    (row * 7919 % ROWS).to_be_bytes()
}

fn told(
    name: &str,
    rows: u64,
    mut does: impl FnMut() -> Result<(), rumba_core::error::EngineError>,
) -> Result<(), Box<dyn Error>> {
    let (since, before) = (Instant::now(), thread_cpu());
    does()?;
    let (elapsed, spent) = (since.elapsed(), thread_cpu() - before);
    let (rate, cpu) = (rows as f64 / elapsed.as_secs_f64(), spent.as_secs_f64() * 1e6 / rows as f64);
    println!("{name} {rate:.0} {cpu:.3}");
    Ok(())
}

fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}
