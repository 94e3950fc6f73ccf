//! Tests of settle and drain, with real servers and with simulated misbehaving ones.

mod existing;
mod real;
mod refused;
