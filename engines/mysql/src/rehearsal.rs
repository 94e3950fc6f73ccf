//! Tests the statements of a trial on an existing server before the load. A missing privilege would otherwise end the
//! trial after its load, or leave data in the schema.

use rumba_engine_api::error::EngineError;
use rumba_engine_api::setting::SettingError;
use rumba_protocol_mysql::WireError;

use crate::counters::{Ask, Kind, Server, debt, is_denied, purge_progress};
use crate::existing::quoted;
use crate::upkeep::{Patience, existing};

/// The temporary table for the rehearsal.
const TABLE: &str = "rumba_rehearsal";

/// `ER_NO_SUCH_TABLE` and `ER_BAD_DB_ERROR`: the errors for a missing table if the user has the privilege.
const NO_SUCH_TABLE: [u16; 2] = [1146, 1049];

/// Refuses a user without the privileges for settle and drain, without creating anything. [`rehearse`] finds the
/// privileges that only a table can show.
///
/// # Errors
/// The server's error, and the statements that grant the missing privileges.
pub fn check(admin: &mut dyn Ask, kind: &Kind, schema: &str) -> Result<(), SettingError> {
    let table = format!("{}.{}", quoted(schema), quoted(TABLE));
    let export = format!("FLUSH LOCAL TABLES {table} FOR EXPORT");
    let statements = match kind {
        Kind::InnoDb => vec!["FLUSH LOCAL ENGINE LOGS", export.as_str()],
        // A MyRocks command is a variable assignment; this one sets a variable to its current value.
        Kind::RocksDb => vec![
            "SET GLOBAL rocksdb_flush_log_at_trx_commit = @@GLOBAL.rocksdb_flush_log_at_trx_commit",
            "SELECT CF_NAME FROM information_schema.ROCKSDB_CF_OPTIONS LIMIT 1",
            "SELECT CF_NAME FROM information_schema.ROCKSDB_CFSTATS LIMIT 1",
        ],
        Kind::Other(_) => vec!["FLUSH LOCAL ENGINE LOGS"],
    };
    for sql in statements {
        match admin.ask(sql) {
            Err(WireError::Server { code, .. }) if NO_SUCH_TABLE.contains(&code) => {}
            Err(error @ WireError::Server { code, .. }) if is_denied(code) => {
                let problem = format!("settle and drain need what the user may not do: {error}, in: {sql}");
                return Err(SettingError::new("server", problem, grants(admin, kind, schema)));
            }
            // Other errors are reported when the statement is needed, which is also before the load.
            _ => {}
        }
    }
    // If a killed trial left the table, the statement above has locked it.
    let _ = admin.ask("UNLOCK TABLES");
    if *kind == Kind::InnoDb && !sees_purge(admin) {
        let problem = "settle and drain wait for purge, and the server does not tell this user how far it is";
        return Err(SettingError::new("server", problem, grants(admin, kind, schema)));
    }
    Ok(())
}

fn sees_purge(admin: &mut dyn Ask) -> bool {
    let history = debt(admin, &Server::new(Kind::InnoDb, "")).get("history_list_length");
    history.is_some() || purge_progress(admin).is_some()
}

/// Runs the statements of loaders, clients, settle and drain once, with a one-row table in the taken schema.
///
/// # Errors
/// The first statement that the server refuses, and the statements that grant the missing privileges.
pub fn rehearse(
    admin: &mut dyn Ask,
    server: &Server,
    schema: &str,
    table_options: &str,
    patience: &Patience,
) -> Result<(), EngineError> {
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
        admin.ask(sql).map_err(|error| refused(admin, server, schema, &error, sql))?;
    }
    if let Err(error) = existing::settle(admin, server, schema, patience) {
        // The message contains the server's error; an administrator may grant the privilege.
        return Err(with_remedy(error, &grants(admin, &server.kind, schema)));
    }
    let drop = format!("DROP TABLE IF EXISTS {table}");
    admin.ask(&drop).map_err(|error| refused(admin, server, schema, &error, &drop))?;
    Ok(())
}

const CALL: &str = "rehearsal on the server";

fn refused(admin: &mut dyn Ask, server: &Server, schema: &str, error: &WireError, sql: &str) -> EngineError {
    let told = error.during(CALL).followed_by(&format!(", in: {sql}"));
    match error {
        WireError::Server { code, .. } if is_denied(*code) => {
            told.followed_by(&format!("; {}", grants(admin, &server.kind, schema)))
        }
        _ => told,
    }
}

/// Adds the grants to an error about a missing privilege.
fn with_remedy(error: EngineError, grants: &str) -> EngineError {
    if error.to_string().contains("denied") { error.followed_by(&format!("; {grants}")) } else { error }
}

/// The statements by which an administrator grants a trial's privileges.
fn grants(admin: &mut dyn Ask, kind: &Kind, schema: &str) -> String {
    let of_server = match kind {
        Kind::InnoDb => "RELOAD, PROCESS",
        Kind::RocksDb => "SUPER, RELOAD, PROCESS",
        Kind::Other(_) => "RELOAD",
    };
    let told = admin.ask("SELECT CURRENT_USER()").ok();
    let account = told.and_then(|rows| rows.rows.into_iter().next()?.into_iter().next()?).unwrap_or_default();
    let (user, host) = account.rsplit_once('@').unwrap_or((&account, "%"));
    let whom = format!("{}@{}", crate::existing::text(user), crate::existing::text(host));
    format!(
        "have an administrator run: GRANT {of_server} ON *.* TO {whom}; GRANT ALL PRIVILEGES ON {}.* TO {whom}",
        quoted(schema)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::tests::server::{Private, run};

    const OPTIONS: &str = "ENGINE=InnoDB";

    /// Runs the statements of the error as an administrator.
    fn granted(admin: &mut dyn Ask, remedy: &str) {
        let (_, statements) = remedy.split_once("run: ").expect("statements");
        for sql in statements.split("; ") {
            admin.ask(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// A run loaded for an hour and only then failed in settle because of a missing privilege.
    #[test]
    #[needs(MariaDb)]
    fn missing_settle_rights_are_refused_with_needed_grants() {
        let private = Private::start(&[]);
        let mut root = private.connect();
        run(&mut root, &["CREATE USER lab@localhost", "GRANT ALL ON lab.* TO lab@localhost"]);
        let error = check(&mut private.connect_as("lab"), &Kind::InnoDb, "lab").expect_err("it lacks RELOAD");
        assert!(error.problem.contains("1227") && error.problem.contains("RELOAD"), "{error:?}");
        assert!(error.remedy.contains("GRANT RELOAD, PROCESS ON *.* TO 'lab'@'localhost'"), "{error:?}");
        granted(&mut root, &error.remedy);
        let mut user = private.connect_as("lab");
        check(&mut user, &Kind::InnoDb, "lab").expect("what was granted is enough");
        assert_eq!(root.ask("SHOW DATABASES LIKE 'lab'").expect("schemas").rows.len(), 0, "nothing was made");
        // The granted privileges must also suffice for the real run.
        run(&mut user, &["CREATE DATABASE lab"]);
        let innodb = private.server(Kind::InnoDb);
        rehearse(&mut user, &innodb, "lab", OPTIONS, &Patience::default()).expect("what was granted is enough");
        assert_eq!(root.ask("SHOW TABLES FROM lab").expect("tables").rows.len(), 0, "nothing is left");
    }

    #[test]
    #[needs(MariaDb)]
    fn a_user_who_may_not_make_an_index_learns_it_before_the_load() {
        let private = Private::start(&[]);
        let mut root = private.connect();
        let most = "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, LOCK TABLES ON lab.* TO lab@localhost";
        run(&mut root, &["CREATE DATABASE lab", "CREATE USER lab@localhost", most]);
        run(&mut root, &["GRANT RELOAD, PROCESS ON *.* TO lab@localhost"]);
        let innodb = private.server(Kind::InnoDb);
        let mut user = private.connect_as("lab");
        check(&mut user, &Kind::InnoDb, "lab").expect("of settle and drain nothing is missing");
        let error = rehearse(&mut user, &innodb, "lab", OPTIONS, &Patience::default()).expect_err("no index");
        let words = error.to_string();
        assert!(words.contains("denied") && words.contains("ADD KEY") && words.contains("GRANT ALL"), "{words}");
    }

    #[test]
    #[needs(MariaDb, MyRocks)]
    fn for_myrocks_a_command_must_be_allowed() {
        let private = Private::with_myrocks();
        let mut root = private.connect();
        run(&mut root, &["CREATE USER lab@localhost", "GRANT ALL ON lab.* TO lab@localhost"]);
        let error = check(&mut private.connect_as("lab"), &Kind::RocksDb, "lab").expect_err("it lacks SUPER");
        assert!(error.problem.contains("1227"), "{error:?}");
        granted(&mut root, &error.remedy);
        check(&mut private.connect_as("lab"), &Kind::RocksDb, "lab").expect("what was granted is enough");
    }
}
