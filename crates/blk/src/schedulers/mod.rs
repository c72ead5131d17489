//! The schedulers: one file or folder each, and a row in the [registry](Registry) by which everybody knows it. All but
//! kyber, mqfq, d2fq and blk-switch, which are made for many CPUs by themselves, are policies that are put behind a lock.
//!
//! Used by: `elevator`, `queue`, `kit`; crates `legacy`, `experiment`, `evidence`, `calibrate`, `sim` and others.
//! Tests: `crates/blk/src/schedulers/` (in its files), `crates/evidence/tests/`.

mod adios;
mod bfq;
mod blk_switch;
mod cffq;
mod d2fq;
mod fair_queue;
mod k2;
mod kyber;
mod mq_deadline;
mod mqfq;
mod noop;
pub mod process_queue;
mod registry;
mod tabs;
#[cfg(test)]
mod test_bench;
mod vfair;

pub use bfq::{
    Bfq, BfqConfig, BfqGroup, BfqVariant, Expiration as BfqExpiration, QueueLabel as BfqQueueLabel,
    StateChange as BfqStateChange, StateLine as BfqStateLine,
};
pub use blk_switch::{BlkSwitch, BlkSwitchFamily};
pub use d2fq::{D2fq, D2fqFamily};
pub(crate) use kyber::ASYNC_PERCENT;
pub use kyber::{ControllerRound, Domain, Kyber, KyberChoice, KyberConfig, KyberTurn, LatencyReading};
pub use mq_deadline::{MqDeadline, MqDeadlineConfig};
pub use mqfq::{Mqfq, MqfqFamily};
pub use noop::Noop;
pub(crate) use registry::scaled;
pub use registry::{
    ADIOS, Attachment, BFQ, BLK_SWITCH, CFFQ, D2FQ, K2, KYBER, Layer, MQ_DEADLINE, MQFQ, Maker, NONE, OUTSIDE_LINUX,
    Origin, Policy, Priorities, Registry, Row, TABS, VFAIR,
};
