//! What an engine needs of memory, its cache among it: measured, build by build.

const MIB: f64 = (1 << 20) as f64;
/// Bytes of data with which the table was measured: what grows with the data counts from there.
const MEASURED_DATA_BYTES: u64 = 40 << 20;

/// What a build of an engine was measured to need of a memory group.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryNeed {
    /// The build that was measured, as the table names it: `innodb/mariadb-10.11`.
    pub measured_on: String,
    /// What its processes, and the trial's own, need with no client and no cache.
    pub base_bytes: u64,
    /// Bytes for each byte of `cache`, the cache itself among them; 0 for an engine that has none.
    pub per_cache: f64,
    /// The most that `per_cache` adds to the cache: what is beside it may have a bound of its own.
    pub beside_cache_most_bytes: u64,
    /// Bytes for each byte of the workload's data.
    pub per_data: f64,
    /// Bytes for each client of the load.
    pub per_loader_bytes: u64,
    /// Bytes for each client of the loops.
    pub per_client_bytes: u64,
}

/// A cache that an engine's makers advise where it shares the memory with the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvisedCache {
    /// Its size.
    pub bytes: u64,
    /// The rule, with whose it is: `a third of it, as RocksDB's makers advise`.
    pub rule: &'static str,
}

/// For how much work memory is needed.
#[derive(Clone, Copy, Debug)]
pub struct MemoryUse {
    /// Bytes of the workload's data.
    pub data_bytes: u64,
    /// Clients of the load.
    pub loaders: u32,
    /// The largest number of clients of the loops: each has a session of its own.
    pub clients: u32,
}

impl MemoryNeed {
    /// The builds of a table as `xtask memory-needs` writes it: a line each, the
    /// name, then MiB or bytes for each byte, what was measured last.
    pub fn builds(table: &str) -> impl Iterator<Item = Self> {
        table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
            let mut words = line.split_whitespace();
            let measured_on = words.next()?.to_owned();
            let mut number = || words.next()?.parse::<f64>().ok();
            Some(Self {
                measured_on,
                base_bytes: (number()? * MIB) as u64,
                per_cache: number()?,
                beside_cache_most_bytes: u64::MAX,
                per_data: number()?,
                per_loader_bytes: (number()? * MIB) as u64,
                per_client_bytes: (number()? * MIB) as u64,
            })
        })
    }

    /// A build of a table by its name.
    pub fn of(table: &str, build: &str) -> Option<Self> {
        Self::builds(table).find(|need| need.measured_on == build)
    }

    /// What a cache takes.
    pub fn cache_bytes(&self, cache: u64) -> u64 {
        let held = (cache as f64 * self.per_cache.min(1.0)) as u64;
        let beside = (cache as f64 * (self.per_cache - 1.0).max(0.0)) as u64;
        held.saturating_add(beside.min(self.beside_cache_most_bytes))
    }

    /// What the work takes beside base and cache: the larger of load and loops, and what grows with the data.
    pub fn work_bytes(&self, work: MemoryUse) -> u64 {
        let grown = work.data_bytes.saturating_sub(MEASURED_DATA_BYTES) as f64 * self.per_data;
        let loaders = u64::from(work.loaders).saturating_mul(self.per_loader_bytes);
        let clients = u64::from(work.clients).saturating_mul(self.per_client_bytes);
        loaders.max(clients).saturating_add(grown as u64)
    }

    /// The smallest memory group that is enough for a cache and some work.
    pub fn bytes(&self, cache: u64, work: MemoryUse) -> u64 {
        self.base_bytes.saturating_add(self.cache_bytes(cache)).saturating_add(self.work_bytes(work))
    }

    /// The largest cache, in whole MiB, that fits with some work into so much memory; 0 when none does.
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
        let bounded = MemoryNeed { beside_cache_most_bytes: 10 << 20, ..need };
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
