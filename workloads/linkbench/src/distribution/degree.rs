//! The number of links of an id: the published out-degree tables.

/// The degree up to which ranks are searched one by one; most ids are found there.
const LINEAR: usize = 3;

/// The degree of every rank: rank 0 has the most links.
///
/// The tables give the share of ids with at most a given number of links. For n ids, that is a falling step function of
/// the rank.
#[derive(Clone, Debug)]
pub struct Degrees {
    /// The lowest rank of each step, falling; the degree rises with the index.
    from_rank: Vec<u64>,
    degree: Vec<u32>,
    n: u64,
}

/// The published table of 2011: 45% of the ids have no link.
pub const TABLE_2011: &str = include_str!("../../data/degrees-2011.txt");
/// The published table of 2017: 80% of the ids have one link.
pub const TABLE_2017: &str = include_str!("../../data/degrees-2017.txt");

/// The points of a table: a number of links, and the share of ids (0–1) with at most that number.
fn points(table: &str) -> impl Iterator<Item = (u32, f64)> {
    table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (links, percent) = line.split_once(' ')?;
        Some((links.parse().ok()?, percent.parse::<f64>().ok()? / 100.0))
    })
}

pub fn largest(table: &str) -> u64 {
    points(table).last().map_or(0, |(links, _)| u64::from(links))
}

impl Degrees {
    /// The degrees of `n` ids after a published table, none larger than `cap`.
    pub fn new(table: &str, n: u64, cap: u64) -> Self {
        let mut from_rank: Vec<u64> = Vec::new();
        let mut degree: Vec<u32> = Vec::new();
        for (links, share) in points(table) {
            // Rank r sits at the quantile 1 - r/n, as in the originals.
            let lowest = (n as f64 * (1.0 - share)).ceil() as u64;
            let links = links.min(u32::try_from(cap).unwrap_or(u32::MAX));
            if degree.last() == Some(&links) {
                from_rank.pop();
                degree.pop();
            }
            // A step that holds no rank is dropped.
            if lowest < from_rank.last().copied().unwrap_or(n) || lowest == 0 && degree.is_empty() {
                from_rank.push(lowest);
                degree.push(links);
            }
        }
        Self { from_rank, degree, n }
    }

    #[inline]
    pub fn of(&self, rank: u64) -> u64 {
        for step in 0..LINEAR.min(self.from_rank.len()) {
            if rank >= self.from_rank[step] {
                return u64::from(self.degree[step]);
            }
        }
        let step = self.from_rank.partition_point(|&from| from > rank);
        u64::from(self.degree.get(step).copied().unwrap_or(0))
    }

    /// The steps: how many ids have which degree.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut upto = self.n;
        self.from_rank.iter().zip(&self.degree).map(move |(&from, &degree)| {
            let ids = upto - from;
            upto = from;
            (ids, u64::from(degree))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn degree_by_rank_agrees_with_the_steps() {
        for n in [1, 2, 3, 10, 1000, 100_000] {
            for cap in [0, 1, 7, 100, u64::MAX] {
                let degrees = Degrees::new(TABLE_2017, n, cap);
                assert_eq!(degrees.steps().map(|step| step.0).sum::<u64>(), n, "{n} {cap}");
                let sum: u64 = degrees.steps().map(|(ids, degree)| ids * degree).sum();
                assert_eq!((0..n).map(|rank| degrees.of(rank)).sum::<u64>(), sum, "{n} {cap}");
                assert!((1..n).all(|rank| degrees.of(rank) <= degrees.of(rank - 1)));
            }
        }
    }
}
