//! Plants a fault of each kind in consistent data, and checks that its condition finds it. For SQL the faults are
//! statements; for keys and values, whose rows are read in another way, they are puts and deletes.

#[path = "planted_customers.rs"]
mod customers;
#[path = "planted_entries.rs"]
mod entries;
#[path = "planted_stock.rs"]
pub mod stock;

use std::sync::atomic::AtomicBool;

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{Family, Schema, Session};
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{KvSession, Scan, SpaceId};
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

/// A fault, as statements and as puts and deletes, and the conditions that it violates.
struct Fault {
    sql: String,
    keys: fn(&mut Keys),
    broken: &'static [&'static str],
}

fn fault(sql: impl Into<String>, keys: fn(&mut Keys), broken: &'static [&'static str]) -> Fault {
    Fault { sql: sql.into(), keys, broken }
}

const WAREHOUSE: SpaceId = 0;
const DISTRICT: SpaceId = 1;
const CUSTOMER: SpaceId = 2;
const HISTORY: SpaceId = 3;
const NEW_ORDER: SpaceId = 4;
const ORDERS: SpaceId = 5;
const ORDER_LINE: SpaceId = 6;
const ITEM: SpaceId = 7;
/// Orders by customer, an index that the adapter writes itself.
const BY_CUSTOMER: SpaceId = 10;

/// The positions of numbers in the values of tables, without keys and texts.
const W_YTD: usize = 1;
const D_NEXT_O_ID: usize = 2;
const C_BALANCE: usize = 3;
const C_YTD_PAYMENT: usize = 4;
const H_D_ID: usize = 3;
const H_AMOUNT: usize = 6;
const O_C_ID: usize = 0;
const O_CARRIER_ID: usize = 2;
const O_OL_CNT: usize = 3;
const OL_DELIVERY_D: usize = 2;
const OL_AMOUNT: usize = 4;

/// NULL.
const NONE: i64 = i64::MIN;

/// The rows of a database of keys and values.
struct Keys(Box<dyn KvSession>);

fn key(parts: &[u32]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.to_be_bytes()).collect()
}

fn part(key: &[u8], place: usize) -> u32 {
    u32::from_be_bytes(key[4 * place..][..4].try_into().unwrap())
}

impl Keys {
    fn row(&mut self, space: SpaceId, key: &[u8]) -> Vec<u8> {
        let mut value = Vec::new();
        assert!(self.0.get(space, key, &mut value).unwrap(), "no row {key:?} in {space}");
        value
    }

    fn number(&mut self, space: SpaceId, key: &[u8], nth: usize) -> i64 {
        i64::from_le_bytes(self.row(space, key)[8 * nth..][..8].try_into().unwrap())
    }

    fn set(&mut self, space: SpaceId, key: &[u8], nth: usize, number: i64) {
        let mut value = self.row(space, key);
        value[8 * nth..][..8].copy_from_slice(&number.to_le_bytes());
        self.put(space, key, &value);
    }

    fn add(&mut self, space: SpaceId, key: &[u8], nth: usize, number: i64) {
        let before = self.number(space, key, nth);
        self.set(space, key, nth, before + number);
    }

    fn put(&mut self, space: SpaceId, key: &[u8], value: &[u8]) {
        self.0.put(space, key, value).unwrap();
    }

    fn delete(&mut self, space: SpaceId, key: &[u8]) {
        self.0.delete(space, key).unwrap();
    }

    /// The keys that begin with these numbers, in their order.
    fn of(&mut self, space: SpaceId, parts: &[u32]) -> Vec<Vec<u8>> {
        let (from, mut to) = (key(parts), key(parts));
        to.extend_from_slice(&[0xff; 20]);
        let mut keys = Vec::new();
        let scan = Scan { from: &from, to: &to, limit: usize::MAX };
        self.0.scan(space, scan, &mut |key, _| keys.push(key.to_vec())).unwrap();
        keys
    }

    /// The orders of a district in a table that has them as the last part of its keys.
    fn orders(&mut self, space: SpaceId, district: u32) -> Vec<u32> {
        self.of(space, &[1, district]).iter().map(|key| part(key, 2)).collect()
    }

    /// Removes the last order of a district; the stock stays taken.
    fn forget(&mut self, district: u32) {
        let last = *self.orders(ORDERS, district).last().unwrap();
        for line in self.of(ORDER_LINE, &[1, district, last]) {
            self.delete(ORDER_LINE, &line);
        }
        let customer = self.number(ORDERS, &key(&[1, district, last]), O_C_ID) as u32;
        self.delete(BY_CUSTOMER, &key(&[1, district, customer, !last]));
        self.delete(NEW_ORDER, &key(&[1, district, last]));
        self.delete(ORDERS, &key(&[1, district, last]));
        self.add(DISTRICT, &key(&[1, district]), D_NEXT_O_ID, -1);
    }

    /// Sets whether an order is delivered, in every row that has this fact.
    fn set_delivered(&mut self, district: u32, order: u32, is_delivered: bool) {
        let place = key(&[1, district, order]);
        let (carrier, time) = if is_delivered { (1, 1) } else { (NONE, NONE) };
        self.set(ORDERS, &place, O_CARRIER_ID, carrier);
        let mut amount = 0;
        for line in self.of(ORDER_LINE, &[1, district, order]) {
            self.set(ORDER_LINE, &line, OL_DELIVERY_D, time);
            amount += self.number(ORDER_LINE, &line, OL_AMOUNT);
        }
        let customer = self.number(ORDERS, &place, O_C_ID) as u32;
        let change = if is_delivered { amount } else { -amount };
        self.add(CUSTOMER, &key(&[1, district, customer]), C_BALANCE, change);
        match is_delivered {
            true => self.delete(NEW_ORDER, &place),
            false => self.put(NEW_ORDER, &place, &[0]),
        }
    }
}

impl Worked {
    fn keys(&self) -> Keys {
        let Session::Kv(session) = self.instance.session().unwrap() else { panic!("LMDB keeps keys and values") };
        Keys(session)
    }
}

/// The same over SQL, for the order that `which` selects from the new orders of a district. It may depend on the
/// waiting ones, which change last.
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
            |keys| keys.add(WAREHOUSE, &key(&[1]), W_YTD, 1),
            &["3.3.2.1", "3.3.2.8", "every payment that was acknowledged is there"],
        ),
        fault(
            "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 4",
            |keys| keys.add(DISTRICT, &key(&[1, 4]), D_NEXT_O_ID, 1),
            &["3.3.2.2"],
        ),
        fault(
            "DELETE FROM new_order WHERE no_d_id = 1 AND no_o_id = \
             (SELECT MAX(no_o_id) - 1 FROM new_order WHERE no_d_id = 1)",
            |keys| {
                let last = *keys.orders(NEW_ORDER, 1).last().unwrap();
                keys.delete(NEW_ORDER, &key(&[1, 1, last - 1]));
            },
            &["3.3.2.3", "3.3.2.5", "3.3.2.11"],
        ),
        // Two were delivered before their turn, with no other fault: the one before them waits again.
        fault(
            format!(
                "{}; {}",
                sql_set_delivered(7, "MIN(no_o_id) - 2", false),
                sql_set_delivered(7, "MIN(no_o_id) + 2", true)
            ),
            |keys| {
                let oldest = keys.orders(NEW_ORDER, 7)[0];
                keys.set_delivered(7, oldest - 2, false);
                keys.set_delivered(7, oldest, true);
            },
            &["3.3.2.3"],
        ),
        // An order was delivered in its turn, but not acknowledged.
        fault(
            sql_set_delivered(8, "MIN(no_o_id)", true),
            |keys| {
                let oldest = keys.orders(NEW_ORDER, 8)[0];
                keys.set_delivered(8, oldest, true);
            },
            &["3.3.2.11"],
        ),
        fault(
            "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 2 AND o_id = 3",
            |keys| keys.add(ORDERS, &key(&[1, 2, 3]), O_OL_CNT, 1),
            &["3.3.2.4", "3.3.2.6"],
        ),
        fault(
            "UPDATE orders SET o_carrier_id = 1 WHERE o_d_id = 3 AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_d_id = 3)",
            |keys| {
                let last = *keys.orders(ORDERS, 3).last().unwrap();
                keys.set(ORDERS, &key(&[1, 3, last]), O_CARRIER_ID, 1);
            },
            &["3.3.2.5", "3.3.2.7"],
        ),
        // Their sum is as it was.
        fault(
            "UPDATE orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 3 THEN 1 ELSE -1 END WHERE o_d_id = 2 AND o_id IN (3, 4)",
            |keys| {
                keys.add(ORDERS, &key(&[1, 2, 3]), O_OL_CNT, 1);
                keys.add(ORDERS, &key(&[1, 2, 4]), O_OL_CNT, -1);
            },
            &["3.3.2.6"],
        ),
        // An order that has no lines and says so, although the minimum is five.
        fault(
            "DELETE FROM order_line WHERE ol_d_id = 9 AND ol_o_id = 1; \
             UPDATE orders SET o_ol_cnt = 0 WHERE o_d_id = 9 AND o_id = 1",
            |keys| {
                for line in keys.of(ORDER_LINE, &[1, 9, 1]) {
                    keys.delete(ORDER_LINE, &line);
                }
                keys.set(ORDERS, &key(&[1, 9, 1]), O_OL_CNT, 0);
            },
            &["3.3.2.6"],
        ),
        fault(
            "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
            |keys| keys.set(ORDER_LINE, &key(&[1, 1, 1, 1]), OL_DELIVERY_D, NONE),
            &["3.3.2.7"],
        ),
        // A line of a missing order, which took nothing from stock.
        fault(
            "INSERT INTO order_line SELECT ol_w_id, ol_d_id, 999, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
             ol_quantity, ol_amount, ol_dist_info FROM order_line WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1",
            |keys| {
                let line = keys.row(ORDER_LINE, &key(&[1, 1, 1, 1]));
                keys.put(ORDER_LINE, &key(&[1, 1, 999, 1]), &line);
            },
            &["3.3.2.4", "3.3.2.6", "tpcc_stock"],
        ),
    ]
}

/// Faults of amounts, of the scale, and of acknowledged work.
fn of_the_rest() -> Vec<Fault> {
    vec![
        // The sums of both the district's and the warehouse's payments.
        fault(
            "UPDATE history SET h_amount = h_amount + 1 WHERE rowid = 1",
            |keys| {
                let first = keys.of(HISTORY, &[1]).remove(0);
                keys.add(HISTORY, &first, H_AMOUNT, 1);
            },
            &["3.3.2.8", "3.3.2.9", "3.3.2.10"],
        ),
        fault(
            "UPDATE history SET h_d_id = h_d_id % 10 + 1 WHERE rowid = 1",
            |keys| {
                let first = keys.of(HISTORY, &[1]).remove(0);
                let district = keys.number(HISTORY, &first, H_D_ID);
                keys.set(HISTORY, &first, H_D_ID, district % 10 + 1);
            },
            &["3.3.2.9"],
        ),
        fault(
            "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_d_id = 1 AND c_id = 1",
            |keys| {
                keys.add(CUSTOMER, &key(&[1, 1, 1]), C_BALANCE, 1);
                keys.add(CUSTOMER, &key(&[1, 1, 1]), C_YTD_PAYMENT, -1);
            },
            &["3.3.2.10"],
        ),
        // An order by a missing customer, without an amount that would show it.
        fault(
            "UPDATE orders SET o_c_id = 9999 WHERE o_d_id = 8 AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_d_id = 8)",
            |keys| {
                let last = *keys.orders(ORDERS, 8).last().unwrap();
                keys.set(ORDERS, &key(&[1, 8, last]), O_C_ID, 9999);
            },
            &["3.3.2.10"],
        ),
        fault(
            "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 1 AND c_id = 1",
            |keys| keys.add(CUSTOMER, &key(&[1, 1, 1]), C_YTD_PAYMENT, 1),
            &["3.3.2.12"],
        ),
        // A complete order whose end was lost, as if it had never existed.
        fault(
            format!("{}; {}", stock::sql_put_back(6), sql_forget(6)),
            |keys| {
                keys.put_back(6);
                keys.forget(6);
            },
            &["every new order that was acknowledged is there"],
        ),
        fault(
            "DELETE FROM item WHERE i_id = 17",
            |keys| keys.delete(ITEM, &key(&[17])),
            &["tables have the rows of the scale"],
        ),
    ]
}

/// All faults. Each condition is violated by one; 3.3.2.3 and 11 by one that violates no other.
fn faults() -> Vec<Fault> {
    let faults: Vec<Fault> = of_orders().into_iter().chain(of_the_rest()).chain(stock::of_stock()).collect();
    for clause in (1..=12).map(|number| format!("3.3.2.{number}")).chain(["tpcc_stock".to_owned()]) {
        assert!(faults.iter().any(|fault| fault.broken.contains(&clause.as_str())), "{clause}");
    }
    faults
}

#[test]
fn a_fault_of_each_kind_is_found_by_its_condition() {
    for Fault { sql, broken, .. } in faults() {
        let worked = Worked::new(&Sqlite, "plain");
        worked.run(&sql);
        assert_eq!(worked.broken(), broken, "{sql}");
    }
}

#[test]
fn each_planted_fault_breaks_its_key_value_condition() {
    for Fault { sql, keys, broken } in faults() {
        let worked = Worked::new(&Lmdb, "plain");
        let mut rows = worked.keys();
        rows.0.begin().unwrap();
        keys(&mut rows);
        rows.0.commit().unwrap();
        drop(rows);
        assert_eq!(worked.broken(), broken, "what `{sql}` does to rows");
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
    let worked = Worked::loaded(&Lmdb, "plain", 1);
    let mut rows = worked.keys();
    rows.0.begin().unwrap();
    for (district, before, is_delivered) in [(7, 0, true), (8, 1, false)] {
        let oldest = rows.orders(NEW_ORDER, district)[0];
        rows.set_delivered(district, oldest - before, is_delivered);
    }
    rows.0.commit().unwrap();
    drop(rows);
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
