//! The schedulers: one file or folder each, all of them policies for [`Elevator`](crate::Elevator).

mod mq_deadline;

pub use mq_deadline::{MqDeadline, MqDeadlineConfig};
