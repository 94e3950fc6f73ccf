//! Options of databases and their drivers.

use super::Kind::{Flag, Int, List, Path, Size, Text};
use super::{OptionInfo, option, own};

/// Options of every database.
pub static DATABASE: &[OptionInfo] = &[
    option("db-driver", Text, Some("mysql"), "database driver: {mysql, pgsql, sqlite}"),
    option("db-ps-mode", Text, Some("auto"), "whether statements are prepared on the server: {auto, disable}"),
    option("db-debug", Flag, Some("off"), "with --verbosity=5, report the times of statements and of their rows"),
];

/// Options of MySQL and its kin.
pub static MYSQL: &[OptionInfo] = &[
    option("mysql-host", List, Some("localhost"), "hosts; connections use them in turn"),
    option("mysql-port", List, Some("3306"), "ports; connections use them in turn"),
    option("mysql-socket", List, None, "Unix sockets, instead of hosts and ports"),
    option("mysql-user", Text, Some("sbtest"), "user"),
    option("mysql-password", Text, Some(""), "password"),
    option("mysql-db", Text, Some("sbtest"), "database"),
    // In 1.0.20, and with client libraries without modes, this is a flag that is off. SslMode reads both forms.
    option(
        "mysql-ssl",
        Text,
        Some("disabled"),
        "encryption: {disabled, preferred, required, verify_ca, verify_identity}; alone, or on, it is required",
    ),
    option("mysql-ssl-key", Text, None, "file of the client's private key"),
    option("mysql-ssl-ca", Text, None, "file of the authorities that sign servers"),
    option("mysql-ssl-cert", Text, None, "file of the client's certificate"),
    option("mysql-ssl-cipher", Text, Some(""), "not supported"),
    option("mysql-compression", Flag, Some("off"), "not supported"),
    option("mysql-compression-algorithms", Text, Some("zlib"), "not supported"),
    option("mysql-debug", Flag, Some("off"), "not supported"),
    option("mysql-ignore-errors", List, Some("1213,1020,1205"), "errors after which an event is restarted, or \"all\""),
    option("mysql-dry-run", Flag, Some("off"), "send nothing, and treat all statements as done"),
];

/// Options of PostgreSQL.
pub static PGSQL: &[OptionInfo] = &[
    option("pgsql-host", Text, Some("localhost"), "host"),
    option("pgsql-port", Int, Some("5432"), "port"),
    option("pgsql-user", Text, Some("sbtest"), "user"),
    option("pgsql-password", Text, Some(""), "password"),
    option("pgsql-db", Text, Some("sbtest"), "database"),
    option(
        "pgsql-sslmode",
        Text,
        Some("prefer"),
        "encryption: {disable, allow, prefer, require, verify-ca, verify-full}",
    ),
    option(
        "pgsql-ignore-errors",
        List,
        // A deadlock, a serialization failure, a duplicate key: sysbench's driver ignores no others.
        Some("40P01,40001,23505"),
        "SQLSTATEs after which an event is restarted, or \"all\"; 57P01 also reconnects",
    ),
];

/// Options of SQLite, for which sysbench has no driver.
pub static SQLITE: &[OptionInfo] = &[
    own("sqlite-db", Path, Some("sbtest.sqlite"), "database file; created if missing"),
    own(
        "sqlite-journal-mode",
        Text,
        Some("wal"),
        "journal of transactions: {wal, delete, truncate, persist, memory, off}",
    ),
    own("sqlite-synchronous", Text, Some("full"), "when files are synced: {off, normal, full, extra}"),
    own("sqlite-cache-size", Size, Some("64M"), "page cache, shared by all connections"),
    own("sqlite-busy-timeout-ms", Int, Some("5000"), "milliseconds that a statement waits for a lock"),
    own(
        "sqlite-ignore-errors",
        List,
        // SQLITE_BUSY and SQLITE_LOCKED, the counterparts of MySQL's deadlock and lock wait timeout.
        Some("5,6"),
        "errors after which an event is restarted, or \"all\"",
    ),
];
