//! Replays of recorded kernels, and published tables, as one program: each test program links the simulation and its libraries anew.

mod altered;
mod bfq;
mod cfq;
mod consistency;
mod kyber;
mod legacy_front;
mod program;
mod replay_pairs;
mod rules;
mod scores;
mod techniques;
