//! Plants a fault of each kind in consistent data, and checks that its condition finds it. Each family of engines reads
//! its rows in its own way, and the conditions are checked on the rows of all alike, so SQLite stands for all of them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::Session;
use rumba_engine_api::kv::{Scan, SpaceId};
use rumba_engine_api::workload::State;
use rumba_engine_lmdb::Lmdb;
use rumba_engine_sqlite::Sqlite;
use rumba_lab::trial::{Act, Job};
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, RunPlan, TrialPart, TrialPlan};
use rumba_results::samples;
use rumba_workload_tpcc::TpcC;

use super::{Worked, config, settings};

/// A fault as statements, and the conditions that it violates.
type Fault = (String, &'static [&'static str]);

fn fault(sql: impl Into<String>, broken: &'static [&'static str]) -> Fault {
    (sql.into(), broken)
}

/// Sets whether an order is delivered, in every row that has this fact. `which` selects the order from the new orders
/// of a district. It may depend on the waiting ones, which change last.
fn sql_set_delivered(district: u32, which: &str, is_delivered: bool) -> String {
    let (carrier, time, sign) = if is_delivered { ("1", "'2030-01-01'", '+') } else { ("NULL", "NULL", '-') };
    let order = format!("(SELECT {which} FROM new_order WHERE no_d_id = {district})");
    let lines = format!("ol_d_id = {district} AND ol_o_id = {order}");
    let waits = match is_delivered {
        true => format!("DELETE FROM new_order WHERE no_d_id = {district} AND no_o_id = {order}"),
        false => {
            format!("INSERT INTO new_order SELECT 1, {district}, {which} FROM new_order WHERE no_d_id = {district}")
        }
    };
    format!(
        "UPDATE orders SET o_carrier_id = {carrier} WHERE o_d_id = {district} AND o_id = {order}; \
         UPDATE order_line SET ol_delivery_d = {time} WHERE {lines}; \
         UPDATE customer SET c_balance = c_balance {sign} (SELECT SUM(ol_amount) FROM order_line WHERE {lines}) \
         WHERE c_d_id = {district} AND c_id = (SELECT o_c_id FROM orders WHERE o_d_id = {district} AND o_id = {order}); \
         {waits}"
    )
}

/// Removes the last order of a district; the stock stays taken.
fn sql_forget(district: u32) -> String {
    let last = format!("(SELECT MAX(o_id) FROM orders WHERE o_d_id = {district})");
    format!(
        "DELETE FROM order_line WHERE ol_d_id = {district} AND ol_o_id = {last}; \
         DELETE FROM new_order WHERE no_d_id = {district} AND no_o_id = {last}; \
         DELETE FROM orders WHERE o_d_id = {district} AND o_id = {last}; \
         UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = {district}"
    )
}

/// Faults in the rows of warehouses, districts and orders.
fn of_orders() -> Vec<Fault> {
    vec![
        fault(
            "UPDATE warehouse SET w_ytd = w_ytd + 1",
            &["3.3.2.1", "3.3.2.8", "every payment that was acknowledged is there"],
        ),
        fault("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 4", &["3.3.2.2"]),
        fault(
            "DELETE FROM new_order WHERE no_d_id = 1 AND no_o_id = \
             (SELECT MAX(no_o_id) - 1 FROM new_order WHERE no_d_id = 1)",
            &["3.3.2.3", "3.3.2.5", "3.3.2.11"],
        ),
        // Two were delivered before their turn, with no other fault: the one before them waits again.
        fault(
            format!(
                "{}; {}",
                sql_set_delivered(7, "MIN(no_o_id) - 2", false),
                sql_set_delivered(7, "MIN(no_o_id) + 2", true)
            ),
            &["3.3.2.3"],
        ),
        // An order was delivered in its turn, but not acknowledged.
        fault(sql_set_delivered(8, "MIN(no_o_id)", true), &["3.3.2.11"]),
        fault("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 2 AND o_id = 3", &["3.3.2.4", "3.3.2.6"]),
        fault(
            "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 3 AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_d_id = 3)",
            &["3.3.2.5", "3.3.2.7"],
        ),
        // Their sum is as it was.
        fault(
            "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 3 THEN 1 ELSE -1 END WHERE o_d_id = 2 AND o_id IN (3, 4)",
            &["3.3.2.6"],
        ),
        // An order that has no lines and says so, although the minimum is five.
        fault(
            "DELETE FROM order_line WHERE ol_d_id = 9 AND ol_o_id = 1; \
             UPDATE orders SET o_ol_cnt = 0 WHERE o_d_id = 9 AND o_id = 1",
            &["3.3.2.6"],
        ),
        fault(
            "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
            &["3.3.2.7"],
        ),
        // A line of a missing order, which took nothing from stock.
        fault(
            "INSERT INTO order_line SELECT ol_w_id, ol_d_id, 999, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
             ol_quantity, ol_amount, ol_dist_info FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
            &["3.3.2.4", "3.3.2.6", "tpcc_stock"],
        ),
    ]
}

/// Faults of amounts, of the scale, and of acknowledged work.
fn of_the_rest() -> Vec<Fault> {
    vec![
        // The sums of both the district's and the warehouse's payments.
        fault("UPDATE history SET h_amount = h_amount + 1 WHERE rowid = 1", &["3.3.2.8", "3.3.2.9", "3.3.2.10"]),
        fault("UPDATE history SET h_d_id = h_d_id % 10 + 1 WHERE rowid = 1", &["3.3.2.9"]),
        fault(
            "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 1 AND c_id = 1",
            &["3.3.2.10"],
        ),
        // An order by a missing customer, without an amount that would show it.
        fault(
            "UPDATE orders SET o_c_id = 9999 WHERE o_d_id = 8 AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_d_id = 8)",
            &["3.3.2.10"],
        ),
        fault("UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 1 AND c_id = 1", &["3.3.2.12"]),
        // A complete order whose end was lost, as if it had never existed.
        fault(format!("{}; {}", sql_put_back(6), sql_forget(6)), &["every new order that was acknowledged is there"]),
        fault("DELETE FROM item WHERE i_id = 17", &["tables have the rows of the scale"]),
    ]
}

/// The stock row of the first line of a district's first new order: for twenty customers, twenty orders were loaded.
const ORDERED: &str = "s_i_id = (SELECT ol_i_id FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 21 AND ol_number = 1)";

/// Puts the items of a district's last order back into stock.
fn sql_put_back(district: u32) -> String {
    let last = format!("(SELECT MAX(o_id) FROM orders WHERE o_d_id = {district})");
    let lines = format!("FROM order_line WHERE ol_d_id = {district} AND ol_o_id = {last} AND ol_i_id = s_i_id");
    format!(
        "UPDATE stock SET s_ytd = s_ytd - (SELECT COALESCE(SUM(ol_quantity), 0) {lines}), \
         s_order_cnt = s_order_cnt - (SELECT COUNT(*) {lines})"
    )
}

/// Faults in stock rows with orders, each number separately.
fn of_stock() -> Vec<Fault> {
    let add = |column: &str, number: i64| format!("UPDATE stock SET {column} = {column} + {number} WHERE {ORDERED}");
    vec![
        fault(add("s_ytd", -1), &["tpcc_stock"]),
        fault(add("s_order_cnt", -1), &["tpcc_stock"]),
        // There is no other warehouse.
        fault(add("s_remote_cnt", 1), &["tpcc_stock"]),
        // A quantity below ten is refilled by 91: here it was not.
        fault(add("s_quantity", -91), &["tpcc_stock"]),
        fault(format!("DELETE FROM stock WHERE {ORDERED}"), &["tables have the rows of the scale", "tpcc_stock"]),
        // An order whose end was lost, except for the stock it took.
        fault(sql_forget(6), &["every new order that was acknowledged is there", "tpcc_stock"]),
    ]
}

/// Each condition is violated by one fault; 3.3.2.3 and 11 by one that violates no other.
#[test]
fn a_fault_of_each_kind_is_found_by_its_condition() {
    let faults: Vec<Fault> = of_orders().into_iter().chain(of_the_rest()).chain(of_stock()).collect();
    for clause in (1..=12).map(|number| format!("3.3.2.{number}")).chain(["tpcc_stock".to_owned()]) {
        assert!(faults.iter().any(|(_, broken)| broken.contains(&clause.as_str())), "{clause}");
    }
    for (sql, broken) in faults {
        let worked = Worked::new(&Sqlite, "plain");
        worked.run(&sql);
        assert_eq!(worked.broken(), broken, "{sql}");
    }
}

/// Faults of customers: their number matches the scale, but one has a number beyond it, so that orders and payments
/// have no customer. Guards against a missed fault: a new customer without orders and payments once hid the missing one.
#[test]
fn missing_customer_is_found_by_orders_and_payments() {
    for (is_new, wrong) in [(false, 2), (true, 1)] {
        let worked = Worked::loaded(&Sqlite, "plain", 1);
        worked.run("UPDATE customer SET c_id = 5000 WHERE c_d_id = 1 AND c_id = 1");
        if is_new {
            worked.run("UPDATE customer SET c_balance = 0, c_ytd_payment = 0 WHERE c_id = 5000");
        }
        let broken: Vec<Check> = worked.checks().into_iter().filter(|check| check.wrong > 0).collect();
        assert!(matches!(&broken[..], [one] if one.name.starts_with("3.3.2.10:") && one.wrong == wrong), "{broken:?}");
    }
}

const ORDER_LINE: SpaceId = 6;
/// Customers by name, an index that the key-value adapter maintains itself, for payments.
const BY_NAME: SpaceId = 9;
/// Orders by customer, another such index, for order statuses.
const BY_CUSTOMER: SpaceId = 10;

/// In keys and values: a lost row, and an entry of an index that is lost or left.
#[test]
fn lost_rows_and_entries_of_keys_are_found() {
    let (scale, orders) = ("tables have the rows of the scale", "every new order that was acknowledged is there");
    for (space, is_lost, broken) in [
        (ORDER_LINE, true, &["3.3.2.4", "3.3.2.6"][..]),
        (BY_NAME, true, &[scale]),
        (BY_NAME, false, &[scale]),
        (BY_CUSTOMER, true, &[orders]),
        (BY_CUSTOMER, false, &[orders]),
    ] {
        let worked = Worked::new(&Lmdb, "plain");
        let Session::Kv(mut rows) = worked.instance.session().unwrap() else { panic!("LMDB keeps keys and values") };
        rows.begin().unwrap();
        let mut first = Vec::new();
        let scan = Scan { from: &[], to: &[0xff; 40], limit: 1 };
        rows.scan(space, scan, &mut |key, _| first = key.to_vec()).unwrap();
        if is_lost {
            rows.delete(space, &first).unwrap();
        } else {
            // An entry for a missing order or customer.
            *first.last_mut().unwrap() ^= 0x80;
            rows.put(space, &first, &[0]).unwrap();
        }
        rows.commit().unwrap();
        drop(rows);
        assert_eq!(worked.broken(), broken, "space {space}, lost {is_lost}");
    }
}

/// The result of a loader that miscounts: one district has an extra order that does not wait, another has one less, and
/// the rest is correct. The total is correct.
#[test]
fn order_surplus_and_shortage_in_two_districts_are_found() {
    const BROKEN: [&str; 1] = ["3.3.2.11"];
    let worked = Worked::loaded(&Sqlite, "plain", 1);
    let [more, less] = [(7, "MIN(no_o_id)", true), (8, "MIN(no_o_id) - 1", false)];
    for (district, which, is_delivered) in [more, less] {
        worked.run(&sql_set_delivered(district, which, is_delivered));
    }
    assert_eq!(worked.broken(), BROKEN);
}

/// Runs a trial in this directory; `state` is what the workload knows of the data. Returns its events.
fn trial(dir: &Path, part: TrialPart, state: Option<&State>) -> Vec<Event> {
    let data_dir = dir.join("data");
    std::fs::create_dir_all(&data_dir).unwrap();
    let plan = TrialPlan {
        engine: config("sqlite"),
        workload: "tpcc".to_owned(),
        workload_settings: settings(&[("warehouses", 1), ("customers", 20), ("items", 200)]),
        part,
        run: RunPlan { stall_s: 0.0, ..samples::run_plan() },
        ..samples::trial_plan()
    };
    let mut events = Vec::new();
    rumba_lab::trial::run(Job {
        plan: &plan,
        engine: &Sqlite,
        workload: &TpcC,
        data_dir: &data_dir,
        limits: &[],
        delayer: None,
        state,
        act: Act::Measure,
        journal: &dir.join("journal"),
        epoch: std::time::Instant::now(),
        door: None,
        program: "",
        stop: &AtomicBool::new(false),
        emit: &mut |event| events.push(event),
    });
    events
}

fn assert_failed_in(proof: PhaseKind, events: &[Event]) {
    let Some(Event::Failed { phase, cause }) = events.last() else { panic!("{:?}", events.last()) };
    assert!(*phase == proof && cause.contains("3.3.2.11"), "{phase}, {cause}");
}

fn is_handed_over(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Loaded { .. }))
}

/// The data lacks the rows of these clients, so verification fails after the load and after a run.
#[test]
fn wrong_data_fails_its_trial_after_the_load_and_after_the_run() {
    let lost = Worked::new(&Sqlite, "plain").bound.state();
    for part in [TrialPart::Whole, TrialPart::Load] {
        let dir = tempfile::tempdir().unwrap();
        let events = trial(dir.path(), part, Some(&lost));
        assert_failed_in(PhaseKind::VerifyLoad, &events);
        assert!(!is_handed_over(&events), "{part:?}: nothing starts from it");
    }
    let dir = tempfile::tempdir().unwrap();
    assert!(is_handed_over(&trial(dir.path(), TrialPart::Load, None)));
    assert_failed_in(PhaseKind::Verify, &trial(dir.path(), TrialPart::Run, Some(&lost)));
}
