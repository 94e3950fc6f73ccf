//! Bulk loading in each way.

use crate::support::Server;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::{Param, SqlSession};
use rumba_engine_api::value::{DateTime, Decimal};
use rumba_protocol_mysql::{LoadWay, SessionOptions, WireSession};
use rumba_testkit::sql::{answer, fetch, ints, load};

const WAYS: [LoadWay; 3] = [LoadWay::BulkExecute, LoadWay::LoadData, LoadWay::Insert];

/// Values that a careless client would corrupt.
const AWKWARD: [&[u8]; 8] = [
    b"",
    b"it's \"quoted\" `so`",
    b"back\\slash \\N \\\\",
    b"tab\tline\nreturn\r",
    b"zero\0byte\x1a",
    b"\x80\xfe\xff\xc3\xa4",
    b"\\",
    b"NULL",
];

fn by(way: LoadWay) -> SessionOptions {
    SessionOptions { load: way, terse_conflicts: true, ..SessionOptions::default() }
}

fn count(session: &mut WireSession, table: &str) -> i64 {
    ints(session, &format!("SELECT COUNT(*) FROM {table}")).unwrap()[0]
}

#[test]
#[needs(MariaDb, Openssl)]
fn loaded_rows_match_the_input_for_every_load_method() {
    let server = Server::shared();
    let modes = ["", "NO_BACKSLASH_ESCAPES"];
    for (way, mode) in WAYS.into_iter().flat_map(|way| modes.map(|mode| (way, mode))) {
        let setup = vec!["SET NAMES latin1".to_owned(), format!("SET sql_mode = 'STRICT_TRANS_TABLES,{mode}'")];
        let mut session = server.session(&SessionOptions { setup, ..by(way) });
        session
            .run(
                "CREATE OR REPLACE TEMPORARY TABLE loaded (id BIGINT PRIMARY KEY, n BIGINT, l VARCHAR(100) \
                 CHARACTER SET latin1, b VARBINARY(100)) ENGINE=InnoDB",
            )
            .unwrap();
        let rows = session.prepare_rows("loaded", &["id", "n", "l", "b"]).unwrap();
        let mut values = Vec::new();
        for (id, text) in (1..).zip(AWKWARD) {
            let n = if id % 2 == 0 { Param::Null } else { Param::Int(-id) };
            values.extend([Param::Int(id), n, Param::Bytes(text), Param::Bytes(text)]);
        }
        values.extend([Param::Int(i64::MAX), Param::Int(i64::MIN), Param::Null, Param::Null]);
        let answer = load(&mut session, rows, &values).unwrap();
        assert_eq!(answer.affected, 9, "{way:?}");
        let select = session.prepare("SELECT l, b, n, n IS NULL, b IS NULL FROM loaded WHERE id = ?").unwrap();
        for (id, text) in (1..).zip(AWKWARD) {
            session.submit(select, &[Param::Int(id)]).unwrap();
            let dyn_session: &mut dyn SqlSession = &mut session;
            let mut check = |row: &dyn rumba_engine_api::sql::Row| {
                assert_eq!((row.bytes(0), row.bytes(1)), (text, text), "{way:?}, mode {mode:?}");
                assert_eq!((row.int(3), row.int(4)), (i64::from(id % 2 == 0), 0));
                assert_eq!(row.int(2), if id % 2 == 0 { 0 } else { -id });
            };
            assert_eq!(rumba_engine_api::worker::block_on(dyn_session.answer(&mut check)).unwrap().rows, 1);
        }
        let last = format!("SELECT n FROM loaded WHERE id = {} AND l IS NULL AND b IS NULL", i64::MAX);
        assert_eq!(ints(&mut session, &last).unwrap(), [i64::MIN]);
    }
}

/// Columns with only times, with times and text, with amounts, and with other values. Each column is sent as one type,
/// and all values arrive.
#[test]
#[needs(MariaDb, Openssl)]
fn every_load_method_keeps_exact_times_and_amounts() {
    let server = Server::shared();
    let times = ["2026-11-23 06:40:46.987654", "1970-01-02 00:00:00"].map(|text| text.parse::<DateTime>().unwrap());
    let amounts = [Decimal::new(-1_790, 2), Decimal::new(999_999_999_999, 2)];
    for way in WAYS {
        let mut session = server.session(&by(way));
        session
            .run(
                "CREATE OR REPLACE TEMPORARY TABLE timed (id INT PRIMARY KEY, t DATETIME(6), m DATETIME(6), \
                 a DECIMAL(12,2), n DATETIME) ENGINE=InnoDB",
            )
            .unwrap();
        let rows = session.prepare_rows("timed", &["id", "t", "m", "a", "n"]).unwrap();
        let mixed = [Param::Timestamp(times[0]), Param::Text(b"1999-12-31 23:59:59.5")];
        let values: Vec<Param<'_>> = (0..2)
            .flat_map(|id| {
                let amount = Param::Decimal(amounts[id]);
                [Param::Int(id as i64), Param::Timestamp(times[id]), mixed[id], amount, Param::Null]
            })
            .chain([Param::Int(2), Param::Null, Param::Null, Param::Null, Param::Null])
            .collect();
        assert_eq!(load(&mut session, rows, &values).unwrap().affected, 3, "{way:?}");
        let sql = "SELECT CONCAT_WS('|', t, m, a, n IS NULL) FROM timed ORDER BY id";
        let reported = session.prepare(sql).unwrap();
        let (_, found) = fetch(&mut session, reported, &[], 1).unwrap();
        let found: Vec<String> = found.iter().map(|row| String::from_utf8_lossy(&row[0]).into_owned()).collect();
        let expected = [
            "2026-11-23 06:40:46.987654|2026-11-23 06:40:46.987654|-17.90|1",
            "1970-01-02 00:00:00.000000|1999-12-31 23:59:59.500000|9999999999.99|1",
            "1",
        ];
        assert_eq!(found, expected, "{way:?}");
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn rows_beyond_the_servers_packet_come_in_as_many_as_it_takes() {
    let server = Server::start(&["--max-allowed-packet=1M"]);
    for way in WAYS {
        let mut session = server.session(&by(way));
        session.run("CREATE OR REPLACE TEMPORARY TABLE much (id INT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB").unwrap();
        let rows = session.prepare_rows("much", &["id", "b"]).unwrap();
        // Every byte of it is escaped in text.
        let blob = vec![b'\''; 100_000];
        let values: Vec<Param<'_>> = (0..50).flat_map(|id| [Param::Int(id), Param::Bytes(&blob)]).collect();
        // The next statement waits for all parts of the load.
        session.submit_rows(rows, &values).unwrap();
        let loaded = answer(&mut session, 0).unwrap().0.affected;
        let sum = ints(&mut session, "SELECT SUM(LENGTH(b)) FROM much").unwrap();
        assert_eq!((loaded, &sum[..]), (50, &[5_000_000][..]), "{way:?}");
        assert_eq!(load(&mut session, rows, &[]).unwrap().affected, 0, "no rows are no load");
        let uneven = load(&mut session, rows, &values[..3]).unwrap_err().to_string();
        assert!(uneven.contains("last row"), "{uneven}");
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn duplicate_row_is_reported_and_nothing_is_loaded() {
    let server = Server::shared();
    for way in WAYS {
        let mut session = server.session(&by(way));
        session
            .run("CREATE OR REPLACE TEMPORARY TABLE twice (id INT PRIMARY KEY) ENGINE=InnoDB; INSERT INTO twice VALUES (5)")
            .unwrap();
        let rows = session.prepare_rows("twice", &["id"]).unwrap();
        assert!(matches!(load(&mut session, rows, &[Param::Int(5)]), Err(EngineError::Duplicate(_))), "{way:?}");
        assert_eq!(count(&mut session, "twice"), 1);
        session.run("BEGIN").unwrap();
        let several = load(&mut session, rows, &[Param::Int(4), Param::Int(5), Param::Int(6)]).unwrap_err();
        match way {
            // The server skips such a row and loads the others.
            LoadWay::LoadData => assert!(several.to_string().contains("roll back"), "{several}"),
            _ => assert!(matches!(several, EngineError::Duplicate(_)), "{way:?}: {several}"),
        }
        session.run("ROLLBACK").unwrap();
        assert_eq!(count(&mut session, "twice"), 1, "{way:?}");
        assert_eq!(load(&mut session, rows, &[Param::Int(4), Param::Int(6)]).unwrap().affected, 2);
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_value_that_does_not_fit_is_never_cut_silently() {
    let server = Server::shared();
    for way in WAYS {
        let mut session = server.session(&by(way));
        session.run("CREATE OR REPLACE TEMPORARY TABLE narrow (id INT PRIMARY KEY, s VARCHAR(3))").unwrap();
        let rows = session.prepare_rows("narrow", &["id", "s"]).unwrap();
        let error = load(&mut session, rows, &[Param::Int(1), Param::Bytes(b"four")]).unwrap_err().to_string();
        assert!(error.contains("1406") || error.contains("values that do not fit were changed"), "{way:?}: {error}");
    }
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_way_that_the_server_lacks_is_refused_and_another_one_found() {
    let server = Server::start(&["--local-infile=0"]);
    let mut session = server.session(&by(LoadWay::LoadData));
    session.run("CREATE TABLE plain (`i``d` INT PRIMARY KEY)").unwrap();
    let error = session.prepare_rows("plain", &["i`d"]).unwrap_err().to_string();
    assert!(error.contains("local_infile=1") && !error.contains("lost"), "{error}");
    let error = session.prepare_rows("plain", &[]).unwrap_err().to_string();
    assert!(error.contains("without columns") && !error.contains("lost"), "{error}");
    session.run("SELECT 1").unwrap();
    let mut session = server.session(&SessionOptions { text: true, ..by(LoadWay::Auto) });
    let rows = session.prepare_rows("test.plain", &["i`d"]).unwrap();
    assert_eq!(load(&mut session, rows, &[Param::Int(1), Param::Int(2)]).unwrap().affected, 2);
}

#[test]
#[needs(MariaDb, Openssl)]
fn a_load_in_a_pipeline_is_answered_in_its_turn() {
    let server = Server::shared();
    for way in WAYS {
        let mut session = server.session(&by(way));
        session.run("CREATE OR REPLACE TEMPORARY TABLE lined (id INT PRIMARY KEY) ENGINE=InnoDB").unwrap();
        let rows = session.prepare_rows("lined", &["id"]).unwrap();
        let counted = session.prepare("SELECT COUNT(*) FROM lined").unwrap();
        for first in [1, 11, 21] {
            let values: Vec<Param<'_>> = (first..first + 10).map(Param::Int).collect();
            session.submit(counted, &[]).unwrap();
            session.submit_rows(rows, &values).unwrap();
        }
        session.submit(counted, &[]).unwrap();
        let mut reported = Vec::new();
        for _ in 0..7 {
            let dyn_session: &mut dyn SqlSession = &mut session;
            let mut visit = |row: &dyn rumba_engine_api::sql::Row| reported.push(row.int(0));
            rumba_engine_api::worker::block_on(dyn_session.answer(&mut visit)).unwrap();
        }
        assert_eq!(reported, [0, 10, 20, 30], "{way:?}");
    }
}
