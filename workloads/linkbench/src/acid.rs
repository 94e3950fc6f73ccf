//! Checks which acknowledged operations survive a kill of the database.

use rumba_engine_api::acid::{Acid, Found, Journal, Journaled, Promise, Sessions};
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::worker::{Client, ClientAddress, block_on};
use rumba_workload_kit::journal::Notes;

use crate::bound::LinkBenchBound;
use crate::graph::GraphStore;
use crate::journal::Journaling;
use crate::recovered::recovered;

impl LinkBenchBound {
    fn journaling<G: GraphStore>(&self, graph: G, journal: Box<dyn Journal>) -> Journaling<G> {
        Journaling::new(graph, Notes::new(journal, self.began()))
    }
}

/// An acknowledged operation survives as a whole: the tables agree.
impl Acid for LinkBenchBound {
    /// Reports no isolation results: only counts depend on earlier reads, and the check of the tables covers counts.
    fn isolation(&self, _: Sessions<'_>) -> Result<Vec<Promise>, EngineError> {
        Ok(Vec::new())
    }

    fn journaled(
        &self,
        session: Session,
        at: ClientAddress,
        seed: u64,
        journal: Box<dyn Journal>,
    ) -> Result<Box<dyn Client>, EngineError> {
        Ok(match session {
            Session::Kv(session) => self.requests(self.journaling(self.kv(session, at.host), journal), at, seed),
            Session::Sql(session) => self.requests(self.journaling(self.sql(session)?, journal), at, seed),
            Session::Document(session) => {
                self.requests(self.journaling(self.documents(session, at.host), journal), at, seed)
            }
        })
    }

    fn recovered(&self, sessions: Sessions<'_>, journaled: &Journaled) -> Result<Found, EngineError> {
        let mut expected = self.expected();
        let found = match sessions()? {
            Session::Kv(session) => block_on(recovered(&mut self.kv(session, 0), journaled, &mut expected)),
            Session::Sql(session) => block_on(recovered(&mut self.sql(session)?, journaled, &mut expected)),
            Session::Document(session) => {
                block_on(recovered(&mut self.documents(session, 0), journaled, &mut expected))
            }
        }?;
        Ok(Found { checks: self.prove(sessions()?, &expected)?, ..found })
    }
}
