//! The load: records by number, in batches that loaders claim. The data depends only on the settings, and not on which
//! loader loads which batch.

use std::ops::Range;
use std::sync::Arc;

use rumba_engine_api::error::Result;
use rumba_engine_api::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Padded, Partition, Retry};

use crate::settings::Config;
use crate::store::{Load, Values};
use crate::tally::LoadTally;
use crate::value::{Author, Owner, put_value};

/// Records that are written together, at most.
pub const BATCH: u64 = 1000;
/// Bytes that are written together, about.
const BATCH_BYTES: f64 = 1_048_576.0;
/// The shared state of an instance's loaders: each touches it once per batch.
#[derive(Debug, Default)]
pub struct Progress {
    batch: Padded,
    /// This host's share of the batches.
    pub partition: Partition,
}

pub struct Loader<S> {
    store: S,
    config: Arc<Config>,
    progress: Arc<Progress>,
    tally: LoadTally,
    batch: u64,
    values: Values,
    bytes: u64,
    /// The staged records that are not loaded yet. A run that is stopped in between and continued must not lose them.
    staged: Option<Range<u64>>,
    retry: Retry,
}

impl<S: Load> Loader<S> {
    /// A loader that takes its share of the work.
    pub fn new(
        store: S,
        config: Arc<Config>,
        progress: Arc<Progress>,
        tally: LoadTally,
        at: ClientAddress,
        seed: u64,
    ) -> Self {
        let batch = batch::<S>(&config);
        let values = Values::with_room(config.fields, config.longest_record());
        let retry = Retry::of_loader(at, seed);
        Self { store, config, progress, tally, batch, values, bytes: 0, staged: None, retry }
    }

    fn stage(&mut self, records: Range<u64>) {
        self.store.clear_staged();
        self.bytes = 0;
        let Self { store, config, values, .. } = self;
        for record in records.clone() {
            let (key, owner) = (config.keys.key(record), Owner::of(record));
            values.fill(0..config.fields, |out, field| {
                put_value(out, &config.lengths, owner, field, Author::LOADER);
            });
            store.stage(&key, values);
            self.bytes += (key.bytes().len() + values.len()) as u64;
        }
        self.staged = Some(records);
    }
}

fn batch<S: Load>(config: &Config) -> u64 {
    let most = if config.keys.is_hashed { S::SCATTERED_TOGETHER } else { BATCH };
    ((BATCH_BYTES / config.mean_record()) as u64).clamp(1, most)
}

impl<S: Load> Worker for Loader<S> {
    fn draw(&mut self) -> Option<OpKind> {
        if self.staged.is_none() {
            let first = self.batch * self.progress.partition.next(&self.progress.batch);
            if first >= self.config.records {
                return None;
            }
            self.stage(first..(first + self.batch).min(self.config.records));
        }
        Some(0)
    }

    async fn perform(&mut self) -> Result<Op> {
        let Some(records) = self.staged.clone() else { return Ok(Op::default()) };
        let mut retries = 0;
        while let Err(error) = self.store.load_staged().await {
            self.retry.load("records", &mut retries, error).await?;
        }
        self.staged = None;
        self.tally.loaded(self.bytes);
        Ok(Op { rows: records.end - records.start, retries, failed: false })
    }

    fn statements(&mut self) -> StatementCounts {
        self.store.statements()
    }
}

#[cfg(test)]
mod tests {
    use rumba_engine_api::setting::Value;

    use super::*;
    use crate::kv_store::KvStore;
    use crate::sql_store::SqlLoader;

    fn config(pairs: &[(&str, Value)]) -> Config {
        Config::new(&pairs.iter().cloned().collect()).unwrap()
    }

    #[test]
    fn hashed_load_batch_stays_small_for_short_records() {
        let short = [("fieldcount", Value::Int(1)), ("fieldlength", Value::Int(10))];
        for hashed in [&[][..], &short] {
            assert_eq!(batch::<KvStore>(&config(hashed)), 32);
        }
        let ordered = [("insertorder", Value::Text("ordered".to_owned()))];
        assert_eq!(batch::<KvStore>(&config(&[&ordered[..], &short].concat())), BATCH, "they lie on one leaf or two");
        assert_eq!(batch::<SqlLoader>(&config(&short)), BATCH);
        let long = [("fieldcount", Value::Int(1)), ("fieldlength", Value::Int(50_000))];
        assert_eq!(batch::<SqlLoader>(&config(&long)), 20, "a megabyte");
    }
}
