//! Creates data directories and caches them as templates.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;

use rumba_engine_api::error::{EngineError, Result};

use rumba_server_kit::cache;
use rumba_server_kit::failure::full_or_failed;
use rumba_server_kit::process::{Signals, dies_with_us};
use rumba_server_kit::template;
use rumba_server_kit::version::Version;

use crate::failure::LOG_WORDS;
use crate::software::{Brand, Software};

/// Variables that take effect when the data directory is created, and must not change afterwards.
const AT_INSTALL: [&str; 8] = [
    "innodb_page_size",
    "innodb_data_file_path",
    "innodb_undo_tablespaces",
    "innodb_checksum_algorithm",
    "innodb_log_block_size",
    "lower_case_table_names",
    "innodb_encrypt_log",
    "innodb_undo_log_encrypt",
];

/// Whether a variable takes effect at the creation of the data directory.
pub fn is_at_install(name: &str) -> bool {
    AT_INSTALL.contains(&name)
}

/// Creates a data directory at `data`. If possible it copies a template made earlier with the same server and settings.
///
/// # Errors
/// The server's error from creating it; a full device.
pub fn provide(software: &Software, settings: &[(String, String)], data: &Path) -> Result<()> {
    let mut key = software.build();
    for (name, value) in settings {
        key.push_str(&format!("\n{name}={value}"));
    }
    key.push_str(RECIPE);
    template::provide(&software.short_name(), &key, data, |data, adjacent| {
        initialise(software, settings, data, adjacent)
    })
}

/// Version of the recipes below; change it so that older templates are not used.
const RECIPE: &str = "\nrecipe 2";

fn initialise(software: &Software, settings: &[(String, String)], data: &Path, adjacent: &Path) -> Result<()> {
    let failed = |error: io::Error| full_or_failed("initialise", error.to_string());
    let (log, temporary) = (adjacent.join("log"), adjacent.join("tmp"));
    cache::make_private(&temporary).map_err(failed)?;
    let has_own_way = software.brand == Brand::MySql && software.version >= Version(5, 7, 0);
    let sql = if has_own_way { None } else { Some(bootstrap_sql(software)?) };
    let mut command = software.command();
    command.arg("--no-defaults").arg(if has_own_way { "--initialize-insecure" } else { "--bootstrap" });
    let mut options = software.options();
    options.push(("datadir".into(), data.display().to_string()));
    // A second server that starts with the same temporary directory would delete this one's files.
    options.push(("tmpdir".into(), temporary.display().to_string()));
    options.extend(small_log(software));
    options.extend(settings.iter().cloned());
    if sql.is_some() {
        cache::make_private(&data.join("mysql")).map_err(failed)?;
        options.push(("max_allowed_packet".into(), "8M".into()));
    }
    command.args(options.iter().map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))));
    let file = File::create(&log).map_err(failed)?;
    command.stdout(file.try_clone().map_err(failed)?).stderr(file);
    command.stdin(if sql.is_some() { Stdio::piped() } else { Stdio::null() });
    dies_with_us(&mut command, Signals::ONE_PROCESS.abort);
    let mut child = command.spawn().map_err(failed)?;
    if let (Some(sql), Some(mut stdin)) = (sql, child.stdin.take()) {
        // If the write fails because the server ended early, the log contains the reason.
        let _ = stdin.write_all(sql.as_bytes());
    }
    let status = child.wait().map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    let reported: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let explained = LOG_WORDS.explain(&text, &reported);
    Err(full_or_failed("initialise", format!("{} ended with {status}; {explained}", software.program.display())))
}

/// A small log keeps the template small. The server resizes the log at the start.
fn small_log(software: &Software) -> Vec<(String, String)> {
    let small = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    match software.brand {
        Brand::MySql if software.version >= Version(8, 0, 30) => small("innodb_redo_log_capacity", "8388608"),
        _ => small("innodb_log_file_size", "4M"),
    }
}

/// SQL from the server's own files that creates the system tables. It leaves one user, `root` on localhost, who gets a
/// password at every start.
fn bootstrap_sql(software: &Software) -> Result<String> {
    let missing = |name: &str| {
        let message = format!("{} has no {name} in its share directory", software.base.display());
        EngineError::failed("initialise", message)
    };
    let mut sql = String::from("use mysql;\n");
    let (files, users): (&[&[&str]], _) = match software.brand {
        Brand::MariaDb => (
            &[
                &["mariadb_system_tables.sql", "mysql_system_tables.sql"],
                &["mariadb_performance_tables.sql", "mysql_performance_tables.sql"],
                &["mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"],
            ],
            "DELETE FROM mysql.global_priv WHERE User <> 'mariadb.sys' AND NOT (User = 'root' AND Host = 'localhost');\n",
        ),
        Brand::MySql => (
            &[&["mysql_system_tables.sql"], &["mysql_system_tables_data.sql"]],
            "DELETE FROM mysql.user WHERE NOT (User = 'root' AND Host = 'localhost');\n",
        ),
    };
    if software.brand == Brand::MariaDb {
        sql = format!("create database if not exists mysql;\n{sql}SET @auth_root_socket=NULL;\n");
    }
    for names in files {
        let file = software.sql_file(names).ok_or_else(|| missing(names[0]))?;
        let text = fs::read(&file)
            .map_err(|error| EngineError::failed("initialise", format!("{}: {error}", file.display())))?;
        sql.push_str(&String::from_utf8_lossy(&text));
        sql.push('\n');
    }
    sql.push_str(users);
    sql.push_str("DELETE FROM mysql.proxies_priv;\nDELETE FROM mysql.db;\n");
    Ok(sql)
}
