//! Whose I/O it is.

use hoistway_blk::bio::IoPriority;
use hoistway_blk::ground::CgroupId;

/// What schedulers know of a client, beside that it is one: each is an I/O context of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// Class and level: bfq and mq-deadline honour it.
    pub ioprio: IoPriority,
    /// The group whose weight counts: bfq honours it.
    pub group: Group,
}

/// A group of clients, made by [`Engine::add_group`](crate::Engine::add_group).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group(pub(crate) CgroupId);

impl Group {
    /// The one that all clients without one are in.
    pub const ROOT: Group = Group(CgroupId::ROOT);
}

impl Default for Context {
    fn default() -> Self {
        Context { ioprio: IoPriority::DEFAULT, group: Group::ROOT }
    }
}
