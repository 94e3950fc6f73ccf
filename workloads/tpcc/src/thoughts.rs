//! Keying and think times: a terminal's pause before each transaction, and its state when a run begins.

use std::time::Duration;

use rand::Rng;
use rumba_workload_kit::{Random, below, share};

use crate::deck::{CARDS, Card, Deck};

/// Keying times, and the means of think times, in seconds, by the cards (5.2.5.7).
const TIMES_S: [(f64, f64); 5] = [(18.0, 12.0), (3.0, 12.0), (2.0, 10.0), (2.0, 5.0), (2.0, 5.0)];

/// A think time is at most this many times its mean (5.2.5.4).
const MOST_MEANS: f64 = 10.0;

/// The longest pause: the longest keying time after the longest think time.
const LONGEST_S: f64 = 18.0 + MOST_MEANS * 12.0;

pub struct ThinkTime {
    random: Random,
    /// The time to think about the last transaction's answer.
    thinking_s: f64,
    /// The pause before the drawn card.
    pub pause: Duration,
    /// The current card at the start of the run, until it is drawn.
    held: Option<Card>,
}

impl ThinkTime {
    /// The state of a terminal at a random moment of a long run, with its deck. If all terminals began with keying,
    /// they would enter nothing for seconds, and then all at once.
    pub fn met(random: Random, deck: &mut Deck) -> Self {
        let mut thoughts = Self::new(random);
        loop {
            *deck = Deck::new();
            // The terminal thinks about the last of these cards, which may be any card of the deck.
            for _ in 0..=below(&mut thoughts.random, CARDS as u64) {
                thoughts.draw(deck);
            }
            let card = thoughts.draw(deck);
            // A random moment falls into a pause in proportion to its length, and uniformly within it.
            let left_s = share(thoughts.random.next_u64()) * LONGEST_S;
            if left_s < thoughts.pause.as_secs_f64() {
                (thoughts.pause, thoughts.held) = (Duration::from_secs_f64(left_s), Some(card));
                return thoughts;
            }
        }
    }

    /// The state of a terminal before its first card.
    fn new(random: Random) -> Self {
        Self { random, thinking_s: 0.0, pause: Duration::ZERO, held: None }
    }

    pub fn draw(&mut self, deck: &mut Deck) -> Card {
        self.held.take().unwrap_or_else(|| {
            let card = deck.draw(&mut self.random);
            self.next(card);
            card
        })
    }

    /// A transaction of this type is next.
    fn next(&mut self, card: Card) {
        let (keying_s, mean_s) = TIMES_S[card as usize];
        self.pause = Duration::from_secs_f64(self.thinking_s + keying_s);
        // Exponentially distributed (5.2.5.4).
        self.thinking_s = (-(1.0 - share(self.random.next_u64())).ln() * mean_s).min(MOST_MEANS * mean_s);
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::bound::TPMC_OF_WAREHOUSE;
    use crate::scale::DISTRICTS;
    use crate::settings::SETTINGS;

    /// The cards of a deck, and the mean time that it takes a terminal if answers take no time.
    fn whole_deck() -> (Vec<Card>, f64) {
        let (mut deck, mut random) = (Deck::new(), Random::seed_from_u64(1));
        let cards: Vec<Card> = (0..CARDS).map(|_| deck.draw(&mut random)).collect();
        let seconds = cards.iter().map(|card| TIMES_S[*card as usize].0 + TIMES_S[*card as usize].1).sum();
        (cards, seconds)
    }

    /// Guards the documented share of tpmC, so that a reader of a lower percentage knows which part the engine lost and
    /// which part the deck.
    #[test]
    fn zero_latency_terminals_reach_the_documented_tpmc_share() {
        let (cards, deck_s) = whole_deck();
        let new_orders = cards.iter().filter(|card| **card == Card::NewOrder).count() as f64;
        let terminals = f64::from(DISTRICTS);
        // One in a hundred is rolled back (2.4.1.4).
        let committed = 0.99 * new_orders * terminals * 60.0 / deck_s;
        assert_eq!(format!("{committed:.2}"), "12.48");
        let percent = format!("{:.1}%", 100.0 * committed / TPMC_OF_WAREHOUSE);
        assert_eq!(percent, "97.0%");
        let think = SETTINGS.iter().find(|setting| setting.name == "think").unwrap();
        assert!(think.help.contains(&percent), "{}", think.help);
    }

    #[test]
    fn a_terminal_thinks_and_keys_as_long_as_the_specification_says() {
        let mut thoughts = ThinkTime::new(Random::seed_from_u64(1));
        thoughts.next(Card::NewOrder);
        assert_eq!(thoughts.pause, Duration::from_secs(18));
        let mut thought_s = 0.0;
        for _ in 0..10_000 {
            thoughts.next(Card::Payment);
            let pause_s = thoughts.pause.as_secs_f64();
            assert!((3.0..=123.0).contains(&pause_s), "{pause_s}");
            thought_s += pause_s - 3.0;
        }
        assert!((thought_s / 10_000.0 - 12.0).abs() < 0.4, "{thought_s}");
    }

    /// Guards against synchronised terminals. If all began with keying, they entered no new order for 18 s, and then
    /// twenty times as many in one second as in any other. Loops of thirty seconds after a short warmup then measured
    /// more than is possible.
    #[test]
    fn terminals_start_at_their_mean_rate_in_the_first_second() {
        const TERMINALS: u32 = 20_000;
        const SECONDS: usize = 30;
        let mut entered = [[0_u32; SECONDS]; TIMES_S.len()];
        for terminal in 0..TERMINALS {
            let mut deck = Deck::new();
            let mut thoughts = ThinkTime::met(Random::seed_from_u64(terminal.into()), &mut deck);
            let mut at = Duration::ZERO;
            loop {
                let card = thoughts.draw(&mut deck);
                at += thoughts.pause;
                let Some(count) = entered[card as usize].get_mut(at.as_secs() as usize) else { break };
                *count += 1;
            }
        }
        let (cards, deck_s) = whole_deck();
        for (kind, counts) in entered.iter().enumerate() {
            let of_deck = cards.iter().filter(|card| **card as usize == kind).count() as f64;
            let mean = f64::from(TERMINALS) * of_deck / deck_s;
            // No terminal enters two per second, so each count's deviation is below the mean's root. Five deviations
            // are exceeded once in 1.7 million times.
            let is_near = |count: u32| (f64::from(count) - mean).abs() < 5.0 * mean.sqrt();
            assert!(counts.iter().all(|count| is_near(*count)), "kind {kind}, mean {mean}: {counts:?}");
        }
    }

    /// If the second pause were below the keying time too, the terminal would not have keyed its input.
    #[test]
    fn only_the_first_terminal_pause_is_below_the_keying_time() {
        let mut firsts: Vec<Duration> = Vec::new();
        for seed in 0..1000 {
            let mut deck = Deck::new();
            let mut thoughts = ThinkTime::met(Random::seed_from_u64(seed), &mut deck);
            thoughts.draw(&mut deck);
            firsts.push(thoughts.pause);
            for _ in 0..2 * CARDS {
                let keying_s = TIMES_S[thoughts.draw(&mut deck) as usize].0;
                let pause_s = thoughts.pause.as_secs_f64();
                assert!((keying_s..=LONGEST_S).contains(&pause_s), "{pause_s}");
            }
        }
        // The rest of a pause at a moment of a run, its mean square over twice its mean: 14.9 s, with a deviation of
        // 14.
        let mean_s = firsts.iter().sum::<Duration>().as_secs_f64() / 1000.0;
        assert!((mean_s - 14.9).abs() < 2.0, "{mean_s}");
        assert!(firsts.iter().any(|first| *first < Duration::from_secs(2)));
    }
}
