//! What a script has called when something of its is collected, which may be in the middle of any call.

use super::Run;

/// A statement of a `__gc` freed the row that was being fetched, and the process ended.
#[test]
fn a_collection_in_the_middle_of_a_call_does_what_any_script_may() {
    const TOLD: &str = "Alert: a function that is called at a collection failed: test.lua:";
    let run = Run::new();
    run.load(&format!("{} prepare()", include_str!("collected.lua"))).unwrap();
    let log = run.host.log.lock().unwrap();
    let alerts: Vec<&String> = log.iter().filter(|line| line.starts_with(TOLD)).collect();
    assert!(alerts.iter().filter(|line| line.ends_with(": no")).count() > 3, "one for each place: {alerts:?}");
    assert!(alerts.iter().any(|line| line.contains(": SQL error, errno = 1, state = ")), "{alerts:?}");
}
