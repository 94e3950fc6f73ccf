//! Bulk loading with COPY.

use rumba_engine_api::error::{EngineError, ErrorCode};
use rumba_engine_api::sql::{Param, SqlSession};
use rumba_engine_api::value::Decimal;

use crate::support::{session, sessions, shared};
use rumba_protocol_postgresql::SessionOptions;
use rumba_testkit::sql::{answer, fetch, ints, load};

#[test]
#[needs(PostgreSql)]
fn rows_arrive_as_they_were_given_in_either_format() {
    let server = shared();
    for mut session in sessions(&server) {
        // The last type is supported only in the text format.
        for (table, amount) in [("plain", "integer"), ("exact", "numeric"), ("rough", "double precision")] {
            session
                .run(&format!(
                    "CREATE TEMPORARY TABLE {table} (id bigint PRIMARY KEY, a {amount}, s smallint, b bytea, t text)"
                ))
                .unwrap();
            let rows = session.prepare_rows(table, &["id", "a", "s", "b", "t"]).unwrap();
            let payload: Vec<u8> = (0..=255).collect();
            let long = vec![0xee; 100_000];
            let mut values = Vec::new();
            for id in 0..300 {
                let b = match id % 3 {
                    0 => Param::Null,
                    1 => Param::Bytes(&payload),
                    _ => Param::Bytes(if id % 100 == 2 { &long } else { b"" }),
                };
                let t = Param::Bytes("tab\t back\\ line\n\r ä \\N".as_bytes());
                values.extend([Param::Int(id), Param::Int(-id), Param::Int(7), b, t]);
            }
            let done = load(&mut session, rows, &values).unwrap();
            assert_eq!((done.affected, done.rows), (300, 0), "{table}");
            let sums = format!("SELECT sum(a)::bigint * 1000 + count(b) FROM {table}");
            assert_eq!(ints(&mut session, &sums).unwrap(), [-44_850 * 1000 + 200]);
            let one = session.prepare(&format!("SELECT b, t FROM {table} WHERE id = $1")).unwrap();
            let found = fetch(&mut session, one, &[Param::Int(1)], 2).unwrap().1.remove(0);
            assert_eq!(found, [payload.clone(), "tab\t back\\ line\n\r ä \\N".as_bytes().to_vec()]);
            assert_eq!(fetch(&mut session, one, &[Param::Int(2)], 1).unwrap().1[0][0], long);
            assert_eq!(load(&mut session, rows, &[]).unwrap().affected, 0, "no rows are no statement");
        }
    }
}

#[test]
#[needs(PostgreSql)]
fn numbers_of_any_length_arrive_in_every_parameter_type() {
    let server = shared();
    let mut session = session(&server, &SessionOptions::default());
    session.run("CREATE TEMPORARY TABLE numbers (id bigint PRIMARY KEY, n numeric)").unwrap();
    let rows = session.prepare_rows("numbers", &["id", "n"]).unwrap();
    let whole = [0, 1, -1, 9_999, 10_000, -10_001, 99_990_000, 100_000_000, 123_456_789, i64::MAX, i64::MIN];
    let whole = whole.into_iter().map(|number| (Param::Int(number), number.to_string()));
    // Batches with one of these are sent in the text format as a whole.
    let [digits, cents] = [&b"0.00012345678901234567890"[..], b"-17.90"];
    let batches = [
        whole.chain([(Param::Unsigned(u64::MAX), u64::MAX.to_string()), (Param::Null, String::new())]).collect(),
        vec![(Param::Int(7), "7".to_owned()), (Param::Decimal(Decimal::new(-1790, 2)), "-17.90".to_owned())],
        vec![
            (Param::Text(digits), String::from_utf8_lossy(digits).into_owned()),
            (Param::Text(cents), "-17.90".into()),
        ],
    ];
    let mut expected = Vec::new();
    for batch in batches {
        let first = expected.len() as i64;
        let values: Vec<Param<'_>> =
            batch.iter().zip(first..).flat_map(|((number, _), id)| [Param::Int(id), *number]).collect();
        assert_eq!(load(&mut session, rows, &values).unwrap().affected, batch.len() as u64);
        expected.extend(batch.into_iter().map(|(_, written)| vec![written.into_bytes()]));
    }
    let all = session.prepare("SELECT n FROM numbers ORDER BY id").unwrap();
    assert_eq!(fetch(&mut session, all, &[], 1).unwrap().1, expected);
}

#[test]
#[needs(PostgreSql)]
fn failed_row_load_leaves_the_session_usable() {
    let server = shared();
    for mut session in sessions(&server) {
        session.run("CREATE TEMPORARY TABLE once (id bigint PRIMARY KEY, s smallint)").unwrap();
        let rows = session.prepare_rows("once", &["id", "s"]).unwrap();
        let pair = |id, s| [Param::Int(id), Param::Int(s)];
        load(&mut session, rows, &pair(1, 1)).unwrap();
        let error = load(&mut session, rows, &[pair(2, 1), pair(1, 1)].concat()).unwrap_err();
        assert_eq!(error, EngineError::Duplicate(ErrorCode::of_server(0, *b"23505")));
        let error = load(&mut session, rows, &pair(3, 70_000)).unwrap_err().to_string();
        assert!(error.contains("column 2"), "{error}");
        assert!(load(&mut session, rows, &[Param::Int(1)]).unwrap_err().to_string().contains("last row"));
        assert_eq!(ints(&mut session, "SELECT id FROM once").unwrap(), [1], "all or none");

        // In a failed transaction the server ignores the rows.
        let [begin, rollback] = ["BEGIN", "ROLLBACK"].map(|sql| session.prepare(sql).unwrap());
        let many: Vec<Param<'_>> = (10..20_000).flat_map(|id| pair(id, 1)).collect();
        session.submit(begin, &[]).unwrap();
        session.submit_rows(rows, &pair(1, 1)).unwrap();
        session.submit_rows(rows, &many).unwrap();
        assert!(answer(&mut session, 0).is_ok());
        assert!(answer(&mut session, 0).unwrap_err().to_string().contains("23505"));
        assert!(answer(&mut session, 0).unwrap_err().to_string().contains("25P02"));
        fetch(&mut session, rollback, &[], 0).unwrap();
        assert_eq!(load(&mut session, rows, &many).unwrap().affected, 19_990);
    }
}

#[test]
#[needs(PostgreSql)]
fn missing_table_or_column_is_named() {
    let server = shared();
    let mut session = session(&server, &SessionOptions::default());
    let error = session.prepare_rows("nowhere", &["id"]).unwrap_err().to_string();
    assert!(error.contains("42P01") && error.contains("nowhere"), "{error}");
    let error = session.prepare_rows("pg_class", &[]).unwrap_err().to_string();
    assert!(error.contains("without columns") && !error.contains("lost"), "{error}");
    let error = session.prepare_rows("pg_class", &["it\"s"]).unwrap_err().to_string();
    assert!(error.contains("42703"), "{error}");
}
