//! Settling and draining, over real servers and over ones that play tricks.

mod existing;
mod real;
mod refused;
