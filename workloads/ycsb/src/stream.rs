//! The operation mix: one client's stream.

use std::ops::Range;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rumba_core::error::EngineError;
use rumba_core::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Random, Retry, below, client_seed, stream_seed};

use crate::choice::Choice;
use crate::inserted::Inserted;
use crate::keys::Key;
use crate::profile::Kind;
use crate::settings::Config;
use crate::store::{Store, Values, Wanted, Written};
use crate::tally::Tally;
use crate::value::{Owner, put_value};

/// What has been drawn and not yet performed.
#[derive(Clone, Debug)]
struct Drawn {
    kind: Kind,
    record: u64,
    key: Key,
    /// What is read of it.
    wanted: Wanted,
    /// How many records a scan reads.
    length: u64,
}

/// A client of the mix.
pub struct Stream<S> {
    store: S,
    config: Arc<Config>,
    random: Random,
    /// The types that occur, with the upper bounds of their shares of 2^64; their places are the operations' numbers.
    mix: Vec<(Kind, u64)>,
    choice: Choice,
    inserted: Arc<Inserted>,
    /// The number of the record that is inserted next, or now.
    claimed: Option<u64>,
    tally: Tally,
    retry: Retry,
    drawn: Drawn,
    values: Values,
}

/// The types that occur, in their order.
fn mix(config: &Config) -> Vec<(Kind, u64)> {
    let sum: f64 = config.mix.iter().sum();
    let mut upto = 0.0;
    let bound = |kind: Kind| {
        upto += config.mix[kind as usize] / sum;
        (kind, (upto * u64::MAX as f64) as u64)
    };
    let mut mix: Vec<(Kind, u64)> = config.kinds().into_iter().map(bound).collect();
    // The last one takes what rounding leaves.
    if let Some((_, last)) = mix.last_mut() {
        *last = u64::MAX;
    }
    mix
}

impl<S: Store> Stream<S> {
    /// The client at this address, which counts what it writes in `tally`; clients of one seed draw different streams.
    pub fn new(
        store: S,
        config: Arc<Config>,
        inserted: Arc<Inserted>,
        tally: Tally,
        at: ClientAddress,
        seed: u64,
    ) -> Self {
        let stream = client_seed(seed, at);
        let writes = [Kind::Update, Kind::Insert, Kind::ReadModifyWrite].into_iter().any(|kind| config.does(kind));
        let room = if writes { config.longest_record() } else { 0 };
        Self {
            store,
            random: Random::seed_from_u64(stream),
            mix: mix(&config),
            choice: Choice::new(&config, inserted.clone(), at),
            inserted,
            claimed: None,
            tally,
            retry: Retry::new(config.max_retries, stream_seed(stream, 1)),
            drawn: Drawn { kind: Kind::Read, record: 0, key: config.keys.key(0), wanted: Wanted::All, length: 0 },
            values: Values::with_room(config.fields, room),
            config,
        }
    }

    fn draw_field(&mut self) -> usize {
        below(&mut self.random, self.config.fields as u64) as usize
    }

    /// Draws what is read of a record: all of it, or one field.
    fn draw_wanted(&mut self) {
        self.drawn.wanted = if self.config.reads_all { Wanted::All } else { Wanted::One(self.draw_field()) };
    }

    /// Makes new content of these fields.
    fn fill(&mut self, fields: Range<usize>) {
        let (owner, author) = (Owner::of(self.drawn.record), self.tally.author());
        let lengths = &self.config.lengths;
        self.values.fill(fields, |out, field| put_value(out, lengths, owner, field, author));
    }

    /// Draws which fields an update writes, and their new content.
    fn draw_update(&mut self) {
        let fields = if self.config.writes_all {
            0..self.config.fields
        } else {
            let field = self.draw_field();
            field..field + 1
        };
        self.fill(fields);
    }

    /// Performs the drawn operation once and counts what it wrote; the records that it read or wrote.
    async fn attempt(&mut self) -> Result<u64, EngineError> {
        let Self { store, drawn, values, tally, .. } = self;
        let Drawn { kind, record, key, wanted, length } = &*drawn;
        match kind {
            Kind::Read => store.read(key, *wanted, &mut |_, _| {}).await.map(u64::from),
            Kind::Scan => store.scan(key, *length, *wanted, &mut |_, _| {}).await,
            Kind::Insert => {
                tally.inserts();
                store.insert(key, values).await?;
                tally.inserted((key.bytes().len() + values.len()) as u64);
                Ok(1)
            }
            Kind::Update | Kind::ReadModifyWrite => {
                tally.writes(*record, values.fields());
                let Written { found, growth } = if *kind == Kind::Update {
                    store.update(key, values).await?
                } else {
                    store.read_modify_write(key, *wanted, values, &mut |_, _| {}).await?
                };
                // Records are written that are known to be there; what is lost is found when all of them are read.
                let found = found.unwrap_or(true);
                if found {
                    // A store that does not learn the growth is taken to have replaced a value by one as long.
                    tally.wrote(growth.unwrap_or(0));
                } else {
                    tally.nothing();
                }
                Ok(u64::from(found))
            }
        }
    }

    /// The insert at hand has ended, whatever came of it.
    fn end_insert(&mut self) {
        if self.drawn.kind == Kind::Insert
            && let Some(number) = self.claimed.take()
        {
            self.inserted.end(number);
        }
    }
}

impl<S: Store> Worker for Stream<S> {
    fn draw(&mut self) -> Option<OpKind> {
        let bits = self.random.next_u64();
        let place = self.mix.iter().position(|(_, bound)| bits <= *bound).unwrap_or_default();
        let (kind, _) = *self.mix.get(place)?;
        let record = match kind {
            Kind::Insert => *self.claimed.get_or_insert_with(|| self.inserted.claim()),
            _ => self.choice.record(&mut self.random),
        };
        (self.drawn.kind, self.drawn.record, self.drawn.key) = (kind, record, self.config.keys.key(record));
        match kind {
            Kind::Read => self.draw_wanted(),
            Kind::Scan => {
                self.draw_wanted();
                self.drawn.length = self.choice.scan_length(&mut self.random);
            }
            Kind::Insert => self.fill(0..self.config.fields),
            Kind::Update => self.draw_update(),
            Kind::ReadModifyWrite => {
                self.draw_wanted();
                self.draw_update();
            }
        }
        Some(place)
    }

    async fn perform(&mut self) -> Result<Op, EngineError> {
        // What was stopped before is in doubt.
        self.tally.leave();
        let mut retries = 0;
        let op = loop {
            match self.attempt().await {
                Ok(rows) => break Op { rows, retries, failed: false },
                Err(error) if error.is_conflict() => {
                    self.tally.nothing();
                    if !self.retry.wait(retries + 1, &error).await {
                        break Op { rows: 0, retries, failed: true };
                    }
                    retries += 1;
                }
                // The session goes on; what became of the operation stays in doubt.
                Err(EngineError::CutOff(_)) => {
                    self.tally.leave();
                    break Op { rows: 0, retries, failed: true };
                }
                Err(error) => return Err(error),
            }
        };
        self.end_insert();
        Ok(op)
    }

    #[inline]
    fn statements(&mut self) -> StatementCounts {
        self.store.statements()
    }
}

/// A number that is never inserted holds nobody back who asks for the latest.
impl<S> Drop for Stream<S> {
    fn drop(&mut self) {
        if let Some(number) = self.claimed.take() {
            self.inserted.end(number);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rumba_core::setting::{Settings, Value};

    use super::*;
    use crate::profile::PROFILES;
    use crate::tally::Tallies;
    use crate::watched::Watched;

    /// Does nothing, and finds everything.
    struct Nothing;

    impl Store for Nothing {
        async fn read(&mut self, _: &Key, _: Wanted, _: crate::store::VisitField<'_>) -> Result<bool, EngineError> {
            Ok(true)
        }

        async fn update(&mut self, _: &Key, _: &Values) -> Result<Written, EngineError> {
            Ok(Written { found: Some(true), growth: None })
        }

        async fn insert(&mut self, _: &Key, _: &Values) -> Result<(), EngineError> {
            Ok(())
        }

        async fn scan(
            &mut self,
            _: &Key,
            count: u64,
            _: Wanted,
            _: crate::store::VisitField<'_>,
        ) -> Result<u64, EngineError> {
            Ok(count)
        }

        async fn read_modify_write(
            &mut self,
            _: &Key,
            _: Wanted,
            _: &Values,
            _: crate::store::VisitField<'_>,
        ) -> Result<Written, EngineError> {
            Ok(Written { found: Some(true), growth: None })
        }

        fn statements(&mut self) -> StatementCounts {
            StatementCounts::NONE
        }
    }

    fn client(pairs: &[(&str, Value)]) -> Stream<Nothing> {
        let settings = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let config = Arc::new(Config::new(&Settings(settings.collect())).unwrap());
        let inserted = Arc::new(Inserted::new(config.records));
        let tally = Tallies::new(Watched::new(&config)).client();
        let at = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };
        Stream::new(Nothing, config, inserted, tally, at, 7)
    }

    #[test]
    fn operations_come_in_the_proportions_of_each_profile() {
        const DRAWS: u32 = 200_000;
        for profile in PROFILES {
            let pairs = [("profile", Value::Text(profile.name.to_owned())), ("recordcount", Value::Int(1000))];
            let mut client = client(&pairs);
            let mut counts = [0_u32; 5];
            for _ in 0..DRAWS {
                client.draw().unwrap();
                counts[client.drawn.kind as usize] += 1;
            }
            for (count, share) in counts.into_iter().zip(profile.mix) {
                let seen = f64::from(count) / f64::from(DRAWS);
                let deviation = (share * (1.0 - share) / f64::from(DRAWS)).sqrt();
                // Four deviations are passed once in 16,000 times.
                assert!((seen - share).abs() <= 4.0 * deviation, "{}: {counts:?}", profile.name);
            }
        }
    }

    #[test]
    fn an_update_writes_one_field_all_alike_or_all_of_them() {
        let mut one = client(&[("recordcount", Value::Int(1000)), ("readallfields", Value::Bool(false))]);
        let (mut written, mut read) = ([0_u32; 10], [0_u32; 10]);
        for _ in 0..100_000 {
            one.draw().unwrap();
            match (one.drawn.kind, one.drawn.wanted) {
                (Kind::Update, _) => written[one.values.fields().start] += 1,
                (_, Wanted::One(field)) => read[field] += 1,
                other => panic!("{other:?}"),
            }
        }
        for counts in [written, read] {
            let expected = f64::from(counts.iter().sum::<u32>()) / 10.0;
            let statistic: f64 = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
            // Of nine degrees of freedom above 27.9 once in a thousand times.
            assert!(statistic < 27.9, "{counts:?}");
        }
        let mut all = client(&[("recordcount", Value::Int(1000)), ("writeallfields", Value::Bool(true))]);
        while all.draw() != Some(1) {}
        assert_eq!((all.values.fields(), all.values.len()), (0..10, 1000));
    }

    #[test]
    fn a_number_that_was_claimed_is_inserted_next_or_given_back() {
        let mut client = client(&[("profile", Value::Text("d".to_owned())), ("recordcount", Value::Int(10))]);
        let inserted = client.inserted.clone();
        // Stopped again and again before it performs: it claims no second one.
        (0..1000).for_each(|_| assert!(client.draw().is_some()));
        assert_eq!((inserted.next(), inserted.there()), (11, 10));
        drop(client);
        assert_eq!(inserted.there(), 11);
    }
}
