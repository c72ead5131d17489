//! The schedulers: one file or folder each, for [`Elevator`](crate::Elevator). All but kyber, which is made for many CPUs
//! by itself, are policies that are put behind a lock.

mod bfq;
mod kyber;
mod mq_deadline;
mod noop;
pub mod process_queue;

pub use bfq::{
    Bfq, BfqConfig, BfqGroup, BfqVariant, Expiration as BfqExpiration, QueueLabel as BfqQueueLabel,
    StateChange as BfqStateChange, StateLine as BfqStateLine,
};
pub use kyber::{ControllerRound, Domain, Kyber, KyberChoice, KyberConfig, KyberTurn, LatencyReading};
pub use mq_deadline::{MqDeadline, MqDeadlineConfig};
pub use noop::Noop;
