//! LinkBench's statements for SQLite.

use super::{LINK_COLUMNS, Marks, Sql, Tables, Text};

/// A multiget's statements cost SQLite only their own memory.
const MULTIGETS: &[Sql] =
    &[Sql::GetLinks1, Sql::GetLinks2, Sql::GetLinks4, Sql::GetLinks8, Sql::GetLinks32, Sql::GetLinks128];

pub fn text() -> Text {
    Text::new(schema, INDEX, MULTIGETS, statement, Marks::Questions)
}

/// WITHOUT ROWID stores rows in the primary key, as the published runs' engines
/// do. SQLite has neither table options nor partitions.
fn schema(_: Tables<'_>) -> Vec<String> {
    [
        "CREATE TABLE nodetable (
            id INTEGER PRIMARY KEY, type INTEGER NOT NULL, version INTEGER NOT NULL,
            time INTEGER NOT NULL, data BLOB NOT NULL)",
        "CREATE TABLE linktable (
            id1 INTEGER NOT NULL, id2 INTEGER NOT NULL, link_type INTEGER NOT NULL,
            visibility INTEGER NOT NULL, data BLOB NOT NULL, time INTEGER NOT NULL, version INTEGER NOT NULL,
            PRIMARY KEY (link_type, id1, id2)) WITHOUT ROWID",
        "CREATE TABLE counttable (
            id INTEGER NOT NULL, link_type INTEGER NOT NULL, count INTEGER NOT NULL,
            time INTEGER NOT NULL, version INTEGER NOT NULL,
            PRIMARY KEY (id, link_type)) WITHOUT ROWID",
    ]
    .map(str::to_owned)
    .into()
}

const INDEX: &str = "CREATE INDEX id1_type ON linktable (id1, link_type, visibility, time, id2, version, data)";

fn statement(statement: Sql) -> String {
    let insert_link = format!(
        "INSERT INTO linktable ({LINK_COLUMNS}) VALUES (:id1, :id2, :link_type, :visibility, :version, :time, :data)"
    );
    match statement {
        // A writer takes its lock at once, because after a read it might not get it.
        Sql::AddNode => {
            "INSERT INTO nodetable (type, version, time, data) VALUES (:type, :version, :time, :data)".into()
        }
        Sql::GetNode => "SELECT id, type, version, time, data FROM nodetable WHERE id = :id".into(),
        Sql::UpdateNode => {
            "UPDATE nodetable SET version = :version, time = :time, data = :data WHERE id = :id AND type = :type".into()
        }
        Sql::DeleteNode => "DELETE FROM nodetable WHERE id = :id AND type = :type".into(),
        // The update that follows writes the version again.
        Sql::UpsertLink => format!(
            "{insert_link} ON CONFLICT (link_type, id1, id2) DO UPDATE SET visibility = excluded.visibility, \
             version = -1 WHERE visibility <> excluded.visibility RETURNING version"
        ),
        Sql::InsertLink => format!("{insert_link} ON CONFLICT DO NOTHING"),
        Sql::LockLink => {
            "SELECT visibility FROM linktable WHERE id1 = :id1 AND id2 = :id2 AND link_type = :link_type".into()
        }
        Sql::UpdateLink => "UPDATE linktable SET visibility = :visibility, version = :version, time = :time, \
             data = :data WHERE id1 = :id1 AND id2 = :id2 AND link_type = :link_type"
            .into(),
        Sql::HideLink => {
            "UPDATE linktable SET visibility = 0 WHERE id1 = :id1 AND id2 = :id2 AND link_type = :link_type".into()
        }
        Sql::AddToCount => "INSERT INTO counttable (id, link_type, count, time, version) \
             VALUES (:id, :link_type, :base, :time, 0) ON CONFLICT (id, link_type) DO UPDATE SET \
             count = count + :change, time = excluded.time, version = version + 1"
            .into(),
        Sql::ChangeCount => "UPDATE counttable SET count = count + :change, version = version + 1, time = :time \
             WHERE id = :id AND link_type = :link_type"
            .into(),
        Sql::TakeFromCount => "INSERT INTO counttable (id, link_type, count, time, version) \
             VALUES (:id, :link_type, 0, :time, 0) ON CONFLICT (id, link_type) DO UPDATE SET \
             count = max(count - 1, 0), time = excluded.time, version = version + 1"
            .into(),
        Sql::CountLinks => "SELECT count FROM counttable WHERE id = :id AND link_type = :link_type".into(),
        Sql::GetLinks1 | Sql::GetLinks2 | Sql::GetLinks4 | Sql::GetLinks8 | Sql::GetLinks32 | Sql::GetLinks128 => {
            format!(
                "SELECT {LINK_COLUMNS} FROM linktable WHERE id1 = :id1 AND link_type = :link_type \
             AND id2 IN (:id2s) ORDER BY id2"
            )
        }
        Sql::GetLinksList => format!(
            "SELECT {LINK_COLUMNS} FROM linktable INDEXED BY id1_type WHERE id1 = :id1 AND link_type = :link_type \
             AND visibility = 1 AND time >= :from_time AND time <= :to_time \
             ORDER BY time DESC, id2 DESC LIMIT :limit OFFSET :offset"
        ),
        Sql::ScanNodes => {
            "SELECT id, type, version, time, data FROM nodetable WHERE id > :id ORDER BY id LIMIT :limit".into()
        }
        Sql::ScanLinks => format!(
            "SELECT {LINK_COLUMNS} FROM linktable WHERE (link_type, id1, id2) > (:link_type, :id1, :id2) \
             ORDER BY link_type, id1, id2 LIMIT :limit"
        ),
        Sql::ScanIndex => format!(
            "SELECT {LINK_COLUMNS} FROM linktable INDEXED BY id1_type \
             WHERE (id1, link_type, visibility, time, id2) > (:id1, :link_type, :visibility, :time, :id2) \
             ORDER BY id1, link_type, visibility, time, id2 LIMIT :limit"
        ),
        Sql::ScanCounts => "SELECT id, link_type, count, time, version FROM counttable \
             WHERE (id, link_type) > (:id, :link_type) ORDER BY id, link_type LIMIT :limit"
            .into(),
    }
}
