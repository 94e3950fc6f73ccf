//! Trials in a database of an existing server.

use rumba_engine_api::engine::{Engine, EngineConfig, Instance, ProcessLocation, Schema};
use rumba_engine_api::sql::Param;
use rumba_engine_api::worker::block_on;
use rumba_protocol_postgresql::{Address, Admin, Secret, Target, Tls};
use rumba_testkit::postgresql::{PostgreSql as Server, SUPERUSER};

use super::{config, private, set, sql};
use crate::PostgreSql;

fn start() -> Server {
    Server::start(&[], &["host all all 127.0.0.1/32 trust"])
}

/// A superuser's connection to a database.
fn connect(server: &Server, database: &str) -> Admin {
    let target = Target {
        address: Address::Socket(server.socket()),
        user: SUPERUSER.into(),
        password: Secret::default(),
        database: Some(database.into()),
        tls: Tls::Off,
    };
    Admin::connect(&target, crate::existing::PATIENCE).expect("connected")
}

/// The configuration of trials in a database.
fn on(server: &Server, user: &str, database: &str) -> EngineConfig {
    let dsn = format!("postgresql://{user}@127.0.0.1:{}/{database}", server.port());
    EngineConfig { server: Some(dsn), ..config() }
}

fn open(config: &EngineConfig) -> Result<Box<dyn Instance>, rumba_engine_api::error::EngineError> {
    PostgreSql.open(private().path(), config, Schema::BySession)
}

/// The cells of an answer's first row, with spaces in between.
fn row(admin: &mut Admin, query: &str) -> String {
    let rows = admin.query(query).expect("an answer").rows;
    let cells = rows.into_iter().next().unwrap_or_default();
    cells.into_iter().map(|cell| cell.unwrap_or_default()).collect::<Vec<_>>().join(" ")
}

/// The names of all relations in user schemas.
const RELATIONS: &str = "SELECT string_agg(relnamespace::regnamespace::text || '.' || relname, ' ') FROM pg_class \
    WHERE relkind IN ('r', 'v', 'p', 'S') AND relnamespace::regnamespace::text NOT IN ('pg_catalog', \
    'information_schema', 'pg_toast')";

/// An existing server is not reconfigured, and its database must be empty.
#[test]
#[needs(PostgreSql)]
fn unsuitable_databases_are_refused_with_the_cause() {
    let server = start();
    let config = on(&server, SUPERUSER, "lab");
    let missing = PostgreSql.check(&config).expect_err("there is no such database");
    assert!(missing.remedy.contains("CREATE DATABASE \"lab\""), "{missing:?}");
    let mut admin = connect(&server, "postgres");
    admin.query("CREATE DATABASE lab TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'").expect("a database");
    PostgreSql.check(&config).expect("it is empty");
    let mut without = config.clone();
    set(&mut without, "full_page_writes", "off");
    assert!(PostgreSql.check(&without).is_err(), "the server has it on");
    let instance = open(&config).expect("taken");
    let second = open(&config).err().expect("one at a time").to_string();
    assert!(second.contains("another trial uses the database lab"), "{second}");
    instance.close().expect("given back");
    connect(&server, "lab").query("CREATE TABLE theirs (id int)").expect("a table");
    let foreign = PostgreSql.check(&config).expect_err("it is not empty");
    assert!(foreign.problem.contains("public.theirs"), "{foreign:?}");
    admin.query("CREATE DATABASE latin2 TEMPLATE template0 ENCODING LATIN2 LOCALE 'C'").expect("a database");
    let encoding = PostgreSql.check(&on(&server, SUPERUSER, "latin2")).expect_err("it lacks characters of LATIN1");
    assert!(encoding.problem.contains("LATIN2"), "{encoding:?}");
}

/// Tables in the user's own schema were not vacuumed, stayed behind, and made the next run fail.
#[test]
#[needs(PostgreSql)]
fn tables_in_the_users_own_schema_are_settled_and_dropped() {
    let server = start();
    let mut admin = connect(&server, "postgres");
    admin.query("CREATE ROLE lab LOGIN; GRANT pg_checkpoint TO lab").expect("a user");
    admin.query("CREATE DATABASE lab OWNER lab TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'").expect("a database");
    let mut lab = connect(&server, "lab");
    lab.query("CREATE SCHEMA lab AUTHORIZATION lab").expect("a schema");
    let config = on(&server, "lab", "lab");
    for is_killed in [true, false] {
        PostgreSql.check(&config).expect("empty, or rumba's");
        let instance = open(&config).expect("taken");
        let mut session = sql(&*instance);
        session.run("CREATE TABLE t (id bigserial PRIMARY KEY, v int)").expect("a table");
        session.run("INSERT INTO t (v) SELECT generate_series(1, 1000)").expect("rows");
        drop(session);
        instance.settle().expect("settled");
        let ProcessLocation::Server { pid, .. } = instance.place() else { panic!("a server has a process") };
        assert_eq!(pid, Some(server.pid()), "found by its loopback port");
        let vacuumed = "SELECT schemaname, vacuum_count, analyze_count FROM pg_stat_user_tables WHERE relname = 't'";
        assert_eq!(row(&mut lab, vacuumed), "lab 1 1");
        assert!(instance.effective_settings().contains(&("search_path".to_owned(), "lab, public".to_owned())));
        if is_killed {
            drop(instance);
            assert!(row(&mut lab, RELATIONS).contains("lab.t"), "a killed trial leaves its tables");
        } else {
            instance.close().expect("given back");
            assert_eq!(row(&mut lab, RELATIONS), "");
        }
    }
}

#[test]
#[needs(PostgreSql)]
fn users_without_rights_are_refused_or_leave_work_out() {
    let server = start();
    let mut admin = connect(&server, "postgres");
    admin.query("CREATE ROLE lab LOGIN").expect("a user");
    admin.query("CREATE DATABASE lab OWNER lab TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'").expect("a database");
    let refused = PostgreSql.check(&on(&server, "lab", "lab")).expect_err("no pg_checkpoint");
    assert!(refused.remedy.contains("`flush=no`") && refused.remedy.contains("GRANT pg_checkpoint"), "{refused:?}");
    let config = on(&server, "lab", "lab?flush=no");
    PostgreSql.check(&config).expect("no privilege of the server is needed");
    let instance = open(&config).expect("taken");
    sql(&*instance).run("CREATE TABLE t (id int PRIMARY KEY)").expect("a table");
    instance.settle().expect("vacuumed");
    instance.drain().expect("nothing to do");
    let unpaid = instance.unpaid().expect("a checkpoint");
    assert!(unpaid.contains("deferred writes") && unpaid.contains("`flush=no`"), "{unpaid}");
    instance.close().expect("given back");
    admin.query("CREATE ROLE guest LOGIN").expect("a user");
    let error = PostgreSql.check(&on(&server, "guest", "postgres")).expect_err("no schema to create tables in");
    assert!(error.problem.contains("may not create tables") && error.remedy.contains("GRANT CREATE"), "{error:?}");
    admin.query("ALTER ROLE guest SET search_path TO nowhere").expect("another path");
    let error = PostgreSql.check(&on(&server, "guest", "postgres")).expect_err("no schema at all");
    assert!(error.problem.contains("no schema that exists"), "{error:?}");
}

/// The end of a trial dropped all tables of the schema, with CASCADE, which reached others' views.
#[test]
#[needs(PostgreSql)]
fn objects_of_others_survive_a_trial_and_are_named() {
    let server = start();
    let mut admin = connect(&server, "postgres");
    admin.query("CREATE DATABASE lab TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'").expect("a database");
    let mut lab = connect(&server, "lab");
    let config = on(&server, SUPERUSER, "lab");
    let instance = open(&config).expect("taken");
    let mut session = sql(&*instance);
    session.run("CREATE TABLE t (id int PRIMARY KEY)").expect("a table");
    session.run("CREATE TABLE child (id int REFERENCES t)").expect("a table that refers to it");
    lab.query("CREATE TABLE users_payroll (id int PRIMARY KEY); CREATE TABLE theirs (id int)").expect("tables");
    lab.query("CREATE SCHEMA other; CREATE VIEW other.report AS SELECT * FROM public.t").expect("a view");
    lab.query("CREATE FUNCTION answer() RETURNS int LANGUAGE sql AS 'SELECT 42'").expect("a routine");
    // A table that exists already is not rumba's.
    assert!(session.run("CREATE TABLE theirs (id int)").is_err());
    drop(session);
    let error = instance.close().expect_err("others' objects are there").to_string();
    for words in ["public.t (", "other.report", "public.users_payroll", "public.theirs", "public.answer"] {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert!(!error.contains("users_payroll_pkey") && !error.contains("rumba_marker"), "{error}");
    let left = row(&mut lab, RELATIONS);
    for table in ["public.t", "other.report", "public.users_payroll", "public.theirs"] {
        assert!(left.contains(table), "{table}: {left}");
    }
    assert!(!left.contains("public.child"), "{left}");
    // Once they are gone, the next trial drops the rest.
    lab.query("DROP SCHEMA other CASCADE; DROP TABLE users_payroll, theirs; DROP FUNCTION answer()").expect("dropped");
    open(&config).expect("taken again").close().expect("given back");
    assert_eq!(row(&mut lab, RELATIONS), "");
}

/// Only databases in a character set of single bytes were accepted.
#[test]
#[needs(PostgreSql)]
fn database_in_utf8_stores_every_byte_of_a_workload() {
    let server = start();
    // The server's own database is in UTF8.
    let config = on(&server, SUPERUSER, "postgres");
    PostgreSql.check(&config).expect("accepted");
    let instance = open(&config).expect("taken");
    let settings = instance.effective_settings();
    assert!(settings.contains(&("client_encoding".to_owned(), "LATIN1".to_owned())), "{settings:?}");
    let mut session = sql(&*instance);
    session.run("CREATE TABLE t (id bigint PRIMARY KEY, v varchar(255))").expect("a table");
    let bytes: Vec<u8> = (1..=u8::MAX).collect();
    let rows = session.prepare_rows("t", &["id", "v"]).expect("rows");
    block_on(session.load_rows(rows, &[Param::Int(1), Param::Bytes(&bytes)])).expect("loaded");
    let insert = session.prepare("INSERT INTO t VALUES ($1, $2)").expect("a statement");
    block_on(session.execute(insert, &[Param::Int(2), Param::Bytes(&bytes)], &mut |_| {})).expect("inserted");
    let select = session.prepare("SELECT v FROM t ORDER BY id").expect("a statement");
    let mut found = Vec::new();
    block_on(session.execute(select, &[], &mut |row| found.push(row.bytes(0).to_vec()))).expect("rows");
    assert_eq!(found, [bytes.clone(), bytes]);
    drop(session);
    instance.close().expect("given back");
}
