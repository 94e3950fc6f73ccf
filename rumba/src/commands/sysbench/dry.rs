//! `--mysql-dry-run`: connects to nothing and sends nothing; every statement counts as done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Dialect, Param, SqlSession, Statement, Visit};

use rumba_workload_sysbench::Interpreter;
use rumba_workload_sysbench::failure::Function;
use rumba_workload_sysbench::host::{Host, Rank, Remedy};
use rumba_workload_sysbench::setup::Setup;

/// A session to nowhere.
#[derive(Default)]
pub struct DrySession {
    prepared: usize,
    /// The number of statements that all such sessions hold.
    held: Arc<AtomicUsize>,
}

/// The number of statements that a client prepares in its `thread_init`, counted without a server.
pub fn statements_of_a_client(setup: &Setup) -> usize {
    let rehearsal = Arc::new(Rehearsal::default());
    let setup = Arc::new(Setup { host: rehearsal.clone(), is_quiet: true, ..setup.clone() });
    if let Ok(client) = Interpreter::new(&setup, 0, Arc::default()) {
        // A script that needs a row fails here; its earlier prepared statements count.
        let _ = client.call(Function::ThreadInit);
    }
    rehearsal.held.load(Relaxed)
}

/// A host whose connections go nowhere.
#[derive(Default)]
struct Rehearsal {
    held: Arc<AtomicUsize>,
}

impl Host for Rehearsal {
    fn default_driver(&self) -> Option<usize> {
        Some(0)
    }

    fn connect(&self, _: usize, _: u32, _: u32) -> Result<Box<dyn SqlSession>> {
        Ok(Box::new(DrySession { prepared: 0, held: self.held.clone() }))
    }

    fn remedy(&self, _: usize, _: &EngineError) -> Remedy {
        Remedy::Fatal
    }

    fn log(&self, _: Rank, _: &str) {}
}

impl DrySession {
    fn next(&mut self) -> Statement {
        self.prepared += 1;
        self.held.fetch_add(1, Relaxed);
        Statement(self.prepared - 1)
    }
}

impl SqlSession for DrySession {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn survives_errors(&self) -> bool {
        true
    }

    fn prepare(&mut self, _: &str) -> Result<Statement> {
        Ok(self.next())
    }

    fn prepare_bytes(&mut self, _: &[u8]) -> Result<Statement> {
        Ok(self.next())
    }

    fn prepare_rows(&mut self, _: &str, _: &[&str]) -> Result<Statement> {
        Ok(self.next())
    }

    fn submit(&mut self, _: Statement, _: &[Param<'_>]) -> Result<()> {
        Ok(())
    }

    fn submit_rows(&mut self, _: Statement, _: &[Param<'_>]) -> Result<()> {
        Ok(())
    }

    fn submit_text(&mut self, _: &str) -> Result<()> {
        Ok(())
    }

    fn submit_bytes(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn close(&mut self, _: Statement) -> Result<()> {
        self.held.fetch_sub(1, Relaxed);
        Ok(())
    }

    fn poll_answer(&mut self, _: &mut Context<'_>, _: Visit<'_>) -> Poll<Result<Answer>> {
        Poll::Ready(Ok(Answer::default()))
    }

    fn run(&mut self, _: &str) -> Result<()> {
        Ok(())
    }
}
