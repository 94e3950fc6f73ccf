//! Options of databases and their drivers.

use super::Kind::{Flag, Int, List, Path, Size, Text};
use super::{Group, Kind, OptionInfo, option};

/// Options of every database.
pub static DATABASE: &[OptionInfo] = &[
    option(Group::Database, "db-driver", Text, Some("mysql"), "database driver: {mysql, pgsql, sqlite}"),
    option(
        Group::Database,
        "db-ps-mode",
        Text,
        Some("auto"),
        "whether statements are prepared on the server: {auto, disable}",
    ),
    option(
        Group::Database,
        "db-debug",
        Flag,
        Some("off"),
        "with --verbosity=5, report the times of statements and of their rows",
    ),
];

/// Options of MySQL and its kin.
pub static MYSQL: &[OptionInfo] = &[
    mysql("mysql-host", List, Some("localhost"), "hosts; connections use them in turn"),
    mysql("mysql-port", List, Some("3306"), "ports; connections use them in turn"),
    mysql("mysql-socket", List, None, "Unix sockets, instead of hosts and ports"),
    mysql("mysql-user", Text, Some("sbtest"), "user"),
    mysql("mysql-password", Text, Some(""), "password"),
    mysql("mysql-db", Text, Some("sbtest"), "database"),
    // In 1.0.20, and with client libraries without modes, this is a flag that is off. SslMode reads both forms.
    mysql(
        "mysql-ssl",
        Text,
        Some("disabled"),
        "encryption: {disabled, preferred, required, verify_ca, verify_identity}; alone, or on, it is required",
    ),
    mysql("mysql-ssl-key", Text, None, "file of the client's private key"),
    mysql("mysql-ssl-ca", Text, None, "file of the authorities that sign servers"),
    mysql("mysql-ssl-cert", Text, None, "file of the client's certificate"),
    mysql("mysql-ssl-cipher", Text, Some(""), "not supported"),
    mysql("mysql-compression", Flag, Some("off"), "not supported"),
    mysql("mysql-compression-algorithms", Text, Some("zlib"), "not supported"),
    mysql("mysql-debug", Flag, Some("off"), "not supported"),
    mysql("mysql-ignore-errors", List, Some("1213,1020,1205"), "errors after which an event is restarted, or \"all\""),
    mysql("mysql-dry-run", Flag, Some("off"), "send nothing, and treat all statements as done"),
];

/// Options of PostgreSQL.
pub static PGSQL: &[OptionInfo] = &[
    pgsql("pgsql-host", Text, Some("localhost"), "host"),
    pgsql("pgsql-port", Int, Some("5432"), "port"),
    pgsql("pgsql-user", Text, Some("sbtest"), "user"),
    pgsql("pgsql-password", Text, Some(""), "password"),
    pgsql("pgsql-db", Text, Some("sbtest"), "database"),
    pgsql(
        "pgsql-sslmode",
        Text,
        Some("prefer"),
        "encryption: {disable, allow, prefer, require, verify-ca, verify-full}",
    ),
    pgsql(
        "pgsql-ignore-errors",
        List,
        // A deadlock, a serialization failure, a duplicate key: sysbench's driver ignores no others.
        Some("40P01,40001,23505"),
        "SQLSTATEs after which an event is restarted, or \"all\"; 57P01 also reconnects",
    ),
];

/// Options of SQLite, for which sysbench has no driver.
pub static SQLITE: &[OptionInfo] = &[
    sqlite("sqlite-db", Path, Some("sbtest.sqlite"), "database file; created if missing"),
    sqlite(
        "sqlite-journal-mode",
        Text,
        Some("wal"),
        "journal of transactions: {wal, delete, truncate, persist, memory, off}",
    ),
    sqlite("sqlite-synchronous", Text, Some("full"), "when files are synced: {off, normal, full, extra}"),
    sqlite("sqlite-cache-size", Size, Some("64M"), "page cache, shared by all connections"),
    sqlite("sqlite-busy-timeout-ms", Int, Some("5000"), "milliseconds that a statement waits for a lock"),
    sqlite(
        "sqlite-ignore-errors",
        List,
        // SQLITE_BUSY and SQLITE_LOCKED, the counterparts of MySQL's deadlock and lock wait timeout.
        Some("5,6"),
        "errors after which an event is restarted, or \"all\"",
    ),
];

const fn mysql(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    option(Group::Driver("mysql"), name, kind, default, help)
}

const fn pgsql(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    option(Group::Driver("pgsql"), name, kind, default, help)
}

const fn sqlite(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    option(Group::Driver("sqlite"), name, kind, default, help)
}
