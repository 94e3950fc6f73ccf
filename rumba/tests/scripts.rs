//! Scripts over SQLite: the effect and the result of each function of the interface.
#![allow(clippy::unwrap_used)]

#[path = "scripts/before_1_0.rs"]
mod before_1_0;
#[path = "scripts/bytes.rs"]
mod bytes;
#[path = "scripts/collected.rs"]
mod collected;
#[path = "scripts/depth.rs"]
mod depth;
#[path = "scripts/distributions.rs"]
mod distributions;
#[path = "scripts/handles.rs"]
mod handles;
#[path = "scripts/laws.rs"]
#[allow(dead_code)] // The figures of a fit are only printed.
mod laws;
#[path = "scripts/left.rs"]
mod left;
#[path = "scripts/measures.rs"]
mod measures;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::SqlSession;
use rumba_engine_api::worker::{Client as _, Op, OpKind, Pace, block_on};
use rumba_testkit::allocations::Counting;
use rumba_workload_sysbench::cli::report::{Latency, StatementTimes};
use rumba_workload_sysbench::counters::Counters;
use rumba_workload_sysbench::failure::Function;
use rumba_workload_sysbench::host::{Driver, Host, Rank, Remedy};
use rumba_workload_sysbench::random::{Shapes, Unique};
use rumba_workload_sysbench::setup::{Events, Measures, OptionValue, Script, Setup};
use rumba_workload_sysbench::stopwatch::Stopwatch;
use rumba_workload_sysbench::{Interpreter, ScriptClient, ScriptError};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Sqlite {
    file: PathBuf,
    log: Mutex<Vec<String>>,
    turns: Mutex<Vec<u32>>,
}

impl Host for Sqlite {
    fn drivers(&self) -> &[Driver] {
        &[Driver { name: "sqlite", title: "SQLite", options: &[] }]
    }

    fn default_driver(&self) -> Option<usize> {
        Some(0)
    }

    fn connect(&self, _driver: usize, _client: u32, turn: u32) -> Result<Box<dyn SqlSession>> {
        self.turns.lock().unwrap().push(turn);
        rumba_engine_sqlite::session(&self.file, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF", 1000)
    }

    fn remedy(&self, _driver: usize, error: &EngineError) -> Remedy {
        if error.is_conflict() { Remedy::RollBackAndRestart } else { Remedy::Fatal }
    }

    fn log(&self, rank: Rank, words: &str) {
        self.log.lock().unwrap().push(format!("{rank:?}: {words}"));
    }
}

/// Lets `left` operations through.
#[derive(Default)]
struct Count {
    left: u64,
    ops: u64,
    retries: u32,
    /// The type of each operation.
    kinds: Vec<OpKind>,
}

impl Pace for Count {
    fn poll_turn(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        let more = self.left > 0;
        self.left -= u64::from(more);
        Poll::Ready(more)
    }

    fn start(&mut self, _kind: OpKind) {}

    fn done(&mut self, kind: OpKind, op: Op) -> u64 {
        self.kinds.push(kind);
        self.ops += 1;
        self.retries += op.retries;
        0
    }
}

struct Run {
    dir: tempfile::TempDir,
    host: Arc<Sqlite>,
    options: Vec<(String, OptionValue)>,
}

impl Run {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let host = Arc::new(Sqlite { file: dir.path().join("db"), log: Mutex::default(), turns: Mutex::default() });
        Self { dir, host, options: vec![("percentile".into(), OptionValue::Number(95.0))] }
    }

    fn setup(&self, text: &str) -> Arc<Setup> {
        Arc::new(Setup {
            script: Script::Text { name: "test.lua".into(), text: text.as_bytes().to_vec() },
            options: self.options.clone(),
            argv: vec!["sysbench".into(), "test.lua".into(), "run".into()],
            command: Some("run".into()),
            version: "1.1.0".into(),
            luajit_command: None,
            is_quiet: false,
            measures: Measures::default(),
            host: self.host.clone(),
            seed: 1,
            shapes: Shapes::default(),
            unique: Unique::new(1),
            events: Events::at_most(0),
        })
    }

    /// Loads a script, whose assertions are its test.
    fn load(&self, text: &str) -> Result<Interpreter, ScriptError> {
        Interpreter::new(&self.setup(text), 3, Arc::default())
    }

    /// Runs this many events of a script.
    fn events(&self, text: &str, events: u64) -> (Result<()>, Count, Arc<Counters>) {
        let counters = Arc::<Counters>::default();
        let mut client = ScriptClient::new(&self.setup(text), 3, counters.clone()).unwrap();
        let mut pace = Count { left: events, ..Count::default() };
        let end = block_on(client.run(&mut pace));
        (end, pace, counters)
    }
}

const TABLE: &str = r"
drv = sysbench.sql.driver()
con = drv:connect()
con:query('CREATE TABLE t (id INTEGER PRIMARY KEY, c CHAR(20), d DOUBLE)')
";

#[test]
fn statements_are_answered_as_scripts_expect_it() {
    let run = Run::new();
    let script = format!(
        r"{TABLE}
        assert(drv:name() == 'sqlite' and tostring(con) == '<sql_connection>')
        assert(con:query('INSERT INTO t VALUES (1, \'a\', 1.5), (2, NULL, 2)') == nil)
        local rs = con:query('SELECT id, c, d FROM t ORDER BY id')
        assert(rs.nrows == 2 and rs.nfields == 3, tostring(rs.nrows))
        local row = rs:fetch_row()
        assert(row[1] == '1' and row[2] == 'a' and row[3] == '1.5', row[3])
        row = rs:fetch_row()
        assert(row[1] == '2' and row[2] == nil and row[3] == '2.0', row[3])
        assert(rs:fetch_row() == nil)
        rs:free()
        local id, c = con:query_row('SELECT id, c FROM t WHERE id = 1')
        assert(id == '1' and c == 'a')
        assert(con:query_row('SELECT id FROM t WHERE id = 9') == nil)
        assert(con:query('SELECT id FROM t WHERE id = 9').nrows == 0)

        local T = sysbench.sql.type
        local stmt = con:prepare('INSERT INTO t VALUES (?, ?, ?)')
        local p = {{ stmt:bind_create(T.INT), stmt:bind_create(T.CHAR, 5), stmt:bind_create(T.DOUBLE) }}
        stmt:bind_param(p[1], p[2], p[3])
        for id = 10, 12 do
            p[1]:set(id) p[2]:set('longer than five') p[3]:set(id / 4)
            assert(stmt:execute() == nil)
        end
        p[1]:set(13) p[2]:set(nil) p[3]:set(nil)
        stmt:execute()
        assert(stmt:close() == 0)
        assert(con:query_row('SELECT count(*), sum(d), min(c) FROM t WHERE id >= 10') == '4')
        local n, sum, c = con:query_row('SELECT count(*), sum(d), min(c) FROM t WHERE id >= 10')
        assert(sum == '8.25' and c == 'longe', c)

        stmt = con:prepare('SELECT c FROM t WHERE id = ?')
        local key = stmt:bind_create(T.BIGINT)
        stmt:bind_param(key)
        key:set(10)
        local rs = stmt:execute()
        assert(rs.nrows == 1 and rs:fetch_row()[1] == 'longe')
        local s = con:prepare('UPDATE t SET c = ? WHERE id = 10')
        local word = s:bind_create(T.VARCHAR, 8)
        s:bind_param(word)
        word:set_rand_str('##-@@')
        s:execute()
        assert(con:query_row('SELECT c FROM t WHERE id = 10'):match('^%d%d%-%l%l$'))

        con:bulk_insert_init('INSERT INTO t VALUES')
        for id = 100, 20099 do con:bulk_insert_next('(' .. id .. ', \'' .. ('x'):rep(40) .. '\', 0)') end
        con:bulk_insert_done()
        assert(con:query_row('SELECT count(*) FROM t WHERE id >= 100') == '20000')
        con:query('CREATE TABLE n (a INTEGER, b INTEGER)')
        con:bulk_insert_init('INSERT INTO n VALUES')
        for a = 1, 50000 do con:bulk_insert_numbers(a, -a) end
        con:bulk_insert_done()
        assert(con:query_row('SELECT count(*) || \'/\' || sum(a) || \'/\' || sum(b) FROM n') ==
               '50000/1250025000/-1250025000')
        assert(con:disconnect())
        assert(not pcall(con.query, con, 'SELECT 1'))
        assert(con:disconnect() == true)
        assert(con:reconnect() and con:query_row('SELECT 1') == '1')"
    );
    run.load(&script).unwrap();
    let alerts = ["use", "close"].map(|what| format!("Alert: attempt to {what} an already closed connection"));
    assert_eq!(*run.host.log.lock().unwrap(), alerts);
}

#[test]
fn rows_are_loaded_value_by_value() {
    let run = Run::new();
    let script = format!(
        r"{TABLE}
        con:load_rows_init('t', 'id, c')
        for id = 30001, 50000 do con:load_rows_int(id)
            if id % 2 == 0 then con:load_rows_text('it\'s') else con:load_rows_string('##-@@' .. ('x'):rep(40)) end
        end
        assert(not pcall(con.query, con, 'SELECT 1'))
        con:load_rows_done()
        local rows, own, drawn = con:query_row([[SELECT count(*), sum(c = 'it''s'),
            sum(c GLOB '[0-9][0-9]-[a-z][a-z]x*x') FROM t WHERE id > 30000]])
        assert(rows == '20000' and own == '10000' and drawn == '10000', drawn)
        con:load_rows_init('t', 'id, c')
        con:load_rows_int(1)
        local done, why = pcall(con.load_rows_done, con)
        assert(not done and tostring(why):find('the last row is not whole'), tostring(why))
        assert(not pcall(con.load_rows_int, con, 1))
        done, why = pcall(con.load_rows_init, con, 'nowhere', 'id')
        assert(not done and tostring(why):find('nowhere'), tostring(why))
        assert(con:query_row('SELECT 1') == '1')"
    );
    run.load(&script).unwrap();
    let log = run.host.log.lock().unwrap().join("\n");
    assert_eq!(log.matches("Alert: attempt to use an already closed connection").count(), 2, "{log}");
    assert!(log.contains("Fatal: load_rows_done returned error") && log.contains("Fatal: load_rows_init"), "{log}");
}

#[test]
fn errors_carry_the_file_the_line_and_the_engine_s_words() {
    let run = Run::new();
    let words = |text: &str| run.load(text).map(drop).unwrap_err().to_string();
    assert_eq!(words("x = = 1"), "test.lua:1: unexpected symbol near '='");
    assert_eq!(words("#!/usr/bin/env sysbench\nerror('no')"), "test.lua:2: no");
    let error = words("\nlocal con = sysbench.sql.driver():connect()\ncon:query('SELEC 1')");
    assert!(error.starts_with("test.lua:3: SQL error, errno = 1, state = 'HY000': near \"SELEC\""), "{error}");
    let log = run.host.log.lock().unwrap().join("\n");
    assert!(log.starts_with("Fatal: query returned error 1 (") && log.ends_with("in `SELEC 1`)"), "{log}");
    let setup = Setup { script: Script::Named("nowhere".into()), ..Arc::into_inner(run.setup("")).unwrap() };
    let error = Interpreter::new(&Arc::new(setup), 0, Arc::default()).map(drop).unwrap_err();
    assert_eq!(error, ScriptError::NotFound("nowhere".into()));
}

#[test]
fn events_run_until_the_pace_or_the_script_ends_them() {
    let run = Run::new();
    let script = format!(
        "{TABLE}
        function thread_init() stmt = con:prepare('INSERT INTO t (c) VALUES (?)')
            word = stmt:bind_create(sysbench.sql.type.CHAR, 10) stmt:bind_param(word) end
        function event(id) assert(id == 3 and sysbench.tid == 3) word:set('x') stmt:execute()
            con:query('SELECT * FROM t WHERE id = 1') con:query('DELETE FROM t WHERE id = 0') end
        function thread_done() con:query('CREATE TABLE done_' .. con:query_row('SELECT count(*) FROM t') .. ' (x)') end"
    );
    let (end, pace, counters) = run.events(&script, 500);
    end.unwrap();
    assert_eq!(pace.ops, 500);
    // Other: the statements that create tables or change no rows.
    assert_eq!(counters.read()[..5], [502, 501, 500, 0, 0]);
    let (end, pace, _) = run.events("n = 0 function event() n = n + 1 return n == 4 end", 500);
    end.unwrap();
    assert_eq!(pace.ops, 3, "the event that ends the run is none");
    let (end, ..) = run.events("function event() local x = nil; return x.y end", 500);
    assert_eq!(
        end.unwrap_err().to_string(),
        "script: `thread_run' function failed: test.lua:1: attempt to index local 'x' (a nil value)"
    );
}

/// The runner ignores a client's failed end, and no other failure.
#[test]
fn client_error_names_the_function_that_failed() {
    let run = Run::new();
    let fails = "error(\"`thread_done' function failed: no\", 0)";
    for (script, function, is_of_end) in [
        (format!("function event() {fails} end"), Function::ThreadRun, false),
        (format!("function event() return 1 end function thread_done() {fails} end"), Function::ThreadDone, true),
    ] {
        let mut client = ScriptClient::new(&run.setup(&script), 3, Arc::default()).unwrap();
        let mut pace = Count { left: 1, ..Count::default() };
        let error = block_on(client.work(&mut pace)).unwrap_err();
        let words = "`thread_done' function failed: no".to_owned();
        assert_eq!(error, ScriptError::Call { function, words });
        assert_eq!(error.is_of_end(), is_of_end);
    }
}

#[test]
fn an_event_that_met_a_conflict_is_begun_again() {
    let run = Run::new();
    let script = "
        con = sysbench.sql.driver():connect()
        con:query('CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY)')
        local other = sysbench.sql.driver():connect()
        other:query('PRAGMA busy_timeout = 1')
        tries, hooked = 0, 0
        function sysbench.hooks.before_restart_event(failed) hooked = hooked + 1 assert(failed.sql_errno == 5) end
        function event()
            tries = tries + 1
            if tries == 1 then other:query('BEGIN IMMEDIATE') elseif tries == 3 then other:query('ROLLBACK') end
            con:query('BEGIN')
            con:query('INSERT INTO t VALUES (NULL)')
            con:query('COMMIT')
        end
        function thread_done() assert(tries == 4 and hooked == 2, tries .. ' ' .. hooked) end";
    let (end, pace, counters) = run.events(script, 2);
    end.unwrap();
    assert_eq!((pace.ops, pace.retries), (2, 2));
    assert_eq!(counters.read()[4], 2);
}

#[test]
fn script_functions_exist_under_all_their_names() {
    let run = Run::new();
    let script = r"
        assert(sysbench.rand.string('##@'):match('^%d%d%l$') and sb_rand_str('##@'):match('^%d%d%l$'))
        local s = sysbench.rand.varstring(3, 7)
        assert(#s >= 3 and #s <= 7)
        assert(sysbench.rand.unique() ~= sysbench.rand.unique())
        local d = sysbench.rand.uniform_double()
        assert(d >= 0 and d < 1 and sb_rand(1, 1) == 1)
        assert(type(tonumber(sysbench.rand.uniform_uint64())) == 'number')
        ffi.cdef[[
            void sb_counter_inc(int thread_id, sb_counter_type type);
            void sb_counter_add(int thread_id, sb_counter_type type, uint64_t val);
            int usleep(unsigned int useconds);
        ]]
        ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR)
        ffi.C.sb_counter_add(sysbench.tid, ffi.C.SB_CNT_BYTES_READ, 6)
        ffi.C.sb_counter_add(sysbench.tid, ffi.C.SB_CNT_BYTES_READ, -1)
        ffi.C.usleep(1)
        local h = sysbench.histogram.new(100, 1, 1000)
        h:update(10)
        assert(sysbench.version == '1.1.0' and sysbench.cmdline.command == 'run')
        assert(sysbench.cmdline.script_path == nil and test == nil and sysbench.cmdline.argv[2] == 'run')
        assert(os.execute('true') and bit.band(6, 3) == 2)";
    let counters = Arc::<Counters>::default();
    Interpreter::new(&run.setup(script), 3, counters.clone()).unwrap();
    assert_eq!((counters.read()[4], counters.read()[6]), (1, 5));
}

#[test]
fn options_and_commands_of_a_script_are_read() {
    let mut run = Run::new();
    let script = "
        sysbench.cmdline.options = {
            tables = { 'Number of tables', 1 }, auto_inc = { 'Automatic keys', true }, name = { 'A name', 'x' },
            whole = { 'A whole number', 5, sysbench.cmdline.ARG_INT }, list = { 'Some', { 'a', 'b' } },
            none = { 'Nothing' } }
        sysbench.cmdline.commands = { own = { function() made = sysbench.opt.tables end, sysbench.cmdline.PARALLEL_COMMAND },
            no = { function() return false end } }";
    run.options.push(("tables".into(), OptionValue::Number(7.0)));
    let interpreter = run.load(script).unwrap();
    let reported: Vec<String> = interpreter
        .declared()
        .unwrap()
        .iter()
        .map(|option| format!("{} {:?} {:?}", option.name, option.kind, option.default.as_deref()))
        .collect();
    assert_eq!(
        reported,
        [
            "auto_inc Flag Some(\"on\")",
            "list List Some(\"a,b\")",
            "name Text Some(\"x\")",
            "none Text None",
            "tables Double Some(\"1\")",
            "whole Int Some(\"5\")"
        ]
    );
    assert!(interpreter.command("own").unwrap().unwrap().is_parallel);
    assert!(interpreter.call_command("own").unwrap() && !interpreter.call_command("no").unwrap());
    assert_eq!(interpreter.command("other").unwrap(), None);
    assert_eq!(interpreter.lua().globals().get::<f64>("made").unwrap(), 7.0);
    drop(run.dir);
}

#[test]
fn script_reads_given_option_values() {
    let run = Run::new();
    let script = "
        sysbench.cmdline.options = {
            ['table-size'] = { 'Rows', 10, nil, function(name, value)
                checked = ffi.string(name)
                return value ~= nil and tonumber(ffi.string(value)) > 0
            end },
            number = { 'Answers as C does', 1, sysbench.cmdline.ARG_INT, function(_, value)
                return #ffi.string(value) > 1 and 1 or 0
            end },
            any = { 'Anything', 'x' },
            silent = { 'Answers nothing', 'x', nil, function() end },
            broken = { 'Raises', 'x', nil, function() error('no', 0) end },
        }";
    let interpreter = run.load(script).unwrap();
    assert_eq!(interpreter.declared().unwrap().len(), 5);
    for (option, value, is_taken) in [
        ("table_size", Some("7"), true),
        ("table-size", Some("0"), false),
        ("table-size", None, false),
        ("number", Some("22"), true),
        ("number", Some("2"), false),
        ("any", Some("y"), true),
        ("any", None, true),
        ("silent", Some("y"), false),
    ] {
        assert_eq!(interpreter.takes(option, value), Ok(is_taken), "{option}={value:?}");
    }
    assert_eq!(interpreter.lua().globals().get::<String>("checked").unwrap(), "table-size", "as it was given");
    let error = interpreter.takes("broken", Some("y")).unwrap_err();
    assert_eq!(error.to_string(), "`sysbench.cmdline.options.broken' function failed: no");
    let error = run.load("sysbench.cmdline.options = { x = { 'X', 1, nil, 'y' } }").unwrap().declared().unwrap_err();
    assert_eq!(error.to_string(), "the validator of option x is not a function");
    assert!(run.load("").unwrap().takes("any", None).unwrap(), "it declares none");
}

#[test]
fn statement_cost_is_reported_once() {
    let run = Run::new();
    let stopwatch = Stopwatch::default();
    assert_eq!(stopwatch.take(), None);
    let mut session = stopwatch.over(run.host.connect(0, 0, 0).unwrap());
    let mut fetch = |sql: &str| {
        session.submit_text(sql).unwrap();
        let mut context = Context::from_waker(std::task::Waker::noop());
        let answer = session.poll_answer(&mut context, &mut |_| std::thread::sleep(Duration::from_millis(2)));
        assert!(matches!(answer, Poll::Ready(Ok(_))), "{sql}: {answer:?}");
    };
    fetch("VALUES (1), (2)");
    let reported = stopwatch.take().unwrap();
    assert!(reported.executing.sum_ns > 0 && reported.fetching.sum_ns >= 4_000_000, "{reported:?}");
    fetch("CREATE TABLE t (a INTEGER)");
    let reported = stopwatch.take().unwrap();
    assert!(reported.executing.sum_ns > 0, "{reported:?}");
    assert_eq!(reported.fetching, Latency::default(), "it has no rows");
    assert_eq!(stopwatch.take(), Some(StatementTimes::default()), "it was reported already");
    drop(session);
    assert!(stopwatch.take().is_some());
    assert_eq!(stopwatch.take(), None, "what is closed is forgotten");
}

/// Rows of prepared statements are stored as received and decoded when a script fetches them: of every kind, several at
/// a time, some of them never.
#[test]
fn prepared_and_text_statements_return_the_same_rows() {
    let run = Run::new();
    let script = format!(
        r"{TABLE}
        for id = 1, 20 do con:query('INSERT INTO t VALUES (' .. id .. ', ' .. (id % 3 == 0 and 'NULL' or '\'c' .. id .. '\'') .. ', ' .. id / 4 .. ')') end
        local prepared = con:prepare('SELECT id, c, d FROM t WHERE id > ? ORDER BY id')
        local key = prepared:bind_create(sysbench.sql.type.INT)
        prepared:bind_param(key)
        for first = 0, 20, 5 do
            key:set(first)
            local rs = prepared:execute()
            assert(rs.nrows == 20 - first and rs.nfields == 3, tostring(rs.nfields))
            if first ~= 10 then
                for id = first + 1, 20 do
                    local row = rs:fetch_row()
                    local c = id % 3 ~= 0 and 'c' .. id or nil
                    assert(tonumber(row[1]) == id and row[2] == c and tonumber(row[3]) == id / 4, row[2])
                end
                assert(rs:fetch_row() == nil and rs:fetch_row() == nil)
            end
        end"
    );
    run.load(&script).unwrap();
}

#[test]
fn other_functions_of_sysbench_answer_too() {
    let run = Run::new();
    let script = format!(
        r"{TABLE}
        local rs = con:query('SELECT 1')
        assert(con:more_results() == false and con:next_result() == nil)
        assert(con:check_error(rs, 'SELECT 1') == rs and con:check_error(nil, 'SELECT 1') == nil)
        local stmt = con:prepare('SELECT 1')
        assert(stmt:execute():fetch_row()[1] == '1' and stmt:next_result() == nil)
        assert(not pcall(con.query, con, 'SELEC'))
        local done, why = pcall(con.check_error, con, nil, 'SELEC')
        assert(not done and tostring(why):find('SQL error, errno = 1, state = '), tostring(why))

        -- An error that the hook takes for ignorable has the event begun again.
        local checked
        function sysbench.hooks.sql_error_ignorable(failed)
            checked = failed
            return failed.sql_errno == 1
        end
        done, why = pcall(con.query, con, 'SELEC')
        assert(not done and why.errcode == sysbench.error.RESTART_EVENT, tostring(why))
        assert(checked.connection == con and checked.query == 'SELEC' and checked.sql_state == 'HY000')
        sysbench.hooks.sql_error_ignorable = function() return false end
        done, why = pcall(con.query, con, 'SELEC')
        assert(type(why) == 'string', type(why))

        local histogram = sysbench.histogram.new(10, 1, 100)
        for value = 1, 9 do histogram:update(value) end
        histogram:print()
        assert(tostring(histogram) == '<sb_histogram>')"
    );
    run.load(&script).unwrap();
}

/// Guards against a wrong label: the percentile 99.9 was once called 99.
#[test]
fn script_reports_name_their_percentile() {
    let run = Run::new();
    for (percent, named) in [("99.9", "lat (ms,99.9%): 1.50 "), ("95", "lat (ms,95%): 1.50 ")] {
        let script = format!(
            "local said
            function print(text) said = text end
            sysbench.opt.percentile = {percent}
            sysbench.report_default {{
                time_total = 1, time_interval = 1, threads_running = 1, latency_pct = 0.0015,
                events = 1, reads = 0, writes = 0, other = 0, errors = 0, reconnects = 0,
            }}
            assert(said:find('{named}', 1, true), said)"
        );
        run.load(&script).unwrap();
    }
}

/// Much is loaded only on demand, which scripts must not notice.
#[test]
fn lazily_loaded_functions_are_visible_from_the_start() {
    let run = Run::new();
    let script = format!(
        r"{TABLE}
        local why = select(2, pcall(function() return con.nowhere end))
        assert(why == 'test.lua:6: \'struct sql_connection\' has no member named \'nowhere\'', why)
        for _, name in ipairs {{ 'report_default', 'report_csv', 'report_json' }} do
            assert(type(rawget(sysbench, name)) == 'function', name)
        end
        for _, name in ipairs {{ 'command_defined', 'command_parallel', 'print_test_options', 'call_command' }} do
            assert(type(rawget(sysbench.cmdline, name)) == 'function', name)
        end

        -- Values that a script has set stay, also if other functions are loaded later by any means.
        local reported = sysbench.report_csv
        function sysbench.report_csv(stat) counted = stat.events end
        loadstring, require, ffi = nil, nil, nil
        con:bulk_insert_init('INSERT INTO t VALUES')
        con:bulk_insert_next('(1, NULL, 0)')
        con:bulk_insert_done()
        sysbench.report_csv({{ events = 5 }})
        assert(counted == 5 and reported ~= sysbench.report_csv)
        assert(con:query_row('SELECT count(*) FROM t') == '1')"
    );
    run.load(&script).unwrap();
}
