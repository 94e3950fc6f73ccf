//! The distributions of requested records and of scan lengths.

use rumba_engine_api::setting::Settings;

use crate::keys::scattered;
use crate::zipf::Zipf;

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
    /// The loaded records: a share of the operations draws from the first `hot` ones, the rest from the others, each
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

/// How many records a scan reads.
#[derive(Clone, Copy, Debug)]
pub enum ScanLengths {
    /// From the first to the second, uniformly.
    Uniform(u64, u64),
    /// From the first on, by Zipf's law.
    Zipfian(u64, Zipf),
}

impl ScanLengths {
    /// The most records that a scan reads.
    pub fn longest(&self) -> u64 {
        match self {
            ScanLengths::Uniform(_, most) => *most,
            ScanLengths::Zipfian(least, zipf) => least + zipf.items() - 1,
        }
    }
}

/// The record with this rank of Zipf's law. YCSB takes the number of records for the last record's number, so one more
/// may be drawn, and is drawn again.
pub fn place_of(rank: u64, range: u64) -> u64 {
    scattered(rank) % (range + 1)
}

/// The records most often requested by Zipf's law. A record may occur more than once, and one may not exist.
pub fn hottest(requests: Requests, many: u64) -> impl Iterator<Item = u64> {
    let range = if let Requests::Zipfian { range } = requests { Some(range) } else { None };
    range.into_iter().flat_map(move |range| (0..many).map(move |rank| place_of(rank, range)))
}
