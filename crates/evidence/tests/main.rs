//! Tests with recordings of kernels and with published tables. They are one program, since linking the simulation and
//! its libraries takes long.

mod altered;
mod bfq;
mod cfq;
mod claims;
mod consistency;
mod kyber;
mod legacy_front;
mod program;
mod replay_pairs;
mod rules;
mod scores;
mod techniques;
