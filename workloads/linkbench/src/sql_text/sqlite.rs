//! LinkBench's statements for SQLite.

use super::{INDEX_KEY, LINK_COLUMNS, Marks, Sql, Tables, Text, common, links_list, page};

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
    let common = common(statement);
    match statement {
        // The update that follows writes the version again.
        Sql::UpsertLink => format!(
            "{common} ON CONFLICT (link_type, id1, id2) DO UPDATE SET visibility = excluded.visibility, \
             version = -1 WHERE visibility <> excluded.visibility RETURNING version"
        ),
        Sql::InsertLink => format!("{common} ON CONFLICT DO NOTHING"),
        Sql::AddToCount => format!(
            "{common} ON CONFLICT (id, link_type) DO UPDATE SET \
             count = count + :change, time = excluded.time, version = version + 1"
        ),
        Sql::TakeFromCount => format!(
            "{common} ON CONFLICT (id, link_type) DO UPDATE SET \
             count = max(count - 1, 0), time = excluded.time, version = version + 1"
        ),
        _ if statement.ids() > 0 => format!("{common} ORDER BY id2"),
        Sql::GetLinksList => links_list("linktable INDEXED BY id1_type"),
        Sql::ScanIndex => page(LINK_COLUMNS, "linktable INDEXED BY id1_type", INDEX_KEY),
        _ => common,
    }
}
