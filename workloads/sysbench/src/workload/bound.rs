//! A script with its options, and the clients of one instance.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{Family, Schema, Session};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::SqlSession;
use rumba_engine_api::worker::{Client, ClientAddress, HostShare};
use rumba_engine_api::workload::{Bound, LoadStage, OpInfo, Ops, SCRIPT_TEXT, Short, State};

use super::sessions::Sessions;
use super::validated_script::{Phase, Tables, ValidatedScript};
use super::verify::{Change, verify};
use crate::client::ScriptClient;
use crate::counters::{Counter, Counters};
use crate::declared;
use crate::executable;
use crate::failure::{FAILED, Function};
use crate::interpreter::Interpreter;
use crate::key_values::{self, SPACES};
use crate::random::Unique;
use crate::setup::Setup;

const EVENT: OpInfo = OpInfo::main(declared::EVENT, "ev", 1);
/// How many of the operations that a script declares are main ones.
const MAIN: usize = 5;
const LOAD_OPS: [OpInfo; 1] = [OpInfo::new("load_rows")];

/// The name in [`State`] of the written bytes.
const BYTES: &str = "bytes";
/// The name in [`State`] of the flag for rows written without counting their bytes.
const UNCOUNTED: &str = "uncounted";
/// The name in [`State`] of the flag for a script that declares its logical bytes.
const DECLARED: &str = "declared";

pub(super) struct ScriptBound {
    requested: ValidatedScript,
    access: Access,
    /// The counters of this process's loaders.
    loaders: Mutex<Vec<Arc<Counters>>>,
    clients: Mutex<Vec<Arc<Counters>>>,
    /// The bytes from another process, and whether it has written rows without counting their bytes.
    bytes_before: AtomicU64,
    uncounted_before: AtomicBool,
    /// Whether the script has declared its logical bytes in another process.
    declared_before: AtomicBool,
    shared: Mutex<Option<Shared>>,
    /// This process's share of the clients, if there are several hosts.
    share: OnceLock<HostShare>,
}

/// How a script uses the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Sql,
    KeyValues,
}

/// The shared state of a phase's clients.
#[derive(Clone)]
struct Shared {
    key: (&'static str, u32, u64),
    setup: Arc<Setup>,
    sessions: Arc<Sessions>,
}

impl ScriptBound {
    pub(super) fn new(requested: ValidatedScript, access: Access) -> Self {
        Self {
            requested,
            access,
            loaders: Mutex::default(),
            clients: Mutex::default(),
            bytes_before: AtomicU64::new(0),
            uncounted_before: AtomicBool::new(false),
            declared_before: AtomicBool::new(false),
            shared: Mutex::default(),
            share: OnceLock::new(),
        }
    }

    fn host_share(&self) -> HostShare {
        self.share.get().copied().unwrap_or(HostShare::ALL)
    }

    /// The shared state of a phase's clients, created with the first client. The client's session waits there for its
    /// script.
    fn share(&self, command: &'static str, session: Session, at: ClientAddress, seed: u64) -> Result<Arc<Setup>> {
        let key = (command, at.clients, seed);
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match shared.take().filter(|shared| shared.key == key) {
            Some(found) => found,
            None => {
                let (sessions, table_options) = match (&session, self.access) {
                    (_, Access::KeyValues) => (Sessions::of_key_values(), ""),
                    (Session::Sql(session), Access::Sql) => {
                        (Sessions::of(session.dialect(), &self.requested.options)?, session.table_options())
                    }
                    (_, Access::Sql) => return Err(no_sql()),
                };
                let sessions = Arc::new(sessions);
                let phase = Phase { command, clients: at.clients, seed, sessions: sessions.clone(), table_options };
                let setup = self.requested.setup(phase).map_err(|refusal| failed(&refusal))?;
                let setup = Arc::new(Setup { unique: Unique::of_host(seed, self.host_share()), ..setup });
                if command == "run" {
                    let main = Interpreter::new(&setup, 0, Arc::default()).map_err(|error| failed(&error))?;
                    main.call(Function::Init).map_err(|error| failed(&error))?;
                }
                Shared { key, setup, sessions }
            }
        };
        found.sessions.give(at.client, session);
        Ok(shared.insert(found).setup.clone())
    }

    fn tables(&self) -> Option<Tables> {
        self.requested.tables()
    }

    /// A new client's counters, kept among these.
    fn counters_in(&self, all: &Mutex<Vec<Arc<Counters>>>) -> Arc<Counters> {
        let counters = Arc::new(Counters::with_own(self.requested.measures.counters.len()));
        all.lock().unwrap_or_else(PoisonError::into_inner).push(counters.clone());
        counters
    }

    /// Whether the script declares its logical bytes. Then it accounts for all later rows too.
    fn declares_bytes(&self) -> bool {
        self.declared_before.load(Relaxed)
            || [&self.loaders, &self.clients].into_iter().any(|all| declared_bytes(all).is_some())
    }

    /// Bytes that loaders have written.
    fn loaded_bytes(&self) -> u64 {
        if let Some(declared) = declared_bytes(&self.loaders) {
            return declared.max(0).cast_unsigned();
        }
        let loaders = self.loaders.lock().unwrap_or_else(PoisonError::into_inner);
        let written: u64 = loaders.iter().map(|counters| counters.read()[Counter::BytesWritten as usize]).sum();
        if written == 0 {
            return self.bytes_before.load(Relaxed);
        }
        // Some servers receive the ids, others assign them.
        let by_server = |tables: &Tables| tables.bytes_by_server() / u64::from(self.host_share().hosts);
        self.tables().map_or(written, |tables| (written + by_server(&tables)).min(tables.bytes()))
    }

    /// Statements of clients that changed rows.
    fn writes(&self) -> u64 {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.iter().map(|counters| counters.read()[Counter::Write as usize]).sum()
    }

    /// The bytes by which each write changes the tables; `None` if unknown.
    fn bytes_per_write(&self) -> Option<i64> {
        let change = Change::of(self.requested.script(), self.requested.is_transactional());
        Some(change.rows_per_write()? * self.tables()?.row_bytes().cast_signed())
    }
}

/// The sum of the logical bytes that a script declares in these clients; `None` if it declares none there.
fn declared_bytes(clients: &Mutex<Vec<Arc<Counters>>>) -> Option<i64> {
    let clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
    clients.iter().filter_map(|counters| counters.declared_bytes()).reduce(i64::saturating_add)
}

fn sql(session: Session) -> Result<Box<dyn SqlSession>> {
    match session {
        Session::Sql(session) => Ok(session),
        _ => Err(no_sql()),
    }
}

fn no_sql() -> EngineError {
    EngineError::failed("sysbench", "scripts speak SQL, and this engine does not")
}

fn failed(error: &dyn std::fmt::Display) -> EngineError {
    EngineError::failed(FAILED, error.to_string())
}

impl Bound for ScriptBound {
    fn schema(&self, family: Family) -> Schema<'_> {
        match (self.access, family) {
            (Access::KeyValues, Family::KeyValue) => Schema::KeyValue(&SPACES),
            _ => Schema::BySession,
        }
    }

    fn ops(&self) -> Ops {
        let own = self.requested.measures.operations.iter().zip(2..).enumerate().map(|(place, (name, column))| {
            let name: Cow<'static, str> = Cow::Owned(name.clone());
            let short = (place < MAIN).then(|| Short { name: name.clone(), column });
            OpInfo { name, short, ..EVENT }
        });
        std::iter::once(EVENT).chain(own).collect()
    }

    fn load_stages(&self) -> Vec<LoadStage> {
        vec![LoadStage::new("prepare", self.requested.prepare.is_parallel, LOAD_OPS)]
    }

    fn expected_rows(&self) -> u64 {
        self.tables().map_or(0, |tables| tables.tables * tables.rows)
    }

    fn expected_logical_bytes(&self) -> u64 {
        self.requested.data_bytes()
    }

    fn conditions(&self) -> Vec<(String, String)> {
        let given = self.requested.given();
        let options = if given.is_empty() { "none: the script's defaults".to_owned() } else { given };
        let mut all =
            vec![("script".to_owned(), self.requested.script().to_owned()), ("script options".to_owned(), options)];
        all.extend(self.requested.text.clone().map(|text| (SCRIPT_TEXT.to_owned(), text)));
        if !executable::is_allowed() {
            let words = "off: this process may not make memory executable, so scripts are interpreted";
            all.push(("script compiler".to_owned(), words.to_owned()));
        }
        if self.tables().is_none() {
            let none = "none: rumba does not know the invariants of your own script";
            all.push(("verification".to_owned(), none.to_owned()));
        }
        all
    }

    /// Scripts make their tables, except that of keys and values.
    fn create_schema(&self, session: &mut Session) -> Result<()> {
        match (session, self.access) {
            (Session::Sql(session), Access::KeyValues) => {
                let table = key_values::create(session.dialect(), session.table_options());
                session.run(&table)
            }
            _ => Ok(()),
        }
    }

    fn loader(&self, _stage: usize, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        let setup = self.share("prepare", session, at, seed)?;
        let counters = self.counters_in(&self.loaders);
        let loader = ScriptClient::filling(&setup, at.client, counters, self.requested.prepare.fill);
        Ok(Box::new(loader.map_err(|error| failed(&error))?))
    }

    fn logical_bytes(&self) -> u64 {
        let written = || self.bytes_per_write().unwrap_or(0).saturating_mul(self.writes().cast_signed());
        let changed = declared_bytes(&self.clients).unwrap_or_else(written);
        self.loaded_bytes().saturating_add_signed(changed)
    }

    fn logical_bytes_unknown(&self) -> Option<&'static str> {
        if self.uncounted_before.load(Relaxed) {
            return Some("earlier writes to the data are not counted");
        }
        if self.bytes_per_write().is_none() && self.writes() > 0 && !self.declares_bytes() {
            return Some("the script's events changed rows, and their bytes are neither counted nor declared");
        }
        if declared_bytes(&self.loaders).is_some() {
            return None;
        }
        let loaders = self.loaders.lock().unwrap_or_else(PoisonError::into_inner);
        let is_uncounted = self.tables().is_none() && loaders.iter().any(|loader| loader.wrote_uncounted());
        is_uncounted
            .then_some("the script loads rows by its own statements, not only by bulk_insert, so they are not counted")
    }

    fn counted(&self) -> BTreeMap<String, u64> {
        let names = &self.requested.measures.counters;
        let mut counted: BTreeMap<String, u64> = names.iter().map(|name| (name.clone(), 0)).collect();
        for all in [&self.loaders, &self.clients] {
            for counters in all.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                for (name, count) in names.iter().zip(counters.own()) {
                    *counted.entry(name.clone()).or_default() += count;
                }
            }
        }
        counted
    }

    fn state(&self) -> State {
        let uncounted = u64::from(self.logical_bytes_unknown().is_some());
        let declared = u64::from(self.declares_bytes());
        let counts = [(BYTES, self.logical_bytes()), (UNCOUNTED, uncounted), (DECLARED, declared)];
        counts.map(|(name, count)| (name.to_owned(), count)).into()
    }

    fn restore(&self, state: &State) -> Result<()> {
        let bytes =
            state.get(BYTES).ok_or_else(|| EngineError::failed("sysbench's state", "bytes is missing in it"))?;
        self.bytes_before.store(*bytes, Relaxed);
        let is_set = |name: &str| state.get(name).is_some_and(|flag| *flag > 0);
        self.uncounted_before.store(is_set(UNCOUNTED), Relaxed);
        self.declared_before.store(is_set(DECLARED), Relaxed);
        Ok(())
    }

    /// Scripts divide their work by the number of the thread and the number of threads, which count over all hosts.
    fn partition(&self, share: HostShare) -> Result<(), &'static str> {
        // A share does not change.
        let _ = self.share.set(share);
        Ok(())
    }

    fn client(&self, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        let setup = self.share("run", session, at, seed)?;
        let counters = self.counters_in(&self.clients);
        let client = ScriptClient::new(&setup, at.client, counters);
        Ok(Box::new(client.map_err(|error| failed(&error))?))
    }

    fn verify(&self, session: Session) -> Result<Vec<Check>> {
        match self.tables() {
            Some(tables) => {
                verify(&mut *sql(session)?, self.requested.script(), self.requested.is_transactional(), tables)
            }
            None => Ok(Vec::new()),
        }
    }
}
