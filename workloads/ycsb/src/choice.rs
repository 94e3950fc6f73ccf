//! The choice of an operation's record, and of a scan's length.

use std::sync::Arc;

use rand::Rng;
use rumba_engine_api::setting::Settings;
use rumba_workload_kit::{Random, below};

use crate::inserted::Inserted;
use crate::keys::scattered;
use crate::settings::{Config, ScanLengths};
use crate::zipf::{Zipf, share};

/// How records are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Requests {
    /// Uniformly among the loaded records.
    Uniform,
    /// By Zipf's law over ten thousand million ranks, scattered over `range` numbers. Numbers that do not exist yet are
    /// drawn again.
    Zipfian { range: u64 },
    /// By Zipf's law over the ages of existing records, newest first.
    Latest,
    /// Among the loaded records: the first `hot` ones in a share of the operations, and the others in the rest, each
    /// uniformly.
    Hotspot { hot: u64, share: f64 },
    /// The loaded records, one after the other; clients take turns.
    Sequential,
    /// By an exponential law over the ages of existing records, with this rate.
    Exponential { rate: f64 },
}

impl Requests {
    /// The distribution with this name over this many records; `inserts` is the share of operations that insert.
    pub fn new(name: &str, settings: &Settings, records: u64, inserts: f64) -> Self {
        let number = |name| settings.float(name).unwrap_or_default();
        match name {
            "zipfian" => {
                // Twice the inserts of as many operations as there are records, as in YCSB's files.
                let expected = 2.0 * inserts * records as f64;
                Requests::Zipfian { range: records + expected as u64 }
            }
            "latest" => Requests::Latest,
            "hotspot" => Requests::Hotspot {
                hot: (records as f64 * number("hotspotdatafraction")) as u64,
                share: number("hotspotopnfraction"),
            },
            "sequential" => Requests::Sequential,
            "exponential" => {
                let most = records as f64 * number("exponential_frac");
                Requests::Exponential { rate: -(1.0 - number("exponential_percentile") / 100.0).ln() / most }
            }
            _ => Requests::Uniform,
        }
    }
}

/// A client's choices.
#[derive(Debug)]
pub struct Choice {
    requests: Requests,
    records: u64,
    scans: ScanLengths,
    inserted: Arc<Inserted>,
    scrambled: Zipf,
    /// The ages of this many records.
    ages: (u64, Zipf),
}

impl Choice {
    /// That of a client.
    pub fn new(config: &Config, inserted: Arc<Inserted>) -> Self {
        Self {
            requests: config.requests,
            records: config.records,
            scans: config.scans,
            inserted,
            scrambled: Zipf::scrambled(),
            ages: (0, Zipf::new(1)),
        }
    }

    /// The record of the next operation.
    #[inline]
    pub fn record(&mut self, random: &mut Random) -> u64 {
        match self.requests {
            Requests::Uniform => below(random, self.records),
            Requests::Zipfian { range } => self.scattered(range, random),
            Requests::Latest => self.latest(random),
            Requests::Hotspot { hot, share: hot_share } => {
                let is_hot = share(random.next_u64()) < hot_share;
                let cold = self.records - hot;
                if (is_hot && hot > 0) || cold == 0 { below(random, hot) } else { hot + below(random, cold) }
            }
            Requests::Sequential => self.inserted.turn() % self.records,
            Requests::Exponential { rate } => self.recent(rate, random),
        }
    }

    /// Whether records are chosen by age.
    pub fn is_by_age(&self) -> bool {
        matches!(self.requests, Requests::Latest | Requests::Exponential { .. })
    }

    fn scattered(&self, range: u64, random: &mut Random) -> u64 {
        let there = self.inserted.there();
        loop {
            let number = place_of(self.scrambled.rank(share(random.next_u64())), range);
            if number < there {
                return number;
            }
        }
    }

    fn latest(&mut self, random: &mut Random) -> u64 {
        let there = self.inserted.there();
        if self.ages.0 != there {
            self.ages = (there, Zipf::new(there));
        }
        there - 1 - self.ages.1.rank(share(random.next_u64()))
    }

    fn recent(&self, rate: f64, random: &mut Random) -> u64 {
        let there = self.inserted.there();
        loop {
            let age = -(1.0 - share(random.next_u64())).ln() / rate;
            if age < there as f64 {
                return there - 1 - (age as u64).min(there - 1);
            }
        }
    }

    /// How many records the next scan reads.
    #[inline]
    pub fn scan_length(&self, random: &mut Random) -> u64 {
        match self.scans {
            ScanLengths::Uniform(least, most) => least + below(random, most - least + 1),
            ScanLengths::Zipfian(least, zipf) => least + zipf.rank(share(random.next_u64())),
        }
    }
}

/// The record with this rank of Zipf's law. YCSB takes the number of records for the last record's number, so one more
/// may be drawn, and is drawn again.
fn place_of(rank: u64, range: u64) -> u64 {
    scattered(rank) % (range + 1)
}

/// The records most often requested by Zipf's law. A record may occur more than once, and one may not exist.
pub fn hottest(requests: Requests, many: u64) -> impl Iterator<Item = u64> {
    let range = if let Requests::Zipfian { range } = requests { Some(range) } else { None };
    range.into_iter().flat_map(move |range| (0..many).map(move |rank| place_of(rank, range)))
}

#[cfg(test)]
mod tests;
