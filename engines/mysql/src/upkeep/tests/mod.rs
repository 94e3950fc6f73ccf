//! Settling and draining, over real servers and over ones that play tricks.

mod real;
mod refused;
mod existing;
