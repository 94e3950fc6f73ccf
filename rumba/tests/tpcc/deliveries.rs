//! Deliveries over PostgreSQL, which look once for the oldest order of a district. A delivery that waits for an order
//! taken by another one gets the next order.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rumba_engine_api::engine::Session;
use rumba_engine_api::setting::Value;
use rumba_engine_api::worker::{Op, OpKind, Pace, StatementCounts, block_on};
use rumba_engine_api::workload::{Bound, Workload};
use rumba_workload_tpcc::TpcC;

use super::{ALONE, KINDS, Worked, on_server, registered, settings};

/// A pace that ends after one delivery: it records the delivered orders and the statements.
#[derive(Default)]
struct OneDelivery {
    delivered: Option<u64>,
    statements: StatementCounts,
}

fn is_delivery(kind: OpKind) -> bool {
    KINDS.get(kind) == Some(&"delivery")
}

impl Pace for OneDelivery {
    fn poll_turn(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        Poll::Ready(self.delivered.is_none())
    }

    fn start(&mut self, _: OpKind) {}

    fn statements(&mut self, kind: OpKind, statements: StatementCounts) {
        if is_delivery(kind) {
            self.statements = statements;
        }
    }

    fn done(&mut self, kind: OpKind, op: Op) -> u64 {
        assert!(!op.failed && op.retries == 0, "{op:?}");
        if is_delivery(kind) {
            self.delivered = Some(op.rows);
        }
        0
    }
}

/// Lets a new client work until it has delivered once.
fn deliver(worked: &Worked, bound: &dyn Bound) -> OneDelivery {
    let mut pace = OneDelivery::default();
    let mut client = bound.client(worked.instance.session().unwrap(), ALONE, 1).unwrap();
    block_on(client.run(&mut pace)).unwrap();
    pace
}

/// The integer that a statement returns.
fn number(worked: &Worked, sql: &str) -> i64 {
    let Session::Sql(mut session) = worked.instance.session().unwrap() else { panic!("it speaks SQL") };
    let statement = session.prepare(sql).unwrap();
    let mut found = None;
    block_on(session.execute(statement, &[], &mut |row| found = Some(row.int(0)))).unwrap();
    found.unwrap()
}

/// The oldest waiting order of the first district.
fn oldest(worked: &Worked) -> i64 {
    number(worked, "SELECT MIN(no_o_id) FROM new_order WHERE no_w_id = 1 AND no_d_id = 1")
}

/// Waits until a session waits for a row.
fn await_meeting(worked: &Worked) {
    let since = Instant::now();
    while number(worked, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == 0 {
        assert!(since.elapsed() < Duration::from_secs(30), "no delivery has come to the order");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Guards against skipped districts, which would occur if PostgreSQL did not look for another order.
fn waits_and_is_handed_the_next(worked: &Worked, bound: &dyn Bound) {
    let taken = oldest(worked);
    std::thread::scope(|scope| {
        // Dropped before the delivery is awaited, for any outcome of the test.
        let Session::Sql(mut other) = worked.instance.session().unwrap() else { panic!("it speaks SQL") };
        other.run("BEGIN").unwrap();
        other.run(&format!("DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = {taken}")).unwrap();
        let delivery = scope.spawn(|| deliver(worked, bound).delivered);
        await_meeting(worked);
        other.run("COMMIT").unwrap();
        assert_eq!(delivery.join().unwrap(), Some(10), "one in each district");
    });
    assert_eq!(oldest(worked), taken + 2, "one was taken, and the next delivered");
}

#[test]
#[needs(Server("postgresql@15"))]
fn delivery_takes_the_next_order_after_a_deleted_one() {
    let worked = Worked::loaded_as(&*registered("postgresql"), &on_server("postgresql", "postgresql@15"), "plain", 1);
    let bound = |statements: &str| {
        let mut requested = settings(&[("warehouses", 1), ("customers", 20), ("items", 200)]);
        requested.0.insert("statements".to_owned(), Value::Text(statements.to_owned()));
        TpcC.bind(&requested).unwrap()
    };
    // The maximum number of statements that read customers and amounts of the found orders: one for each, or one for
    // all.
    let styles = [("plain", 10), ("grouped", 1)];
    for (statements, _) in styles {
        waits_and_is_handed_the_next(&worked, &*bound(statements));
    }
    for (statements, most) in styles {
        worked.run("DELETE FROM new_order");
        let OneDelivery { delivered, statements: took } = deliver(&worked, &*bound(statements));
        let found = delivered.unwrap();
        assert!(found < 10, "{statements}: only what was ordered before it in the same deck");
        assert_eq!(u64::from(took.reads), 10 + 2 * found.min(most), "{statements}: {found} in ten districts");
    }
}
