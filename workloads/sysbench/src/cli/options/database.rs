//! Options of databases and their drivers.

use super::Kind::{Flag, Int, List, Path, Size, Text};
use super::{Group, Kind, OptionInfo, Origin, from, option};

/// Options of every database.
pub static DATABASE: &[OptionInfo] = &[
    option(Group::Database, "db-driver", Text, Some("mysql"), "the way to the database: {mysql, pgsql, sqlite}"),
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
        "with --verbosity=5, tell how long statements and their rows took",
    ),
];

/// Options of MySQL and its kin.
pub static MYSQL: &[OptionInfo] = &[
    mysql("mysql-host", List, Some("localhost"), "hosts; connections take them in turn"),
    mysql("mysql-port", List, Some("3306"), "ports; connections take them in turn"),
    mysql("mysql-socket", List, None, "Unix sockets, instead of hosts and ports"),
    mysql("mysql-user", Text, Some("sbtest"), "user"),
    mysql("mysql-password", Text, Some(""), "password"),
    mysql("mysql-db", Text, Some("sbtest"), "database"),
    // In 1.0.20, and with client libraries without modes, this is a flag that is off. SslMode reads both forms.
    from(
        Origin::DefaultBefore11("off"),
        mysql(
            "mysql-ssl",
            Text,
            Some("disabled"),
            "encryption: {disabled, preferred, required, verify_ca, verify_identity}; alone, or on, it is required",
        ),
    ),
    from(Origin::Since11, mysql("mysql-ssl-key", Text, None, "file of the client's private key")),
    from(Origin::Since11, mysql("mysql-ssl-ca", Text, None, "file of the authorities that sign servers")),
    from(Origin::Since11, mysql("mysql-ssl-cert", Text, None, "file of the client's certificate")),
    mysql("mysql-ssl-cipher", Text, Some(""), "the cipher to use"),
    mysql("mysql-compression", Flag, Some("off"), "compress what is sent"),
    from(
        Origin::Since11,
        mysql("mysql-compression-algorithms", Text, Some("zlib"), "how to compress, if it is asked for"),
    ),
    mysql("mysql-debug", Flag, Some("off"), "tell every step of the client"),
    mysql("mysql-ignore-errors", List, Some("1213,1020,1205"), "errors after which an event is begun anew, or \"all\""),
    mysql("mysql-dry-run", Flag, Some("off"), "send nothing, and take all for done"),
];

/// Options of PostgreSQL.
pub static PGSQL: &[OptionInfo] = &[
    pgsql("pgsql-host", Text, Some("localhost"), "host"),
    pgsql("pgsql-port", Int, Some("5432"), "port"),
    pgsql("pgsql-user", Text, Some("sbtest"), "user"),
    pgsql("pgsql-password", Text, Some(""), "password"),
    pgsql("pgsql-db", Text, Some("sbtest"), "database"),
    from(
        Origin::Since11,
        pgsql(
            "pgsql-sslmode",
            Text,
            Some("prefer"),
            "encryption: {disable, allow, prefer, require, verify-ca, verify-full}",
        ),
    ),
];

/// Options of SQLite, for which sysbench has no driver.
pub static SQLITE: &[OptionInfo] = &[
    sqlite("sqlite-db", Path, Some("sbtest.sqlite"), "file of the database; it is made if there is none"),
    sqlite(
        "sqlite-journal-mode",
        Text,
        Some("wal"),
        "how a transaction is made atomic: {wal, delete, truncate, persist, memory, off}",
    ),
    sqlite("sqlite-synchronous", Text, Some("full"), "when files are synced: {off, normal, full, extra}"),
    sqlite("sqlite-cache-size", Size, Some("64M"), "page cache of all connections together"),
    sqlite("sqlite-busy-timeout-ms", Int, Some("5000"), "milliseconds that a statement waits for a lock"),
    sqlite(
        "sqlite-ignore-errors",
        List,
        // SQLITE_BUSY and SQLITE_LOCKED, the counterparts of MySQL's deadlock and lock wait timeout.
        Some("5,6"),
        "errors after which an event is begun anew, or \"all\"",
    ),
];

const fn mysql(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    option(Group::Driver("mysql"), name, kind, default, help)
}

const fn pgsql(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    option(Group::Driver("pgsql"), name, kind, default, help)
}

const fn sqlite(name: &'static str, kind: Kind, default: Option<&'static str>, help: &'static str) -> OptionInfo {
    from(Origin::Rumba, option(Group::Driver("sqlite"), name, kind, default, help))
}
