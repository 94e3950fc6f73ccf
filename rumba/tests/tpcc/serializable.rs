//! At SERIALIZABLE a server refuses transactions that it cannot serialise, even those that only read rows written by
//! others. They are retried and counted by the server's error code, and the data stays consistent.

use super::{CHECKS, TestDir, ended, phase, set, total};

/// Eight clients in one small warehouse conflict all the time; `refusal` is the server's message.
fn is_refused_and_tried_again(engine: &str, server: &str, refusal: &str) {
    let place = TestDir::new();
    let mut command = place.rumba(&["run", "tpcc", "--engine", engine, "--out", "out", "--quiet"]);
    let small = ["warehouses=1", "customers=20", "items=200", "statements=batched", "clients=8", "load_clients=1"];
    set(&mut command, small.into_iter().chain(["warmup=100ms", "loops=1", "loop=2s"]));
    command.args(["--set", &format!("server={server}"), "--set", &format!("{engine}.isolation=serializable")]);
    ended(0, &mut command);
    let report = place.report();
    let trial = &report["trials"][0];
    assert_eq!(trial["status"], "done", "{}", trial["failure"]);
    let loops = phase(trial, "loops").unwrap();
    assert!(loops["conflicts"][refusal].as_u64().is_some_and(|times| times > 0), "{loops}");
    // A transaction refused a hundred times in a row fails, most likely a long one; these are few.
    let (done, errors) = (total(loops, "count"), total(loops, "errors"));
    assert!(done > 0 && errors * 20 < done + errors, "{errors} were given up, {done} were not: {loops}");
    for proof in ["verify load", "verify"] {
        let checks = phase(trial, proof).unwrap()["checks"].as_array().unwrap();
        assert_eq!(checks.len(), CHECKS, "{proof}: {checks:?}");
        for check in checks {
            assert!(check["wrong"] == 0 && check["examined"].as_u64() > Some(0), "{proof}: {check}");
        }
    }
    assert!(place.is_clean());
}

#[test]
#[needs(Server("postgresql@15"))]
fn serialization_failures_of_postgresql_are_retried() {
    let refusal = "serialization failure: server error 40001";
    is_refused_and_tried_again("postgresql", "postgresql@15", refusal);
}
