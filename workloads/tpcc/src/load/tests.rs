//! The loaders' shared state, and indexes that cannot be built at once or at all.

use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use rumba_engine_api::error::{EngineError, ErrorCode};
use rumba_engine_api::sql::{Answer, SqlSession, Statement, Visit};
use rumba_engine_api::worker::block_on;

use super::*;
use crate::settings::Style;

/// Each run goes to exactly one loader, data set by data set, in any order of requests.
#[test]
fn every_chunk_of_every_data_set_is_given_to_one_loader() {
    let scale = Scale { warehouses: 2, customers: 250, items: 1500 };
    let config = Config { scale, sets: 3, constants: Constants::drawn(1), style: Style::Plain, thinks: false };
    let progress = Progress::default();
    let given: Vec<u64> = std::iter::from_fn(|| progress.next_run(&config)).flatten().collect();
    assert_eq!(given, (0..3 * Chunk::count(&scale)).collect::<Vec<u64>>());
    assert_eq!(progress.next_run(&config), None);
}

/// The indexes of a data set that is the only one.
const INDEXES: [&str; 2] = ["customer_by_name", "orders_by_customer"];

/// A database that receives requests for indexes.
#[derive(Default)]
struct Database {
    /// It has not answered any session yet.
    is_slow: bool,
    /// The number of conflicts before it succeeds.
    conflicts: u32,
    /// The error with which it refuses to build any index.
    refusal: Option<EngineError>,
    /// The name of the index of each request, and the names of the built indexes.
    requested: Vec<String>,
    made: Vec<String>,
}

impl Database {
    fn answer(&mut self, index: &str) -> Poll<Result<Answer>> {
        if self.is_slow {
            return Poll::Pending;
        }
        if self.conflicts > 0 {
            self.conflicts -= 1;
            return Poll::Ready(Err(EngineError::conflict("busy")));
        }
        if let Some(refusal) = &self.refusal {
            return Poll::Ready(Err(refusal.clone()));
        }
        self.made.push(index.to_owned());
        Poll::Ready(Ok(Answer::default()))
    }
}

type Shared = Arc<Mutex<Database>>;

/// A session on it that allows only index builds.
struct Requesting {
    database: Shared,
    dialect: Dialect,
    index: String,
}

fn not_wanted(call: &'static str) -> Result<()> {
    Err(EngineError::failed(call, "indexes are made without it"))
}

impl SqlSession for Requesting {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn survives_errors(&self) -> bool {
        true
    }

    fn prepare(&mut self, _: &str) -> Result<Statement> {
        Ok(Statement(0))
    }

    fn prepare_rows(&mut self, _: &str, _: &[&str]) -> Result<Statement> {
        Ok(Statement(0))
    }

    fn submit(&mut self, _: Statement, _: &[Param<'_>]) -> Result<()> {
        not_wanted("submit")
    }

    fn submit_rows(&mut self, _: Statement, _: &[Param<'_>]) -> Result<()> {
        not_wanted("submit_rows")
    }

    fn submit_text(&mut self, sql: &str) -> Result<()> {
        let index = sql.strip_prefix("CREATE INDEX ").and_then(|rest| rest.split(' ').next()).unwrap();
        self.database.lock().unwrap().requested.push(index.to_owned());
        self.index = index.to_owned();
        Ok(())
    }

    fn close(&mut self, _: Statement) -> Result<()> {
        not_wanted("close")
    }

    fn poll_answer(&mut self, _: &mut Context<'_>, _: Visit<'_>) -> Poll<Result<Answer>> {
        self.database.lock().unwrap().answer(&self.index)
    }

    /// It would block the thread, with all its other loaders.
    fn run(&mut self, _: &str) -> Result<()> {
        not_wanted("run")
    }
}

/// All index loaders for this many data sets.
fn loaders<const ALL: usize>(database: &Shared, dialect: Dialect, sets: u32) -> [IndexLoader; ALL] {
    let progress = Arc::<Progress>::default();
    std::array::from_fn(|client| {
        let session = Requesting { database: database.clone(), dialect, index: String::new() };
        let loader = Loader::Sql(SqlLoader::new(Box::new(session), sets).unwrap());
        let at = ClientAddress { host: 0, driver: 0, client: client as u32, clients: ALL as u32 };
        IndexLoader::new(loader, progress.clone(), at, 7)
    })
}

#[test]
fn conflicting_index_is_retried_by_its_own_loader() {
    let database = Shared::default();
    let [mut one, mut other] = loaders(&database, Dialect::MySql, 1);
    // A drawn index that is not performed still belongs to the loader.
    assert_eq!([one.draw(), one.draw(), other.draw()], [Some(0); 3]);
    database.lock().unwrap().conflicts = 2;
    let op = block_on(one.perform()).unwrap();
    assert_eq!((op.rows, op.retries, op.failed), (0, 2, false));
    assert_eq!(block_on(other.perform()).unwrap().retries, 0);
    assert_eq!([one.draw(), other.draw()], [None; 2]);
    let [by_name, by_customer] = INDEXES;
    let database = database.lock().unwrap();
    assert_eq!(database.requested, [by_name, by_name, by_name, by_customer]);
    assert_eq!(database.made, INDEXES, "each once");
}

#[test]
fn refused_index_ends_the_load_and_is_named() {
    let refused = EngineError::refused("execute", ErrorCode::of_server(1071, *b"42000"), "the key is too long");
    let database = Arc::new(Mutex::new(Database { refusal: Some(refused), ..Database::default() }));
    let [mut loader] = loaders(&database, Dialect::PostgreSql, 1);
    assert_eq!(loader.draw(), Some(0));
    let error = block_on(loader.perform()).unwrap_err().to_string();
    assert!(error.contains("1071 (42000): the key is too long, in: CREATE INDEX customer_by_name ON"), "{error}");
    assert_eq!(database.lock().unwrap().requested.len(), 1);
}

#[test]
fn loaders_of_one_thread_have_their_indexes_made_at_once() {
    let database = Arc::new(Mutex::new(Database { is_slow: true, ..Database::default() }));
    let [mut one, mut other] = loaders(&database, Dialect::PostgreSql, 1);
    assert_eq!([one.draw(), other.draw()], [Some(0); 2]);
    let (mut first, mut second) = (Box::pin(one.perform()), Box::pin(other.perform()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    assert_eq!(database.lock().unwrap().requested, INDEXES, "the second does not wait for the first");
    database.lock().unwrap().is_slow = false;
    assert!(matches!(second.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
    assert!(matches!(first.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
    let [by_name, by_customer] = INDEXES;
    assert_eq!(database.lock().unwrap().made, [by_customer, by_name]);
}

/// Each takes memory of the server, and SQLite has one writer.
#[test]
fn index_builders_are_limited_and_sqlite_has_one() {
    for (dialect, makers) in [(Dialect::MySql, 2), (Dialect::PostgreSql, 2), (Dialect::Sqlite, 1)] {
        let database = Shared::default();
        let mut all: [IndexLoader; 4] = loaders(&database, dialect, 3);
        let drawn: Vec<bool> = all.iter_mut().map(|loader| loader.draw().is_some()).collect();
        assert_eq!(drawn, [true, makers == 2, false, false], "{dialect}");
        for loader in all.iter_mut().rev() {
            while loader.draw().is_some() {
                block_on(loader.perform()).unwrap();
            }
        }
        let mut made = database.lock().unwrap().made.clone();
        made.sort_unstable();
        let expected = INDEXES.into_iter().flat_map(|index| (1..=3).map(move |set| format!("{index}{set}")));
        assert_eq!(made, expected.collect::<Vec<String>>(), "{dialect}");
    }
}
