//! A script's connections, statements and parameters are valid for as long as it holds them, and use memory no longer
//! than that.

use std::process::Command;
use std::sync::Arc;

use rumba_engine_api::sql::Dialect;
use rumba_engine_api::worker::block_on;
use rumba_workload_sysbench::ScriptClient;

use super::bytes::{Given, Recorder};
use super::{Count, Run, TABLE};

#[test]
fn reopened_connection_keeps_its_turn() {
    let run = Run::new();
    let script = "local drv = sysbench.sql.driver()
        local first, second = drv:connect(), drv:connect()
        first:reconnect() second:reconnect() drv:connect()";
    run.load(script).unwrap();
    assert_eq!(*run.host.turns.lock().unwrap(), [0, 1, 0, 1, 2]);
}

#[test]
fn closed_statement_stays_closed_after_later_prepares() {
    let script = format!(
        r"{TABLE}
        local closed = {{}}
        for n = 1, 100 do
            closed[n] = con:prepare('SELECT ' .. n)
            assert(closed[n]:execute():fetch_row()[1] == tostring(n) and closed[n]:close() == 0)
        end
        local open = con:prepare('SELECT 0')
        for n = 1, 100 do
            local done, why = pcall(closed[n].execute, closed[n])
            assert(not done and tostring(why):find('was closed'), tostring(why))
            assert(closed[n]:close() == 0)
        end
        assert(open:execute():fetch_row()[1] == '0')

        -- A statement has what it is bound to, and what a closed one made is good for another.
        local echo = con:prepare('SELECT ?')
        local parameter = closed[1]:bind_create(sysbench.sql.type.VARCHAR, 3)
        echo:bind_param(parameter)
        parameter:set('word')
        parameter = nil
        closed = nil
        collectgarbage()
        collectgarbage()
        for n = 1, 1000 do echo:bind_create(sysbench.sql.type.VARCHAR, 3):set('no') end
        assert(echo:execute():fetch_row()[1] == 'wor')
        con:reconnect()
        assert(echo:execute():fetch_row()[1] == 'wor' and open:execute():fetch_row()[1] == '0')"
    );
    Run::new().load(&script).unwrap();
}

/// Guards against a closed statement that could be run. With PostgreSQL a statement goes to the server when it is
/// bound, and a closed one was then prepared without a text.
#[test]
fn statement_closed_before_binding_stays_closed() {
    let given = Given::default();
    let script = "
        local con = sysbench.sql.driver():connect()
        local closed = con:prepare('SELECT ?')
        local parameter = closed:bind_create(sysbench.sql.type.INT)
        closed:close()
        closed:bind_param(parameter)
        local done, why = pcall(closed.execute, closed)
        assert(not done and tostring(why):find('was closed'), tostring(why))
        con:reconnect()";
    Recorder { given: given.clone(), ..Recorder::of(Dialect::PostgreSql) }.load(script);
    assert_eq!(*given.lock().unwrap(), Vec::<Vec<u8>>::new());
}

/// Guards against a half-bound statement: the failure of a `__gc`, which makes the next call fail, left it without
/// types and unknown to the server.
#[test]
fn restarted_event_binds_a_statement_whose_binding_failed() {
    let given = Given::default();
    let script = "
        local con = sysbench.sql.driver():connect()
        local statement = con:prepare('SELECT ?')
        local parameter = statement:bind_create(sysbench.sql.type.VARCHAR, 4)
        parameter:set('word')
        function sysbench.hooks.sql_error_ignorable(failed) return failed.sql_errmsg:find('before bulk_insert_init') end
        local tries = 0
        function event()
            tries = tries + 1
            if tries == 1 then
                coroutine.wrap(function()
                    getmetatable(newproxy(true)).__gc = function() con:bulk_insert_next('(1)') end
                end)()
                collectgarbage()
                collectgarbage()
            end
            statement:bind_param(parameter)
            statement:execute()
        end
        function thread_done() assert(tries == 2, tries) end";
    let setup = Recorder { given: given.clone(), ..Recorder::of(Dialect::PostgreSql) }.setup(script);
    let mut client = ScriptClient::new(&setup, 3, Arc::default()).unwrap();
    block_on(client.work(&mut Count { left: 1, ..Count::default() })).unwrap();
    assert_eq!(*given.lock().unwrap(), [b"SELECT $1".as_slice(), b"word"]);
}

/// They are addresses, which a script may keep outside of their handles.
#[test]
fn objects_stay_valid_when_reached_without_their_handle() {
    let script = format!(
        r"{TABLE}
        local function collected() collectgarbage() collectgarbage() end
        local driver = sysbench.sql.driver()
        -- A result of a connection without other handles.
        local result = driver:connect():query('SELECT 1 UNION SELECT 2 UNION SELECT 3')
        collected()
        local others = {{}}
        for n = 1, 20 do others[n] = driver:connect() others[n]:query('SELECT 9') end
        for n = 1, 3 do assert(result:fetch_row()[1] == tostring(n)) end
        assert(result:fetch_row() == nil)
        -- Statements in an array of C's, and what they are bound to by it.
        local array = ffi.new('sql_statement *[8]')
        for n = 0, 7 do array[n] = con:prepare('SELECT ?') end
        collected()
        for n = 0, 7 do
            local parameter = array[n]:bind_create(sysbench.sql.type.INT)
            parameter:set(n)
            array[n]:bind_param(parameter)
        end
        collected()
        for n = 0, 7 do assert(array[n]:execute():fetch_row()[1] == tostring(n)) end
        -- One that is collected after its statement, when the interpreter ends.
        local last = con:prepare('SELECT 7')
        late = newproxy(true)
        getmetatable(late).__gc = function() last:execute() end
        -- Collecting a connection's last statement frees it once, so two new connections differ.
        local gone = driver:connect():prepare('SELECT 1')
        local connection = gone.connection
        gone = nil
        collected()
        local one, other = driver:connect(), driver:connect()
        assert(one ~= other and one:query_row('SELECT 5') == '5' and other:query_row('SELECT 6') == '6')
        -- Two results of one text: only the last can be fetched, for any width of the first.
        local two = con:query('SELECT 1; SELECT 1, 2, 3')
        local row = two:fetch_row()
        assert(row[1] == '1' and row[2] == '2' and row[3] == '3' and two:fetch_row() == nil)
        -- What is no parameter, and more places than there is memory for.
        local echo = con:prepare('SELECT ?')
        assert(not pcall(echo.bind_param, echo, nil))
        for _, other in ipairs {{ con, echo, ffi.new('int64_t[1]', 5), io.stdout }} do
            local done, why = pcall(echo.bind_param, echo, other)
            assert(not done and why:find('no parameter in place 1'), tostring(why))
        end
        assert(not pcall(sysbench.histogram.new, 1e18, 1, 2))"
    );
    Run::new().load(&script).unwrap();
}

/// Scripts write `assert(con:query("CREATE TABLE …"))`, which once failed because the answer was nil. A field of a null
/// pointer would end the program, so it must be an error of the script. The loop is long enough to be compiled.
#[test]
fn statement_without_rows_returns_a_null_that_is_true() {
    let script = format!(
        r"{TABLE}
        local statement = con:prepare('DELETE FROM t WHERE id = 0')
        for n = 1, 300 do
            for _, rs in ipairs {{ con:query('DELETE FROM t WHERE id = 0'), statement:execute() }} do
                assert(assert(rs) == nil and type(rs) == 'cdata' and tostring(rs) == '<sql_result>')
                seen = (seen or 0) + 1
            end
        end
        assert(seen == 600 and con:query_row('DELETE FROM t') == nil)
        assert(not con:query('SELECT 1') == false and con:query('SELECT 1') ~= nil)
        for _, use in ipairs {{ 'nrows', 'fetch_row', 'free' }} do
            local done, why = pcall(function() return con:query('DELETE FROM t')[use] end)
            assert(not done and why:find(use .. '.: compare the result with nil first'), tostring(why))
        end"
    );
    Run::new().load(&script).unwrap();
}

#[test]
fn connection_stays_open_while_script_references_it() {
    let given = Given::default();
    let script = "
        local function connected() return sysbench.sql.driver():connect() end
        local function prepared() return connected():prepare('SELECT 1') end
        for n = 1, 1000 do connected():query('SELECT 2') end
        for n = 1, 1000 do prepared() end
        kept = prepared()
        collectgarbage()
        collectgarbage()
        kept:execute()
        kept.connection:query('SELECT 3')";
    let interpreter = Recorder { given: given.clone(), ..Recorder::of(Dialect::MySql) }.load(script);
    // The references are the test's, the host's and that of the stored statements; the interpreter's registers may hold
    // one more.
    let open = Arc::strong_count(&given);
    assert!((3..=4).contains(&open), "{open}");
    assert_eq!(given.lock().unwrap().last().unwrap(), b"SELECT 3");
    drop(interpreter);
    assert_eq!(Arc::strong_count(&given), 1);
}

/// Guards against memory growth: closed statements kept their parameters, 4 KB each, and connections their statements.
/// Here this took 80 MB and 20 MB.
#[test]
fn scripts_that_prepare_and_connect_again_and_again_do_not_grow() {
    let script = "
        local function resident_kb()
            for line in io.lines('/proc/self/status') do
                local kb = line:match('^VmRSS:%s+(%d+)')
                if kb then return tonumber(kb) end
            end
        end
        local function prepare(con)
            local statement = con:prepare('SELECT ?')
            local parameter = statement:bind_create(sysbench.sql.type.VARCHAR, 4096)
            statement:bind_param(parameter)
            parameter:set('x')
            statement:execute()
            return statement
        end
        local function does_not_grow(times, work)
            for n = 1, times / 10 do work() end
            local before = resident_kb()
            for n = 1, times do work() end
            local grown = resident_kb() - before
            assert(grown < 8192, grown .. ' KB more')
        end
        function event()
            local driver = sysbench.sql.driver()
            local con = driver:connect()
            does_not_grow(20000, function() prepare(con):close() end)
            does_not_grow(500, function()
                local own = driver:connect()
                for n = 1, 10 do prepare(own) end
                own:disconnect()
            end)
            does_not_grow(500, function()
                for n = 1, 10 do prepare(con):close() end
                con:reconnect()
            end)
        end";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("own.lua"), script).unwrap();
    let mut rumba = Command::new(env!("CARGO_BIN_EXE_rumba"));
    let words = ["sysbench", "--db-driver=sqlite", "own.lua", "--events=1", "--time=0", "run"];
    let output = rumba.args(words).env("XDG_STATE_HOME", dir.path()).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}
