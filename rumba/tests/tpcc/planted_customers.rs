//! Faults of customers: their number matches the scale, but one of them has another number, so that orders and payments
//! have no customer.

use rumba_engine_lmdb::Lmdb;
use rumba_engine_sqlite::Sqlite;

use super::{C_BALANCE, C_YTD_PAYMENT, CUSTOMER, Worked, key};

/// The failed clauses, with the number of violations.
fn broken(worked: &Worked) -> Vec<String> {
    let broken = worked.checks().into_iter().filter(|check| check.wrong > 0);
    broken.map(|check| format!("{} of {}", check.wrong, check.name.split(':').next().unwrap())).collect()
}

/// The violations over SQL and over keys and values, after the first customer of a district got a number beyond the
/// scale. The customer keeps its payments and debts, or is new.
fn broken_by_another_number(is_new: bool) -> [Vec<String>; 2] {
    let sql = Worked::loaded(&Sqlite, "plain", 1);
    sql.run("UPDATE customer SET c_id = 5000 WHERE c_d_id = 1 AND c_id = 1");
    if is_new {
        sql.run("UPDATE customer SET c_balance = 0, c_ytd_payment = 0 WHERE c_id = 5000");
    }
    let keys = Worked::loaded(&Lmdb, "plain", 1);
    let mut rows = keys.keys();
    rows.0.begin().unwrap();
    let row = rows.row(CUSTOMER, &key(&[1, 1, 1]));
    rows.delete(CUSTOMER, &key(&[1, 1, 1]));
    rows.put(CUSTOMER, &key(&[1, 1, 5000]), &row);
    if is_new {
        [C_BALANCE, C_YTD_PAYMENT].into_iter().for_each(|nth| rows.set(CUSTOMER, &key(&[1, 1, 5000]), nth, 0));
    }
    rows.0.commit().unwrap();
    drop(rows);
    [broken(&sql), broken(&keys)]
}

/// The other is the one that is missed.
#[test]
fn extra_customer_without_orders_or_payments_is_found() {
    assert_eq!(broken_by_another_number(false), [["2 of 3.3.2.10"]; 2]);
}

/// Guards against a missed fault: the number of customers was right, and no customer's row was wrong, so it was not
/// found.
#[test]
fn missing_customer_is_found_by_orders_and_payments() {
    assert_eq!(broken_by_another_number(true), [["1 of 3.3.2.10"]; 2]);
}
