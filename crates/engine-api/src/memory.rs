//! Memory needs of engines, including the cache, as measured for each build.

const MIB: f64 = (1 << 20) as f64;
/// Bytes of data with which the table was measured; growth with the data counts from there.
const MEASURED_DATA_BYTES: u64 = 40 << 20;

/// The measured memory need of an engine's build.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryNeed {
    /// The measured build, as the table names it: `innodb/mariadb-10.11`.
    pub measured_on: String,
    /// The need of its processes and of the trial's own process, with no client and no cache.
    pub base_bytes: u64,
    /// Bytes for each byte of `cache`, including the cache itself; 0 for an engine without a cache.
    pub per_cache: f64,
    /// The most that `per_cache` adds to the cache, because the memory next to the cache may have a separate bound.
    pub next_to_cache_most_bytes: u64,
    /// Bytes for each byte of the workload's data.
    pub per_data: f64,
    /// Bytes for each client of the load.
    pub per_loader_bytes: u64,
    /// Bytes for each client of the loops.
    pub per_client_bytes: u64,
}

/// A cache size that an engine's makers recommend if the memory is shared with the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvisedCache {
    /// Its size.
    pub bytes: u64,
    /// The rule and its authors: `a third of it, as RocksDB's makers advise`.
    pub rule: &'static str,
}

/// The amount of work for which memory is needed.
#[derive(Clone, Copy, Debug)]
pub struct MemoryUse {
    /// Bytes of the workload's data.
    pub data_bytes: u64,
    /// Clients of the load.
    pub loaders: u32,
    /// The largest number of clients of the loops; each has its own session.
    pub clients: u32,
}

impl MemoryNeed {
    /// The builds of the table `engines/memory-needs.txt`. Each line has the name, then MiB or bytes per byte,
    /// then details of the measurement.
    pub fn builds(table: &str) -> impl Iterator<Item = Self> {
        table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let mut words = line.split_whitespace();
            let measured_on = words.next()?.to_owned();
            let mut number = || words.next()?.parse::<f64>().ok();
            Some(Self {
                measured_on,
                base_bytes: (number()? * MIB) as u64,
                per_cache: number()?,
                next_to_cache_most_bytes: u64::MAX,
                per_data: number()?,
                per_loader_bytes: (number()? * MIB) as u64,
                per_client_bytes: (number()? * MIB) as u64,
            })
        })
    }

    /// The build with this name in a table.
    pub fn of(table: &str, build: &str) -> Option<Self> {
        Self::builds(table).find(|need| need.measured_on == build)
    }

    /// The memory that a cache needs.
    pub fn cache_bytes(&self, cache: u64) -> u64 {
        let held = (cache as f64 * self.per_cache.min(1.0)) as u64;
        let adjacent = (cache as f64 * (self.per_cache - 1.0).max(0.0)) as u64;
        held.saturating_add(adjacent.min(self.next_to_cache_most_bytes))
    }

    /// The memory for the work in addition to base and cache: the larger of load and loops, and the part that grows
    /// with the data.
    pub fn work_bytes(&self, work: MemoryUse) -> u64 {
        let grown = work.data_bytes.saturating_sub(MEASURED_DATA_BYTES) as f64 * self.per_data;
        let loaders = u64::from(work.loaders).saturating_mul(self.per_loader_bytes);
        let clients = u64::from(work.clients).saturating_mul(self.per_client_bytes);
        loaders.max(clients).saturating_add(grown as u64)
    }

    /// The smallest memory group that is enough for a cache and this work.
    pub fn bytes(&self, cache: u64, work: MemoryUse) -> u64 {
        self.base_bytes.saturating_add(self.cache_bytes(cache)).saturating_add(self.work_bytes(work))
    }

    /// The largest cache, in whole MiB, that fits into this memory together with the work; 0 if none fits.
    pub fn largest_cache(&self, memory: u64, work: MemoryUse) -> u64 {
        let (mut fits, mut too_large) = (0, memory / (1 << 20) + 1);
        while fits + 1 < too_large {
            let middle = u64::midpoint(fits, too_large);
            if self.bytes(middle << 20, work) <= memory { fits = middle } else { too_large = middle }
        }
        fits << 20
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# build | base | …\ntree/a-1.2   100  1.50  0.25  8.00  0.50  1.2.3  130\nmap 8 0 0 1 1 1.0\n";
    const WORK: MemoryUse = MemoryUse { data_bytes: 40 << 20, loaders: 4, clients: 16 };

    fn mib(bytes: u64) -> u64 {
        bytes >> 20
    }

    #[test]
    fn the_need_is_base_and_cache_and_the_larger_of_load_and_loops() {
        let need = MemoryNeed::of(TABLE, "tree/a-1.2").unwrap();
        assert_eq!(mib(need.bytes(40 << 20, WORK)), 100 + 60 + 32);
        assert_eq!(mib(need.bytes(40 << 20, MemoryUse { clients: 100, ..WORK })), 100 + 60 + 50);
        assert_eq!(mib(need.bytes(40 << 20, MemoryUse { data_bytes: 440 << 20, ..WORK })), 100 + 60 + 32 + 100);
        let bounded = MemoryNeed { next_to_cache_most_bytes: 10 << 20, ..need };
        assert_eq!(mib(bounded.bytes(40 << 20, WORK)), 100 + 50 + 32);
        let none = MemoryNeed::of(TABLE, "map").unwrap();
        assert_eq!(mib(none.bytes(1 << 30, WORK)), 8 + 16, "what has no cache does not need it");
        assert_eq!(MemoryNeed::of(TABLE, "tree"), None);
    }

    #[test]
    fn the_largest_cache_is_the_last_that_fits() {
        let need = MemoryNeed::of(TABLE, "tree/a-1.2").unwrap();
        for memory in [133 << 20, 200 << 20, 1 << 30] {
            let cache = need.largest_cache(memory, WORK);
            assert!(need.bytes(cache, WORK) <= memory && need.bytes(cache + (1 << 20), WORK) > memory, "{memory}");
        }
        assert_eq!(need.largest_cache(100 << 20, WORK), 0);
    }
}
