//! LinkBench's statements for MySQL, MariaDB and compatible servers, from MySQL 5.6 on: the published schema and
//! statements.

use super::{LINK_COLUMNS, Marks, Sql, Tables, Text};

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
    const THIS_LINK: &str = "WHERE id1 = :id1 AND id2 = :id2 AND link_type = :link_type";
    let insert_link = format!(
        "INSERT INTO linktable ({LINK_COLUMNS}) VALUES (:id1, :id2, :link_type, :visibility, :version, :time, :data)"
    );
    match statement {
        Sql::AddNode => {
            "INSERT INTO nodetable (type, version, time, data) VALUES (:type, :version, :time, :data)".into()
        }
        Sql::GetNode => "SELECT id, type, version, time, data FROM nodetable WHERE id = :id".into(),
        Sql::UpdateNode => {
            "UPDATE nodetable SET version = :version, time = :time, data = :data WHERE id = :id AND type = :type".into()
        }
        Sql::DeleteNode => "DELETE FROM nodetable WHERE id = :id AND type = :type".into(),
        // The value is passed twice, because VALUES(visibility) is deprecated in MySQL.
        Sql::UpsertLink => format!("{insert_link} ON DUPLICATE KEY UPDATE visibility = :visibility"),
        Sql::InsertLink => insert_link,
        Sql::LockLink => format!("SELECT visibility FROM linktable {THIS_LINK} FOR UPDATE"),
        Sql::UpdateLink => format!(
            "UPDATE linktable SET visibility = :visibility, data = :data, version = :version, time = :time {THIS_LINK}"
        ),
        Sql::HideLink => format!("UPDATE linktable SET visibility = 0 {THIS_LINK}"),
        Sql::AddToCount => "INSERT INTO counttable (id, link_type, count, time, version) \
             VALUES (:id, :link_type, :base, :time, 0) \
             ON DUPLICATE KEY UPDATE count = count + :change, version = version + 1, time = :time"
            .into(),
        Sql::ChangeCount => "UPDATE counttable SET count = count + :change, version = version + 1, time = :time \
             WHERE id = :id AND link_type = :link_type"
            .into(),
        Sql::TakeFromCount => "INSERT INTO counttable (id, link_type, count, time, version) \
             VALUES (:id, :link_type, 0, :time, 0) \
             ON DUPLICATE KEY UPDATE count = IF(count = 0, 0, count - 1), time = :time, version = version + 1"
            .into(),
        Sql::CountLinks => "SELECT count FROM counttable WHERE id = :id AND link_type = :link_type".into(),
        Sql::GetLinks1 | Sql::GetLinks2 | Sql::GetLinks4 | Sql::GetLinks8 | Sql::GetLinks32 | Sql::GetLinks128 => {
            format!(
                "SELECT {LINK_COLUMNS} FROM linktable WHERE id1 = :id1 AND link_type = :link_type AND id2 IN (:id2s)"
            )
        }
        Sql::GetLinksList => format!(
            "SELECT {LINK_COLUMNS} FROM linktable FORCE INDEX (id1_type) WHERE id1 = :id1 AND link_type = :link_type \
             AND time >= :from_time AND time <= :to_time AND visibility = 1 \
             ORDER BY time DESC, id2 DESC LIMIT :limit OFFSET :offset"
        ),
        Sql::ScanNodes => {
            "SELECT id, type, version, time, data FROM nodetable WHERE id > :id ORDER BY id LIMIT :limit".into()
        }
        Sql::ScanLinks => page(LINK_COLUMNS, "linktable FORCE INDEX (PRIMARY)", &["link_type", "id1", "id2"]),
        Sql::ScanIndex => {
            page(LINK_COLUMNS, "linktable FORCE INDEX (id1_type)", &["id1", "link_type", "visibility", "time", "id2"])
        }
        Sql::ScanCounts => {
            page("id, link_type, count, time, version", "counttable FORCE INDEX (PRIMARY)", &["id", "link_type"])
        }
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
