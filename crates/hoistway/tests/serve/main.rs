//! The block server from outside, beside clients that others wrote.

mod bounds;
mod clients;
mod control;
mod faults;
mod guest;
mod hostile;
mod refusals;
mod running;
