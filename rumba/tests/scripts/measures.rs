//! The operations, counters and logical bytes that a script declares.

use std::sync::Arc;

use rumba_engine_api::worker::{Client as _, OpKind, block_on};
use rumba_workload_sysbench::counters::Counters;
use rumba_workload_sysbench::setup::{Measures, Setup};
use rumba_workload_sysbench::{Interpreter, ScriptClient};

use super::{Count, Run};

const DECLARED: &str = "rumba.operations = { 'browse', 'checkout' } rumba.counters = { 'rows', 'misses' }";

/// The type of each operation, the counters and the declared bytes.
type Measured = (Vec<OpKind>, Vec<u64>, Option<i64>);

/// Runs six events; what they measured, or the error.
fn six_events(script: &str, is_experiment: bool) -> Result<Measured, String> {
    let run = Run::new();
    let setup = run.setup(&format!("{DECLARED}\nn = 0 {script}"));
    let declared = Interpreter::new(&setup, 0, Arc::default()).unwrap().measures().unwrap();
    let measures = if is_experiment { declared } else { Measures::default() };
    let counters = Arc::new(Counters::with_own(measures.counters.len()));
    let setup = Arc::new(Setup { measures, ..Arc::into_inner(setup).unwrap() });
    let mut client = ScriptClient::new(&setup, 3, counters.clone()).map_err(|error| error.to_string())?;
    let mut pace = Count { left: 6, ..Count::default() };
    block_on(client.run(&mut pace)).map_err(|error| error.to_string())?;
    Ok((pace.kinds, counters.own().collect(), counters.declared_bytes()))
}

const EVENTS: &str = "
    function thread_init() rumba.op('browse') rumba.count('misses') rumba.logical_bytes(1000) end
    function event()
        n = n + 1
        if n > 4 then return end
        rumba.op(n % 2 == 0 and 'checkout' or 'browse')
        rumba.count('rows', n * 10)
        if n == 4 then rumba.count('misses', 0ULL + 2) rumba.logical_bytes(-1) end
    end";

#[test]
fn script_names_operations_counts_and_declares_bytes() {
    let (kinds, own, bytes) = six_events(EVENTS, true).unwrap();
    assert_eq!(kinds, [1, 2, 1, 2, 0, 0], "an event keeps no name of another");
    assert_eq!((own, bytes), (vec![100, 3], Some(999)));
    let nothing = six_events("function event() end", true).unwrap();
    assert_eq!(nothing, (vec![0; 6], vec![0, 0], None));
}

/// The command line has one histogram, so another type of operation would be out of bounds there.
#[test]
fn measures_do_nothing_on_the_command_line() {
    let (kinds, own, _) = six_events(EVENTS, false).unwrap();
    assert_eq!((kinds, own), (vec![0; 6], Vec::new()));
}

#[test]
fn mistakes_name_the_line_and_the_declared_options() {
    for is_experiment in [true, false] {
        let words = |call: &str| six_events(&format!("function event() {call} end"), is_experiment).unwrap_err();
        let error = words("rumba.op('chekout')");
        let why = "test.lua:2: rumba.op: undeclared name 'chekout'; rumba.operations declares: browse, checkout";
        assert!(error.ends_with(why), "{error}");
        let error = words("rumba.counters = nil rumba.count('rows')");
        assert!(error.ends_with("undeclared name 'rows'; rumba.counters declares: none"), "{error}");
        for amount in ["-1", "0.5", "0/0", "1/0"] {
            let error = words(&format!("rumba.count('rows', {amount})"));
            assert!(error.contains("test.lua:2: rumba.count: the amount must be a whole number"), "{error}");
        }
        let error = words("rumba.logical_bytes(0.5)");
        assert!(error.contains("test.lua:2: rumba.logical_bytes: the bytes must be a whole number"), "{error}");
    }
}

#[test]
fn declarations_that_cannot_be_names_of_metrics_are_refused() {
    let run = Run::new();
    let declared = |text: &str| run.load(text).unwrap().measures();
    assert_eq!(declared("").unwrap(), Measures::default());
    assert_eq!(declared("rumba = nil").unwrap(), Measures::default());
    for (script, why) in [
        ("rumba.operations = 'browse'", "rumba.operations: a list of names, not a string"),
        ("rumba.counters = { 'rows', {} }", "rumba.counters: every name must be a string"),
        ("rumba.counters = { 'Rows' }", "invalid name 'Rows'"),
        ("rumba.counters = { '' }", "invalid name ''"),
        ("rumba.operations = { 'browse', 'browse' }", "'browse' is already taken"),
        ("rumba.operations = { 'event' }", "'event' is already taken"),
        ("rumba.counters = {} for n = 1, 33 do rumba.counters[n] = 'c' .. n end", "33 names; at most 32"),
    ] {
        let error = declared(script).unwrap_err().to_string();
        assert!(error.contains(why), "{script}: {error}");
    }
}
