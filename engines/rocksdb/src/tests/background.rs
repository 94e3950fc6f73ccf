//! Settle, drain, debt, compression, logs, and a device that is full.

use std::process::Command;

use rumba_core::engine::EngineError;
use rumba_core::setting::Value;

use super::*;

/// Enough rows for several memtables and files in L0.
const ROWS: u64 = 60_000;

#[test]
fn settle_leaves_no_memtable_no_l0_and_no_pending_work() {
    let lab = Lab::open(&config());
    let mut session = lab.session();
    load(&mut *session, NODE, 0..ROWS);
    load(&mut *session, LINK, 0..500);
    assert!(gauge(&lab.debt(), "memtable_bytes") > 0.0);
    let trigger = |lab: &Lab| {
        let settings = lab.effective_settings();
        settings.into_iter().find(|(name, _)| name == "level0_file_num_compaction_trigger").unwrap().1
    };
    let before = trigger(&lab);
    lab.settle().unwrap();
    let debt = lab.debt();
    for name in ["memtable_bytes", "pending_compaction_bytes", "l0_files"] {
        assert_eq!(gauge(&debt, name), 0.0, "{name}");
    }
    let counters = lab.counters();
    assert_eq!(gauge(&counters, "level0_files"), 0.0);
    assert!(gauge(&counters, "level6_bytes") > 100.0 * ROWS as f64 * 0.4);
    assert_eq!(trigger(&lab), before, "the trigger is put back");
    assert_eq!(get(&mut *session, NODE, &(ROWS - 1).to_be_bytes()).unwrap().len(), 100);
}

/// A TransactionDB keeps flushed memtables for snapshot validation, which no
/// session here asks for: memory that no setting of the experiment accounts for.
#[test]
fn flushed_memtables_are_not_kept_in_memory() {
    let held = |settings: EngineConfig| {
        let lab = Lab::open(&settings);
        let mut session = lab.session();
        load(&mut *session, NODE, 0..ROWS);
        lab.drain().unwrap();
        // The first write after a flush notes that there is something to trim, the next one trims.
        put(&mut *session, NODE, b"a", b"1");
        put(&mut *session, NODE, b"a", b"2");
        gauge(&lab.counters(), "size_all_mem_tables_bytes")
    };
    let memtable = (1 << 20) as f64;
    assert!(held(config_with([("max_write_buffer_size_to_maintain", Value::Int(4 << 20))])) > memtable);
    assert!(held(config()) < memtable / 16.0);
}

#[test]
fn drain_pays_what_is_due_and_no_more() {
    // One L0 file is below the trigger: draining must flush it and leave it there.
    let lab = Lab::open(&config());
    load(&mut *lab.session(), NODE, 0..100);
    lab.drain().unwrap();
    let debt = lab.debt();
    assert_eq!(gauge(&debt, "memtable_bytes"), 0.0);
    assert_eq!(gauge(&debt, "pending_compaction_bytes"), 0.0);
    assert_eq!(gauge(&debt, "l0_files"), 1.0);

    // Plenty of overwritten rows: compactions are due, and all of them are done.
    let lab = Lab::open(&config_with([("write_buffer_size", text("128KiB"))]));
    for _ in 0..4 {
        load(&mut *lab.session(), NODE, 0..20_000);
    }
    lab.drain().unwrap();
    let counters = lab.counters();
    assert_eq!(gauge(&lab.debt(), "memtable_bytes"), 0.0);
    assert_eq!(gauge(&lab.debt(), "pending_compaction_bytes"), 0.0);
    assert_eq!(gauge(&counters, "num_running_compactions"), 0.0);
    assert!(gauge(&counters, "level0_files") < 4.0, "below the trigger");
}

#[test]
fn settle_leaves_l0_alone_where_compaction_is_switched_off() {
    let lab = Lab::open(&config_with([("disable_auto_compactions", Value::Bool(true))]));
    for _ in 0..3 {
        load(&mut *lab.session(), NODE, 0..100);
        lab.settle().unwrap();
    }
    assert_eq!(gauge(&lab.debt(), "l0_files"), 3.0);
}

#[test]
fn every_compression_stores_data_and_zstd_makes_files_smaller() {
    let mut sizes = BTreeMap::new();
    for &compression in RocksDb.compressions() {
        let config = EngineConfig { compression: Some(compression.into()), ..config() };
        RocksDb.check(&config).unwrap();
        let lab = Lab::open(&config);
        let mut session = lab.session();
        load(&mut *session, NODE, 0..ROWS);
        lab.settle().unwrap();
        assert_eq!(get(&mut *session, NODE, &7u64.to_be_bytes()).unwrap().len(), 100, "{compression}");
        assert_eq!(scan(&mut *session, NODE, &0u64.to_be_bytes(), &ROWS.to_be_bytes(), usize::MAX).len() as u64, ROWS);
        sizes.insert(compression, bytes(lab.path(), is_table));
    }
    assert!(sizes["zstd"] * 10 < sizes["none"] * 7, "{sizes:?}");
    assert!(sizes.values().all(|size| *size <= sizes["none"]), "{sizes:?}");
}

#[test]
fn without_durability_nothing_is_written_to_a_log() {
    for (durability, logs) in [(Durability::None, false), (Durability::NoSync, true), (Durability::Sync, true)] {
        let lab = Lab::open(&EngineConfig { durability, ..config() });
        let mut session = lab.session();
        put(&mut *session, NODE, b"a", b"1");
        load(&mut *session, NODE, 0..100);
        let log_bytes = bytes(lab.path(), |file| lab.is_log(file));
        assert_eq!(log_bytes > 0, logs, "{durability:?} wrote {log_bytes} bytes");
        assert_eq!(get(&mut *session, NODE, b"a"), Some(b"1".to_vec()));
    }
    let lab = Lab::open(&config());
    assert!(lab.is_log(Path::new("/data/000012.log")));
    for file in ["LOG", "LOG.old.1700000000", "000012.sst", "MANIFEST-000005", "OPTIONS-000007"] {
        assert!(!lab.is_log(Path::new(file)), "{file}");
    }
}

#[test]
fn statistics_are_off_unless_asked_for() {
    let hits = |config: &EngineConfig| {
        let lab = Lab::open(config);
        let mut session = lab.session();
        load(&mut *session, NODE, 0..1000);
        lab.settle().unwrap();
        for _ in 0..2 {
            get(&mut *session, NODE, &1u64.to_be_bytes()).unwrap();
        }
        lab.counters().into_iter().find(|gauge| gauge.name == "block.cache.data.hit").map(|gauge| gauge.value)
    };
    assert_eq!(hits(&config()), None);
    assert!(hits(&config_with([("statistics", Value::Bool(true))])).unwrap() >= 1.0);
}

#[test]
fn counters_tell_levels_sizes_and_stalls() {
    let lab = Lab::open(&config());
    load(&mut *lab.session(), LINK, 0..ROWS);
    lab.settle().unwrap();
    let counters = lab.counters();
    let levels: f64 = (0..7).map(|level| gauge(&counters, &format!("level{level}_bytes"))).sum();
    assert_eq!(levels, gauge(&counters, "sst_bytes[link]") + gauge(&counters, "sst_bytes[node]"));
    assert_eq!(gauge(&counters, "sst_bytes[node]"), 0.0);
    assert!(counters.iter().any(|gauge| gauge.name.starts_with("stalls_")), "{counters:?}");
    assert_eq!(gauge(&counters, "block_cache_capacity_bytes"), (8 << 20) as f64);
    assert!(gauge(&counters, "block_cache_usage_bytes") <= (8 << 20) as f64);
}

/// A small file system in memory, unmounted when it goes.
struct Tmpfs(TempDir);

impl Tmpfs {
    fn mount(size: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: mounting a tmpfs needs root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "rumba-test"]).arg(dir.path()).status();
        if !mount.is_ok_and(|status| status.success()) {
            println!("skipped: mount refused a tmpfs");
            return None;
        }
        Some(Self(dir))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_device_is_called_one_and_the_instance_still_closes() {
    for durability in [Durability::None, Durability::NoSync] {
        let Some(tmpfs) = Tmpfs::mount("16m") else { return };
        let config = EngineConfig { durability, ..config() };
        let instance = RocksDb.open(tmpfs.0.path(), &config, &SPACES).unwrap();
        let mut session = session(&*instance);
        let value = [7u8; 4096];
        let mut row = 0u64;
        let error = loop {
            row += 1;
            assert!(row < 100_000, "16 MiB took {row} rows of 4 KiB");
            let key = row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            session.begin().unwrap();
            session.put(NODE, &key, &value).unwrap();
            if let Err(error) = session.commit() {
                break error;
            }
        };
        assert!(matches!(error, EngineError::DiskFull(_)), "{error:?}");
        session.rollback().unwrap();
        let mut batch = Batch::default();
        batch.push(NODE, b"one more", &value);
        let error = session.load(&batch).unwrap_err();
        assert!(matches!(error, EngineError::DiskFull(_)), "{error:?}");
        let error = instance.drain().unwrap_err();
        assert!(matches!(error, EngineError::DiskFull(_)), "{error:?}");
        drop(session);
        instance.close().unwrap();
    }
}
