//! The sessions and drivers that the tests run LinkBench on.
#![allow(dead_code, clippy::unwrap_used)]

pub mod memory;
pub mod server;
pub mod sqlite;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rumba_engine_api::engine::Session;
use rumba_engine_api::error::Result;
use rumba_engine_api::setting::{Settings, Value};
use rumba_engine_api::worker::{Client, ClientAddress, Op, OpKind, Pace, StatementCounts};
use rumba_engine_api::workload::{Bound, Workload};
use rumba_workload_linkbench::{LinkBench, MIX};

/// Lets this many operations through and adds up their results.
#[derive(Debug, Default)]
pub struct Count {
    pub left: u64,
    pub ops: Vec<u64>,
    pub rows: u64,
    pub retries: u64,
    pub failed: u64,
    pub statements: StatementCounts,
}

impl Count {
    pub fn of(ops: u64) -> Self {
        Self { left: ops, ops: vec![0; 16], ..Self::default() }
    }
}

impl Pace for Count {
    fn poll_turn(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        let more = self.left > 0;
        self.left -= u64::from(more);
        Poll::Ready(more)
    }

    fn start(&mut self, _kind: OpKind) {}

    fn statements(&mut self, _: OpKind, StatementCounts { reads, writes, others }: StatementCounts) {
        self.statements.reads += reads;
        self.statements.writes += writes;
        self.statements.others += others;
    }

    fn done(&mut self, kind: OpKind, op: Op) -> u64 {
        self.ops[kind] += 1;
        self.rows += op.rows;
        self.retries += u64::from(op.retries);
        self.failed += u64::from(op.failed);
        0
    }
}

/// Runs up to `ops` operations of a client whose sessions never wait.
pub fn drive(client: &mut dyn Client, ops: u64) -> Count {
    try_drive(client, ops).unwrap()
}

/// As [`drive`], with a session that may fail.
pub fn try_drive(client: &mut dyn Client, ops: u64) -> Result<Count> {
    let mut count = Count::of(ops);
    let polled = pin!(client.run(&mut count)).poll(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(result) => result.map(|()| count),
        Poll::Pending => panic!("the session made its client wait"),
    }
}

pub fn address(client: u32, clients: u32) -> ClientAddress {
    ClientAddress { host: 0, driver: client, client, clients }
}

/// The settings of a mix of one type.
pub fn only(name: &'static str) -> [(&'static str, &'static str); 10] {
    MIX.map(|each| (each, if each == name { "100" } else { "0" }))
}

pub fn bind(pairs: &[(&str, &str)]) -> Box<dyn Bound> {
    let value = |text: &str| text.parse().map_or_else(|_| Value::Text(text.to_owned()), Value::Int);
    let settings: Settings = pairs.iter().map(|(key, text)| (*key, value(text))).collect();
    LinkBench.bind(&settings).unwrap()
}

/// Loads with this many loaders that take turns batch by batch; returns the rows of the records.
pub fn load(bound: &dyn Bound, open: &mut dyn FnMut() -> Session, loaders: u32) -> u64 {
    bound.create_schema(&mut open()).unwrap();
    let mut rows = 0;
    for stage in 0..bound.load_stages().len() {
        let mut all: Vec<_> =
            (0..loaders).map(|at| bound.loader(stage, open(), address(at, loaders), 7).unwrap()).collect();
        loop {
            let before = rows;
            let mut ops = 0;
            for loader in &mut all {
                let count = drive(loader.as_mut(), 3);
                rows += count.rows;
                ops += count.ops.iter().sum::<u64>();
            }
            if rows == before && ops == 0 {
                break;
            }
        }
    }
    rows
}
