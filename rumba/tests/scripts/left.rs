//! Clients that are dropped in the middle of an operation.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rumba_engine_api::sql::Dialect;
use rumba_engine_api::worker::{Client as _, Op, OpKind, Pace};
use rumba_testkit::allocations;
use rumba_workload_sysbench::ScriptClient;
use rumba_workload_sysbench::setup::Setup;

use super::bytes::Recorder;
use super::{Count, Run, TABLE};

/// Runs a client until it waits, and drops it there.
fn leave(setup: &Arc<Setup>, pace: &mut dyn Pace) {
    let mut client = ScriptClient::new(setup, 3, Arc::default()).unwrap();
    let mut running = client.run(pace);
    let mut context = Context::from_waker(Waker::noop());
    assert!(running.as_mut().poll(&mut context).is_pending());
}

/// Its first turn never comes.
struct Never;

impl Pace for Never {
    fn poll_turn(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        Poll::Pending
    }
    fn start(&mut self, _kind: OpKind) {}
    fn done(&mut self, _kind: OpKind, _op: Op) -> u64 {
        0
    }
}

#[test]
fn client_dropped_inside_an_event_leaves_nothing() {
    let run = Run::new();
    let script = format!("{TABLE} function event() con:query('SELECT 1') end");
    leave(&run.setup(&script), &mut Never);
    std::fs::remove_file(run.dir.path().join("db")).unwrap();
}

/// Guards against a mixed-up answer: the finaliser once took the event's missing answer for its own, and waited for its
/// own with the whole thread.
#[test]
fn gc_of_a_client_dropped_while_waiting_sends_no_statement() {
    // The handle is not closed, so the connection is still open when Lua's objects are collected, after the C side.
    let script = "con = sysbench.sql.driver():connect()
        ffi.gc(con, nil)
        late = newproxy(true)
        getmetatable(late).__gc = function() con:query('SELECT 2') end
        function event() con:query('SELECT 1') end";
    let recorder = Recorder { is_late: true, ..Recorder::of(Dialect::MySql) };
    let (given, reported) = (recorder.given.clone(), recorder.reported.clone());
    leave(&recorder.setup(script), &mut Count { left: 1, ..Count::default() });
    let sent: [&[u8]; 1] = [b"SELECT 1"];
    assert_eq!(*given.lock().unwrap(), sent);
    let reported = reported.lock().unwrap();
    let alert = "Alert: a function that is called at a collection failed: test.lua:4: ";
    assert!(reported.iter().any(|line| line.starts_with(alert) && line.ends_with("was closed")), "{reported:?}");
}

/// The bytes that a script's client leaves behind with slow sessions, the minimum of several attempts, because one-time
/// allocations do not belong to a client.
fn least_left<P: Pace>(script: &str, pace: impl Fn() -> P) -> i64 {
    let once = || {
        let before = allocations::bytes();
        let recorder = Recorder { is_late: true, ..Recorder::of(Dialect::MySql) };
        leave(&recorder.setup(script), &mut pace());
        allocations::bytes() - before
    };
    (0..10).map(|_| once()).min().unwrap()
}

/// Guards against leaked memory: a metamethod of a script's globals may send a statement, and the client may be dropped
/// there. With frames of mlua in between, their memory would stay.
#[test]
fn client_dropped_during_function_lookup_leaks_no_memory() {
    let script = "con = sysbench.sql.driver():connect()
        setmetatable(_G, { __index = function(_, name) if name == 'thread_done' then con:query('SELECT 1') end end })
        function event() end";
    let in_turn = least_left(script, || Never);
    let in_look = least_left(script, Count::default);
    assert!(in_look <= in_turn, "{in_look} bytes, {in_turn} of one that waited for its turn");
}

/// Guards against a client that cannot be dropped: its call for a key never returned what it had borrowed. The second
/// call is that of a finaliser, which finds no session.
#[test]
fn client_dropped_in_a_call_for_a_key_leaves_nothing() {
    let script = "
        late = newproxy(true)
        getmetatable(late).__gc = function() kv:delete('late') end
        function thread_init() kv = rumba.kv() end
        function event() kv:get('key') end";
    let recorder = Recorder { is_late: true, ..Recorder::of(Dialect::MySql) };
    let (given, reported) = (recorder.given.clone(), recorder.reported.clone());
    leave(&recorder.setup(script), &mut Count { left: 1, ..Count::default() });
    assert_eq!(given.lock().unwrap().last().unwrap(), b"key");
    let reported = reported.lock().unwrap();
    assert!(reported.iter().any(|line| line.contains("the run has ended")), "{reported:?}");
    drop(reported);
    let in_turn = least_left(script, || Never);
    let in_call = least_left(script, || Count { left: 1, ..Count::default() });
    assert!(in_call <= in_turn, "{in_call} bytes, {in_turn} of one that waited for its turn");
}
