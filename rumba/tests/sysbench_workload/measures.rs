//! Operations, counters and the logical size that a script declares, in an experiment.

use serde_json::Value;

use super::{TestDir, phase, text, trials, trials_in};

/// The script of the book's page.
fn shop() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/how-to/run-my-lua-script.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```lua,file=shop.lua\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

const ITEM_BYTES: f64 = 60.0;
const ORDER_BYTES: f64 = 12.0;

fn number(phase: &Value, metric: &str) -> f64 {
    phase[metric].as_f64().unwrap_or_else(|| panic!("{metric}: {}", phase[metric]))
}

/// Checks the measurements of a trial of the shop with 500 items.
fn measures_the_shop(place: &TestDir, trial: &Value) {
    assert_eq!(trial["status"], "done", "{}", trial["failure"]);
    let loops = phase(trial, "loops").unwrap();
    let ops = loops["op_types"].as_object().unwrap();
    assert_eq!(ops.keys().collect::<Vec<_>>(), ["browse", "checkout"], "every event has a name");
    let count = |op: &str| ops[op]["count"].as_f64().unwrap();
    assert!(count("browse") > count("checkout") && count("checkout") > 0.0, "{ops:?}");
    assert!(ops["browse"]["response"]["p50_ms"].as_f64().is_some(), "{}", ops["browse"]);
    let late = ops["checkout"]["ended_late"].as_f64().unwrap_or(0.0);
    let writes = ops["checkout"]["statements"]["writes"].as_f64().unwrap();
    assert!(writes >= 2.0 * (count("checkout") + late), "{}", ops["checkout"]);
    // 20 items are in a category, and clients may be inside an event at the ends of the loops.
    let rows = loops["counted"]["rows"].as_f64().unwrap();
    assert!((rows - 20.0 * count("browse")).abs() <= 20.0 * 4.0, "{rows} rows of {}", count("browse"));
    let charged = &trial["charged"];
    assert_eq!(number(charged, "rows_counted_per_op"), rows / loops["ops"].as_f64().unwrap());
    assert_eq!(number(charged, "rows_counted_per_s"), rows / number(loops, "seconds"));

    let load = phase(trial, "load").map(|load| number(load, "logical_bytes"));
    assert!(load.is_none_or(|bytes| bytes == 500.0 * ITEM_BYTES), "not what bulk_insert was given: {load:?}");
    let drain = phase(trial, "drain").unwrap();
    let orders = (number(drain, "logical_bytes") - 500.0 * ITEM_BYTES) / ORDER_BYTES;
    assert!(orders >= count("checkout") && orders == orders.round(), "{orders} orders");
    let space = number(drain, "data_bytes") / number(drain, "logical_bytes");
    assert_eq!(number(drain, "space_amp"), space);
    assert!(place.is_clean());
}

#[test]
fn script_of_the_book_measures_its_operations_rows_and_size() {
    let place = TestDir::new();
    std::fs::write(place.path("shop.lua"), shop()).unwrap();
    measures_the_shop(&place, &trials(&place, "sqlite", &["script=shop.lua", "items=500"])[0]);
    let tables = text(&place.rumba(&["report", "out"]).output().unwrap());
    for head in ["browse", "checkout", "The workload's own counters", "rows/t", "rows/s"] {
        assert!(tables.contains(head), "{head}: {tables}");
    }
    let intervals = std::fs::read_to_string(place.path("out/trials/001-sqlite-c2-r1/intervals.ndjson")).unwrap();
    assert!(intervals.contains(r#""counted":{"rows":"#), "{intervals}");
}

/// The size is handed over with the data, also when the clients of a process write nothing for a while.
#[test]
fn declared_size_of_kept_data_is_known_to_later_trials() {
    let place = TestDir::new();
    std::fs::write(place.path("shop.lua"), shop()).unwrap();
    let all = trials(&place, "sqlite", &["script=shop.lua", "items=500", "repeats=2", "repeats_from=kept"]);
    assert_eq!(all.len(), 3);
    all[1..].iter().for_each(|trial| measures_the_shop(&place, trial));
    // Updates alone change no size, and the script has declared its load.
    let trial = &trials_in(&place, "updates", &["script=shop.lua", "items=500", "checkout_percent=0"])[0];
    assert_eq!(number(phase(trial, "drain").unwrap(), "logical_bytes"), 500.0 * ITEM_BYTES);
}
