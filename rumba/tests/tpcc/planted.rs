//! Plants a fault of each kind in consistent data, and checks that its condition finds it. Each family of engines reads
//! its rows in its own way, and the conditions are checked on the rows of all alike, so SQLite stands for all of them.

use std::sync::atomic::AtomicBool;

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{Family, Schema, Session};
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{Scan, SpaceId};
use rumba_engine_api::setting::{SettingError, SettingInfo, Settings};
use rumba_engine_api::worker::{Client, ClientAddress};
use rumba_engine_api::workload::{Bound, LoadStage, Ops, State, Workload};
use rumba_engine_lmdb::Lmdb;
use rumba_engine_sqlite::Sqlite;
use rumba_lab::trial::{Act, Job};
use rumba_results::event::Event;
use rumba_results::record::{PhaseKind, RunPlan, TrialPart, TrialPlan};
use rumba_results::samples;
use rumba_workload_tpcc::TpcC;

use super::{CHECKS, Worked, config, settings};

/// A fault as statements, and the conditions that it violates.
type Fault = (String, &'static [&'static str]);

fn fault(sql: impl Into<String>, broken: &'static [&'static str]) -> Fault {
    (sql.into(), broken)
}

/// Sets whether an order is delivered, in every row that has this fact. `which` selects the order from the new orders of
/// a district. It may depend on the waiting ones, which change last.
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

/// Faults of customers: their number matches the scale, but one has a number beyond it, so that orders and payments have
/// no customer. Guards against a missed fault: a new customer without orders and payments once hid the missing one.
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

/// A TPC-C in which some orders claim one line more than they have.
#[derive(Clone, Copy)]
enum Faulty {
    /// One of the load.
    Load,
    /// All orders that clients enter: in a district, those after the twenty loaded ones.
    Run,
}

impl Faulty {
    /// Whether a new row of orders gets the fault, in SQL.
    fn condition(self) -> &'static str {
        match self {
            Self::Load => "NEW.o_d_id = 2 AND NEW.o_id = 3",
            Self::Run => "NEW.o_id > 20",
        }
    }
}

struct FaultyBound(Box<dyn Bound>, Faulty);

impl Workload for Faulty {
    fn name(&self) -> &'static str {
        "tpcc"
    }
    fn about(&self) -> &'static str {
        TpcC.about()
    }
    fn settings(&self) -> &'static [SettingInfo] {
        TpcC.settings()
    }
    fn families(&self) -> &'static [Family] {
        TpcC.families()
    }
    fn bind(&self, settings: &Settings) -> Result<Box<dyn Bound>, SettingError> {
        Ok(Box::new(FaultyBound(TpcC.bind(settings)?, *self)))
    }
}

impl Bound for FaultyBound {
    fn schema(&self, family: Family) -> Schema<'_> {
        self.0.schema(family)
    }
    fn ops(&self) -> Ops {
        self.0.ops()
    }
    fn load_stages(&self) -> Vec<LoadStage> {
        self.0.load_stages()
    }
    fn expected_rows(&self) -> u64 {
        self.0.expected_rows()
    }
    fn expected_logical_bytes(&self) -> u64 {
        self.0.expected_logical_bytes()
    }
    fn conditions(&self) -> Vec<(String, String)> {
        self.0.conditions()
    }
    fn create_schema(&self, session: &mut Session) -> Result<()> {
        self.0.create_schema(session)?;
        let Session::Sql(session) = session else { panic!("SQLite speaks SQL") };
        session.run(&format!(
            "CREATE TRIGGER fault AFTER INSERT ON orders WHEN {} BEGIN UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 \
             WHERE o_w_id = NEW.o_w_id AND o_d_id = NEW.o_d_id AND o_id = NEW.o_id; END",
            self.1.condition()
        ))
    }
    fn loader(&self, stage: usize, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        self.0.loader(stage, session, at, seed)
    }
    fn logical_bytes(&self) -> u64 {
        self.0.logical_bytes()
    }
    fn state(&self) -> State {
        self.0.state()
    }
    fn restore(&self, state: &State) -> Result<()> {
        self.0.restore(state)
    }
    fn client(&self, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        match self.1 {
            Faulty::Load => panic!("no client works on a wrong load"),
            Faulty::Run => self.0.client(session, at, seed),
        }
    }
    fn verify(&self, session: Session) -> Result<Vec<Check>> {
        self.0.verify(session)
    }
    fn verifies_load(&self) -> bool {
        self.0.verifies_load()
    }
}

fn reported(faulty: Faulty, part: TrialPart) -> Vec<Event> {
    let dir = tempfile::tempdir().unwrap();
    let data_dir = dir.path().join("data");
    std::fs::create_dir(&data_dir).unwrap();
    let small = [("warehouses", 1), ("customers", 20), ("items", 200)];
    let plan = TrialPlan {
        engine: config("sqlite"),
        workload: "tpcc".to_owned(),
        workload_settings: settings(&small),
        part,
        run: RunPlan { stall_s: 0.0, ..samples::run_plan() },
        ..samples::trial_plan()
    };
    let mut events = Vec::new();
    rumba_lab::trial::run(Job {
        plan: &plan,
        engine: &Sqlite,
        workload: &faulty,
        data_dir: &data_dir,
        limits: &[],
        delayer: None,
        state: None,
        act: Act::Measure,
        journal: &dir.path().join("journal"),
        epoch: std::time::Instant::now(),
        door: None,
        program: "",
        stop: &AtomicBool::new(false),
        emit: &mut |event| events.push(event),
    });
    events
}

/// The conditions that verification found violated.
fn found(events: &[Event], proof: PhaseKind) -> Vec<&str> {
    let proven = events.iter().find_map(|event| match event {
        Event::PhaseEnded(record) if record.phase == proof => Some(record),
        _ => None,
    });
    let checks = &proven.unwrap_or_else(|| panic!("{proof}: {events:?}")).checks;
    assert_eq!(checks.len(), CHECKS, "{proof}: {checks:?}");
    checks.iter().filter(|check| check.wrong > 0).map(|check| &check.name[..7]).collect()
}

#[test]
fn a_load_that_is_wrong_is_found_before_anybody_works_on_it() {
    for part in [TrialPart::Whole, TrialPart::Load] {
        let events = reported(Faulty::Load, part);
        assert_eq!(found(&events, PhaseKind::VerifyLoad), ["3.3.2.4", "3.3.2.6"], "{part:?}");
        let Some(Event::Failed { phase, cause }) = events.last() else { panic!("{part:?}: {:?}", events.last()) };
        assert!(*phase == PhaseKind::VerifyLoad && cause.contains("3.3.2.4"), "{part:?}: {phase}, {cause}");
        assert!(!events.iter().any(|event| matches!(event, Event::Loaded { .. })), "{part:?}: nothing starts from it");
    }
}

/// The load is correct, but the clients' later writes are not, so no figure of the trial may count.
#[test]
fn what_goes_wrong_in_the_run_fails_the_trial_after_it() {
    let events = reported(Faulty::Run, TrialPart::Whole);
    assert_eq!(found(&events, PhaseKind::VerifyLoad), [""; 0]);
    assert_eq!(found(&events, PhaseKind::Verify), ["3.3.2.4", "3.3.2.6"]);
    let Some(Event::Failed { phase, cause }) = events.last() else { panic!("{:?}", events.last()) };
    assert!(*phase == PhaseKind::Verify && cause.contains("3.3.2.4"), "{phase}, {cause}");
}
