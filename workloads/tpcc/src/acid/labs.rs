//! The proof over each family of sessions.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rumba_engine_api::acid::{Acid, Found, Promise, Sessions};
use rumba_engine_api::check::Check;
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::KvSession;
use rumba_engine_api::sql::SqlSession;
use rumba_engine_api::worker::{Client, ClientAddress};
use rumba_engine_api::workload::Bound;
use rumba_workload_kit::ledger::Entries;

use super::{Lab, isolation, recovered};
use crate::actor::Actor;
use crate::bound::{Pacing, TpcCBound};
use crate::data_set::DataSet;
use crate::kv::{KvInspector, KvStore};
use crate::sql::{SqlInspector, SqlStore};

/// Client numbers after those of a run, because over keys and values a payment's key contains its client's number.
const AFTER_KILL: u32 = 1_000_000;
const IN_TESTS: u32 = 2_000_000;

fn other_family() -> EngineError {
    EngineError::failed("tpcc", "the engine hands out sessions of another family than it did before")
}

fn sql(session: Session) -> Result<Box<dyn SqlSession>> {
    match session {
        Session::Sql(session) => Ok(session),
        _ => Err(other_family()),
    }
}

fn kv(session: Session) -> Result<Box<dyn KvSession>> {
    match session {
        Session::Kv(session) => Ok(session),
        _ => Err(other_family()),
    }
}

fn is_sql(sessions: Sessions<'_>) -> Result<bool> {
    Ok(matches!(sessions()?, Session::Sql(_)))
}

impl Acid for TpcCBound {
    fn isolation(&self, sessions: Sessions<'_>) -> Result<Vec<Promise>> {
        // The data set in which the meetings take place.
        let (set, unused) = (DataSet { number: 0, of: self.config.sets }, self.config.scale.items + 1);
        if is_sql(sessions)? {
            let store = || -> Result<_> { SqlStore::new(sql(sessions()?)?, self.texts(set), self.config.style) };
            let actor = || -> Result<_> { Ok(Actor::new(store()?, self.tallies.open(set))) };
            let inspector = || -> Result<_> { Ok(SqlInspector::new(sql(sessions()?)?, set)) };
            return isolation(&Lab { actor: &actor, inspector: &inspector }, unused);
        }
        let clients = AtomicU32::new(IN_TESTS);
        let store = || -> Result<_> { Ok(KvStore::new(kv(sessions()?)?, set, clients.fetch_add(1, Relaxed))) };
        let actor = || -> Result<_> { Ok(Actor::new(store()?, self.tallies.open(set))) };
        let inspector = || -> Result<_> { Ok(KvInspector::new(kv(sessions()?)?, set)) };
        isolation(&Lab { actor: &actor, inspector: &inspector }, unused)
    }

    fn recorded(&self, session: Session, at: ClientAddress, seed: u64, ledger: &Arc<File>) -> Result<Box<dyn Client>> {
        let set = DataSet::of_client(at.client, self.config.sets);
        let tally = self.tallies.open_with(set, Some(ledger), at.client);
        self.client_with(session, at, (AFTER_KILL + at.client, Pacing::Always), seed, tally)
    }

    fn recovered(&self, sessions: Sessions<'_>, ledger: &File) -> Result<Found> {
        self.look_for(sessions, &Entries::read(ledger)?)
    }
}

impl TpcCBound {
    /// Looks for the transactions of a ledger's file.
    pub(super) fn look_for(&self, sessions: Sessions<'_>, entries: &Entries) -> Result<Found> {
        let (tallies, sets) = (&self.tallies, self.config.sets);
        let found = match is_sql(sessions)? {
            true => recovered(entries, tallies, sets, |set| Ok(SqlInspector::new(sql(sessions()?)?, set))),
            false => recovered(entries, tallies, sets, |set| Ok(KvInspector::new(kv(sessions()?)?, set))),
        }?;
        let mut checks: Vec<Check> = self.verify(sessions()?)?;
        checks.extend(found.checks);
        Ok(Found { checks, ..found })
    }
}
