//! The block server from outside, beside clients that others wrote.

mod bounds;
mod clients;
mod config;
mod control;
mod disks;
mod event_loop;
mod faults;
mod guest;
mod hostile;
mod isolation;
mod life;
mod memory;
mod metrics;
mod refusals;
mod running;
mod shares;
mod stalls;
mod tls;
mod top;
mod wire;
