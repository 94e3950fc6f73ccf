//! Checks whether an engine's sessions support YCSB. The same random operations run against an adapter and an in-memory
//! oracle, and every answer and the final content are compared.

use std::ops::Range;

use rand::SeedableRng;
use rumba_engine_api::engine::Session;
use rumba_engine_api::error::{EngineError, Result};
use rumba_engine_api::kv::KvSession;
use rumba_engine_api::worker::block_on;
use rumba_workload_kit::conformance::{documents, kv, same, sql};
use rumba_workload_kit::{Random, below};

use crate::document_store::{DocumentLoader, DocumentStore, collection};
use crate::keys::{Key, KeyForm};
use crate::kv_store::KvStore;
use crate::oracle::Oracle;
use crate::sql_store::{Needs, SqlInspector, SqlLoader, SqlStore, Uses};
use crate::sql_text::create;
use crate::store::{Fields, Inspect, Load, Store, Values, VisitField, Wanted};

/// Record numbers are below this. They are few, so that operations collide.
const RECORDS: u64 = 120;
/// Those below this are loaded.
const LOADED: u64 = 50;
const FIELDS: usize = 3;
/// All fields and single fields: everything that operations may request.
const BOTH: Uses = Uses { all: true, one: true };
const KEYS: KeyForm = KeyForm { is_hashed: true, digits: 1 };

/// Runs `steps` random operations of `seed` over sessions from `open`. The sessions must all belong to one new, empty
/// instance that was opened with [`crate::schema`]; `open` is called more than once.
///
/// # Errors
/// A description of the first answer or record that differs from the oracle's.
pub fn conformance(open: &mut dyn FnMut() -> Session, seed: u64, steps: usize) -> Result<(), String> {
    let wrong = |error: EngineError| format!("seed {seed}: {error}");
    let mut oracle = Oracle::default();
    match open() {
        Session::Kv(session) => {
            load(&mut of_kv(session), &mut oracle, seed).map_err(wrong)?;
            let stores = [kv(open())?, kv(open())?].map(of_kv);
            run(stores.into(), &mut oracle, seed, steps)?;
            compare(&mut of_kv(kv(open())?), &oracle, seed)
        }
        Session::Sql(mut session) => {
            let table = create(FIELDS, session.table_options());
            session.run(&table).map_err(wrong)?;
            load(&mut SqlLoader::new(session, FIELDS).map_err(wrong)?, &mut oracle, seed).map_err(wrong)?;
            let needs = Needs { fields: FIELDS, reads: BOTH, scans: BOTH, writes: BOTH, inserts: true };
            let mut stores = Vec::new();
            for _ in 0..2 {
                stores.push(SqlStore::new(sql(open())?, needs).map_err(wrong)?);
            }
            run(stores, &mut oracle, seed, steps)?;
            compare(&mut SqlInspector::new(sql(open())?).map_err(wrong)?, &oracle, seed)
        }
        Session::Document(mut session) => {
            session.run(collection().get()).map_err(wrong)?;
            load(&mut DocumentLoader::new(session, FIELDS), &mut oracle, seed).map_err(wrong)?;
            let mut store = || documents(open()).map(|session| DocumentStore::new(session, FIELDS));
            run(vec![store()?, store()?], &mut oracle, seed, steps)?;
            compare(&mut store()?, &oracle, seed)
        }
    }
}

fn of_kv(session: Box<dyn KvSession>) -> KvStore {
    KvStore::new(session, FIELDS, 64)
}

/// Any printable bytes, including those that SQL texts escape; sometimes many.
fn values(random: &mut Random, fields: Range<usize>) -> Values {
    let mut values = Values::default();
    values.fill(fields, |out, _| {
        let length = if below(random, 50) == 0 { 400 } else { 1 + below(random, 40) };
        out.extend((0..length).map(|_| b' ' + below(random, 95) as u8));
    });
    values
}

fn load(loader: &mut impl Load, oracle: &mut Oracle, seed: u64) -> Result<()> {
    let mut random = Random::seed_from_u64(seed);
    for batch in 0..2 {
        loader.clear_staged();
        for record in (0..LOADED).filter(|record| record % 2 == batch) {
            let (key, values) = (KEYS.key(record), values(&mut random, 0..FIELDS));
            loader.stage(&key, &values);
            oracle.put(&key, &values);
        }
        block_on(loader.load_staged())?;
    }
    Ok(())
}

/// One random operation.
#[derive(Clone, Debug)]
enum Step {
    Read(u64, Wanted),
    Update(u64, Values),
    Insert(u64, Values),
    Scan(u64, u64, Wanted),
    ReadModifyWrite(u64, Wanted, Values),
}

fn draw(random: &mut Random, inserted: u64) -> Step {
    let record = below(random, RECORDS);
    let field = below(random, FIELDS as u64) as usize;
    let wanted = if below(random, 2) == 0 { Wanted::All } else { Wanted::One(field) };
    let written = if below(random, 3) == 0 { 0..FIELDS } else { field..field + 1 };
    match below(random, 12) {
        0..=2 => Step::Read(record, wanted),
        3..=5 => Step::Update(record, values(random, written)),
        6 if inserted < RECORDS => Step::Insert(inserted, values(random, 0..FIELDS)),
        6..=8 => Step::Scan(record, 1 + below(random, 9), wanted),
        _ => Step::ReadModifyWrite(record, wanted, values(random, written)),
    }
}

/// An operation's answer, with every field that it visited.
#[derive(Debug, Default, PartialEq)]
struct StepOutcome {
    /// `None` for a write by a store that does not check whether the record exists.
    answer: Option<u64>,
    /// The bytes by which a write grew the record, if the store reports them.
    growth: Option<i64>,
    fields: Vec<(usize, String)>,
}

fn apply(store: &mut impl Store, step: &Step) -> Result<StepOutcome> {
    let mut reported = StepOutcome::default();
    let fields = &mut reported.fields;
    let visit: VisitField<'_> =
        &mut |field, content| fields.push((field, String::from_utf8_lossy(content).into_owned()));
    let key = |record: &u64| -> Key { KEYS.key(*record) };
    let written = match step {
        Step::Read(record, wanted) => {
            reported.answer = Some(block_on(store.read(&key(record), *wanted, visit))?.into());
            return Ok(reported);
        }
        Step::Scan(record, count, wanted) => {
            reported.answer = Some(block_on(store.scan(&key(record), *count, *wanted, visit))?);
            return Ok(reported);
        }
        Step::Insert(record, values) => {
            block_on(store.insert(&key(record), values))?;
            return Ok(reported);
        }
        Step::Update(record, values) => block_on(store.update(&key(record), values))?,
        Step::ReadModifyWrite(record, wanted, values) => {
            block_on(store.read_modify_write(&key(record), *wanted, values, visit))?
        }
    };
    (reported.answer, reported.growth) = (written.found.map(u64::from), written.growth);
    Ok(reported)
}

fn run<S: Store>(mut stores: Vec<S>, oracle: &mut Oracle, seed: u64, steps: usize) -> Result<(), String> {
    let mut random = Random::seed_from_u64(seed ^ 0x5EED);
    let mut inserted = LOADED;
    for number in 0..steps {
        let step = draw(&mut random, inserted);
        inserted += u64::from(matches!(step, Step::Insert(..)));
        let which = below(&mut random, stores.len() as u64) as usize;
        let at = || format!("seed {seed}, step {number}, session {which}, {step:?}");
        let reported = apply(&mut stores[which], &step).map_err(|error| format!("{}: {error}", at()))?;
        let mut right = apply(oracle, &step).map_err(|error| format!("{}: {error}", at()))?;
        // A store may leave out the growth and the check for existence, but a reported value must be right.
        right.growth = reported.growth.and(right.growth);
        right.answer = reported.answer.and(right.answer);
        if reported != right {
            return Err(format!("{}: answered {reported:?}, right is {right:?}", at()));
        }
    }
    Ok(())
}

/// Compares the whole table, read in small pages.
fn compare(table: &mut impl Inspect, oracle: &Oracle, seed: u64) -> Result<(), String> {
    const PAGE: u64 = 11;
    let mut found: Vec<(Vec<u8>, Vec<Vec<u8>>)> = Vec::new();
    loop {
        let after = found.last().map(|(key, _)| key.clone());
        let mut visit = |key: &[u8], fields: &dyn Fields| {
            let content = (0..fields.count()).map(|field| fields.get(field).to_vec());
            found.push((key.to_vec(), content.collect()));
        };
        let met = table.page(after.as_deref(), PAGE, &mut visit).map_err(|error| format!("seed {seed}: {error}"))?;
        if met < PAGE {
            break;
        }
    }
    let right: Vec<_> = oracle.rows.iter().map(|(key, row)| (key.clone(), row.clone())).collect();
    same("records", &found, &right).map_err(|wrong| format!("seed {seed}, {wrong}"))
}
