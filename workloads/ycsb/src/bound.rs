//! YCSB with its settings taken.

use std::fs::File;
use std::sync::Arc;

use rumba_engine_api::acid::{Acid, Found, Sessions};
use rumba_engine_api::check::Check;
use rumba_engine_api::engine::{Family, Schema, Session};
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::KvSession;
use rumba_engine_api::setting::{SettingError, Settings};
use rumba_engine_api::worker::{Client, ClientAddress, HostShare};
use rumba_engine_api::workload::{Bound, LoadStage, OpInfo, Ops, State};
use rumba_workload_kit::ledger::{Entries, number_in};

use crate::conditions::conditions;
use crate::document_store::{DocumentLoader, DocumentStore, collection};
use crate::inserted::Inserted;
use crate::kv_store::KvStore;
use crate::load::{Loader, Progress};
use crate::profile::Kind;
use crate::recovered::RecoveryCheck;
use crate::settings::Config;
use crate::sql_store::{Needs, SqlInspector, SqlLoader, SqlStore, Uses};
use crate::sql_text::create;
use crate::store::Store;
use crate::stream::Stream;
use crate::tally::{Tallies, Tally};
use crate::verify::{Expected, verify};

/// The operation types, in the order of [`Kind::ALL`]. A mix has only those that occur in it.
const OPS: [OpInfo; 5] = [
    OpInfo::main("read", "rd", 1),
    OpInfo::main("update", "up", 2),
    OpInfo::main("insert", "in", 3),
    OpInfo::main("scan", "sc", 4),
    OpInfo::main("read_modify_write", "rmw", 5),
];

/// The name in [`State`] of the first number that is not inserted yet.
const NEXT_RECORD: &str = "next_record";

/// YCSB with its settings, and the state that the clients of one instance share.
pub struct YcsbBound {
    config: Arc<Config>,
    inserted: Arc<Inserted>,
    progress: Arc<Progress>,
    tallies: Tallies,
}

impl YcsbBound {
    pub fn new(settings: &Settings) -> Result<Self, SettingError> {
        let config = Config::new(settings)?;
        Ok(Self {
            inserted: Arc::new(Inserted::new(config.records)),
            progress: Arc::default(),
            tallies: Tallies::new(&config),
            config: Arc::new(config),
        })
    }

    fn kv(&self, session: Box<dyn KvSession>) -> KvStore {
        kv_store(session, &self.config)
    }

    fn stream<S: Store + 'static>(&self, store: S, at: ClientAddress, seed: u64, tally: Tally) -> Box<dyn Client> {
        Box::new(Stream::new(store, self.config.clone(), self.inserted.clone(), tally, at, seed))
    }

    /// A client of the mix, which also appends its writes to the ledger's file if there is one.
    fn client_with(
        &self,
        session: Session,
        at: ClientAddress,
        seed: u64,
        file: Option<&Arc<File>>,
    ) -> Result<Box<dyn Client>> {
        let (config, tally) = (&self.config, self.tallies.client(file, at.client));
        Ok(match session {
            Session::Kv(session) => self.stream(self.kv(session), at, seed, tally),
            Session::Sql(session) => self.stream(SqlStore::new(session, needs(config))?, at, seed, tally),
            Session::Document(session) => self.stream(DocumentStore::new(session, config.fields), at, seed, tally),
        })
    }

    /// Checks all data that a session shows; after a kill, with the findings of the ledger's file.
    fn prove(&self, session: Session, expected: &Expected<'_>, left: Option<&mut RecoveryCheck>) -> Result<Vec<Check>> {
        match session {
            Session::Kv(session) => verify(&mut self.kv(session), expected, left),
            Session::Sql(session) => verify(&mut SqlInspector::new(session)?, expected, left),
            Session::Document(session) => verify(&mut DocumentStore::new(session, self.config.fields), expected, left),
        }
    }
}

/// A store over keys and values, with room for any record.
pub fn kv_store(session: Box<dyn KvSession>, config: &Config) -> KvStore {
    KvStore::new(session, config.fields, config.longest_record() + 4 * config.fields)
}

/// The statements that a mix needs.
fn needs(config: &Config) -> Needs {
    let modifies = config.does(Kind::ReadModifyWrite);
    Needs {
        fields: config.fields,
        reads: Uses::of(config.reads_all, config.does(Kind::Read) || modifies),
        scans: Uses::of(config.reads_all, config.does(Kind::Scan)),
        writes: Uses::of(config.writes_all, config.does(Kind::Update) || modifies),
        inserts: config.does(Kind::Insert),
    }
}

impl Bound for YcsbBound {
    fn schema(&self, family: Family) -> Schema<'_> {
        crate::schema(family)
    }

    fn ops(&self) -> Ops {
        self.config.kinds().into_iter().map(|kind| OPS[kind as usize].clone()).collect()
    }

    fn load_stages(&self) -> Vec<LoadStage> {
        vec![LoadStage::new("records", true, [OpInfo::new("load_records")])]
    }

    fn expected_rows(&self) -> u64 {
        self.config.records
    }

    fn expected_logical_bytes(&self) -> u64 {
        (self.config.records as f64 * self.config.mean_record()) as u64
    }

    fn conditions(&self) -> Vec<(String, String)> {
        conditions(&self.config)
    }

    fn create_schema(&self, session: &mut Session) -> Result<()> {
        match session {
            Session::Kv(_) => Ok(()),
            Session::Sql(session) => {
                let table = create(self.config.fields, session.table_options());
                session.run(&table)
            }
            Session::Document(session) => session.run(collection().get()),
        }
    }

    fn loader(&self, _stage: usize, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        let (config, progress, tally) = (self.config.clone(), self.progress.clone(), self.tallies.loader());
        Ok(match session {
            Session::Kv(session) => Box::new(Loader::new(self.kv(session), config, progress, tally, at, seed)),
            Session::Sql(session) => {
                let store = SqlLoader::new(session, config.fields)?;
                Box::new(Loader::new(store, config, progress, tally, at, seed))
            }
            Session::Document(session) => {
                let store = DocumentLoader::new(session, config.fields);
                Box::new(Loader::new(store, config, progress, tally, at, seed))
            }
        })
    }

    fn logical_bytes(&self) -> u64 {
        self.tallies.sums().bytes.max(0).cast_unsigned()
    }

    fn state(&self) -> State {
        let mut state = self.tallies.state();
        state.insert(NEXT_RECORD.to_owned(), self.inserted.next_record());
        state
    }

    fn restore(&self, state: &State) -> Result<()> {
        let next = number_in(state, NEXT_RECORD)?;
        self.tallies.restore(state)?;
        self.inserted.set(next);
        Ok(())
    }

    fn partition(&self, share: HostShare) -> Result<(), &'static str> {
        self.progress.partition.set(share);
        self.inserted.partition.set(share);
        self.tallies.partition.set(share);
        Ok(())
    }

    fn client(&self, session: Session, at: ClientAddress, seed: u64) -> Result<Box<dyn Client>> {
        self.client_with(session, at, seed, None)
    }

    fn verify(&self, session: Session) -> Result<Vec<Check>> {
        let next_record = Some(self.inserted.next_record());
        self.prove(session, &Expected { config: &self.config, tallies: &self.tallies, next_record }, None)
    }

    fn acid(&self) -> Option<&dyn Acid> {
        Some(self)
    }
}

/// Only one promise of transactions is checked: an acknowledged write survives. Isolation has no test, because each
/// operation affects one record.
impl Acid for YcsbBound {
    fn recorded(&self, session: Session, at: ClientAddress, seed: u64, ledger: &Arc<File>) -> Result<Box<dyn Client>> {
        self.client_with(session, at, seed, Some(ledger))
    }

    fn recovered(&self, sessions: Sessions<'_>, ledger: &File) -> Result<Found> {
        let mut left = RecoveryCheck::new(&Entries::read(ledger)?, self.tallies.first_writer(), self.config.keys);
        let expected = Expected { config: &self.config, tallies: &self.tallies, next_record: None };
        let checks = self.prove(sessions()?, &expected, Some(&mut left))?;
        let (acknowledged, lost, examples) = left.end();
        Ok(Found { acknowledged, lost, examples, checks })
    }
}
