//! A client of the mix.

use std::time::Duration;

use rand::SeedableRng;
use rumba_engine_api::error::Result;
use rumba_engine_api::worker::{ClientAddress, Op, OpKind, StatementCounts, Worker};
use rumba_workload_kit::{Random, Retry, client_seed, stream_seed};

use crate::actor::Actor;
use crate::deck::Deck;
use crate::draw::{Home, Input, Inputs, now};
use crate::settings::Config;
use crate::store::Store;
use crate::tally::Tally;
use crate::thoughts::ThinkTime;

/// Retries of a transaction that conflicted before it is given up.
const RETRIES: u32 = 100;

/// The operation types, in the order of `bound::OPS`. Rolled-back new orders are counted separately, so that the
/// committed ones per minute are the specification's tpmC.
pub const NEW_ORDER: OpKind = 0;
pub const PAYMENT: OpKind = 1;
pub const ORDER_STATUS: OpKind = 2;
pub const DELIVERY: OpKind = 3;
pub const STOCK_LEVEL: OpKind = 4;
pub const ROLLED_BACK: OpKind = 5;

/// A client: its deck, its inputs, and the database.
pub struct Terminal<S> {
    actor: Actor<S>,
    deck: Deck,
    inputs: Inputs,
    input: Option<Input>,
    thoughts: Option<ThinkTime>,
    retry: Retry,
}

impl<S: Store> Terminal<S> {
    pub fn new(store: S, config: &Config, tally: Tally, at: ClientAddress, seed: u64) -> Self {
        let seed = client_seed(seed, at);
        let random = |stream| Random::seed_from_u64(stream_seed(seed, stream));
        // Clients take turns at the data sets.
        let home = Home::of_terminal(at.client / config.sets);
        let mut deck = Deck::new();
        let thoughts = config.thinks.then(|| ThinkTime::met(random(2), &mut deck));
        Self {
            actor: Actor::new(store, tally),
            deck,
            inputs: Inputs::new(random(0), config.scale, config.constants, config.thinks.then_some(home)),
            input: None,
            thoughts,
            retry: Retry::new(RETRIES, stream_seed(seed, 1)),
        }
    }

    /// The same terminal without keying and think times, because in the seconds before a crash most terminals would
    /// only wait.
    #[must_use]
    pub fn hurried(self) -> Self {
        Self { thoughts: None, ..self }
    }
}

impl<S: Store> Worker for Terminal<S> {
    fn draw(&mut self) -> Option<OpKind> {
        let card = match &mut self.thoughts {
            Some(thoughts) => thoughts.draw(&mut self.deck),
            None => self.deck.draw(&mut self.inputs.random),
        };
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
        Some(kind)
    }

    fn pause(&self) -> Duration {
        self.thoughts.as_ref().map_or(Duration::ZERO, |thoughts| thoughts.pause)
    }

    async fn perform(&mut self) -> Result<Op> {
        let Some(mut input) = self.input.take() else { return Ok(Op::default()) };
        // It was drawn before the terminal's think time, or before it waited for its arrival.
        input.enter(now());
        let mut retries = 0;
        loop {
            match self.actor.perform(&input).await {
                Ok(rows) => return Ok(Op { rows, retries, failed: false }),
                Err(error) => {
                    if !self.retry.operation(&mut retries, error).await? {
                        return Ok(Op { rows: 0, retries, failed: true });
                    }
                }
            }
        }
    }

    fn statements(&mut self) -> StatementCounts {
        self.actor.store.statements()
    }
}
