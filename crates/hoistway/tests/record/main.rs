//! `hoistway record` on a loop device, beside the tools that it has to agree with. What needs rights that are missing is skipped,
//! and says so.

mod ends;
mod killed;
mod peers;
mod refusals;
#[path = "../../../linux/tests/support/skips.rs"]
mod skips;
mod support;
