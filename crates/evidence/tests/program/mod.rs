//! The program from outside.

mod conform;
mod decide;
#[path = "../../../hoistway/tests/cli/interrupts.rs"]
mod interrupts;
mod refusals;
mod reproduce;
mod support;
