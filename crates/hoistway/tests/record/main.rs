//! `hoistway record` on a loop device, and the tools with which it has to agree. Tests report that they are skipped if
//! they lack privileges.

mod ends;
mod killed;
mod peers;
mod refusals;
#[path = "../../../linux/tests/support/skips.rs"]
mod skips;
mod support;
