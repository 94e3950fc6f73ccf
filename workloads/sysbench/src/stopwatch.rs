//! The database time of each statement: `--db-debug`.
//!
//! A wrapper around the session measures the times. Runs without the option therefore do not pay for it, not even with
//! a branch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::cli::report::{Latency, StatementTimes, ThreadTimes};
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::sql::{Answer, Param, ParamType, SqlSession, Statement, Visit};

/// The times of the sessions that it wraps.
#[derive(Debug, Default)]
pub struct Stopwatch {
    sessions: Mutex<Vec<Arc<Mutex<Spent>>>>,
}

/// The times of a session's statements since the last call.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    executing: ThreadTimes,
    fetching: ThreadTimes,
}

impl Stopwatch {
    /// The same session, its statements timed.
    pub fn over(&self, session: Box<dyn SqlSession>) -> Box<dyn SqlSession> {
        let spent = Arc::<Mutex<Spent>>::default();
        lock(&self.sessions).push(spent.clone());
        Box::new(Timed { session, spent, submitted: VecDeque::new(), first_row: None })
    }

    /// The times of statements since the last call; `None` if there was no session.
    pub fn take(&self) -> Option<StatementTimes> {
        let mut taken: Vec<Spent> = Vec::new();
        lock(&self.sessions).retain(|spent| {
            // A closed session is removed once its times are taken.
            let is_open = Arc::strong_count(spent) > 1;
            taken.push(std::mem::take(&mut *lock(spent)));
            is_open
        });
        if taken.is_empty() {
            return None;
        }
        let executing: Vec<ThreadTimes> = taken.iter().map(|spent| spent.executing).collect();
        let fetching: Vec<ThreadTimes> = taken.iter().map(|spent| spent.fetching).collect();
        Some(StatementTimes { executing: Latency::of(&executing), fetching: Latency::of(&fetching) })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add(times: &mut ThreadTimes, took: Duration) {
    let ns = took.as_nanos() as u64;
    times.min_ns = if times.events == 0 { ns } else { times.min_ns.min(ns) };
    times.max_ns = times.max_ns.max(ns);
    times.sum_ns += ns;
    times.events += 1;
}

/// A statement executes until its first row arrives, or its answer if it has no rows; after that its rows are fetched.
struct Timed {
    session: Box<dyn SqlSession>,
    spent: Arc<Mutex<Spent>>,
    /// The times at which statements were submitted whose answers are not received yet, in order.
    submitted: VecDeque<Instant>,
    /// When the first row of the next answer came.
    first_row: Option<Instant>,
}

impl Timed {
    /// Submits a statement, and notes when that began.
    fn begin(&mut self, submit: impl FnOnce(&mut dyn SqlSession) -> Result<()>) -> Result<()> {
        let at = Instant::now();
        let submitted = submit(&mut *self.session);
        match &submitted {
            Ok(()) => self.submitted.push_back(at),
            Err(error) => self.forget_after(error),
        }
        submitted
    }

    fn ended(&mut self, answered: &Result<Answer>) {
        let (now, first_row) = (Instant::now(), self.first_row.take());
        if let Some(at) = self.submitted.pop_front() {
            let mut spent = lock(&self.spent);
            add(&mut spent.executing, first_row.unwrap_or(now) - at);
            if let Some(first_row) = first_row {
                add(&mut spent.fetching, now - first_row);
            }
        }
        if let Err(error) = answered {
            self.forget_after(error);
        }
    }

    /// Pending answers of a lost connection are void.
    fn forget_after(&mut self, error: &EngineError) {
        if matches!(error, EngineError::CutOff(_) | EngineError::Lost(_)) {
            self.submitted.clear();
        }
    }
}

impl SqlSession for Timed {
    rumba_engine_api::forward_sql_properties!(session);

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        self.session.prepare(sql)
    }

    fn prepare_bytes(&mut self, sql: &[u8]) -> Result<Statement> {
        self.session.prepare_bytes(sql)
    }

    fn prepare_declared(&mut self, sql: &[u8], types: &[ParamType]) -> Result<Statement> {
        self.session.prepare_declared(sql, types)
    }

    fn prepare_rows(&mut self, table: &str, columns: &[&str]) -> Result<Statement> {
        self.session.prepare_rows(table, columns)
    }

    fn submit(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<()> {
        self.begin(|session| session.submit(statement, params))
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<()> {
        self.begin(|session| session.submit_rows(rows, values))
    }

    fn submit_text(&mut self, sql: &str) -> Result<()> {
        self.begin(|session| session.submit_text(sql))
    }

    fn submit_bytes(&mut self, sql: &[u8]) -> Result<()> {
        self.begin(|session| session.submit_bytes(sql))
    }

    fn close(&mut self, statement: Statement) -> Result<()> {
        self.session.close(statement)
    }

    fn poll_answer(&mut self, context: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer>> {
        let first_row = &mut self.first_row;
        let polled = self.session.poll_answer(context, &mut |row| {
            first_row.get_or_insert_with(Instant::now);
            visit(row);
        });
        if let Poll::Ready(answered) = &polled {
            self.ended(answered);
        }
        polled
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        self.session.run(sql)
    }
}
