//! Which record an operation is about, and how many a scan reads.

use std::sync::Arc;

use rand::Rng;
use rumba_core::setting::Settings;
use rumba_workload_kit::{Random, below};

use crate::inserted::Inserted;
use crate::keys::scattered;
use crate::settings::{Config, ScanLengths};
use crate::zipf::{Zipf, share};

/// How records are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Requests {
    /// Of those that were loaded, all alike.
    Uniform,
    /// By Zipf's law over ten thousand million ranks, which are scattered over so many numbers; those that are not there yet
    /// are drawn again.
    Zipfian { range: u64 },
    /// By Zipf's law over the ages of those that are there, the newest first.
    Latest,
    /// Of those that were loaded: the first so many in a share of the operations, the others in the rest, all alike.
    Hotspot { hot: u64, share: f64 },
    /// Those that were loaded, one after the other; clients take turns.
    Sequential,
    /// By an exponential law over the ages of those that are there, with this rate.
    Exponential { rate: f64 },
}

impl Requests {
    /// The distribution of a name, over so many records; of the operations this share inserts.
    pub fn new(name: &str, settings: &Settings, records: u64, inserts: f64) -> Self {
        let number = |name| settings.float(name).unwrap_or_default();
        match name {
            "zipfian" => {
                // Twice the inserts of as many operations as there are records, which YCSB's files have.
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
    /// The ages of so many records.
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

    /// Whether records are chosen by how long they are there.
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

/// Which record has this rank of Zipf's law. YCSB takes the number of records for the last of their numbers: one more is
/// drawn, and drawn again.
fn place_of(rank: u64, range: u64) -> u64 {
    scattered(rank) % (range + 1)
}

/// The records that are asked for most often by Zipf's law, each once or more, and perhaps one that is not there.
pub fn hottest(requests: Requests, many: u64) -> impl Iterator<Item = u64> {
    let range = if let Requests::Zipfian { range } = requests { Some(range) } else { None };
    range.into_iter().flat_map(move |range| (0..many).map(move |rank| place_of(rank, range)))
}

#[cfg(test)]
mod tests;
