//! Runs the program as a user does.

mod conform;
mod decide;
#[path = "../../../hoistway/tests/cli/interrupts.rs"]
mod interrupts;
mod refusals;
mod reproduce;
mod support;
