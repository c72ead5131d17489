//! What one sees from outside: events, the reasons of schedulers, a disk's statistics.

pub mod disk_stats;
pub mod probe;
pub mod reason;
