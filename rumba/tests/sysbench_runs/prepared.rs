//! Prepared statements of scripts over servers: the requests to the server, and the answers.

use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};

use super::common::TestDir;
use super::existing::{Existing, PASSWORD};
use super::succeeds;

/// Rows of prepared statements must equal those of the same statement as text, although they have another format and
/// are read on demand.
const PREPARED_ROWS: &str = r"
    function prepare()
        local drv = sysbench.sql.driver()
        local con = drv:connect()
        con:query('CREATE TABLE kinds (id INT PRIMARY KEY, big BIGINT, word VARCHAR(20), real_one DOUBLE PRECISION)')
        con:query([[INSERT INTO kinds VALUES (1, -5000000000, 'a', 1.5), (2, NULL, NULL, NULL), (3, 7, '', -0.25)]])
        local sql = 'SELECT id, big, word, real_one FROM kinds WHERE id > ? ORDER BY id'
        local stmt = con:prepare(sql)
        local from = stmt:bind_create(sysbench.sql.type.INT)
        stmt:bind_param(from)
        for _, first in ipairs { 0, 1, 3, 0 } do
            local expected = {}
            local rs = con:query((sql:gsub('?', first)))
            assert(rs.nfields == 4, tostring(rs.nfields))
            for number = 1, rs.nrows do expected[number] = rs:fetch_row() end
            from:set(first)
            rs = stmt:execute()
            assert(rs.nrows == #expected and rs.nfields == 4, rs.nrows .. ' of ' .. rs.nfields)
            for number, row in ipairs(expected) do
                local found = rs:fetch_row()
                for column = 1, 4 do
                    local is_same = found[column] == row[column]
                        or column == 4 and tonumber(found[column]) == tonumber(row[column])
                    assert(is_same, number .. '.' .. column .. ': ' .. tostring(found[column]))
                end
            end
            assert(rs:fetch_row() == nil)
        end
        print('all the same')
    end
    function event() end";

#[test]
#[needs(MariaDb)]
fn rows_of_prepared_statements_are_those_of_mariadb() {
    let place = TestDir::new();
    let server = Existing::start(&[]);
    server.fetch("CREATE DATABASE sbtest");
    let socket = format!("--mysql-socket={}", server.socket.display());
    let password = format!("--mysql-password={PASSWORD}");
    let said = succeeds(&place, PREPARED_ROWS, &[&socket, "--mysql-user=root", &password, "prepare"]);
    assert!(said.contains("all the same"), "{said}");
}

/// As in sysbench, each parameter has the type of its bound value, and not that of its position. Otherwise the first
/// would have none, and the second would exceed the column's range.
const DECLARED: &str = r"
    function prepare()
        local types = sysbench.sql.type
        local con = sysbench.sql.driver():connect()
        con:query('CREATE TABLE small (id INT PRIMARY KEY, c CHAR(4))')
        con:query([[INSERT INTO small VALUES (1, 'a'), (2, 'b')]])
        local function one(sql, kind, value)
            local stmt = con:prepare(sql)
            local param = stmt:bind_create(kind, 8)
            param:set(value)
            stmt:bind_param(param)
            return stmt:execute():fetch_row()[1]
        end
        assert(one('SELECT abs(?)', types.INT, -5) == '5')
        assert(one('SELECT COUNT(*) FROM small WHERE id < ?', types.INT, 5000000000) == '2')
        assert(one('SELECT abs(?)', types.DOUBLE, -0.5) == '0.5')
        local buffered = con:prepare('SELECT ? + 0, ? + 0, ?')
        local int, real = buffered:bind_create(types.INT), buffered:bind_create(types.DOUBLE)
        local word = buffered:bind_create(types.VARCHAR, 4)
        word:set('abc')
        int.buffer[0], real.buffer[0], word.buffer[1] = 300, 0.25, 120
        buffered:bind_param(int, real, word)
        local row = buffered:execute():fetch_row()
        assert(row[1] == '300' and row[2] == '0.25' and row[3] == 'axc', table.concat(row, ' '))
        assert(one([[SELECT pg_typeof(?)::text]], types.CHAR, 'a') == 'character varying')
        assert(con:prepare([[SELECT '?' || id FROM small WHERE id = 2]]):execute():fetch_row()[1] == '?2')
        local unbound = con:prepare('SELECT ?')
        local is_done, words = pcall(unbound.execute, unbound)
        assert(not is_done and tostring(words):find('never bound'), tostring(words))
        local wrong = con:prepare('SELECT nothing FROM small WHERE id = ?')
        is_done, words = pcall(wrong.bind_param, wrong, wrong:bind_create(types.INT))
        assert(not is_done and tostring(words):find('nothing'), tostring(words))
        local kept = con:prepare('SELECT c FROM small WHERE id = ?')
        local key = kept:bind_create(types.INT)
        kept:bind_param(key)
        con:reconnect()
        key:set(2)
        assert(kept:execute():fetch_row()[1] == 'b   ')
        print('all declared')
    end
    function event() end";

#[test]
#[needs(PostgreSql)]
fn postgresql_returns_the_same_rows_with_types_of_bound_values() {
    let place = TestDir::new();
    let server = PostgreSql::start(&[], &[]);
    let host = format!("--pgsql-host={}", server.directory().display());
    let (port, user) = (format!("--pgsql-port={}", server.port()), format!("--pgsql-user={SUPERUSER}"));
    let words = ["--db-driver=pgsql", &host, &port, &user, "--pgsql-db=postgres", "prepare"];
    for (script, end) in [(PREPARED_ROWS, "all the same"), (DECLARED, "all declared")] {
        let said = succeeds(&place, script, &words);
        assert!(said.contains(end), "{said}");
    }
}
