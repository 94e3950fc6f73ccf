//! LinkBench's statements for MySQL, MariaDB and compatible servers, from MySQL 5.6 on: the published schema and
//! statements.

use super::{
    COUNT_COLUMNS, COUNT_KEY, INDEX_KEY, LINK_COLUMNS, LINK_KEY, Marks, Sql, Tables, Text, common, links_list,
};

/// Few, because a server keeps memory for each statement of each client. By default it allows 16,382 of them: 1,024
/// clients with 15 statements.
const MULTIGETS: &[Sql] = &[Sql::GetLinks1, Sql::GetLinks8, Sql::GetLinks128];

pub fn text() -> Text {
    Text::new(schema, INDEX, MULTIGETS, statement, Marks::Questions)
}

/// The tables of both originals' READMEs. Only the table of links is partitioned.
fn schema(tables: Tables<'_>) -> Vec<String> {
    let Tables { table_options, partitions, .. } = tables;
    let partitions =
        if partitions == 0 { String::new() } else { format!(" PARTITION BY KEY (id1) PARTITIONS {partitions}") };
    vec![
        format!(
            "CREATE TABLE nodetable (
                id bigint unsigned NOT NULL AUTO_INCREMENT,
                type int unsigned NOT NULL,
                version bigint unsigned NOT NULL,
                time int unsigned NOT NULL,
                data mediumtext NOT NULL,
                PRIMARY KEY (id)
            ) {table_options}"
        ),
        format!(
            "CREATE TABLE linktable (
                id1 bigint unsigned NOT NULL DEFAULT '0',
                id2 bigint unsigned NOT NULL DEFAULT '0',
                link_type bigint unsigned NOT NULL DEFAULT '0',
                visibility tinyint NOT NULL DEFAULT '0',
                data varchar(255) NOT NULL DEFAULT '',
                time bigint unsigned NOT NULL DEFAULT '0',
                version int unsigned NOT NULL DEFAULT '0',
                PRIMARY KEY (link_type, id1, id2)
            ) {table_options}{partitions}"
        ),
        format!(
            "CREATE TABLE counttable (
                id bigint unsigned NOT NULL DEFAULT '0',
                link_type bigint unsigned NOT NULL DEFAULT '0',
                count int unsigned NOT NULL DEFAULT '0',
                time bigint unsigned NOT NULL DEFAULT '0',
                version bigint unsigned NOT NULL DEFAULT '0',
                PRIMARY KEY (id, link_type)
            ) {table_options}"
        ),
    ]
}

const INDEX: &str = "ALTER TABLE linktable ADD KEY id1_type (id1, link_type, visibility, time, id2, version, data)";

fn statement(statement: Sql) -> String {
    let common = common(statement);
    match statement {
        // The value is passed twice, because VALUES(visibility) is deprecated in MySQL.
        Sql::UpsertLink => format!("{common} ON DUPLICATE KEY UPDATE visibility = :visibility"),
        Sql::LockLink => format!("{common} FOR UPDATE"),
        Sql::AddToCount => {
            format!("{common} ON DUPLICATE KEY UPDATE count = count + :change, version = version + 1, time = :time")
        }
        Sql::TakeFromCount => format!(
            "{common} ON DUPLICATE KEY UPDATE count = IF(count = 0, 0, count - 1), time = :time, version = version + 1"
        ),
        Sql::GetLinksList => links_list("linktable FORCE INDEX (id1_type)"),
        Sql::ScanLinks => page(LINK_COLUMNS, "linktable FORCE INDEX (PRIMARY)", LINK_KEY),
        Sql::ScanIndex => page(LINK_COLUMNS, "linktable FORCE INDEX (id1_type)", INDEX_KEY),
        Sql::ScanCounts => page(COUNT_COLUMNS, "counttable FORCE INDEX (PRIMARY)", COUNT_KEY),
        _ => common,
    }
}

/// A page of rows after a key. The comparison is written out, one range per column, because the servers then read only
/// the rows of the page. With a comparison of rows, they read everything from the beginning.
fn page(columns: &str, table: &str, key: &[&str]) -> String {
    let equal = |upto: usize| key[..upto].iter().map(|column| format!("{column} = :{column} AND ")).collect::<String>();
    let ranges: Vec<String> =
        key.iter().enumerate().map(|(at, column)| format!("({}{column} > :{column})", equal(at))).collect();
    format!("SELECT {columns} FROM {table} WHERE {} ORDER BY {} LIMIT :limit", ranges.join(" OR "), key.join(", "))
}
