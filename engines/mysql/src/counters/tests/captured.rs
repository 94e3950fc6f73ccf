//! Shortened answers of real servers.

use rumba_protocol_mysql::{Rows, WireError};
use rumba_server_kit::version::Version;

use crate::counters::innodb::{age_in_monitor, progress_in};
use crate::counters::rocksdb::{UNFLUSHED, sums};
use crate::counters::{Kind, Levels, OVER_OLDER_DATA, Reading, Request, Server, Status, debt, unpaid, written_of};
use crate::software::Brand;

/// A server that returns captured answers, found by the beginning of the statement.
struct Captured(Vec<(&'static str, &'static str)>);

impl Request for Captured {
    fn fetch(&mut self, sql: &str) -> Result<Rows, WireError> {
        match self.0.iter().find(|(begins, _)| sql.starts_with(begins)) {
            Some((_, answer)) => Ok(Rows { columns: Vec::new(), rows: rows(answer) }),
            None => Err(WireError::Protocol(format!("not captured: {sql}"))),
        }
    }
}

/// Parses cells separated by blanks, one row a line.
fn rows(text: &str) -> Vec<Vec<Option<String>>> {
    text.lines().map(|line| line.split_whitespace().map(|cell| Some(cell.to_owned())).collect()).collect()
}

/// MariaDB 10.11.19, in the middle of a compaction.
const COMPACTION_STATS: &str = include_str!("compaction_stats.txt");

#[test]
fn levels_of_all_families_are_added_up() {
    let levels = Levels::of(&rows(COMPACTION_STATS));
    let mut reading = Reading::default();
    levels.notify(&mut reading);
    assert_eq!(reading.get("level0_files"), Some(2.0), "one of each family");
    assert_eq!(reading.get("level1_bytes"), Some(241_713_466.0));
    assert_eq!(levels.sum(0, |level| level.compacting_files), 1.0);
    // 241,711,736 bytes at a score of 1.25: a fifth of them exceeds the target.
    assert!((levels.sum(1, |level| level.excess_bytes) - 48_342_347.2).abs() < 1.0);
    let written = 0.75 * 1_073_741_824.0;
    assert_eq!(reading.get("level1_written_bytes"), Some(written));
    assert_eq!(reading.get("level1_write_amp"), Some(0.75 / 0.5));
    assert!(reading.get("level0_write_amp").is_none(), "flush amplifies nothing");
    assert_eq!(reading.get("tree_write_amp"), Some(1.25 / 0.5));
    // One file of four: all of level 0, and a quarter of level 1, for each family.
    let deferred = 14_646_253.0 + 241_711_736.0 / 4.0 + 1730.0 + 1730.0 / 4.0;
    assert!((levels.l0().deferred_bytes - deferred).abs() < 1.0, "{levels:?}");
}

#[test]
fn an_empty_memtable_is_no_debt() {
    let text = "__system__ CUR_SIZE_ALL_MEM_TABLES 2048
__system__ NUM_ENTRIES_ACTIVE_MEM_TABLE 2
__system__ NUM_ENTRIES_IMM_MEM_TABLES 0
default CUR_SIZE_ALL_MEM_TABLES 4096
default NUM_ENTRIES_ACTIVE_MEM_TABLE 0
default NUM_ENTRIES_IMM_MEM_TABLES 0";
    let sums = sums(&rows(text));
    assert_eq!(sums.get(UNFLUSHED), Some(&2048.0));
    assert_eq!(sums.get("CUR_SIZE_ALL_MEM_TABLES"), Some(&6144.0));
}

/// MariaDB 10.5.23 after a load, and Percona Server, which writes the names in upper case.
#[test]
fn tokudb_reports_messages_unless_the_estimate_is_negative() {
    let of = |status: &'static str| {
        let mut captured = Captured(vec![("SHOW GLOBAL STATUS", status)]);
        debt(&mut captured, &Server::new(Kind::TokuDb, "10.5.23-MariaDB-0+deb11u1"))
    };
    let reading = of("Tokudb_messages_in_trees_estimate_bytes 492851\nTOKUDB_CACHETABLE_SIZE_WRITING 7\n\
        Tokudb_logger_next_lsn 300\nTokudb_checkpoint_last_lsn 290");
    assert_eq!(reading.get("messages_in_trees_bytes"), Some(492_851.0));
    assert_eq!((reading.get("writing_bytes"), reading.get("checkpoint_age_changes")), (Some(7.0), Some(10.0)));
    let wrapped = of("Tokudb_messages_in_trees_estimate_bytes 18446744073706911234");
    assert_eq!(wrapped.get("messages_in_trees_bytes"), None);
    assert!(unpaid(Some(492_851.0)).is_some_and(|words| words.starts_with("481.3 KiB of messages wait above")));
    assert_eq!(unpaid(Some(0.0)), None);
    assert!(unpaid(None).is_some_and(|words| words.contains(OVER_OLDER_DATA)));
}

/// MySQL 5.6.24 after a load of 140 MB. Its status has neither checkpoint age nor history, and its metrics have only
/// the history.
#[test]
fn mysql_5_6_reports_deferred_writes_by_metrics_and_monitor() {
    let mut captured = Captured(vec![
        ("SHOW GLOBAL STATUS", "Innodb_buffer_pool_bytes_dirty 141180928\nInnodb_buffer_pool_pages_dirty 8617"),
        ("SELECT NAME", "trx_rseg_history_len 4\nlog_lsn_checkpoint_age off\nibuf_size 1"),
    ]);
    let server = Server::new(Kind::InnoDb, "5.6.24-log");
    let reading = debt(&mut captured, &server);
    assert_eq!(reading.get("dirty_bytes"), Some(141_180_928.0));
    assert_eq!(reading.get("history_list_length"), Some(4.0));
    assert_eq!(reading.get("change_buffer_pages"), Some(0.0));
    assert_eq!(reading.get("checkpoint_age_bytes"), None, "unknown is not zero");
}

const MONITOR: &str = "---\nLOG\n---\nLog sequence number 182328655\nLog flushed up to   182328655\n\
    Pages flushed up to 182328655\nLast checkpoint at  182320000\n\
    ------------\nTRANSACTIONS\n------------\nTrx id counter 1322\n\
    Purge done for trx's n:o < 1322 undo n:o < 0 state: running but idle\nHistory list length 8\n";

#[test]
fn the_monitor_gives_the_checkpoint_age() {
    assert_eq!(age_in_monitor(MONITOR), Some(8655.0));
    assert_eq!(age_in_monitor("no such lines"), None);
}

#[test]
fn purge_is_done_only_when_it_has_caught_up_and_rests() {
    let purge_is_done_in = |text: &str| progress_in(text).is_some_and(|purge| purge.is_done());
    assert!(purge_is_done_in(MONITOR));
    assert!(!purge_is_done_in(&MONITOR.replace("running but idle", "running")), "at work");
    assert!(!purge_is_done_in(&MONITOR.replace("n:o < 1322", "n:o < 1320")), "held back by an open transaction");
    assert!(!purge_is_done_in(""), "unknown is not done");
}

/// `Innodb_data_written` includes different bytes in each version. The figures are from real runs, and each must give
/// the bytes of pages written. All versions count lock waits in milliseconds.
#[test]
fn page_writes_are_separate_from_redo_and_doublewrite() {
    let mysql = "Innodb_data_written 463548928\nInnodb_dblwr_pages_written 8630\nInnodb_os_log_written 180741120\n\
        Innodb_page_size 16384\nInnodb_pages_written 8630\nInnodb_row_lock_time 7";
    let mariadb = "Binlog_bytes_written 148361132\nInnodb_data_written 283066368\nInnodb_dblwr_pages_written 6006\n\
        Innodb_os_log_written 247068168\nInnodb_page_size 16384\nInnodb_pages_written 11271\nInnodb_row_lock_time 7";
    let newer = "Innodb_data_written 618109952\nInnodb_dblwr_pages_written 21619\nInnodb_os_log_written 186181632\n\
        Innodb_page_size 16384\nInnodb_pages_written 26342\nInnodb_row_lock_time 7";
    for (version, status, pages) in
        [("5.6.24-log", mysql, 8630.0), ("9.7.4", newer, 26342.0), ("10.11.19-MariaDB", mariadb, 11271.0)]
    {
        let mut captured = Captured(vec![("SHOW GLOBAL STATUS", status), ("SHOW BINARY LOGS", "bin.000001 153979532")]);
        let status = Status::read_all(&mut captured).expect("status");
        let reading = written_of(&mut captured, &Server::new(Kind::InnoDb, version), &status);
        let bytes = reading.get("written_pages_bytes").expect("pages");
        assert!((bytes / (pages * 16384.0) - 1.0).abs() < 0.001, "{version}: {bytes} for {pages} pages");
        assert!(reading.get("written_binlog_bytes").expect("binlog") > 1e8);
        assert_eq!(reading.get("waited_row_locks_us"), Some(7000.0));
    }
}

#[test]
fn a_lost_connection_gives_no_figures() {
    let mut dead = Captured(Vec::new());
    for kind in [Kind::InnoDb, Kind::RocksDb] {
        assert_eq!(debt(&mut dead, &Server::new(kind, "10.11.6-MariaDB")), Reading::default());
    }
}

#[test]
fn versions_are_read_as_servers_write_them() {
    for (text, brand, version) in [
        ("10.11.19-MariaDB-0+deb12u1-log", Brand::MariaDb, Version(10, 11, 19)),
        ("5.5.5-10.11.6-MariaDB", Brand::MariaDb, Version(10, 11, 6)),
        ("5.6.24-log", Brand::MySql, Version(5, 6, 24)),
        ("9.7.0-1", Brand::MySql, Version(9, 7, 0)),
        ("8.0.36-28", Brand::MySql, Version(8, 0, 36)),
    ] {
        let server = Server::new(Kind::of("ROCKSDB"), text);
        assert_eq!((server.brand, server.version, server.kind), (brand, version, Kind::RocksDb), "{text}");
    }
}
