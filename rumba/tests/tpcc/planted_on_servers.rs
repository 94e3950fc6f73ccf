//! Faults are found on servers too. Decimals, NULL and the range of numbers are each server's own.

use super::{ALONE, Turns, Worked, block_on, on_server, registered};

fn found_over(engine: &str, server: &str) {
    let worked = Worked::loaded_as(&*registered(engine), &on_server(engine, server), "plain", 1).worked_on(1);
    assert_eq!(worked.broken(), [""; 0], "as a client has left it");
    worked.run("UPDATE order_line SET ol_delivery_d = NULL WHERE ol_d_id = 1 AND ol_o_id = 1 AND ol_number = 1");
    worked.run("UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_d_id = 1 AND c_id = 1");
    assert_eq!(worked.broken(), ["3.3.2.7", "3.3.2.12"], "{server}");
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

#[test]
#[needs(Server("mariadb@10.11"))]
fn faults_are_found_over_innodb() {
    found_over("innodb", "mariadb@10.11");
}

#[test]
#[needs(Server("postgresql@15"))]
fn faults_are_found_over_postgresql() {
    found_over("postgresql", "postgresql@15");
}
