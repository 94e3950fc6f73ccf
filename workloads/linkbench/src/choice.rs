//! Which ids an operation touches.

use rand_distr::{Distribution, Geometric};
use rumba_workload_kit::{Chance, Random, below};

use crate::distribution::degree::Degrees;
use crate::distribution::shuffle::Shuffle;
use crate::distribution::zipf::Access;
use crate::graph::{LINK_TYPE, MULTIGET_MAX};
use crate::profile::{Id2Style, SplitStyle};
use crate::settings::Config;

/// The permutation that decides which ids have many links.
const BY_DEGREE: u64 = 1;
/// The permutation of link accesses that are independent of the degree.
const UNCORRELATED: u64 = 2;
/// The permutation of node accesses.
const BY_NODE: u64 = 3;

/// How often a 2011 multiget draws again to find an id that it does not have yet.
const UNIQUE_TRIES: usize = 100;

/// The loaded graph: the number of links of each id.
#[derive(Debug)]
pub struct Graph {
    degrees: Degrees,
    shuffle: Shuffle,
    split: SplitStyle,
    first: u64,
    link_types: u64,
}

impl Graph {
    /// The graph of a configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            degrees: Degrees::new(config.profile.degrees, config.ids, config.degree_cap.links()),
            shuffle: Shuffle::new(config.ids, BY_DEGREE),
            split: config.profile.split,
            first: config.first,
            link_types: config.link_types,
        }
    }

    /// The number of links of type number `nth` that are loaded for a loaded id.
    #[inline]
    pub fn links(&self, id1: u64, nth: u64) -> u64 {
        self.split.links_of_type(self.degrees.of(self.shuffle.rank(id1 - self.first)), nth, self.link_types)
    }

    /// The number of loaded links, and the number of (id, type) pairs with links.
    pub fn totals(&self) -> (u64, u64) {
        let of = |(ids, degree): (u64, u64)| {
            let each = (0..self.link_types).map(|nth| self.split.links_of_type(degree, nth, self.link_types));
            each.fold((0, 0), |(links, counts), n| (links + ids * n, counts + ids * u64::from(n > 0)))
        };
        self.degrees.steps().map(of).fold((0, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1))
    }

    /// The length of the longest loaded list of one id and type, and the number of lists with `least` or more links.
    pub fn lists(&self, least: u64) -> (u64, u64) {
        let of = |(ids, degree): (u64, u64)| {
            (0..self.link_types).map(move |nth| (ids, self.split.links_of_type(degree, nth, self.link_types)))
        };
        self.degrees.steps().flat_map(of).filter(|(ids, _)| *ids > 0).fold((0, 0), |(longest, many), (ids, links)| {
            (links.max(longest), many + if links >= least { ids } else { 0 })
        })
    }

    /// The most links that a loaded id has.
    pub fn largest(&self) -> u64 {
        self.split.links(self.degrees.of(0), self.link_types)
    }
}

/// An access that is correlated with the degree, or not.
#[derive(Clone, Copy, Debug)]
pub struct Blend {
    uncorrelated: Chance,
    by_degree: Access,
    by_other: Access,
}

impl Blend {
    fn new(config: &Config, shape: f64, uncorrelated: f64) -> Self {
        let access = |seed| Access::new(config.first, config.ids, shape, Shuffle::new(config.ids, seed));
        Self { uncorrelated: Chance::new(uncorrelated), by_degree: access(BY_DEGREE), by_other: access(UNCORRELATED) }
    }

    pub fn id(&self, random: &mut Random) -> u64 {
        if self.uncorrelated.happens(random) { self.by_other.id(random) } else { self.by_degree.id(random) }
    }
}

/// Chooses ids as the mix does.
#[derive(Debug)]
pub struct Choice {
    /// The ids whose links to read.
    pub reads: Blend,
    /// The ids whose links to write.
    pub writes: Blend,
    pub node_reads: Access,
    pub node_updates: Access,
    pub node_deletes: Access,
    multiget: Option<Geometric>,
    multiget_min: u64,
    multiget_max: u64,
    id2: Id2Style,
    link_types: u64,
    end: u64,
}

impl Choice {
    /// The choice of a configuration.
    pub fn new(config: &Config) -> Self {
        let node = |shape| Access::new(config.first, config.ids, shape, Shuffle::new(config.ids, BY_NODE));
        Self {
            reads: Blend::new(config, config.read_shape, config.read_uncorrelated),
            writes: Blend::new(config, config.write_shape, config.write_uncorrelated),
            node_reads: node(config.node_read_shape),
            node_updates: node(config.node_update_shape),
            // Uniform: the most read nodes are rarely deleted, and each node only once.
            node_deletes: node(0.0),
            multiget: Geometric::new(config.multiget_prob).ok(),
            multiget_min: config.multiget_min,
            multiget_max: config.multiget_max,
            id2: config.profile.id2,
            link_types: config.link_types,
            end: config.end(),
        }
    }

    /// A link type; all are equally likely.
    pub fn link_type(&self, random: &mut Random) -> u64 {
        LINK_TYPE + below(random, self.link_types)
    }

    /// The other end of a link that was loaded with probability `existing`.
    pub fn id2(&self, graph: &Graph, id1: u64, link_type: u64, existing: f64, random: &mut Random) -> u64 {
        let loaded = graph.links(id1, link_type - LINK_TYPE);
        match self.id2 {
            Id2Style::Range => id1 + below(random, range(loaded, existing)),
            Id2Style::Coin => self.coin(id1, loaded, Chance::new(existing), random),
        }
    }

    fn coin(&self, id1: u64, loaded: u64, existing: Chance, random: &mut Random) -> u64 {
        if existing.happens(random) { id1 + below(random, loaded.max(1)) } else { below(random, self.end) }
    }

    /// The other ends of a multiget: rising, each once. Replaces the content of `id2s`.
    pub fn id2s(
        &self,
        graph: &Graph,
        id1: u64,
        link_type: u64,
        existing: f64,
        random: &mut Random,
        id2s: &mut Vec<u64>,
    ) {
        let loaded = graph.links(id1, link_type - LINK_TYPE);
        let wanted = self.multiget_size(random);
        id2s.clear();
        match self.id2 {
            Id2Style::Coin => {
                let chance = Chance::new(existing);
                id2s.extend((0..wanted).map(|_| self.coin(id1, loaded, chance, random)));
            }
            Id2Style::Range if range(loaded, existing) <= wanted => id2s.extend(id1..id1 + wanted),
            Id2Style::Range => {
                let range = range(loaded, existing);
                for _ in 0..wanted {
                    let mut tries = (0..UNIQUE_TRIES).map(|_| id1 + below(random, range));
                    id2s.extend(tries.find(|id2| !id2s.contains(id2)));
                }
            }
        }
        id2s.sort_unstable();
        id2s.dedup();
    }

    /// The mean number of ids in a multiget: the minimum, and one more for each step that the geometric law continues,
    /// up to the maximum.
    pub fn mean_multiget(config: &Config) -> f64 {
        let goes_on = 1.0 - config.multiget_prob;
        let more = (config.multiget_min..config.multiget_max).scan(1.0, |reached, _| {
            *reached *= goes_on;
            Some(*reached)
        });
        config.multiget_min as f64 + more.sum::<f64>()
    }

    /// How many ids a multiget draws: geometric from the smallest number, bounded.
    fn multiget_size(&self, random: &mut Random) -> u64 {
        let more = self.multiget.map_or(0, |multiget| multiget.sample(random));
        more.saturating_add(self.multiget_min).min(self.multiget_max.min(MULTIGET_MAX as u64))
    }
}

/// 2011: ids are chosen from a range in which about the share `existing` was loaded.
fn range(loaded: u64, existing: f64) -> u64 {
    ((loaded as f64 / existing).ceil() as u64).max(1)
}

#[cfg(test)]
mod tests;
