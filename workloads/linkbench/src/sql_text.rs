//! LinkBench's statements, one table per dialect.

use rumba_core::engine::EngineError;
use rumba_core::sql::Dialect;

/// The statements that are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sql {
    Begin,
    Commit,
    Rollback,
    AddNode,
    GetNode,
    UpdateNode,
    DeleteNode,
    /// Inserts, or makes visible: answers nothing when the link was visible,
    /// version -1 when it was hidden, its own version when it is new.
    UpsertLink,
    /// Inserts unless the link is there.
    InsertLink,
    LockLink,
    UpdateLink,
    HideLink,
    /// Adds to a count, which is inserted when it is missing.
    AddToCount,
    CountLinks,
    GetLinks1,
    GetLinks2,
    GetLinks4,
    GetLinks8,
    GetLinks32,
    GetLinks128,
    GetLinksList,
    LoadNode,
    LoadLink,
    LoadCount,
    ScanNodes,
    ScanLinks,
    ScanIndex,
    ScanCounts,
}

/// How many statements there are.
pub const COUNT: usize = Sql::ScanCounts as usize + 1;

/// What the load prepares.
pub const LOAD: &[Sql] = &[Sql::Begin, Sql::Commit, Sql::Rollback, Sql::LoadNode, Sql::LoadLink, Sql::LoadCount];

/// What clients of the mix prepare.
pub const MIX: &[Sql] = &[
    Sql::Begin,
    Sql::Commit,
    Sql::Rollback,
    Sql::AddNode,
    Sql::GetNode,
    Sql::UpdateNode,
    Sql::DeleteNode,
    Sql::UpsertLink,
    Sql::InsertLink,
    Sql::LockLink,
    Sql::UpdateLink,
    Sql::HideLink,
    Sql::AddToCount,
    Sql::CountLinks,
    Sql::GetLinks1,
    Sql::GetLinks2,
    Sql::GetLinks4,
    Sql::GetLinks8,
    Sql::GetLinks32,
    Sql::GetLinks128,
    Sql::GetLinksList,
];

/// What verification prepares.
pub const SCANS: &[Sql] = &[Sql::ScanNodes, Sql::ScanLinks, Sql::ScanIndex, Sql::ScanCounts];

/// Multigets by the number of ids they take; a smaller one repeats its last id.
pub const MULTIGETS: [(usize, Sql); 6] = [
    (1, Sql::GetLinks1),
    (2, Sql::GetLinks2),
    (4, Sql::GetLinks4),
    (8, Sql::GetLinks8),
    (32, Sql::GetLinks32),
    (128, Sql::GetLinks128),
];

/// What LinkBench says in one dialect.
pub struct Text {
    /// Creates the tables.
    pub schema: &'static str,
    /// Creates the secondary index.
    pub index: &'static str,
    /// The text of a prepared statement.
    pub statement: fn(Sql) -> String,
}

/// What LinkBench says in this dialect.
///
/// # Errors
/// The dialect has no statements here yet.
pub fn text(dialect: Dialect) -> Result<Text, EngineError> {
    match dialect {
        Dialect::Sqlite => Ok(Text { schema: SQLITE_SCHEMA, index: SQLITE_INDEX, statement: sqlite }),
        other => Err(EngineError::failed("prepare", format!("linkbench has no statements in the dialect {other:?}"))),
    }
}

/// WITHOUT ROWID stores rows in the primary key, as the published runs' engines do.
const SQLITE_SCHEMA: &str = "
    CREATE TABLE nodetable (
        id INTEGER PRIMARY KEY, type INTEGER NOT NULL, version INTEGER NOT NULL,
        time INTEGER NOT NULL, data BLOB NOT NULL);
    CREATE TABLE linktable (
        id1 INTEGER NOT NULL, id2 INTEGER NOT NULL, link_type INTEGER NOT NULL,
        visibility INTEGER NOT NULL, data BLOB NOT NULL, time INTEGER NOT NULL, version INTEGER NOT NULL,
        PRIMARY KEY (link_type, id1, id2)) WITHOUT ROWID;
    CREATE TABLE counttable (
        id INTEGER NOT NULL, link_type INTEGER NOT NULL, count INTEGER NOT NULL,
        time INTEGER NOT NULL, version INTEGER NOT NULL,
        PRIMARY KEY (id, link_type)) WITHOUT ROWID;";

const SQLITE_INDEX: &str = "
    CREATE INDEX id1_type ON linktable (id1, link_type, visibility, time, id2, version, data);";

const LINK_COLUMNS: &str = "id1, id2, link_type, visibility, version, time, data";

fn sqlite(statement: Sql) -> String {
    let multiget = |ids: usize| {
        let places: Vec<String> = (3..ids + 3).map(|place| format!("?{place}")).collect();
        format!(
            "SELECT {LINK_COLUMNS} FROM linktable WHERE id1 = ?1 AND link_type = ?2 AND id2 IN ({}) ORDER BY id2",
            places.join(",")
        )
    };
    let insert_link = format!("INSERT INTO linktable ({LINK_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    match statement {
        // A writer takes its lock at once: one that read first could not get it later.
        Sql::Begin => "BEGIN IMMEDIATE".into(),
        Sql::Commit => "COMMIT".into(),
        Sql::Rollback => "ROLLBACK".into(),
        Sql::AddNode => "INSERT INTO nodetable (type, version, time, data) VALUES (?1, ?2, ?3, ?4)".into(),
        Sql::GetNode => "SELECT id, type, version, time, data FROM nodetable WHERE id = ?1".into(),
        Sql::UpdateNode => "UPDATE nodetable SET version = ?2, time = ?3, data = ?4 WHERE id = ?1".into(),
        Sql::DeleteNode => "DELETE FROM nodetable WHERE id = ?1".into(),
        // The update that follows writes the version again.
        Sql::UpsertLink => format!(
            "{insert_link} ON CONFLICT (link_type, id1, id2) DO UPDATE SET visibility = excluded.visibility, \
             version = -1 WHERE visibility <> excluded.visibility RETURNING version"
        ),
        Sql::InsertLink => format!("{insert_link} ON CONFLICT DO NOTHING"),
        Sql::LockLink => "SELECT visibility FROM linktable WHERE id1 = ?1 AND id2 = ?2 AND link_type = ?3".into(),
        Sql::UpdateLink => "UPDATE linktable SET visibility = ?4, version = ?5, time = ?6, data = ?7 \
             WHERE id1 = ?1 AND id2 = ?2 AND link_type = ?3"
            .into(),
        Sql::HideLink => "UPDATE linktable SET visibility = 0 WHERE id1 = ?1 AND id2 = ?2 AND link_type = ?3".into(),
        Sql::AddToCount => "INSERT INTO counttable (id, link_type, count, time, version) VALUES (?1, ?2, ?3, ?4, 0) \
             ON CONFLICT (id, link_type) DO UPDATE SET \
             count = count + excluded.count, time = excluded.time, version = version + 1"
            .into(),
        Sql::CountLinks => "SELECT count FROM counttable WHERE id = ?1 AND link_type = ?2".into(),
        Sql::GetLinks1 => multiget(1),
        Sql::GetLinks2 => multiget(2),
        Sql::GetLinks4 => multiget(4),
        Sql::GetLinks8 => multiget(8),
        Sql::GetLinks32 => multiget(32),
        Sql::GetLinks128 => multiget(128),
        Sql::GetLinksList => format!(
            "SELECT {LINK_COLUMNS} FROM linktable INDEXED BY id1_type WHERE id1 = ?1 AND link_type = ?2 \
             AND visibility = 1 AND time >= ?3 AND time <= ?4 ORDER BY time DESC, id2 DESC LIMIT ?5 OFFSET ?6"
        ),
        Sql::LoadNode => "INSERT INTO nodetable (id, type, version, time, data) VALUES (?1, ?2, ?3, ?4, ?5)".into(),
        Sql::LoadLink => insert_link,
        Sql::LoadCount => {
            "INSERT INTO counttable (id, link_type, count, time, version) VALUES (?1, ?2, ?3, ?4, ?5)".into()
        }
        Sql::ScanNodes => {
            "SELECT id, type, version, time, data FROM nodetable WHERE id > ?1 ORDER BY id LIMIT ?2".into()
        }
        Sql::ScanLinks => format!(
            "SELECT {LINK_COLUMNS} FROM linktable WHERE (link_type, id1, id2) > (?1, ?2, ?3) \
             ORDER BY link_type, id1, id2 LIMIT ?4"
        ),
        Sql::ScanIndex => format!(
            "SELECT {LINK_COLUMNS} FROM linktable INDEXED BY id1_type \
             WHERE (id1, link_type, visibility, time, id2) > (?1, ?2, ?3, ?4, ?5) \
             ORDER BY id1, link_type, visibility, time, id2 LIMIT ?6"
        ),
        Sql::ScanCounts => "SELECT id, link_type, count, time, version FROM counttable \
             WHERE (id, link_type) > (?1, ?2) ORDER BY id, link_type LIMIT ?3"
            .into(),
    }
}
