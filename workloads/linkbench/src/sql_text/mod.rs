//! LinkBench's statements, one table per dialect.

use std::sync::OnceLock;

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::Dialect;
use strum::VariantArray;

use crate::profile::WriteStyle;

mod mysql;
mod places;
mod postgresql;
mod sqlite;

use places::Marks;
pub use places::{Places, REORDERED_MOST};

/// The statements that are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Sql {
    AddNode,
    GetNode,
    UpdateNode,
    DeleteNode,
    /// Inserts, or makes visible; see [`Upserted`].
    UpsertLink,
    /// Inserts. If the link exists, no row is affected, or the error is [`EngineError::Duplicate`].
    InsertLink,
    LockLink,
    UpdateLink,
    HideLink,
    /// Adds `change` to a count, or inserts a missing one as `base`.
    AddToCount,
    ChangeCount,
    /// Takes one from a count but never below 0, as the delete of 2011 does.
    TakeFromCount,
    CountLinks,
    /// Multigets by the number of ids that they take.
    GetLinks1,
    GetLinks2,
    GetLinks4,
    GetLinks8,
    GetLinks32,
    GetLinks128,
    GetLinksList,
    ScanNodes,
    ScanLinks,
    ScanIndex,
    ScanCounts,
}

/// How many statements there are.
pub const COUNT: usize = Sql::VARIANTS.len();

/// The statements that verification prepares.
pub const SCANS: &[Sql] = &[Sql::ScanNodes, Sql::ScanLinks, Sql::ScanIndex, Sql::ScanCounts];

/// The statements that clients of both profiles prepare, besides multigets.
const MIX: &[Sql] = &[
    Sql::AddNode,
    Sql::GetNode,
    Sql::UpdateNode,
    Sql::DeleteNode,
    Sql::LockLink,
    Sql::UpdateLink,
    Sql::HideLink,
    Sql::AddToCount,
    Sql::CountLinks,
    Sql::GetLinksList,
];

/// The columns of a link in the order in which statements take and give them.
pub const LINK: [&str; 7] = ["id1", "id2", "link_type", "visibility", "version", "time", "data"];
pub const NODE: [&str; 5] = ["id", "type", "version", "time", "data"];
pub const LINK_COUNT: [&str; 5] = ["id", "link_type", "count", "time", "version"];
const LINK_COLUMNS: &str = "id1, id2, link_type, visibility, version, time, data";
const NODE_COLUMNS: &str = "id, type, version, time, data";
/// The columns of a count that a scan reads, in SQL.
const COUNT_COLUMNS: &str = "id, link_type, count, time, version";
/// The keys of the links, of their index and of the counts.
const LINK_KEY: &[&str] = &["link_type", "id1", "id2"];
const INDEX_KEY: &[&str] = &["id1", "link_type", "visibility", "time", "id2"];
const COUNT_KEY: &[&str] = &["id", "link_type"];
/// The condition for one link.
const THIS_LINK: &str = "WHERE id1 = :id1 AND id2 = :id2 AND link_type = :link_type";

impl Sql {
    /// The names of the adapter's values, in order. A text uses them as `:name`, any number of times.
    pub fn values(self) -> &'static [&'static str] {
        match self {
            Sql::AddNode => &["type", "version", "time", "data"],
            Sql::GetNode => &["id"],
            Sql::UpdateNode => &NODE,
            Sql::DeleteNode => &["id", "type"],
            Sql::UpsertLink | Sql::InsertLink | Sql::UpdateLink => &LINK,
            Sql::LockLink | Sql::HideLink => &["id1", "id2", "link_type"],
            Sql::AddToCount => &["id", "link_type", "base", "change", "time"],
            Sql::ChangeCount => &["id", "link_type", "change", "time"],
            Sql::TakeFromCount => &["id", "link_type", "time"],
            Sql::CountLinks => &["id", "link_type"],
            // The ids follow these two.
            Sql::GetLinks1 | Sql::GetLinks2 | Sql::GetLinks4 | Sql::GetLinks8 | Sql::GetLinks32 | Sql::GetLinks128 => {
                &["id1", "link_type"]
            }
            Sql::GetLinksList => &["id1", "link_type", "from_time", "to_time", "limit", "offset"],
            Sql::ScanNodes => &["id", "limit"],
            Sql::ScanLinks => &["link_type", "id1", "id2", "limit"],
            Sql::ScanIndex => &["id1", "link_type", "visibility", "time", "id2", "limit"],
            Sql::ScanCounts => &["id", "link_type", "limit"],
        }
    }

    /// The number of ids that a multiget takes; its text has them as `:id2s`.
    pub fn ids(self) -> usize {
        match self {
            Sql::GetLinks1 => 1,
            Sql::GetLinks2 => 2,
            Sql::GetLinks4 => 4,
            Sql::GetLinks8 => 8,
            Sql::GetLinks32 => 32,
            Sql::GetLinks128 => 128,
            _ => 0,
        }
    }
}

/// The row that an upsert met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upserted {
    /// No such link.
    New,
    /// A link of the other visibility.
    Turned,
    /// A link of the same visibility.
    Same,
}

impl Upserted {
    /// MySQL counts one affected row for an insert, two for a changed row and none for an unchanged one. SQLite and
    /// PostgreSQL count one for both, and therefore return the version: -1 for a changed row.
    pub fn reported(affected: u64, version: Option<i64>) -> Self {
        match (version, affected) {
            (Some(version), _) if version < 0 => Upserted::Turned,
            (Some(_), _) | (None, 1) => Upserted::New,
            (None, 0) => Upserted::Same,
            (None, _) => Upserted::Turned,
        }
    }
}

/// The settings that the schema depends on.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    /// The options at the end of a table's definition.
    pub table_options: &'a str,
    /// The number of partitions of `linktable`, if the server has partitions; 0 for none.
    pub partitions: u64,
    /// The first id of a node that is not loaded.
    pub next_node: u64,
}

/// LinkBench's statements in one dialect.
pub struct Text {
    /// Creates the tables, a statement each.
    pub schema: fn(Tables<'_>) -> Vec<String>,
    /// Creates the secondary index.
    pub index: &'static str,
    /// Statements that a session runs before it scans, if a statement cannot name the index to use.
    pub before_scans: &'static [&'static str],
    /// The prepared multigets, the smallest first; with fewer ids, the last id is repeated.
    pub multigets: &'static [Sql],
    /// The statements, by number.
    statements: Vec<Places>,
}

impl Text {
    fn new(
        schema: fn(Tables<'_>) -> Vec<String>,
        index: &'static str,
        multigets: &'static [Sql],
        statement: fn(Sql) -> String,
        marks: Marks,
    ) -> Self {
        let statements = Sql::VARIANTS.iter().map(|&sql| Places::of(&statement(sql), sql, marks)).collect();
        Self { schema, index, before_scans: &[], multigets, statements }
    }

    pub fn statement(&self, sql: Sql) -> &Places {
        &self.statements[sql as usize]
    }

    /// The statements that a client of this style prepares.
    pub fn mix(&self, style: WriteStyle) -> Vec<Sql> {
        let own: &[Sql] = match style {
            WriteStyle::Upsert => &[Sql::UpsertLink, Sql::TakeFromCount],
            WriteStyle::InsertOrUpdate => &[Sql::InsertLink, Sql::ChangeCount],
        };
        [MIX, own, self.multigets].concat()
    }
}

/// The statements as most dialects write them. A dialect appends its own words, or has another statement.
fn common(statement: Sql) -> String {
    match statement {
        Sql::AddNode => {
            "INSERT INTO nodetable (type, version, time, data) VALUES (:type, :version, :time, :data)".into()
        }
        Sql::GetNode => format!("SELECT {NODE_COLUMNS} FROM nodetable WHERE id = :id"),
        Sql::UpdateNode => {
            "UPDATE nodetable SET version = :version, time = :time, data = :data WHERE id = :id AND type = :type".into()
        }
        Sql::DeleteNode => "DELETE FROM nodetable WHERE id = :id AND type = :type".into(),
        Sql::UpsertLink | Sql::InsertLink => format!(
            "INSERT INTO linktable ({LINK_COLUMNS}) \
             VALUES (:id1, :id2, :link_type, :visibility, :version, :time, :data)"
        ),
        Sql::LockLink => format!("SELECT visibility FROM linktable {THIS_LINK}"),
        Sql::UpdateLink => format!(
            "UPDATE linktable SET visibility = :visibility, data = :data, version = :version, time = :time {THIS_LINK}"
        ),
        Sql::HideLink => format!("UPDATE linktable SET visibility = 0 {THIS_LINK}"),
        Sql::AddToCount => "INSERT INTO counttable (id, link_type, count, time, version) \
             VALUES (:id, :link_type, :base, :time, 0)"
            .into(),
        Sql::ChangeCount => "UPDATE counttable SET count = count + :change, version = version + 1, time = :time \
             WHERE id = :id AND link_type = :link_type"
            .into(),
        Sql::TakeFromCount => "INSERT INTO counttable (id, link_type, count, time, version) \
             VALUES (:id, :link_type, 0, :time, 0)"
            .into(),
        Sql::CountLinks => "SELECT count FROM counttable WHERE id = :id AND link_type = :link_type".into(),
        Sql::GetLinks1 | Sql::GetLinks2 | Sql::GetLinks4 | Sql::GetLinks8 | Sql::GetLinks32 | Sql::GetLinks128 => {
            format!(
                "SELECT {LINK_COLUMNS} FROM linktable WHERE id1 = :id1 AND link_type = :link_type AND id2 IN (:id2s)"
            )
        }
        Sql::GetLinksList => links_list("linktable"),
        Sql::ScanNodes => format!("SELECT {NODE_COLUMNS} FROM nodetable WHERE id > :id ORDER BY id LIMIT :limit"),
        Sql::ScanLinks => page(LINK_COLUMNS, "linktable", LINK_KEY),
        Sql::ScanIndex => page(LINK_COLUMNS, "linktable", INDEX_KEY),
        Sql::ScanCounts => page(COUNT_COLUMNS, "counttable", COUNT_KEY),
    }
}

/// The newest visible links of a list. `table` may name the index.
fn links_list(table: &str) -> String {
    format!(
        "SELECT {LINK_COLUMNS} FROM {table} WHERE id1 = :id1 AND link_type = :link_type \
         AND time >= :from_time AND time <= :to_time AND visibility = 1 \
         ORDER BY time DESC, id2 DESC LIMIT :limit OFFSET :offset"
    )
}

/// A page of rows after a key: a comparison of rows is one range of the index.
fn page(columns: &str, table: &str, key: &[&str]) -> String {
    let (names, values) = (key.join(", "), key.join(", :"));
    format!("SELECT {columns} FROM {table} WHERE ({names}) > (:{values}) ORDER BY {names} LIMIT :limit")
}

/// LinkBench's statements in this dialect. They are made once and shared by all sessions.
///
/// # Errors
/// The dialect has no statements here yet.
pub fn text(dialect: Dialect) -> Result<&'static Text> {
    static SQLITE: OnceLock<Text> = OnceLock::new();
    static MYSQL: OnceLock<Text> = OnceLock::new();
    static POSTGRESQL: OnceLock<Text> = OnceLock::new();
    match dialect {
        Dialect::Sqlite => Ok(SQLITE.get_or_init(sqlite::text)),
        Dialect::MySql => Ok(MYSQL.get_or_init(mysql::text)),
        Dialect::PostgreSql => Ok(POSTGRESQL.get_or_init(postgresql::text)),
        other => Err(EngineError::failed("prepare", format!("linkbench has no statements in the dialect of {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guards against a late error: a dialect without statements was once noticed only after the server had started.
    #[test]
    fn every_served_dialect_has_statements() {
        for family in rumba_workload_kit::FAMILIES {
            if let rumba_engine_api::engine::Family::Sql(dialect) = family {
                assert!(text(*dialect).is_ok(), "{dialect}");
            }
        }
    }

    #[test]
    fn index_scans_name_the_index() {
        for (text, named) in [(sqlite::text(), "INDEXED BY id1_type"), (mysql::text(), "FORCE INDEX (id1_type)")] {
            let scan = &text.statement(Sql::ScanIndex).sql;
            assert!(scan.contains(named), "{scan}");
        }
        // PostgreSQL's statements cannot name an index; tests/postgresql.rs tests the session settings used instead.
        assert!(!postgresql::text().before_scans.is_empty());
    }

    #[test]
    fn multigets_grow_to_the_largest_allowed_size() {
        for text in [sqlite::text(), mysql::text(), postgresql::text()] {
            assert!(text.multigets.windows(2).all(|pair| pair[0].ids() < pair[1].ids()));
            assert_eq!(text.multigets.last().map(|sql| sql.ids()), Some(crate::graph::MULTIGET_MAX));
        }
    }

    #[test]
    fn thousand_clients_stay_within_default_prepared_limit() {
        // max_prepared_stmt_count is 16382; the three of a transaction take no handle.
        for style in [WriteStyle::Upsert, WriteStyle::InsertOrUpdate] {
            assert!(mysql::text().mix(style).len() * 1024 <= 16_382);
        }
    }
}
