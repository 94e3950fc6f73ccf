//! LinkBench's own cost: nanoseconds per operation over a session that answers at once with zeros, and rows per second
//! of the load.
//! `cargo run --release -p rumba-workload-linkbench --example linkbench_cost`

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use rumba_engine_api::engine::Session;
use rumba_engine_api::error::EngineError;
use rumba_engine_api::kv::{Batch, KvSession, Scan, SpaceId};
use rumba_engine_api::setting::Value;
use rumba_engine_api::sql::{Answer, Dialect, Param, Row, SqlSession, Statement, Visit};
use rumba_engine_api::worker::{Client, ClientAddress, Op, OpKind, Pace};
use rumba_engine_api::workload::{Bound, Workload};
use rumba_workload_linkbench::LinkBench;

const ZEROS: [u8; 128] = [0; 128];

struct Zeros;

impl KvSession for Zeros {
    fn get(&mut self, _: SpaceId, _: &[u8], value: &mut Vec<u8>) -> Result<bool, EngineError> {
        value.clear();
        value.extend_from_slice(&ZEROS);
        Ok(true)
    }

    fn scan(&mut self, _: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize, EngineError> {
        (0..4).for_each(|_| visit(scan.from, &ZEROS));
        Ok(4)
    }

    fn begin(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool, EngineError> {
        self.get(space, key, value)
    }

    fn put(&mut self, _: SpaceId, _: &[u8], _: &[u8]) -> Result<(), EngineError> {
        Ok(())
    }

    fn delete(&mut self, _: SpaceId, _: &[u8]) -> Result<(), EngineError> {
        Ok(())
    }

    fn commit(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    fn load(&mut self, _: &Batch) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Answers statements at once with a row of ones.
#[derive(Default)]
struct Ones {
    prepared: usize,
    pending: usize,
}

impl Row for Ones {
    fn columns(&self) -> usize {
        1
    }

    fn value(&self, _: usize) -> Param<'_> {
        Param::Int(1)
    }

    fn int(&self, _: usize) -> i64 {
        1
    }

    fn bytes(&self, _: usize) -> &[u8] {
        &ZEROS
    }
}

impl SqlSession for Ones {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn pipeline(&self) -> usize {
        2
    }

    fn survives_errors(&self) -> bool {
        true
    }

    fn prepare(&mut self, _: &str) -> Result<Statement, EngineError> {
        self.prepared += 1;
        Ok(Statement(self.prepared))
    }

    fn prepare_rows(&mut self, _: &str, _: &[&str]) -> Result<Statement, EngineError> {
        self.prepare("")
    }

    fn submit(&mut self, _: Statement, params: &[Param<'_>]) -> Result<(), EngineError> {
        self.pending += 1;
        std::hint::black_box(params);
        Ok(())
    }

    fn submit_rows(&mut self, rows: Statement, values: &[Param<'_>]) -> Result<(), EngineError> {
        self.submit(rows, values)
    }

    fn submit_text(&mut self, _: &str) -> Result<(), EngineError> {
        self.submit(Statement(0), &[])
    }

    fn close(&mut self, _: Statement) -> Result<(), EngineError> {
        Ok(())
    }

    fn poll_answer(&mut self, _: &mut Context<'_>, visit: Visit<'_>) -> Poll<Result<Answer, EngineError>> {
        self.pending -= 1;
        visit(&Ones::default());
        Poll::Ready(Ok(Answer { rows: 1, affected: 1, matched: 1, last_insert_id: 1, columns: Some(1) }))
    }

    fn run(&mut self, _: &str) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Lets `left` operations through; takes no times.
#[derive(Default)]
struct Count {
    left: u64,
    ops: u64,
    rows: u64,
}

impl Pace for Count {
    fn poll_turn(&mut self, _: &mut Context<'_>) -> Poll<bool> {
        let more = self.left > 0;
        self.left -= u64::from(more);
        Poll::Ready(more)
    }

    fn start(&mut self, _kind: OpKind) {}

    fn done(&mut self, _: OpKind, op: Op) -> u64 {
        self.ops += 1;
        self.rows += op.rows;
        0
    }
}

fn drive(client: &mut dyn Client, ops: u64) -> Result<Count, EngineError> {
    let mut count = Count { left: ops, ..Count::default() };
    let polled = pin!(client.run(&mut count)).poll(&mut Context::from_waker(Waker::noop()));
    match polled {
        Poll::Ready(result) => result.map(|()| count),
        Poll::Pending => Err(EngineError::failed("drive", "the session made its client wait")),
    }
}

fn bind(pairs: &[(&str, Value)]) -> Result<Box<dyn Bound>, rumba_engine_api::setting::SettingError> {
    LinkBench.bind(&pairs.iter().cloned().collect())
}

const AT: ClientAddress = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };
const TYPES: [&str; 10] = [
    "getlinklist",
    "getnode",
    "getlink",
    "addlink",
    "updatelink",
    "deletelink",
    "countlink",
    "addnode",
    "updatenode",
    "deletenode",
];

fn kv() -> Session {
    Session::Kv(Box::new(Zeros))
}

fn sql() -> Session {
    Session::Sql(Box::new(Ones::default()))
}

fn ns_per_op(session: Session, settings: &[(&str, Value)], ops: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let bound = bind(settings)?;
    let mut client = bound.client(session, AT, 1)?;
    drive(client.as_mut(), ops / 10)?;
    let start = Instant::now();
    let count = drive(client.as_mut(), ops)?;
    Ok(start.elapsed().as_nanos() as f64 / count.ops as f64)
}

fn load(session: Session, index: &str) -> Result<(), Box<dyn std::error::Error>> {
    let bound = bind(&[("maxid1", Value::Int(1_000_001)), ("index", Value::Text(index.into()))])?;
    let mut loader = bound.loader(0, session, AT, 1)?;
    let start = Instant::now();
    let count = drive(loader.as_mut(), u64::MAX)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{:.2} M rows/s, {:.0} ns per row", count.rows as f64 / seconds / 1e6, seconds * 1e9 / count.rows as f64);
    Ok(())
}

/// `linkbench_cost sql 2017 100000` runs this many operations and nothing else, for callgrind.
fn only(mut args: std::env::Args) -> Result<bool, Box<dyn std::error::Error>> {
    let (Some(family), Some(profile), Some(ops)) = (args.next(), args.next(), args.next()) else { return Ok(false) };
    let session = if family == "sql" { sql() } else { kv() };
    ns_per_op(session, &[("profile", Value::Text(profile))], ops.parse()?)?;
    Ok(true)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args();
    args.next();
    if only(args)? {
        return Ok(());
    }
    for maxid1 in [1_000_001, 1_000_000_001] {
        for profile in ["2011", "2017"] {
            let base = [("profile", Value::Text(profile.into())), ("maxid1", Value::Int(maxid1))];
            let (kv, sql) = (ns_per_op(kv(), &base, 5_000_000)?, ns_per_op(sql(), &base, 5_000_000)?);
            println!("{profile}, maxid1 = {maxid1}: {kv:.0} ns per draw and perform, over SQL {sql:.0} ns");
        }
    }
    for only in TYPES {
        let mut settings: Vec<(&str, Value)> = vec![("maxid1", Value::Int(1_000_000_001))];
        settings.extend(TYPES.map(|name| (name, Value::Int(i64::from(name == only) * 100))));
        let (kv, sql) = (ns_per_op(kv(), &settings, 1_000_000)?, ns_per_op(sql(), &settings, 1_000_000)?);
        println!("  {only}: {kv:.0} ns, over SQL {sql:.0} ns");
    }
    for index in ["during", "after"] {
        print!("load, index {index}: ");
        load(kv(), index)?;
    }
    print!("load over SQL: ");
    load(sql(), "during")
}
