//! Lists with more links than one request returns: the positions where a later request may continue.

use rumba_workload_kit::{Random, below};

/// Lists remembered per client, as in the originals.
const LIMIT: usize = 2048;

/// The end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub id1: u64,
    pub link_type: u64,
    /// The time of its oldest link.
    pub time: u64,
}

/// The remembered lists of one client.
#[derive(Debug, Default)]
pub struct Tails(Vec<Tail>);

impl Tails {
    /// Some remembered list and its place.
    pub fn choose(&self, random: &mut Random) -> Option<(usize, Tail)> {
        if self.0.is_empty() {
            return None;
        }
        let place = below(random, self.0.len() as u64) as usize;
        Some((place, self.0[place]))
    }

    /// Remembers a list unless it is known. Without room, it forgets another one. Full lists are rare, so a linear
    /// search is enough.
    pub fn remember(&mut self, tail: Tail, random: &mut Random) {
        if self.0.iter().any(|known| (known.id1, known.link_type) == (tail.id1, tail.link_type)) {
            return;
        }
        if self.0.len() < LIMIT {
            self.0.push(tail);
        } else {
            let place = below(random, LIMIT as u64) as usize;
            self.0[place] = tail;
        }
    }

    /// The list at `place` continued to `time`, or has ended.
    pub fn went_on(&mut self, place: usize, time: Option<u64>) {
        match (time, self.0.get_mut(place)) {
            (Some(time), Some(tail)) => tail.time = time,
            (None, Some(_)) => drop(self.0.swap_remove(place)),
            (_, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn history_goes_back_until_it_ends_and_memory_stays_bounded() {
        let mut random = Random::seed_from_u64(1);
        let mut tails = Tails::default();
        assert_eq!(tails.choose(&mut random), None);
        for id1 in 0..3 * LIMIT as u64 {
            tails.remember(Tail { id1, link_type: 1, time: 50 }, &mut random);
            tails.remember(Tail { id1, link_type: 1, time: 99 }, &mut random);
        }
        assert_eq!(tails.0.len(), LIMIT);
        assert!(tails.0.iter().all(|tail| tail.time == 50));
        let (place, tail) = tails.choose(&mut random).unwrap();
        tails.went_on(place, Some(40));
        assert_eq!(tails.0[place], Tail { time: 40, ..tail });
        tails.went_on(place, None);
        assert_eq!(tails.0.len(), LIMIT - 1);
    }
}
