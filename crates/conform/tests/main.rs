//! Replays of recorded kernels, as one program: each test program links the simulation and its libraries anew.

mod altered;
mod bfq;
mod cfq;
mod consistency;
mod kyber;
mod legacy_front;
mod rules;
mod scores;
