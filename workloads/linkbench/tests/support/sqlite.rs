//! SQL sessions over SQLite.

use rumba_engine_api::engine::Session;

/// A database file and the sessions to it.
pub struct Sqlite {
    dir: tempfile::TempDir,
}

impl Sqlite {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A session that waits for no other writer.
    pub fn session(&self) -> Session {
        let pragmas = "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF";
        Session::Sql(rumba_engine_sqlite::session(&self.dir.path().join("linkbench.db"), pragmas, 0).unwrap())
    }
}
