//! The choice of an operation's record, and of a scan's length.

use std::sync::Arc;

use rand::Rng;
use rumba_workload_kit::{Random, below, share};

use crate::inserted::Inserted;
use crate::requests::{Requests, ScanLengths, place_of};
use crate::settings::Config;
use crate::zipf::Zipf;

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
                return self.inserted.record(number);
            }
        }
    }

    fn latest(&mut self, random: &mut Random) -> u64 {
        let there = self.inserted.there();
        if self.ages.0 != there {
            self.ages = (there, Zipf::new(there));
        }
        self.inserted.record(there - 1 - self.ages.1.rank(share(random.next_u64())))
    }

    fn recent(&self, rate: f64, random: &mut Random) -> u64 {
        let there = self.inserted.there();
        loop {
            let age = -(1.0 - share(random.next_u64())).ln() / rate;
            if age < there as f64 {
                return self.inserted.record(there - 1 - (age as u64).min(there - 1));
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

#[cfg(test)]
mod tests;
