//! Checks which acknowledged operations survive a kill of the database.

use std::fs::File;
use std::sync::Arc;

use rumba_engine_api::acid::{Acid, Found, Sessions};
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::{Client, ClientAddress, block_on};
use rumba_workload_kit::ledger::Entries;

use crate::bound::LinkBenchBound;
use crate::recovered::recovered;

/// An acknowledged operation survives as a whole: the tables agree. Isolation has no test, because only counts depend on
/// earlier reads, and the check of the tables covers counts.
impl Acid for LinkBenchBound {
    fn recorded(&self, session: Session, at: ClientAddress, seed: u64, ledger: &Arc<File>) -> Result<Box<dyn Client>> {
        self.client_with(session, at, seed, Some(ledger))
    }

    fn recovered(&self, sessions: Sessions<'_>, ledger: &File) -> Result<Found> {
        let (mut expected, entries) = (self.expected(), Entries::read(ledger)?);
        let found = match sessions()? {
            Session::Kv(session) => block_on(recovered(&mut self.kv(session, 0), &entries, &mut expected)),
            Session::Sql(session) => block_on(recovered(&mut self.sql(session)?, &entries, &mut expected)),
            Session::Document(session) => block_on(recovered(&mut self.documents(session, 0), &entries, &mut expected)),
        }?;
        Ok(Found { checks: self.prove(sessions()?, &expected)?, ..found })
    }
}
