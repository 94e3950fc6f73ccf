//! Helpers for tests over SQL sessions.

use rumba_engine_api::error::Result;
use rumba_engine_api::sql::{Answer, Param, SqlSession, Statement};
use rumba_engine_api::worker::block_on;

/// A row's columns as bytes.
pub type Values = Vec<Vec<u8>>;

/// Runs a statement; its rows have this many columns as bytes.
pub fn fetch(
    session: &mut dyn SqlSession,
    statement: Statement,
    params: &[Param<'_>],
    columns: usize,
) -> Result<(Answer, Vec<Values>)> {
    session.submit(statement, params)?;
    answer(session, columns)
}

/// Receives an answer; its rows have this many columns as bytes.
pub fn answer(session: &mut dyn SqlSession, columns: usize) -> Result<(Answer, Vec<Values>)> {
    let mut rows = Vec::new();
    let answer = block_on(session.answer(&mut |row| {
        rows.push((0..columns).map(|column| row.bytes(column).to_vec()).collect());
    }))?;
    Ok((answer, rows))
}

/// Runs a statement and returns its rows' first columns as integers.
pub fn ints(session: &mut dyn SqlSession, sql: &str) -> Result<Vec<i64>> {
    let statement = session.prepare(sql)?;
    session.submit(statement, &[])?;
    let mut found = Vec::new();
    block_on(session.answer(&mut |row| found.push(row.int(0))))?;
    Ok(found)
}

/// Loads rows.
pub fn load(session: &mut dyn SqlSession, rows: Statement, values: &[Param<'_>]) -> Result<Answer> {
    block_on(session.load_rows(rows, values))
}
