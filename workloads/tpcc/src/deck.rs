//! The mix of transactions as a deck of cards (clause 5.2.4.2): each client draws its cards in a random order, all of
//! them before it shuffles again.

use rumba_workload_kit::{Random, below};

/// The types of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Card {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

pub const CARDS: usize = 23;

/// A deck: ten new orders, ten payments, one of each other.
#[derive(Clone, Debug)]
pub struct Deck {
    cards: [Card; CARDS],
    left: usize,
}

impl Deck {
    /// A deck that is shuffled before its first card.
    pub fn new() -> Self {
        let mut cards = [Card::NewOrder; CARDS];
        cards[10..20].fill(Card::Payment);
        cards[20..].copy_from_slice(&[Card::OrderStatus, Card::Delivery, Card::StockLevel]);
        Self { cards, left: 0 }
    }

    pub fn draw(&mut self, random: &mut Random) -> Card {
        if self.left == 0 {
            self.left = self.cards.len();
        }
        // One of the remaining cards, with equal chances: a shuffle, one card at a time.
        let chosen = below(random, self.left as u64) as usize;
        self.left -= 1;
        self.cards.swap(chosen, self.left);
        self.cards[self.left]
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn every_deck_has_the_mix_and_an_order_of_its_own() {
        let mut random = Random::seed_from_u64(1);
        let mut deck = Deck::new();
        let mut decks: Vec<Vec<Card>> = (0..50).map(|_| (0..CARDS).map(|_| deck.draw(&mut random)).collect()).collect();
        for deck in &decks {
            let count = |card| deck.iter().filter(|drawn| **drawn == card).count();
            assert_eq!((count(Card::NewOrder), count(Card::Payment)), (10, 10));
            assert_eq!([Card::OrderStatus, Card::Delivery, Card::StockLevel].map(count), [1, 1, 1]);
        }
        decks.dedup();
        assert_eq!(decks.len(), 50);
    }
}
