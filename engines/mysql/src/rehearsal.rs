//! Tests the statements of a trial on an existing server before the load. A missing privilege would otherwise end the
//! trial after its load, or leave data in the schema.

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::setting::SettingError;
use rumba_protocol_mysql::WireError;

use crate::counters::{Kind, Request, Server, debt, is_denied, purge_progress};
use crate::software::Brand;
use crate::sql::{firsts, quoted, text};
use crate::upkeep::{Patience, existing};
use rumba_server_kit::dsn::FLUSH_NO;
use rumba_server_kit::version::Version;

/// The temporary table for the rehearsal.
pub const TABLE: &str = "rumba_rehearsal";

/// `ER_NO_SUCH_TABLE` and `ER_BAD_DB_ERROR`: the errors for a missing table if the user has the privilege.
const NO_SUCH_TABLE: [u16; 2] = [1146, 1049];

/// Refuses a user without the privileges for settle and drain. It creates, flushes and changes nothing, because a dry
/// run calls it as well. [`rehearse`] finds the privileges that only a table can show.
///
/// # Errors
/// The server's error, and the statements that grant the missing privileges.
pub fn check(admin: &mut dyn Request, server: &Server, schema: &str) -> Result<(), SettingError> {
    // A server checks the privileges before it looks for the table, which does not exist.
    let flush = format!("FLUSH LOCAL TABLES {}.{}", quoted(schema), quoted(TABLE));
    let export = format!("{flush} FOR EXPORT");
    let statements = match server.kind {
        Kind::InnoDb => vec![export.as_str()],
        // A MyRocks command is a variable assignment; this one sets a variable to its current value.
        Kind::RocksDb => vec![
            "SET GLOBAL rocksdb_flush_log_at_trx_commit = @@GLOBAL.rocksdb_flush_log_at_trx_commit",
            "SELECT CF_NAME FROM information_schema.ROCKSDB_CF_OPTIONS LIMIT 1",
            "SELECT CF_NAME FROM information_schema.ROCKSDB_CFSTATS LIMIT 1",
        ],
        Kind::TokuDb | Kind::Other(_) => vec![flush.as_str()],
    };
    for sql in statements {
        match admin.fetch(sql) {
            Err(WireError::Server { code, .. }) if NO_SUCH_TABLE.contains(&code) => {}
            Err(error @ WireError::Server { code, .. }) if is_denied(code) => {
                let problem = format!("the user lacks privileges that settle and drain need: {error}, in: {sql}");
                return Err(lacking(admin, server, schema, problem));
            }
            // Other errors are reported when the statement is needed, which is also before the load.
            _ => {}
        }
    }
    // If a killed trial left the table, the statement above has locked it.
    let _ = admin.fetch("UNLOCK TABLES");
    if server.kind == Kind::InnoDb && !sees_purge(admin) {
        let problem = "settle and drain wait for purge, and the server does not show this user its progress";
        return Err(lacking(admin, server, schema, problem.to_owned()));
    }
    Ok(())
}

fn lacking(admin: &mut dyn Request, server: &Server, schema: &str, problem: String) -> SettingError {
    SettingError::new("server", problem, format!("{FLUSH_NO}, or {}", grants(admin, server, schema)))
}

fn sees_purge(admin: &mut dyn Request) -> bool {
    let history = debt(admin, &Server::new(Kind::InnoDb, "")).get("history_list_length");
    history.is_some() || purge_progress(admin).is_some()
}

/// Runs the statements of loaders, clients, settle and drain once, with a one-row table in the taken schema.
///
/// # Errors
/// The first statement that the server refuses, and the statements that grant the missing privileges.
pub fn rehearse(
    admin: &mut dyn Request,
    server: &Server,
    schema: &str,
    table_options: &str,
    flushes: bool,
) -> Result<()> {
    let table = format!("{}.{}", quoted(schema), quoted(TABLE));
    let statements = [
        format!("CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, value INT NOT NULL) {table_options}"),
        format!("INSERT INTO {table} VALUES (1, 1)"),
        format!("SELECT value FROM {table} WHERE id = 1 FOR UPDATE"),
        format!("UPDATE {table} SET value = 2 WHERE id = 1"),
        format!("ALTER TABLE {table} ADD KEY value (value)"),
        format!("DELETE FROM {table} WHERE id = 1"),
    ];
    for sql in &statements {
        admin.fetch(sql).map_err(|error| refused(admin, server, schema, &error, sql))?;
    }
    if let Err(error) = existing::settle(admin, server, schema, &Patience::default(), flushes) {
        // The message contains the server's error; an administrator may grant the privilege.
        return Err(with_remedy(error, &grants(admin, server, schema)));
    }
    let drop = format!("DROP TABLE IF EXISTS {table}");
    admin.fetch(&drop).map_err(|error| refused(admin, server, schema, &error, &drop))?;
    Ok(())
}

const CALL: &str = "rehearsal on the server";

fn refused(admin: &mut dyn Request, server: &Server, schema: &str, error: &WireError, sql: &str) -> EngineError {
    let reported = error.during(CALL).followed_by(&format!(", in: {sql}"));
    match error {
        WireError::Server { code, .. } if is_denied(*code) => {
            reported.followed_by(&format!("; {}", grants(admin, server, schema)))
        }
        _ => reported,
    }
}

/// Adds the grants to an error about a missing privilege.
fn with_remedy(error: EngineError, grants: &str) -> EngineError {
    if error.to_string().contains("denied") { error.followed_by(&format!("; {grants}")) } else { error }
}

/// MySQL's versions since which a narrower privilege than SUPER permits to set variables, and one than RELOAD to flush
/// tables.
const SETS_VARIABLES: Version = Version(8, 0, 0);
const FLUSHES_TABLES: Version = Version(8, 0, 23);

/// The fewest privileges on the whole server that settle and drain need.
fn of_server(server: &Server) -> &'static str {
    let is_mysql_since = |version| server.brand == Brand::MySql && server.version >= version;
    match server.kind {
        Kind::InnoDb if is_mysql_since(FLUSHES_TABLES) => "FLUSH_TABLES, PROCESS",
        Kind::InnoDb => "RELOAD, PROCESS",
        Kind::RocksDb if is_mysql_since(SETS_VARIABLES) => "SYSTEM_VARIABLES_ADMIN, PROCESS",
        Kind::RocksDb => "SUPER, PROCESS",
        Kind::TokuDb | Kind::Other(_) => "RELOAD",
    }
}

/// The statements by which an administrator grants a trial's privileges.
fn grants(admin: &mut dyn Request, server: &Server, schema: &str) -> String {
    let of_server = of_server(server);
    let account = firsts(admin, "SELECT CURRENT_USER()").unwrap_or_default().into_iter().next().unwrap_or_default();
    let (user, host) = account.rsplit_once('@').unwrap_or((&account, "%"));
    let whom = format!("{}@{}", text(user), text(host));
    format!(
        "have an administrator run: GRANT {of_server} ON *.* TO {whom}; GRANT ALL PRIVILEGES ON {}.* TO {whom}",
        quoted(schema)
    )
}

#[cfg(test)]
mod tests {
    use rumba_protocol_mysql::Rows;

    use super::*;
    use crate::counters::tests::server::{Private, run};

    const OPTIONS: &str = "ENGINE=InnoDB";

    /// Runs the statements of the error as an administrator.
    fn granted(admin: &mut dyn Request, remedy: &str) {
        let (_, statements) = remedy.split_once("run: ").expect("statements");
        for sql in statements.split("; ") {
            admin.fetch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// A run loaded for an hour and only then failed in settle because of a missing privilege.
    #[test]
    #[needs(MariaDb)]
    fn missing_settle_rights_are_refused_with_needed_grants() {
        let private = Private::start(&[]);
        let mut root = private.connect();
        run(&mut root, &["CREATE USER lab@localhost", "GRANT ALL ON lab.* TO lab@localhost"]);
        let innodb = private.server(Kind::InnoDb);
        let error = check(&mut private.connect_as("lab"), &innodb, "lab").expect_err("it lacks RELOAD");
        assert!(error.problem.contains("1227") && error.problem.contains("RELOAD"), "{error:?}");
        assert!(error.remedy.contains("GRANT RELOAD, PROCESS ON *.* TO 'lab'@'localhost'"), "{error:?}");
        granted(&mut root, &error.remedy);
        let mut user = private.connect_as("lab");
        check(&mut user, &innodb, "lab").expect("the granted privileges are enough");
        assert_eq!(root.fetch("SHOW DATABASES LIKE 'lab'").expect("schemas").rows.len(), 0, "nothing was made");
        // The granted privileges must also suffice for the real run.
        run(&mut user, &["CREATE DATABASE lab"]);
        rehearse(&mut user, &innodb, "lab", OPTIONS, true).expect("the granted privileges are enough");
        assert_eq!(root.fetch("SHOW TABLES FROM lab").expect("tables").rows.len(), 0, "nothing is left");
        // A user who may not make an index learns it before the load.
        let most = "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, LOCK TABLES ON lab.* TO few@localhost";
        run(&mut root, &["CREATE USER few@localhost", most, "GRANT RELOAD, PROCESS ON *.* TO few@localhost"]);
        let mut few = private.connect_as("few");
        check(&mut few, &innodb, "lab").expect("of settle and drain nothing is missing");
        let error = rehearse(&mut few, &innodb, "lab", OPTIONS, true).expect_err("no index");
        let words = error.to_string();
        assert!(words.contains("denied") && words.contains("ADD KEY") && words.contains("GRANT ALL"), "{words}");
    }

    #[test]
    #[needs(MariaDb, MyRocks)]
    fn for_myrocks_a_command_must_be_allowed() {
        let private = Private::with_myrocks();
        let mut root = private.connect();
        run(&mut root, &["CREATE USER lab@localhost", "GRANT ALL ON lab.* TO lab@localhost"]);
        let myrocks = private.server(Kind::RocksDb);
        let error = check(&mut private.connect_as("lab"), &myrocks, "lab").expect_err("it lacks SUPER");
        assert!(error.problem.contains("1227"), "{error:?}");
        assert!(error.remedy.contains("GRANT SUPER, PROCESS ON *.* TO 'lab'@'localhost'"), "{error:?}");
        granted(&mut root, &error.remedy);
        let mut user = private.connect_as("lab");
        check(&mut user, &myrocks, "lab").expect("the granted privileges are enough");
        run(&mut user, &["CREATE DATABASE lab"]);
        rehearse(&mut user, &myrocks, "lab", "ENGINE=ROCKSDB", true).expect("also for settle");
    }

    /// A server that permits everything and records it.
    #[derive(Default)]
    struct Recording(Vec<String>);

    impl Request for Recording {
        fn fetch(&mut self, sql: &str) -> Result<Rows, WireError> {
            self.0.push(sql.to_owned());
            Ok(Rows::default())
        }
    }

    /// A dry run flushed the logs of all engines, and required RELOAD although settle and drain do not need it.
    #[test]
    fn check_flushes_nothing_and_requests_for_the_fewest_privileges() {
        for (kind, version, privileges) in [
            (Kind::InnoDb, "10.11.14-MariaDB", "RELOAD, PROCESS"),
            (Kind::InnoDb, "5.7.44", "RELOAD, PROCESS"),
            (Kind::InnoDb, "8.0.36", "FLUSH_TABLES, PROCESS"),
            (Kind::RocksDb, "10.11.14-MariaDB", "SUPER, PROCESS"),
            (Kind::RocksDb, "8.0.36-28", "SYSTEM_VARIABLES_ADMIN, PROCESS"),
            (Kind::of("Aria"), "10.11.14-MariaDB", "RELOAD"),
        ] {
            let (mut requested, server) = (Recording::default(), Server::new(kind, version));
            // InnoDB is refused here, because this server does not report its purge.
            let _ = check(&mut requested, &server, "lab");
            let mut flushes = requested.0.iter().filter(|sql| sql.contains("FLUSH"));
            assert!(
                flushes.all(|sql| sql.starts_with("FLUSH LOCAL TABLES `lab`.`rumba_rehearsal`")),
                "{:?}",
                requested.0
            );
            let remedy = grants(&mut requested, &server, "lab");
            assert!(remedy.contains(&format!("run: GRANT {privileges} ON *.* TO")), "{remedy}");
        }
    }
}
