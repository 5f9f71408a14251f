//! The engine from outside: against a plain `f64` encoder, against torch, and against itself by bits.

mod agree;
mod bits;
mod golden;
mod model;
mod naive;
mod parity;
mod pieces;
mod refusals;
