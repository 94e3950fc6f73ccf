//! Tests of the engine.
#![allow(clippy::unwrap_used)]

#[macro_use(test)]
extern crate rumba_testkit;
rumba_testkit::main!();

mod crash;
mod full;
mod instance;
mod session;

use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rumba_engine_api::engine::{Durability, Engine, EngineConfig, Instance, Schema, Session};
use rumba_engine_api::error::Result;
use rumba_engine_api::setting::Value;
use rumba_engine_api::sql::{Answer, Param, SqlSession, Statement, Visit};
use rumba_engine_sqlite::Sqlite;
use rumba_testkit::allocations::Counting;
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The session type for `dyn SqlSession::execute`, without borrowed data.
type Sql = dyn SqlSession;

fn config(durability: Durability, settings: &[(&str, Value)]) -> EngineConfig {
    EngineConfig {
        cache: 16 << 20,
        durability,
        settings: settings.iter().cloned().collect(),
        ..EngineConfig::new("sqlite")
    }
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn open_in(dir: &Path, config: &EngineConfig) -> Box<dyn Instance> {
    Sqlite.open(dir, config, Schema::BySession).unwrap()
}

fn open_with(settings: &[(&str, Value)]) -> (TempDir, Box<dyn Instance>) {
    let dir = tempfile::tempdir().unwrap();
    let instance = open_in(dir.path(), &config(Durability::NoSync, settings));
    (dir, instance)
}

fn open() -> (TempDir, Box<dyn Instance>) {
    open_with(&[])
}

fn session(instance: &dyn Instance) -> Box<Sql> {
    match instance.session().unwrap() {
        Session::Sql(session) => session,
        other => panic!("sqlite gave {}", other.reported()),
    }
}

/// Runs a prepared statement; an embedded engine must answer at the first poll.
fn execute(session: &mut Sql, statement: Statement, params: &[Param<'_>], visit: Visit<'_>) -> Result<Answer> {
    match pin!(session.execute(statement, params, visit)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("sqlite made its client wait"),
    }
}

fn change(session: &mut Sql, sql: &str, params: &[Param<'_>]) -> Result<Answer> {
    let statement = session.prepare(sql)?;
    execute(session, statement, params, &mut |_| panic!("`{sql}` returned a row"))
}

fn ints(session: &mut Sql, sql: &str) -> Vec<i64> {
    let statement = session.prepare(sql).unwrap();
    let mut seen = Vec::new();
    let answer = execute(session, statement, &[], &mut |row| seen.push(row.int(0))).unwrap();
    assert_eq!(answer.rows as usize, seen.len());
    seen
}

fn int(session: &mut Sql, sql: &str) -> i64 {
    let seen = ints(session, sql);
    assert_eq!(seen.len(), 1, "{sql}");
    seen[0]
}

fn counter(instance: &dyn Instance, name: &str) -> f64 {
    instance.counters().into_iter().find(|gauge| gauge.name == name).unwrap().value
}

fn in_force(instance: &dyn Instance, name: &str) -> String {
    instance.effective_settings().into_iter().find(|(n, _)| n == name).unwrap().1
}
