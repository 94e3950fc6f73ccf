//! Ignored errors let a run survive a server that is restarted or ends connections.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};

use super::{TestDir, figure, succeeds};

/// Each event moves 1 from a row to another in a transaction, so the sum stays 0 unless a part of one is committed.
const SCRIPT: &str = "
    function connect() con = sysbench.sql.driver():connect() end
    function prepare()
        connect()
        con:query('CREATE TABLE pairs (id INT PRIMARY KEY, moved INT NOT NULL)')
        for id = 1, 8 do con:query('INSERT INTO pairs VALUES (' .. id .. ', 0)') end
    end
    function thread_init()
        connect()
        start, commit = con:prepare('BEGIN'), con:prepare('COMMIT')
        update = con:prepare('UPDATE pairs SET moved = moved + ? WHERE id = ?')
        by, id = update:bind_create(sysbench.sql.type.INT), update:bind_create(sysbench.sql.type.INT)
        update:bind_param(by, id)
    end
    function event()
        start:execute()
        for part = 1, 2 do
            by:set(3 - 2 * part)
            id:set(2 * sysbench.tid + part)
            update:execute()
        end
        commit:execute()
        return io.open('stop') ~= nil
    end
    function cleanup()
        connect()
        print('sum ' .. con:query_row('SELECT SUM(moved) FROM pairs'), con:query_row('SELECT MAX(moved) FROM pairs'))
        con:query('DROP TABLE pairs')
    end";

/// A run that reports each second and goes on until it is stopped.
struct Run<'a> {
    place: &'a TestDir,
    child: Child,
    output: BufReader<ChildStdout>,
    text: String,
}

impl<'a> Run<'a> {
    fn start(place: &'a TestDir, options: &[&str]) -> Self {
        std::fs::write(place.path("pairs.lua"), SCRIPT).unwrap();
        succeeds(place, &[options, &["pairs.lua", "prepare"]].concat());
        let _ = std::fs::remove_file(place.path("stop"));
        let mut command = place.rumba(&["sysbench", "pairs.lua", "--threads=4", "--time=0", "--report-interval=1"]);
        let mut child = command.args(options).arg("run").stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut run = Self { place, child, output, text: String::new() };
        run.goes_on();
        run
    }

    /// Reads up to the next interval that has transactions, and after it another.
    fn goes_on(&mut self) {
        for _ in 0..2 {
            self.read_until(|line| line.contains(" tps: ") && !line.contains(" tps: 0.00"));
        }
    }

    /// Reads up to an interval in which a client reconnected.
    fn reconnects(&mut self) {
        self.read_until(|line| line.contains(" reconn/s: ") && !line.contains(" reconn/s: 0.00"));
    }

    fn read_until(&mut self, is_last: impl Fn(&str) -> bool) {
        loop {
            let before = self.text.len();
            assert!(self.output.read_line(&mut self.text).unwrap() > 0, "{}", self.text);
            if is_last(&self.text[before..]) {
                return;
            }
        }
    }

    /// Its exit code and its output.
    fn end(mut self) -> (Option<i32>, String) {
        std::io::Read::read_to_string(&mut self.output, &mut self.text).unwrap();
        (self.child.wait().unwrap().code(), self.text)
    }

    /// Stops it: it succeeds, every client has reconnected this often, and no transaction is halved.
    fn stop(self, options: &[&str], reconnects: f64) {
        std::fs::write(self.place.path("stop"), "").unwrap();
        let place = self.place;
        let (code, said) = self.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(figure(&said, "reconnects:") >= 4.0 * reconnects, "{said}");
        // A reconnect is not also an ignored error.
        assert!(!said.contains("connection lost") && figure(&said, "ignored errors:") == 0.0, "{said}");
        let sum = succeeds(place, &[options, &["pairs.lua", "cleanup"]].concat());
        assert!(sum.contains("sum 0\t") && !sum.contains("sum 0\t0\n"), "{sum}");
    }
}

/// PostgreSQL's driver had no list of ignored errors, so a restart always ended the run.
#[test]
#[needs(PostgreSql)]
fn postgresql_restart_is_survived_only_if_the_loss_is_ignored() {
    let place = TestDir::new();
    let server = PostgreSql::start(&[], &[]);
    let (host, port) =
        (format!("--pgsql-host={}", server.directory().display()), format!("--pgsql-port={}", server.port()));
    let user = format!("--pgsql-user={SUPERUSER}");
    let own = ["--db-driver=pgsql", &host, &port, &user, "--pgsql-db=postgres"];
    let terminate = || {
        let script = "function event() sysbench.sql.driver():connect():query([[SELECT pg_terminate_backend(pid)
            FROM pg_stat_activity WHERE application_name = 'rumba' AND pid <> pg_backend_pid()]]) end";
        std::fs::write(place.path("terminate.lua"), script).unwrap();
        succeeds(&place, &[&own[..], &["terminate.lua", "--events=1", "--time=0", "run"]].concat());
    };
    let options = [&own[..], &["--pgsql-ignore-errors=57P01,40001"]].concat();
    for mode in ["--db-ps-mode=auto", "--db-ps-mode=disable"] {
        let options = [&options[..], &[mode]].concat();
        let mut run = Run::start(&place, &options);
        terminate();
        run.reconnects();
        run.goes_on();
        server.kill();
        server.start_again();
        run.reconnects();
        run.goes_on();
        run.stop(&options, 2.0);
    }
    let run = Run::start(&place, &own);
    terminate();
    let (code, said) = run.end();
    assert!(code == Some(1) && said.contains("returned error 08006 (") && said.contains(" 57P01: "), "{said}");
    assert!(said.contains("--pgsql-ignore-errors"), "{said}");
}
