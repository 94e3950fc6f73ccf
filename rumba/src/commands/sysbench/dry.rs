//! `--mysql-dry-run`: connects to nothing and sends nothing; every statement counts as done.

use std::task::{Context, Poll};

use rumba_engine_api::error::EngineError;
use rumba_engine_api::sql::{Answer, Dialect, Param, SqlSession, Statement, Visit};

/// A session to nowhere.
#[derive(Default)]
pub struct DrySession {
    prepared: usize,
}

impl DrySession {
    fn next(&mut self) -> Statement {
        self.prepared += 1;
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

    fn prepare(&mut self, _: &str) -> Result<Statement, EngineError> {
        Ok(self.next())
    }

    fn prepare_bytes(&mut self, _: &[u8]) -> Result<Statement, EngineError> {
        Ok(self.next())
    }

    fn prepare_rows(&mut self, _: &str, _: &[&str]) -> Result<Statement, EngineError> {
        Ok(self.next())
    }

    fn submit(&mut self, _: Statement, _: &[Param<'_>]) -> Result<(), EngineError> {
        Ok(())
    }

    fn submit_rows(&mut self, _: Statement, _: &[Param<'_>]) -> Result<(), EngineError> {
        Ok(())
    }

    fn submit_text(&mut self, _: &str) -> Result<(), EngineError> {
        Ok(())
    }

    fn submit_bytes(&mut self, _: &[u8]) -> Result<(), EngineError> {
        Ok(())
    }

    fn close(&mut self, _: Statement) -> Result<(), EngineError> {
        Ok(())
    }

    fn poll_answer(&mut self, _: &mut Context<'_>, _: Visit<'_>) -> Poll<Result<Answer, EngineError>> {
        Poll::Ready(Ok(Answer::default()))
    }

    fn run(&mut self, _: &str) -> Result<(), EngineError> {
        Ok(())
    }
}
