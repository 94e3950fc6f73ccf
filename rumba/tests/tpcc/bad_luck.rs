//! Bad input: data of a different scale than requested, unreadable amounts, and rates that terminals cannot have.

use std::sync::Arc;
use std::time::Duration;

use super::*;

/// The failed checks of a database for this requested scale, with their findings.
fn wrong_for(worked: &Worked, numbers: &[(&str, i64)]) -> Vec<(String, Vec<String>)> {
    let requested = TpcC.bind(&settings(numbers)).unwrap();
    requested.restore(&worked.bound.state()).unwrap();
    let checks = requested.verify(worked.instance.session().unwrap()).unwrap();
    checks.into_iter().filter(|check| check.wrong > 0).map(|check| (check.name, check.examples)).collect()
}

/// The remedy for a request of another scale.
const REMEDY: &str =
    "if it was loaded at another scale, load it again, or set warehouses, customers and items as they were";

#[test]
fn data_of_another_scale_is_reported_with_remedy() {
    for worked in [Worked::new(&Sqlite, "plain"), Worked::new(&Lmdb, "plain")] {
        assert_eq!(wrong_for(&worked, &[("warehouses", 1), ("customers", 20), ("items", 200)]), []);
        let more = wrong_for(&worked, &[("warehouses", 2), ("customers", 20), ("items", 200)]);
        let (_, examples) = more.iter().find(|(name, _)| name == "tables have the rows of the scale").unwrap();
        assert!(examples.contains(&"rows of warehouse: 1, expected 2".to_owned()), "{examples:?}");
        assert!(examples.last().unwrap().ends_with(REMEDY), "{examples:?}");
        let fewer = wrong_for(&worked, &[("warehouses", 1), ("customers", 20), ("items", 100)]);
        let (_, examples) = fewer.iter().find(|(name, _)| name == "tables have the rows of the scale").unwrap();
        let stock = format!("rows of stock: 200, expected 100; {REMEDY}");
        assert_eq!(examples, &["rows of item: 200, expected 100", stock.as_str()]);
    }
}

/// Guards against unreadable amounts: they were once read as 0, so orders cost 0, and sums of them held.
#[test]
fn unreadable_amount_is_reported_with_its_column_and_value() {
    for statements in ["plain", "batched"] {
        let worked = Worked::loaded(&Sqlite, statements, 1);
        let session = || worked.instance.session().unwrap();
        // SQLite keeps a text in a column of numbers.
        worked.run("UPDATE item SET i_price = 'dear'");
        let mut client = worked.bound.client(session(), ALONE, 1).unwrap();
        let reported = block_on(client.run(&mut Turns::of(400))).unwrap_err().to_string();
        assert!(reported.starts_with("i_price: dear is not a"), "{statements}: {reported}");
        drop(client);
        worked.run("UPDATE warehouse SET w_ytd = 'much'");
        let reported = worked.bound.verify(session()).unwrap_err().to_string();
        assert!(reported.starts_with("w_ytd: much is not a"), "{reported}");
    }
}

/// The pauses of a client before this many turns and the last one, which does not come.
fn pauses(mut client: Box<dyn Client>, turns: usize) -> Vec<Duration> {
    let mut pace = Turns::of(turns);
    block_on(client.run(&mut pace)).unwrap();
    pace.pauses
}

/// With terminals that key for 18 s, a crash after five seconds would find hardly any new order to lose.
#[test]
fn terminals_before_a_crash_neither_key_nor_think() {
    let worked = Worked::loaded(&Sqlite, "plain", 1);
    let mut requested = settings(&[("warehouses", 1), ("customers", 20), ("items", 200)]);
    requested.0.insert("think".to_owned(), Value::Text("spec".to_owned()));
    let bound = TpcC.bind(&requested).unwrap();
    bound.restore(&worked.bound.state()).unwrap();
    let session = || worked.instance.session().unwrap();
    let usual = bound.client(session(), ALONE, 1).unwrap();
    let ledger = Arc::new(tempfile::tempfile().unwrap());
    let hurried = bound.acid().unwrap().recorded(session(), ALONE, 1, &ledger).unwrap();
    // The run starts while the terminal thinks or keys for its first transaction.
    let usual = pauses(usual, 30).split_off(1);
    assert!(usual.len() >= 30 && usual.iter().all(|pause| *pause >= Duration::from_secs(2)), "{usual:?}");
    assert!(pauses(hurried, 30).iter().all(|pause| pause.is_zero()));
    let first = |seed| pauses(bound.client(session(), ALONE, seed).unwrap(), 0)[0];
    let mut firsts: Vec<Duration> = (1..20).map(first).collect();
    firsts.sort_unstable();
    firsts.dedup();
    assert_eq!(firsts.len(), 19, "each begins at a moment of its own");
}

#[test]
fn terminals_that_think_take_no_rate() {
    let place = TestDir::new();
    for rate in ["rate=100", "rate=max(p99 < 40ms)"] {
        let mut command = place.rumba(&["run", "tpcc", "--engine", "sqlite", "--dry-run", "--set", "think=spec"]);
        let output = command.args(["--set", "warehouses=1", "--set", "clients=2", "--set", rate]).output().unwrap();
        let said = text(&output).split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
        assert!(output.status.code() == Some(2) && said.contains("makes clients wait between operations"), "{said}");
    }
}
