//! The drop-in follows libpq's environment, as sysbench does through that library.

use std::process::Output;

use rumba_testkit::postgresql::{PostgreSql, SUPERUSER};

use super::{TestDir, text};

const SCRIPT: &str = "function event()
        local con = sysbench.sql.driver():connect()
        print('shown', con:query_row([[SELECT current_setting('synchronous_commit') || ' ' ||
            current_setting('search_path') || ' ' || current_setting('application_name') || ' ' ||
            current_setting('client_encoding') || ' ' || current_setting('DateStyle') || ' ' || current_user]]))
    end";

/// One event of the script, with these options and variables.
fn run(options: &[&str], variables: &[(&str, &str)]) -> Output {
    let place = TestDir::new();
    std::fs::write(place.path("own.lua"), SCRIPT).unwrap();
    let mut command = place.rumba(&["sysbench", "own.lua", "--db-driver=pgsql", "--events=1", "--time=0"]);
    command.args(options).arg("run").envs(variables.iter().copied()).output().unwrap()
}

fn shown(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(output));
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find_map(|line| line.strip_prefix("shown\t"));
    line.unwrap_or_else(|| panic!("{said}")).to_owned()
}

/// `PGOPTIONS=-c search_path=s2` was ignored, so other tables were measured.
#[test]
#[needs(PostgreSql)]
fn libpq_variables_apply_where_no_option_is_given() {
    let server = PostgreSql::start(&[], &[]);
    let (directory, port) = (server.directory().display().to_string(), server.port().to_string());
    let variables = [
        ("PGHOST", &*directory),
        ("PGPORT", &*port),
        ("PGUSER", SUPERUSER),
        ("PGDATABASE", "postgres"),
        ("PGOPTIONS", "-c synchronous_commit=off -c search_path=s2"),
        ("PGAPPNAME", "mine"),
        ("PGCLIENTENCODING", "LATIN1"),
        ("PGDATESTYLE", "SQL, DMY"),
    ];
    let expected = format!("off s2 mine LATIN1 SQL, DMY {SUPERUSER}");
    assert_eq!(shown(&run(&[], &variables)), expected);
    assert_eq!(shown(&run(&["--db-ps-mode=disable"], &variables)), expected);
    // Options precede variables.
    let (host, port) = (format!("--pgsql-host={directory}"), format!("--pgsql-port={port}"));
    let user = format!("--pgsql-user={SUPERUSER}");
    let wrong = [("PGHOST", "/nowhere"), ("PGPORT", "1"), ("PGUSER", "nobody"), ("PGDATABASE", "nothing")];
    let given = shown(&run(&[&host, &port, &user, "--pgsql-db=postgres"], &wrong));
    assert!(given.starts_with("on \"$user\", public rumba UTF8 ISO, MDY"), "{given}");
}
