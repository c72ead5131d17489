//! Runs the program as a user does.

mod conform;
#[path = "../../../hoistway/tests/cli/interrupts.rs"]
mod interrupts;
mod refusals;
mod reproduce;
mod support;
