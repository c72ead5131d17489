//! The owner of an I/O.
//!
//! Used by: `worker`, `engine`, `job`, `client`; crates `serve`, `calibrate`.
//! Tests: `crates/engine/tests/model.rs`.

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::CgroupId;

/// What schedulers know about a client. Each client is a separate I/O context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// Class and level; honoured by bfq and mq-deadline.
    pub ioprio: IoPriority,
    /// The group whose weight applies; honoured by bfq.
    pub group: Group,
}

/// A group of clients, made by [`Engine::add_group`](crate::Engine::add_group).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group(pub(crate) CgroupId);

impl Group {
    /// The group of all clients without another one.
    pub const ROOT: Group = Group(CgroupId::ROOT);
}

impl Default for Context {
    fn default() -> Self {
        Context { ioprio: IoPriority::DEFAULT, group: Group::ROOT }
    }
}
