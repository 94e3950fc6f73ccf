//! Counters of a real MariaDB, compared with the work done on it.

use rumba_protocol_mysql::{Rows, WireError};
use rumba_server_kit::reading::Reading;

use super::server::{self, Private};
use crate::counters::{Kind, LATCHES, Request, WAITS, counters, debt, enable};

const ROWS: u32 = 50_000;

/// Bytes of the rows that [`server::load`] makes: a filler of 288 and two integers.
const LOGICAL_BYTES: f64 = ROWS as f64 * (288.0 + 8.0);

/// The documented meaning of each byte counter must be right. A counter that is wrong by a factor, or counts something
/// else, misleads its readers.
#[test]
#[needs(MariaDb)]
fn innodb_counts_what_was_written() {
    let private = Private::start(&["--log-bin=bin", "--binlog-format=row", "--innodb-doublewrite=1"]);
    let (mut admin, innodb) = (private.connect(), private.server(Kind::InnoDb));
    enable(&mut admin, &innodb).expect("counters are switched on");
    let before = counters(&mut admin, &innodb);
    server::load(&mut admin, "InnoDB", ROWS);
    crate::upkeep::drain(&mut admin, &innodb, &crate::upkeep::Patience::default()).expect("drained");
    let after = counters(&mut admin, &innodb);
    let grown = |name: &str| after.get(name).expect(name) - before.get(name).expect(name);
    for name in ["written_redo_bytes", "written_pages_bytes", "written_binlog_bytes"] {
        let times = grown(name) / LOGICAL_BYTES;
        assert!((1.0..4.0).contains(&times), "{name}: {times} times the rows' bytes");
    }
    assert!(grown("written_doublewrite_bytes") <= grown("written_pages_bytes"), "pages are written twice at most");
    let page = after.get("Innodb_page_size").expect("page size");
    let pages = after.get("Innodb_pages_written").expect("pages") * page;
    assert_eq!(after.get("written_pages_bytes"), Some(pages), "plain pages have the page size");
    assert!(after.get("buffer_pool_hit_ratio").is_some_and(|ratio| (0.9..=1.0).contains(&ratio)));
    for monitored in ["adaptive_hash_searches", "compress_pages_compressed", "compress_ops", "Innodb_row_lock_waits"] {
        assert!(after.get(monitored).is_some(), "{monitored}: {after:?}");
    }
    // rumba samples the deferred work each second, so it must cost the server almost nothing. The limit is in statements,
    // which do not depend on the machine.
    let mut counted = Counted(&mut admin, 0, 0);
    debt(&mut counted, &innodb);
    assert!(counted.1 <= 2 && counted.2 <= 20, "{} statements, {} rows", counted.1, counted.2);
}

/// Counts statements and the rows of their answers.
struct Counted<'a>(&'a mut dyn Request, usize, usize);

impl Request for Counted<'_> {
    fn fetch(&mut self, sql: &str) -> Result<Rows, WireError> {
        let rows = self.0.fetch(sql)?;
        self.1 += 1;
        self.2 += rows.rows.len();
        Ok(rows)
    }
}

/// Waits are reported if the server times them, in sums and by the server's own names, because a sum by class does not
/// show which mutex is contended. They are absent instead of zero if it does not.
#[test]
#[needs(MariaDb)]
fn waits_are_reported_where_the_server_times_them() {
    let reading = |options: &[String]| {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let private = Private::start(&options);
        let (mut admin, innodb) = (private.connect(), private.server(Kind::InnoDb));
        server::load(&mut admin, "InnoDB", ROWS);
        counters(&mut admin, &innodb)
    };
    let timed = |instruments: &[&str]| {
        let mut options = vec!["--performance-schema=ON".to_owned()];
        options.extend(instruments.iter().map(|name| format!("--performance-schema-instrument={name}=ON")));
        reading(&options)
    };
    let events = |reading: &Reading| {
        let waits = reading.gauges.iter().filter(|gauge| gauge.name.starts_with("wait_event_"));
        waits.map(|gauge| (gauge.name.clone(), gauge.value)).collect::<std::collections::BTreeMap<_, _>>()
    };
    for off in [reading(&[]), timed(&[])] {
        assert_eq!((off.get("waited_index_us"), off.get("waited_lock_sys_us")), (None, None));
        assert!(events(&off).is_empty(), "the latches are not timed, so the sessions are not delayed by more");
    }
    let latches = timed(&LATCHES);
    for name in ["waited_index_us", "waited_lock_sys_us"] {
        assert!(latches.get(name).is_some_and(|us| us > 0.0), "{name}: {latches:?}");
    }
    let of_latches = events(&latches);
    let index = of_latches.keys().find(|name| name.ends_with("innodb/index_tree_rw_lock_us"));
    assert!(index.is_some_and(|name| of_latches[name] > 0.0), "{of_latches:?}");
    let of_all = events(&timed(&WAITS));
    let synch = |waits: &std::collections::BTreeMap<String, f64>| {
        waits.keys().filter(|name| name.starts_with("wait_event_synch/")).count()
    };
    assert!(synch(&of_all) > 3 * synch(&of_latches), "{of_all:?}");
}

#[test]
#[needs(MariaDb, MyRocks)]
fn myrocks_counts_what_was_written() {
    let private = Private::with_myrocks();
    let (mut admin, myrocks) = (private.connect(), private.server(Kind::RocksDb));
    let before = counters(&mut admin, &myrocks);
    server::load(&mut admin, "RocksDB", ROWS);
    crate::upkeep::drain(&mut admin, &myrocks, &crate::upkeep::Patience::default()).expect("drained");
    let after = counters(&mut admin, &myrocks);
    let grown = |name: &str| after.get(name).expect(name) - before.get(name).expect(name);
    let times = grown("written_wal_bytes") / LOGICAL_BYTES;
    assert!((1.0..3.0).contains(&times), "the log took {times} times the rows' bytes");
    assert!(grown("written_flush_bytes") > 0.0);
    // A load of one file is moved, not compacted, so the only certainty is that the levels hold the flushed data.
    let levels = (0..7).filter_map(|level| after.get(&format!("level{level}_bytes"))).sum::<f64>();
    assert!((levels / (grown("written_flush_bytes") + grown("written_compaction_bytes"))).min(1.0) > 0.4, "{levels}");
    let by_level = (1..7).filter_map(|level| after.get(&format!("written_compaction_level{level}_bytes"))).sum::<f64>();
    let all = after.get("written_compaction_bytes").expect("compaction");
    // Each level's figures are rounded to a KiB.
    assert!((by_level - all).abs() <= 0.01 * all + 16384.0, "{by_level} by level, {all} in all");
    assert!(after.get("block_cache_hit_ratio").is_some());
    assert_eq!(after.get("written_binlog_bytes"), Some(0.0), "there is no binary log, and that is known");
}
