//! The operation mix: one client's stream.

use std::ops::Range;
use std::sync::Arc;

use rand::SeedableRng;
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Mix, Random, Retry, below, client_seed, stream_seed};

use crate::choice::Choice;
use crate::inserted::Inserted;
use crate::keys::{Key, scattered};
use crate::profile::Kind;
use crate::settings::Config;
use crate::store::{Store, Values, Wanted, Written};
use crate::tally::Tally;
use crate::value::{Owner, ValueOrigin, put_value, reported};

/// The drawn operation that is not yet performed.
#[derive(Clone, Debug)]
struct Drawn {
    kind: Kind,
    record: u64,
    key: Key,
    /// The fields to read.
    wanted: Wanted,
    /// How many records a scan reads.
    length: u64,
}

/// A client of the mix.
pub struct Stream<S> {
    store: S,
    config: Arc<Config>,
    random: Random,
    mix: Mix<5>,
    /// The operation's number of each type: its position among those that occur.
    numbers: [OpKind; 5],
    choice: Choice,
    inserted: Arc<Inserted>,
    /// The number of the record inserted next, or now.
    claimed: Option<u64>,
    tally: Tally,
    retry: Retry,
    drawn: Drawn,
    values: Values,
}

/// While a write to this record is in doubt, passes the author of a field's value to the tally.
#[inline]
fn show(tally: &mut Tally, config: &Config, record: u64, field: usize, value: &[u8]) {
    let Some(slot) = tally.doubted(record) else { return };
    if let ValueOrigin::By(_, author) = reported(value, &config.lengths, scattered(record), field, &mut Vec::new()) {
        tally.shown(slot, field, author);
    }
}

impl<S: Store> Stream<S> {
    /// The client at this address, which counts its writes in `tally`. Clients of one seed draw different streams.
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
            mix: Mix::new(&config.mix),
            numbers: std::array::from_fn(|kind| config.mix[..kind].iter().filter(|share| **share > 0.0).count()),
            choice: Choice::new(&config, inserted.clone()),
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

    /// Draws the fields to read: all of a record, or one.
    fn draw_wanted(&mut self) {
        self.drawn.wanted = if self.config.reads_all { Wanted::All } else { Wanted::One(self.draw_field()) };
    }

    /// Makes new content of these fields.
    fn fill(&mut self, fields: Range<usize>) {
        let (owner, author) = (Owner::of(self.drawn.record), self.tally.author());
        let lengths = &self.config.lengths;
        self.values.fill(fields, |out, field| put_value(out, lengths, owner, field, author));
    }

    /// Draws the fields that an update writes, and their new content.
    fn draw_update(&mut self) {
        let fields = if self.config.writes_all {
            0..self.config.fields
        } else {
            let field = self.draw_field();
            field..field + 1
        };
        self.fill(fields);
    }

    /// Whether the choice of the record depends on the records that exist when the operation begins, because a client
    /// may wait long for its turn.
    fn chooses_late(&self) -> bool {
        self.choice.is_by_age()
    }

    /// Draws all of an operation but its kind.
    fn draw_rest(&mut self) {
        let kind = self.drawn.kind;
        if kind != Kind::Insert {
            let record = self.choice.record(&mut self.random);
            (self.drawn.record, self.drawn.key) = (record, self.config.keys.key(record));
        }
        match kind {
            Kind::Read => self.draw_wanted(),
            Kind::Scan => {
                self.draw_wanted();
                self.drawn.length = self.choice.scan_length(&mut self.random);
            }
            Kind::Insert => {}
            Kind::Update => self.draw_update(),
            Kind::ReadModifyWrite => {
                self.draw_wanted();
                self.draw_update();
            }
        }
    }

    /// Takes the number of the record to insert, and makes its content. This is not done when the operation is drawn,
    /// because a client may wait long or for ever for its turn. Meanwhile the missing record would keep later records
    /// from being counted.
    fn begin_insert(&mut self) {
        let record = self.inserted.record(*self.claimed.get_or_insert_with(|| self.inserted.claim()));
        (self.drawn.record, self.drawn.key) = (record, self.config.keys.key(record));
        self.fill(0..self.config.fields);
    }

    /// Performs the drawn operation once and counts its writes; returns the number of records that it read or wrote.
    async fn attempt(&mut self) -> Result<u64> {
        let Self { store, drawn, values, tally, config, .. } = self;
        let Drawn { kind, record, key, wanted, length } = &*drawn;
        // No operation deletes records, so every loaded record exists. A record inserted since may not be acknowledged
        // yet.
        let is_loaded = *record < config.records;
        match kind {
            Kind::Read => {
                let mut show = |field: usize, value: &[u8]| show(tally, config, *record, field, value);
                let found = store.read(key, *wanted, &mut show).await?;
                tally.requested(is_loaded, found);
                Ok(u64::from(found))
            }
            Kind::Scan => {
                // Only the first record of a scan is known.
                let mut show = |field: usize, value: &[u8]| show(tally, config, *record, field, value);
                let rows = store.scan(key, *length, *wanted, &mut show).await?;
                tally.requested(is_loaded, rows > 0);
                // A scan that found no record from a loaded key on is counted already.
                if rows < *length && (rows > 0 || !is_loaded) {
                    tally.came_short(*record, key, rows);
                }
                Ok(rows)
            }
            Kind::Insert => {
                tally.inserts(*record, values.fields())?;
                store.insert(key, values).await?;
                tally.inserted((key.bytes().len() + values.len()) as u64)?;
                Ok(1)
            }
            Kind::Update | Kind::ReadModifyWrite => {
                tally.writes(*record, values.fields())?;
                let Written { found, growth } = if *kind == Kind::Update {
                    store.update(key, values).await?
                } else {
                    let mut show = |field: usize, value: &[u8]| show(tally, config, *record, field, value);
                    store.read_modify_write(key, *wanted, values, &mut show).await?
                };
                let found = found.unwrap_or(true);
                tally.requested(is_loaded, found);
                if found {
                    // If the store does not report the growth, the new value is assumed to be as long as the old one.
                    tally.wrote(growth.unwrap_or(0))?;
                } else {
                    tally.nothing()?;
                }
                Ok(u64::from(found))
            }
        }
    }

    /// The current insert has ended, with any outcome.
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
        let kind = Kind::ALL[self.mix.draw(&mut self.random)];
        self.drawn.kind = kind;
        if !self.chooses_late() {
            self.draw_rest();
        }
        Some(self.numbers[kind as usize])
    }

    async fn perform(&mut self) -> Result<Op> {
        // An operation that was stopped before is in doubt.
        self.tally.leave();
        if self.drawn.kind == Kind::Insert {
            self.begin_insert();
        } else if self.chooses_late() {
            self.draw_rest();
        }
        let mut retries = 0;
        let op = loop {
            match self.attempt().await {
                Ok(rows) => break Op { rows, retries, failed: false },
                Err(error) => {
                    self.tally.failed(&error)?;
                    if !self.retry.operation(&mut retries, error).await? {
                        break Op { rows: 0, retries, failed: true };
                    }
                }
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

/// A number that is never inserted must not hold back clients that request the latest records.
impl<S> Drop for Stream<S> {
    fn drop(&mut self) {
        if let Some(number) = self.claimed.take() {
            self.inserted.end(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use rumba_engine_api::error::EngineError;
    use rumba_engine_api::setting::Value;

    use super::*;
    use crate::profile::PROFILES;
    use crate::store::VisitField;
    use crate::tally::Tallies;

    /// Does nothing, and finds every record or none; an insert may never return.
    struct Nothing {
        finds: bool,
        answers: bool,
    }

    impl Store for Nothing {
        async fn read(&mut self, _: &Key, _: Wanted, _: VisitField<'_>) -> Result<bool> {
            Ok(self.finds)
        }

        async fn update(&mut self, _: &Key, _: &Values) -> Result<Written> {
            Ok(Written { found: Some(self.finds), growth: None })
        }

        async fn insert(&mut self, _: &Key, _: &Values) -> Result<()> {
            if self.answers { Ok(()) } else { std::future::pending().await }
        }

        async fn scan(&mut self, _: &Key, count: u64, _: Wanted, _: VisitField<'_>) -> Result<u64> {
            Ok(if self.finds { count } else { 0 })
        }

        async fn read_modify_write(&mut self, _: &Key, _: Wanted, _: &Values, _: VisitField<'_>) -> Result<Written> {
            Ok(Written { found: Some(self.finds), growth: None })
        }

        fn statements(&mut self) -> StatementCounts {
            StatementCounts::NONE
        }
    }

    const ALL: Nothing = Nothing { finds: true, answers: true };

    fn client(pairs: &[(&str, Value)]) -> Stream<Nothing> {
        client_of(pairs, ALL).0
    }

    fn client_of<S: Store>(pairs: &[(&str, Value)], store: S) -> (Stream<S>, Tallies) {
        let config = Arc::new(Config::new(&pairs.iter().cloned().collect()).unwrap());
        let inserted = Arc::new(Inserted::new(config.records));
        let tallies = Tallies::new(&config);
        let at = ClientAddress { host: 0, driver: 0, client: 0, clients: 1 };
        (Stream::new(store, config, inserted, tallies.client(None, 0), at, 7), tallies)
    }

    /// Whether the drawn operation completes at once.
    fn performs<S: Store>(client: &mut Stream<S>) -> bool {
        let mut operation = std::pin::pin!(client.perform());
        operation.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    fn draw_insert(client: &mut Stream<Nothing>) {
        while client.draw().is_some() && client.drawn.kind != Kind::Insert {}
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
                // Four deviations are exceeded once in 16,000 times.
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
            // With nine degrees of freedom, the statistic exceeds 27.9 once in a thousand times.
            assert!(statistic < 27.9, "{counts:?}");
        }
        let mut all = client(&[("recordcount", Value::Int(1000)), ("writeallfields", Value::Bool(true))]);
        while all.draw() != Some(1) {}
        assert_eq!((all.values.fields(), all.values.len()), (0..10, 1000));
    }

    #[test]
    fn waiting_or_stopped_client_holds_no_insert_number() {
        let pairs = [("profile", Value::Text("d".to_owned())), ("recordcount", Value::Int(10))];
        let (mut waiting, _) = client_of(&pairs, ALL);
        let inserted = waiting.inserted.clone();
        (0..1000).for_each(|_| assert!(waiting.draw().is_some()));
        assert_eq!((inserted.next_record(), inserted.there()), (10, 10), "it may wait for ever");
        draw_insert(&mut waiting);
        assert!(performs(&mut waiting));
        assert_eq!((inserted.next_record(), inserted.there(), waiting.drawn.record), (11, 11, 10));
        let (mut stuck, _) = client_of(&pairs, Nothing { finds: true, answers: false });
        let inserted = stuck.inserted.clone();
        draw_insert(&mut stuck);
        assert!(!performs(&mut stuck));
        assert_eq!((inserted.next_record(), inserted.there()), (11, 10));
        // It was stopped before it ended, so it claims no second one.
        draw_insert(&mut stuck);
        assert!(!performs(&mut stuck));
        assert_eq!(inserted.next_record(), 11);
        drop(stuck);
        assert_eq!(inserted.there(), 11);
    }

    /// In an open loop with many clients each waits long for its turn, while others insert.
    #[test]
    fn latest_record_is_resolved_at_request_time() {
        let pairs = [("profile", Value::Text("d".to_owned())), ("recordcount", Value::Int(10))];
        let mut client = client(&pairs);
        let inserted = client.inserted.clone();
        let mut is_younger = false;
        for _ in 0..50 {
            while client.draw().is_some() && client.drawn.kind != Kind::Read {}
            let there = inserted.there();
            (0..100).for_each(|_| inserted.end(inserted.claim()));
            assert!(performs(&mut client));
            is_younger |= client.drawn.record >= there;
        }
        assert!(is_younger, "records inserted meanwhile are read most");
    }

    #[test]
    fn missing_loaded_record_is_counted_by_every_operation() {
        for profile in ["a", "b", "c", "e", "f"] {
            let pairs = [("profile", Value::Text(profile.to_owned())), ("recordcount", Value::Int(1000))];
            for finds in [true, false] {
                let (mut client, tallies) = client_of(&pairs, Nothing { finds, answers: true });
                for _ in 0..100 {
                    client.draw().unwrap();
                    assert!(performs(&mut client));
                }
                let sums = tallies.sums();
                // Records inserted since the load may or may not exist.
                assert!((80..=100 - sums.inserted).contains(&sums.requested), "{profile}: {sums:?}");
                assert_eq!(sums.missing, if finds { 0 } else { sums.requested }, "{profile}");
            }
        }
    }

    /// Carries out an update, then loses the connection before the answer; a later read finds the last update.
    #[derive(Default)]
    struct CutOff {
        key: Vec<u8>,
        written: Values,
    }

    impl Store for CutOff {
        async fn read(&mut self, key: &Key, _: Wanted, visit: VisitField<'_>) -> Result<bool> {
            if key.bytes() == self.key {
                self.written.fields().for_each(|field| visit(field, self.written.get(field).unwrap()));
            }
            Ok(true)
        }

        async fn update(&mut self, key: &Key, values: &Values) -> Result<Written> {
            (self.key, self.written) = (key.bytes().to_vec(), values.clone());
            Err(EngineError::CutOff("server gone"))
        }

        async fn insert(&mut self, _: &Key, _: &Values) -> Result<()> {
            Ok(())
        }

        async fn scan(&mut self, from: &Key, _: u64, all: Wanted, visit: VisitField<'_>) -> Result<u64> {
            self.read(from, all, visit).await.map(u64::from)
        }

        fn statements(&mut self) -> StatementCounts {
            StatementCounts::NONE
        }
    }

    /// Draws until it is this kind, for any record or a given one, and performs it.
    fn perform<S: Store>(client: &mut Stream<S>, kind: Kind, of: Option<u64>) {
        let is_it = |drawn: &Drawn| drawn.kind == kind && of.is_none_or(|record| drawn.record == record);
        while client.draw().is_some() && !is_it(&client.drawn) {}
        assert!(performs(client));
    }

    #[test]
    fn write_in_doubt_is_resolved_by_any_later_read() {
        let ways = [
            (Kind::Update, Kind::Read, [0.5, 0.5, 0.0, 0.0]),
            (Kind::Update, Kind::Scan, [0.0, 0.5, 0.5, 0.0]),
            (Kind::ReadModifyWrite, Kind::ReadModifyWrite, [0.5, 0.0, 0.0, 0.5]),
        ];
        let names = ["readproportion", "updateproportion", "scanproportion", "readmodifywriteproportion"];
        for (writing, reading, shares) in ways {
            let shares = names.into_iter().zip(shares.map(Value::Float));
            let pairs: Vec<(&str, Value)> = shares.chain([("recordcount", Value::Int(10))]).collect();
            let (mut client, tallies) = client_of(&pairs, CutOff::default());
            perform(&mut client, writing, None);
            let (record, field) = (client.drawn.record, client.values.fields().start);
            let slot = tallies.watched.slot(record).unwrap();
            let of_load = || tallies.why_lost(slot, field, crate::value::Author::LOADER);
            assert_eq!(of_load(), None, "it may not have been carried out");
            perform(&mut client, reading, Some(record));
            assert!(of_load().is_some_and(|why| why.contains("write 1 is gone")), "{reading:?}: {:?}", of_load());
            // If the later operation also wrote, its write is in doubt now; otherwise no doubt remains.
            assert_eq!(client.tally.doubted(record).is_some(), writing == reading, "{reading:?}");
        }
    }
}
