//! Finalisers of a script's objects, which may run in the middle of any call.

use std::sync::Arc;

use rumba_engine_api::worker::block_on;
use rumba_workload_sysbench::ScriptClient;

use super::{Count, Run};

const REPORTED: &str = "Alert: a function that is called at a collection failed: test.lua:";

/// The messages about finalisers that failed, in a script that completes.
fn alerts(run: &Run, script: &str) -> Vec<String> {
    run.load(script).unwrap();
    let log = run.host.log.lock().unwrap();
    log.iter().filter_map(|line| line.strip_prefix(REPORTED)).map(str::to_owned).collect()
}

/// Guards against a crash: a statement in a `__gc` once freed the row that was being fetched, and the process ended.
#[test]
fn gc_finalizer_inside_a_call_may_use_every_function() {
    // Compiled code is left for a collection, and continued elsewhere.
    for is_compiled in [false, true] {
        let script = format!("is_compiled = {is_compiled} {} prepare()", include_str!("collected.lua"));
        let alerts = alerts(&Run::new(), &script);
        let ends = |words: &str| alerts.iter().filter(|line| line.ends_with(words)).count();
        assert!(ends(": no") > if is_compiled { 0 } else { 3 }, "one for each place: {alerts:?}");
        assert!(is_compiled || ends(": not by debug either") == 1, "{alerts:?}");
        assert!(alerts.iter().any(|line| line.contains(": SQL error, errno = 1, state = ")), "{alerts:?}");
    }
}

#[test]
fn the_metatable_of_a_proxy_is_as_any_other_to_a_script() {
    let script = "
        local function collected() collectgarbage() collectgarbage() end
        local calls = 0
        local function count() calls = calls + 1 end
        coroutine.wrap(function()
            local proxy = newproxy(true)
            local metatable = getmetatable(proxy)
            assert(metatable.__gc == nil and metatable.__metatable == nil)
            metatable.__gc = count
            assert(metatable.__gc == count and debug.getmetatable(proxy) == metatable)
            metatable.__index = metatable
            metatable.word = 'there'
            function metatable.__len() return 7 end
            assert(metatable.__index == metatable and proxy.word == 'there' and #proxy == 7)
            local like, other = newproxy(proxy), newproxy()
            assert(getmetatable(like) == metatable and like.word == 'there')
            assert(getmetatable(other) == nil)
            debug.setmetatable(other, metatable)
            assert(getmetatable(other) == metatable and other.word == 'there')
            metatable.__metatable = 'none of yours'
            assert(getmetatable(proxy) == 'none of yours' and metatable.__metatable == 'none of yours')
            metatable.__metatable = nil
            assert(getmetatable(proxy) == metatable and metatable.__metatable == nil)
        end)()
        collected()
        assert(calls == 3, calls)
        coroutine.wrap(function()
            local metatable = getmetatable(newproxy(true))
            metatable.__gc = count
            metatable.__gc = nil
            assert(metatable.__gc == nil)
        end)()
        -- One that is its own `__gc`'s goes with it.
        for _ = 1, 100 do
            local proxy = newproxy(true)
            getmetatable(proxy).__gc = function() calls = calls + (proxy and 1) end
        end
        collected()
        collected()
        assert(calls >= 102 and calls <= 103, calls)
        -- Proxies that share a metatable share its guard.
        local shared = { __gc = count }
        debug.setmetatable(newproxy(), shared)
        local guard = shared.__gc
        debug.setmetatable(newproxy(), shared)
        assert(shared.__gc == guard)";
    assert_eq!(alerts(&Run::new(), script), Vec::<String>::new());
}

/// Guards against a split event: the error of a `__gc` rolled the transaction back, and the rest of the event ran
/// without one.
#[test]
fn event_restarts_after_a_conflict_in_a_gc_finalizer() {
    let script = "
        con, other = sysbench.sql.driver():connect(), sysbench.sql.driver():connect()
        con:query('CREATE TABLE t (id INTEGER PRIMARY KEY)')
        con:query('PRAGMA busy_timeout = 1')
        local insert = con:prepare('INSERT INTO t VALUES (NULL)')
        local tries, restarts = 0, 0
        function sysbench.hooks.before_restart_event(failed)
            restarts = restarts + 1
            assert(failed.sql_errno == 5 and failed.connection == con)
        end
        local function meet_a_conflict()
            other:query('BEGIN IMMEDIATE')
            coroutine.wrap(function()
                getmetatable(newproxy(true)).__gc = function() con:query('INSERT INTO t VALUES (NULL)') end
            end)()
            collectgarbage()
            collectgarbage()
            other:query('ROLLBACK')
        end
        function event()
            tries = tries + 1
            con:query('BEGIN')
            if tries % 2 == 1 then meet_a_conflict() end
            -- Whichever call comes next.
            if tries == 1 then insert:execute() end
            con:query('INSERT INTO t VALUES (NULL)')
            if tries ~= 1 then insert:execute() end
            con:query('COMMIT')
        end
        function thread_done()
            assert(tries == 4 and restarts == 2, tries .. ' ' .. restarts)
            assert(con:query_row('SELECT count(*) FROM t') == '4')
        end";
    let run = Run::new();
    let mut client = ScriptClient::new(&run.setup(script), 3, Arc::default()).unwrap();
    let mut pace = Count { left: 2, ..Count::default() };
    block_on(client.work(&mut pace)).unwrap();
    assert_eq!((pace.ops, pace.retries), (2, 2));
    let log = run.host.log.lock().unwrap();
    assert_eq!(log.iter().filter(|line| line.contains(" failed: conflict: SQLITE_BUSY")).count(), 2, "{log:?}");
}
