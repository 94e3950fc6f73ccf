//! The `null` engine: answers immediately and stores no data, so a run measures only the cost of the harness.
//!
//! Every get finds a value of zeros, every scan visits a few entries of zeros, every write succeeds.

use std::path::Path;
use std::time::Duration;

use rumba_engine_api::engine::{
    Availability, BuildSelector, Engine, EngineConfig, EngineInfo, Family, Form, Gauge, Instance, Schema, Session,
};
use rumba_engine_api::error::Result;
use rumba_engine_api::kv::{Batch, KvSession, Scan, SpaceId};
use rumba_engine_api::setting::{Kind, SettingError, SettingInfo, info};

pub struct Null;

const SETTINGS: &[SettingInfo] = &[
    info(
        "value_bytes",
        Kind::Int(64, 65536),
        "128",
        "length in bytes of the zeros that answer every get and scan entry",
    ),
    info("scan_rows", Kind::Int(0, 10_000), "4", "entries that every scan visits, up to its limit"),
    info(
        "delay_us",
        Kind::Int(0, 1_000_000),
        "0",
        "microseconds that every get and scan takes; the rest of the latency is the client's own",
    ),
];

static INFO: EngineInfo = EngineInfo {
    name: "null",
    about: "answers at once and stores nothing: shows what the harness itself costs",
    family: Family::KeyValue,
    form: Form::BuiltIn,
    brought: None,
    keeps_data: false,
    has_cache: false,
    has_transactions: true,
    compressions: &["none"],
    settings: SETTINGS,
};

impl Engine for Null {
    fn info(&self) -> &EngineInfo {
        &INFO
    }

    fn availability(&self, _requested: BuildSelector<'_>) -> Availability {
        Availability::built_in(env!("CARGO_PKG_VERSION"))
    }

    fn check(&self, config: &EngineConfig) -> Result<(), SettingError> {
        config.settings.check("null", SETTINGS)
    }

    fn open(&self, _dir: &Path, config: &EngineConfig, _schema: Schema<'_>) -> Result<Box<dyn Instance>> {
        let settings = config.settings.with_defaults(SETTINGS);
        let number = |key| settings.int(key).unwrap_or_default() as usize;
        let delay = Duration::from_micros(number("delay_us") as u64);
        Ok(Box::new(NullInstance { value_bytes: number("value_bytes"), scan_rows: number("scan_rows"), delay }))
    }
}

struct NullInstance {
    value_bytes: usize,
    scan_rows: usize,
    delay: Duration,
}

impl Instance for NullInstance {
    fn session(&self) -> Result<Session> {
        let Self { value_bytes, scan_rows, delay } = *self;
        Ok(Session::Kv(Box::new(NullSession { zeros: vec![0; value_bytes], scan_rows, delay })))
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    fn debt(&self) -> Vec<Gauge> {
        Vec::new()
    }

    fn counters(&self) -> Vec<Gauge> {
        Vec::new()
    }

    fn effective_settings(&self) -> Vec<(String, String)> {
        vec![
            ("value_bytes".to_owned(), self.value_bytes.to_string()),
            ("scan_rows".to_owned(), self.scan_rows.to_string()),
            ("delay_us".to_owned(), self.delay.as_micros().to_string()),
        ]
    }

    fn is_log(&self, _file: &Path) -> bool {
        false
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

struct NullSession {
    zeros: Vec<u8>,
    scan_rows: usize,
    delay: Duration,
}

impl NullSession {
    /// Waits for the configured read delay.
    #[inline]
    fn wait(&self) {
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
    }
}

impl KvSession for NullSession {
    fn get(&mut self, _space: SpaceId, _key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.wait();
        value.clear();
        value.extend_from_slice(&self.zeros);
        Ok(true)
    }

    fn scan(&mut self, _space: SpaceId, scan: Scan<'_>, visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<usize> {
        self.wait();
        let rows = self.scan_rows.min(scan.limit);
        for _ in 0..rows {
            visit(scan.from, &self.zeros);
        }
        Ok(rows)
    }

    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn get_for_update(&mut self, space: SpaceId, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.get(space, key, value)
    }

    fn put(&mut self, _space: SpaceId, _key: &[u8], _value: &[u8]) -> Result<()> {
        Ok(())
    }

    fn delete(&mut self, _space: SpaceId, _key: &[u8]) -> Result<()> {
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    fn rollback(&mut self) -> Result<()> {
        Ok(())
    }

    fn load(&mut self, _batch: &Batch) -> Result<()> {
        Ok(())
    }
}
