//! A client of the mix.

use std::time::Duration;

use rand::{Rng, SeedableRng};
use rumba_core::error::EngineError;
use rumba_core::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Random, Retry, client_seed, stream_seed};

use crate::actor::Actor;
use crate::deck::Deck;
use crate::draw::{Home, Input, Inputs, now};
use crate::scale::DISTRICTS;
use crate::settings::Config;
use crate::store::Store;
use crate::tally::Tally;

/// Retries of a transaction that conflicted before it is given up.
const RETRIES: u32 = 100;

/// The types of operations, in the order of `bound::OPS`. New orders that roll back count by themselves, so that the
/// committed ones of a minute are the specification's tpmC.
pub const NEW_ORDER: OpKind = 0;
pub const PAYMENT: OpKind = 1;
pub const ORDER_STATUS: OpKind = 2;
pub const DELIVERY: OpKind = 3;
pub const STOCK_LEVEL: OpKind = 4;
pub const ROLLED_BACK: OpKind = 5;

/// Keying times, and the means of think times, in seconds, by the types of operations (5.2.5.7).
const TIMES_S: [(f64, f64); 6] = [(18.0, 12.0), (3.0, 12.0), (2.0, 10.0), (2.0, 5.0), (2.0, 5.0), (18.0, 12.0)];

/// Keying and think times: what the terminal waits before its next transaction.
struct Thoughts {
    random: Random,
    /// For what the last transaction has answered.
    thinking_s: f64,
    pause: Duration,
}

impl Thoughts {
    /// A transaction of this type is next.
    fn next(&mut self, kind: OpKind) {
        let (keying_s, mean_s) = TIMES_S[kind];
        self.pause = Duration::from_secs_f64(self.thinking_s + keying_s);
        // Exponentially distributed, at most ten times the mean (5.2.5.4).
        let share = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        self.thinking_s = (-(1.0 - share).ln() * mean_s).min(10.0 * mean_s);
    }
}

/// A client: its deck, its inputs, and the database.
pub struct Terminal<S> {
    actor: Actor<S>,
    deck: Deck,
    inputs: Inputs,
    input: Option<Input>,
    thoughts: Option<Thoughts>,
    retry: Retry,
}

impl<S: Store> Terminal<S> {
    /// The client at an address.
    pub fn new(store: S, config: &Config, tally: Tally, at: ClientAddress, seed: u64) -> Self {
        let seed = client_seed(seed, at);
        let random = |stream| Random::seed_from_u64(stream_seed(seed, stream));
        // Its place among those of its data set.
        let place = at.client / config.sets;
        let home = Home { warehouse: place / DISTRICTS + 1, district: place % DISTRICTS + 1 };
        let thoughts = Thoughts { random: random(2), thinking_s: 0.0, pause: Duration::ZERO };
        Self {
            actor: Actor::new(store, tally),
            deck: Deck::new(),
            inputs: Inputs::new(random(0), config.scale, config.constants, config.thinks.then_some(home)),
            input: None,
            thoughts: config.thinks.then_some(thoughts),
            retry: Retry::new(RETRIES, stream_seed(seed, 1)),
        }
    }

    /// The same at the same place, who neither keys nor thinks: within the seconds before a crash most would do nothing else.
    #[must_use]
    pub fn hurried(self) -> Self {
        Self { thoughts: None, ..self }
    }
}

impl<S: Store> Worker for Terminal<S> {
    fn draw(&mut self) -> Option<OpKind> {
        let card = self.deck.draw(self.inputs.random());
        let input = self.inputs.draw(card);
        let kind = match &input {
            Input::NewOrder(order) if order.rolls_back => ROLLED_BACK,
            Input::NewOrder(_) => NEW_ORDER,
            Input::Payment(_) => PAYMENT,
            Input::OrderStatus(_) => ORDER_STATUS,
            Input::Delivery(_) => DELIVERY,
            Input::StockLevel(_) => STOCK_LEVEL,
        };
        self.input = Some(input);
        if let Some(thoughts) = &mut self.thoughts {
            thoughts.next(kind);
        }
        Some(kind)
    }

    fn pause(&self) -> Duration {
        self.thoughts.as_ref().map_or(Duration::ZERO, |thoughts| thoughts.pause)
    }

    async fn perform(&mut self) -> Result<Op, EngineError> {
        let Some(mut input) = self.input.take() else { return Ok(Op::default()) };
        // It was drawn before the terminal thought, or waited for its arrival.
        input.enter(now());
        let mut retries = 0;
        loop {
            match self.actor.perform(&input).await {
                Ok(rows) => return Ok(Op { rows, retries, failed: false }),
                Err(EngineError::CutOff(_)) => return Ok(Op { rows: 0, retries, failed: true }),
                Err(error) if error.is_conflict() => {
                    if !self.retry.wait(retries + 1, &error).await {
                        return Ok(Op { rows: 0, retries, failed: true });
                    }
                    retries += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn statements(&mut self) -> StatementCounts {
        self.actor.store.statements()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::TPMC_OF_WAREHOUSE;
    use crate::settings::SETTINGS;

    /// Whoever reads a lower percentage is to know what the engine has lost of it, and what the deck.
    #[test]
    fn terminals_that_never_wait_for_an_answer_commit_the_share_of_the_bound_that_is_told() {
        let (mut deck, mut random) = (Deck::new(), Random::seed_from_u64(1));
        // Cards have the numbers of their types of operations.
        let cards: Vec<OpKind> = (0..23).map(|_| deck.draw(&mut random) as OpKind).collect();
        let deck_s: f64 = cards.iter().map(|kind| TIMES_S[*kind].0 + TIMES_S[*kind].1).sum();
        let new_orders = cards.iter().filter(|kind| **kind == NEW_ORDER).count() as f64;
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
        let mut thoughts = Thoughts { random: Random::seed_from_u64(1), thinking_s: 0.0, pause: Duration::ZERO };
        thoughts.next(NEW_ORDER);
        assert_eq!(thoughts.pause, Duration::from_secs(18));
        let mut thought_s = 0.0;
        for _ in 0..10_000 {
            thoughts.next(PAYMENT);
            let pause_s = thoughts.pause.as_secs_f64();
            assert!((3.0..=123.0).contains(&pause_s), "{pause_s}");
            thought_s += pause_s - 3.0;
        }
        assert!((thought_s / 10_000.0 - 12.0).abs() < 0.4, "{thought_s}");
    }
}
