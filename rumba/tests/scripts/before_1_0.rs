//! The functions that scripts for sysbench before 1.0 call.

use rumba_workload_sysbench::setup::OptionValue;

use super::Run;

/// The functions of scripts for 0.5: each answers as in 1.0.
#[test]
fn sysbench_0_5_functions_use_interpreter_connection() {
    let run = Run::new();
    let script = "
        assert(thread_id == 3 and test == nil and sysbench.test.path == test)
        assert(mysql_table_engine == 'innodb' and myisam_max_rows == 1000000)
        assert(DB_ERROR_NONE == 0 and DB_ERROR_RESTART_TRANSACTION == 1 and DB_ERROR_FAILED == 2)
        local drawn = sb_rnd()
        assert(drawn >= 0 and drawn < 4294967296 and drawn % 1 == 0)
        drawn = sb_rand_uniq(2147483648, 4294967295)
        assert(drawn >= 2147483648)
        local done, why = pcall(db_bulk_insert_done)
        assert(not done and why:find('Uninitialized database connection'), why)
        db_query('CREATE TABLE old (id INTEGER PRIMARY KEY, k INTEGER, c TEXT)')
        assert(db_driver == 'sqlite')
        db_bulk_insert_init('INSERT INTO old (id, k, c) VALUES')
        for id = 1, 10 do db_bulk_insert_next('(' .. id .. ', ' .. id .. [[, 'x')]]) end
        db_bulk_insert_done()
        local statement = db_prepare('UPDATE old SET k = ?, c = ? WHERE id = ?')
        local values = { 1, '', 1 }
        db_bind_param(statement, values)
        values[1], values[2], values[3] = 77, ('long'):rep(100), 4
        local found = db_execute(statement)
        db_store_results(found)
        db_free_results(found)
        values[1], values[2], values[3] = nil, '8', 5
        db_execute(statement)
        db_close(statement)
        done, why = pcall(db_bind_param, {}, values)
        assert(not done and why:find('prepared statement expected'), why)
        done, why = pcall(db_bind_param, statement, { true })
        assert(not done and why:find('Unsupported variable type: boolean'), why)
        db_disconnect()
        local con = sysbench.sql.driver():connect()
        local k, c = con:query_row('SELECT k, length(c) FROM old WHERE id = 4')
        assert(k == '77' and c == '400', c)
        k, c = con:query_row('SELECT k, c FROM old WHERE id = 5')
        assert(k == nil and c == '8', c)";
    run.load(script).unwrap();
    let error = run.load("\ndb_query('SELEC 1')").map(drop).unwrap_err().to_string();
    assert!(error.starts_with("test.lua:2: SQL error, errno = 1"), "{error}");
}

#[test]
fn options_are_globals_of_a_script_that_declares_none() {
    let mut run = Run::new();
    let (count, words) = (OptionValue::Number(7.0), OptionValue::List(vec!["a".into(), "b".into()]));
    let more = [("oltp_tables_count", count), ("words", words), ("debug", OptionValue::Flag(true))];
    run.options.extend(more.map(|(name, value)| (name.to_owned(), value)));
    let seen = "function thread_init()
        assert(oltp_tables_count == 7 and sysbench.opt.oltp_tables_count == 7 and words[2] == 'b')
        assert(type(debug) == 'table' and sysbench.opt.debug == true) end
        function event() end";
    let (end, ..) = run.events(seen, 1);
    end.unwrap();
    let declares = "sysbench.cmdline.options = { other = { 'one of its own', 1 } }
        function thread_init() assert(oltp_tables_count == nil and sysbench.opt.oltp_tables_count == 7) end
        function event() end";
    let (end, ..) = run.events(declares, 1);
    end.unwrap();
}
