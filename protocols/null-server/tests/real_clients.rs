//! Tests with widely used clients.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod common;

use std::process::{Command, Output};

use common::TestServer;
use rumba_null_server::{Config, Listen, NullServer};

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn over(socket: &str, more: &[&str]) -> Output {
    let args = [&["--no-defaults", "--batch", "--skip-column-names", "--socket", socket], more].concat();
    run("mariadb", &args)
}

#[test]
#[needs(MariaDbClient)]
fn the_mariadb_client_talks_to_it() {
    let place = TestServer::new(|config| (config.rows, config.row_bytes) = (2, 3));
    let socket = place.socket();
    let socket = socket.to_str().unwrap();
    let sql = "select 1; select c from t; insert into t values (1); select @@version_comment; use other; \
               select database()";
    let output = over(socket, &["-e", sql]);
    assert_eq!(text(&output), "1\n074\n074\nrumba null-server: fixed answers\nother\n");
    let output = over(socket, &["-e", "select @@nonsense"]);
    assert!(text(&output).contains("ERROR 1193 (HY000)"), "{}", text(&output));
    let output = over(socket, &["--user=x", "--password=y", "db", "-e", "status"]);
    assert!(text(&output).contains("8.0.0-rumba-null"), "{}", text(&output));

    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows");
    std::fs::write(&file, "1\t2\n".repeat(300_000)).unwrap();
    let load = format!("load data local infile '{}' into table t; select 5", file.display());
    let output = over(socket, &["--local-infile=1", "-e", &load]);
    assert_eq!(text(&output), "5\n");
}

#[test]
#[needs(Sysbench)]
fn sysbench_prepares_and_runs_over_socket_and_tcp() {
    let place = TestServer::new(|_| {});
    let tcp = NullServer::start(&Config::new(Listen::Port(0))).unwrap();
    let port = format!("--mysql-port={}", tcp.place().rsplit(':').next().unwrap());
    let socket = format!("--mysql-socket={}", place.socket().display());
    let prepare = ["oltp_read_write", "--table-size=10000", "--tables=2", &socket, "prepare"];
    let output = run("sysbench", &prepare);
    assert!(output.status.success(), "{}", text(&output));
    for (at, mode) in [(&[&*socket][..], "auto"), (&["--mysql-host=127.0.0.1", &port], "disable")] {
        let mode = format!("--db-ps-mode={mode}");
        let options = ["oltp_read_write", &mode, "--threads=4", "--events=2000", "--time=0", "--mysql-user=x"];
        let output = run("sysbench", &[&options, at, &["--mysql-password=y", "run"]].concat());
        let reported = text(&output);
        assert!(output.status.success(), "{reported}");
        let total = reported.lines().find(|line| line.trim_start().starts_with("total:")).unwrap();
        assert_eq!(total.split_whitespace().last(), Some("40000"), "{reported}");
        assert!(reported.contains("ignored errors:                      0 "), "{reported}");
    }
}
