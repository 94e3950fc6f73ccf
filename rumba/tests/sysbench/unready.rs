//! Clients that cannot be made: one message says what was awaited or what is needed, and nothing stays on the server.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::existing::{Existing, PASSWORD};
use super::{TestDir, sysbench, text};

/// The one message about clients of a run that cannot start.
fn refusal(options: &[&str], clients: u32) -> String {
    let place = TestDir::new();
    let threads = format!("--threads={clients}");
    let words = [options, &["oltp_read_write", "--tables=2", &threads, "--time=1", "run"]].concat();
    let output = sysbench(&place, &words);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("FATAL: Threads initialization failed!\n").count(), 1, "{said}");
    let mut lines = said.lines().filter(|line| line.starts_with("FATAL: `thread_init' function failed: "));
    let line = lines.next().unwrap_or_else(|| panic!("{said}")).to_owned();
    assert_eq!(lines.next(), None, "{said}");
    let of_statements = said.lines().filter(|line| line.contains(" returned error ")).count();
    assert!(of_statements <= 1 && !said.contains("repeated"), "one, not one per client: {said}");
    line
}

fn has_all(line: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| line.contains(part)), "{parts:?}: {line}");
}

/// All that was reported was that the threads failed to initialize in time.
#[test]
fn silent_and_absent_servers_are_named_with_stage_and_clients() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let (_, port) = address.split_once(':').unwrap();
    let (mysql, pgsql) = (format!("--mysql-port={port}"), format!("--pgsql-port={port}"));
    let mysql = ["--mysql-host=127.0.0.1", &mysql, "--thread-init-timeout=1"];
    let pgsql = ["--db-driver=pgsql", "--pgsql-host=127.0.0.1", &pgsql, "--thread-init-timeout=1"];
    let plain = [&pgsql[..], &["--pgsql-sslmode=disable"]].concat();
    for (options, stage) in
        [(&mysql[..], "the greeting"), (&pgsql, "the answer to the TLS request"), (&plain, "the answer to the login")]
    {
        let awaited = format!("waiting for {stage} of {address}: no answer within 0.5 s");
        has_all(&refusal(options, 4), &[&awaited, "; 0 of 4 clients had connected"]);
    }
    // Its queue of connections is full, so the kernel answers no further attempt.
    rustix::net::listen(silent.as_fd(), 0).unwrap();
    let waiting: Vec<_> = (0..8).map(|_| connect_without_waiting(silent.local_addr().unwrap())).collect();
    for options in [&mysql[..], &plain] {
        let awaited = format!("connecting to {address}: ");
        has_all(&refusal(options, 4), &[&awaited, " within 0.5 s", "; 0 of 4 clients had connected"]);
    }
    drop((waiting, silent));
    for options in [&mysql[..], &pgsql] {
        let refused = format!("connecting to {address}: Connection refused");
        has_all(&refusal(options, 4), &[&refused, "; 0 of 4 clients had connected"]);
    }
}

fn connect_without_waiting(address: std::net::SocketAddr) -> Option<std::net::TcpStream> {
    std::net::TcpStream::connect_timeout(&address, Duration::from_millis(50)).ok()
}

#[test]
#[needs(MariaDb)]
fn mariadb_limits_are_named_with_the_number_needed() {
    let server = Existing::start(&["--max-connections=10"]);
    server.fetch("CREATE DATABASE sbtest");
    let (socket, password) =
        (format!("--mysql-socket={}", server.socket.display()), format!("--mysql-password={PASSWORD}"));
    let options = [&socket, "--mysql-user=root", &password];
    let place = TestDir::new();
    super::succeeds(&place, &[&options[..], &["oltp_common", "--tables=2", "--table-size=9", "prepare"]].concat());
    let left = || {
        let since = Instant::now();
        let rest = || server.fetch("SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'sbtest'");
        while rest() != ["0"] {
            assert!(since.elapsed() < Duration::from_secs(60), "{:?}", rest());
        }
        server.fetch(
            "SELECT variable_value FROM information_schema.global_status \
            WHERE variable_name = 'Prepared_stmt_count'",
        )
    };
    let connections = refusal(&options, 16);
    has_all(&connections, &["Too many connections", "max_connections", " of 16 clients had connected"]);
    assert_eq!(left(), ["0"]);
    server.fetch("SET GLOBAL max_prepared_stmt_count = 30");
    // BEGIN and COMMIT, and nine statements for each of two tables.
    let statements = refusal(&options, 8);
    has_all(&statements, &["max_prepared_stmt_count", "; 8 clients need 160 prepared statements, 20 each"]);
    assert_eq!(left(), ["0"]);
}
