//! A fault of each kind is found on servers too. Decimals, NULL and the range of numbers are each server's own.

use super::planted::stock::sql_add;
use super::{ALONE, Turns, Worked, block_on, on_server, registered};

/// A fault in the loaded data, the statement that undoes it, and the conditions that it violates. A district has the
/// orders 1 to 20, of which 15 to 20 wait.
struct Fault<'a> {
    plant: &'a str,
    undo: &'a str,
    broken: &'static [&'static str],
}

const FAULTS: [Fault<'static>; 7] = [
    Fault {
        plant: "UPDATE warehouse SET w_ytd = w_ytd + 1",
        undo: "UPDATE warehouse SET w_ytd = w_ytd - 1",
        broken: &["3.3.2.1", "3.3.2.8", "every payment that was acknowledged is there"],
    },
    Fault {
        plant: "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 4",
        undo: "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 4",
        broken: &["3.3.2.2"],
    },
    Fault {
        plant: "DELETE FROM new_order WHERE no_d_id = 1 AND no_o_id = 16",
        undo: "INSERT INTO new_order VALUES (1, 1, 16)",
        broken: &["3.3.2.3", "3.3.2.5", "3.3.2.11"],
    },
    Fault {
        plant: "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 2 AND o_id = 3",
        undo: "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 2 AND o_id = 3",
        broken: &["3.3.2.4", "3.3.2.6"],
    },
    // A waiting order has an amount, and is not paid before it is delivered.
    Fault {
        plant: "UPDATE order_line SET ol_delivery_d = '2030-01-01' WHERE ol_d_id = 1 AND ol_o_id = 20 AND ol_number = 1",
        undo: "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 1 AND ol_o_id = 20 AND ol_number = 1",
        broken: &["3.3.2.7", "3.3.2.10", "3.3.2.12"],
    },
    Fault {
        plant: "UPDATE history SET h_amount = h_amount + 1 WHERE h_c_d_id = 1 AND h_c_id = 1",
        undo: "UPDATE history SET h_amount = h_amount - 1 WHERE h_c_d_id = 1 AND h_c_id = 1",
        broken: &["3.3.2.8", "3.3.2.9", "3.3.2.10"],
    },
    // No order has been entered yet.
    Fault {
        plant: "UPDATE stock SET s_ytd = s_ytd + 1 WHERE s_i_id = 17",
        undo: "UPDATE stock SET s_ytd = s_ytd - 1 WHERE s_i_id = 17",
        broken: &["tpcc_stock"],
    },
];

fn found_over(engine: &str, server: &str) {
    for clause in (1..=12).map(|number| format!("3.3.2.{number}")).chain(["tpcc_stock".to_owned()]) {
        assert!(FAULTS.iter().any(|fault| fault.broken.contains(&clause.as_str())), "{clause}");
    }
    let worked = Worked::loaded_as(&*registered(engine), &on_server(engine, server), "plain", 1);
    assert_eq!(worked.broken(), [""; 0], "as it was loaded");
    each_found(&worked, &FAULTS, server);
    let worked = worked.worked_on(1);
    assert_eq!(worked.broken(), [""; 0], "as a client has left it");
    for column in ["s_order_cnt", "s_ytd"] {
        let [plant, undo] = [-1, 1].map(|number| sql_add(column, number));
        each_found(&worked, &[Fault { plant: &plant, undo: &undo, broken: &["tpcc_stock"] }], server);
    }
    decimal_overflow_is_reported(&worked, server);
}

/// One warehouse without think times takes in ten thousand million within hours. The server's message alone names no
/// remedy.
fn decimal_overflow_is_reported(worked: &Worked, server: &str) {
    worked.run("UPDATE warehouse SET w_ytd = 9999999999.99");
    let mut client = worked.bound.client(worked.instance.session().unwrap(), ALONE, 2).unwrap();
    let reported = block_on(client.run(&mut Turns::of(400))).unwrap_err().to_string();
    for part in ["22003", "DECIMAL(12,2)", "set more warehouses, or run for less time"] {
        assert!(reported.contains(part), "{server}: {part}: {reported}");
    }
}

fn each_found(worked: &Worked, faults: &[Fault<'_>], server: &str) {
    for Fault { plant, undo, broken } in faults {
        worked.run(plant);
        assert_eq!(worked.broken(), *broken, "{server}: {plant}");
        worked.run(undo);
        assert_eq!(worked.broken(), [""; 0], "{server}: {undo}");
    }
}

#[test]
#[needs(Server("mariadb@10.11"))]
fn a_fault_of_each_kind_is_found_over_innodb() {
    found_over("innodb", "mariadb@10.11");
}

#[test]
#[needs(Server("postgresql@15"))]
fn a_fault_of_each_kind_is_found_over_postgresql() {
    found_over("postgresql", "postgresql@15");
}
