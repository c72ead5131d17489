//! The reason why a scheduler chose a request, or none: one byte in every answer, and a text for people.

use std::fmt;

/// The reasons of all schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Reason {
    /// No request waits.
    Empty,
    /// Another CPU is asking.
    Elsewhere,
    /// First in, first out.
    Fifo,
    /// Taken from the head list: requeued, or inserted at the head.
    HeadList,
    /// The running batch continues in sector order.
    Batch,
    /// A new batch begins with the oldest request, because it has expired.
    Expired,
    /// A new batch begins with the oldest request, because nothing lies ahead of the sweep.
    Wrapped,
    /// A new batch continues where the sweep of its direction stopped.
    Resumed,
    /// A lower class has waited for so long that it is served first.
    Aged,
    /// A higher class still has requests in flight, so lower ones must wait.
    HigherClassInFlight,
    /// The domain whose turn it is continues its batch.
    DomainBatch,
    /// It has become the turn of the request's domain.
    DomainTurn,
    /// Requests wait, but their domains have no token left.
    NoToken,
    /// The queue in service continues with its next request.
    InService,
    /// The oldest request of the queue in service has expired.
    OverTime,
    /// The device is kept idle for the queue in service, which is expected to send more requests.
    Idling,
    /// The device is kept idle for the group in service, which is expected to send more requests.
    GroupIdling,
    /// The slice of a group's only queue is over, but its requests are still at the device.
    SliceOver,
    /// The queue in service has as many requests at the device as it may have.
    Quantum,
    /// Sync I/O waits until the async requests at the device are done.
    AsyncInFlight,
    /// Async I/O waits until the sync requests at the device are done.
    SyncInFlight,
    /// Async I/O is held back because a sync request had expired.
    AsyncRamp,
    /// bfq: a new service slot begins.
    NewSlot,
    /// bfq: the queue in service is empty, and a request of another one is injected meanwhile.
    Injected,
    /// bfq: with strict guarantees the device must become empty first.
    DeviceDrains,
    /// A user's own scheduler chose it, for a reason of its own.
    Own,
    /// A user's own scheduler holds back its requests, for a reason of its own.
    HeldBack,
    /// The choice of the recorded kernel was followed.
    Adopted,
    /// k2: the oldest request of the highest real-time level that has any.
    RealTimeLevel,
    /// k2: as many requests are at the device as `max_inflight` allows.
    BoundReached,
    /// adios: the oldest request that must be durable.
    Durable,
    /// adios: the next request of the batch, which was filled by deadline.
    DeadlineBatch,
    /// adios: the requests at the device are expected to take as long as the latency window allows.
    WindowFull,
    /// mqfq: the request with the least start tag of its hardware queue, within the threshold.
    OwnStartTag,
    /// mqfq: the request with the least start tag of all.
    LeastStartTag,
    /// mqfq: as many requests are at the device as there are slots.
    NoSlot,
    /// d2fq: its flow is not ahead, so it goes to the fastest class.
    ClassHigh,
    /// d2fq: its flow is a little ahead.
    ClassMedium,
    /// d2fq: its flow is ahead by more than the threshold.
    ClassLow,
    /// d2fq: no other flow is active.
    OnlyFlow,
    /// blk-switch: a request that a process waits for takes the first queue of its CPU.
    ForLatency,
    /// blk-switch: any other takes the second one.
    ForThroughput,
    /// blk-switch: its CPU has too many, and the batch of another one is nearest to full.
    SteeredToBatch,
    /// blk-switch: all CPUs are busy, and one of two that were drawn has fewer.
    SteeredOfTwo,
    /// A policy chose its hardware queue, for a reason of its own.
    Steered,
    /// tabs: a write with FUA whose bucket covers all that wait, or for which nothing else is at the device.
    FuaToken,
    /// tabs: writes with FUA wait for their bucket.
    NoFuaToken,
    /// tabs: what the device gives to the other type alone is being measured.
    OtherTypeMeasured,
}

impl Reason {
    /// The reason as a word: `higher_class_in_flight`.
    #[must_use]
    pub fn word(self) -> String {
        let mut word = String::new();
        for character in format!("{self:?}").chars() {
            if character.is_ascii_uppercase() && !word.is_empty() {
                word.push('_');
            }
            word.push(character.to_ascii_lowercase());
        }
        word
    }

    /// The reason as a sentence.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Reason::Empty => "nothing is queued",
            Reason::Elsewhere => "another CPU is asking, and takes what there is",
            Reason::Fifo => "it is the oldest",
            Reason::HeadList => "it is at the head list, which goes first",
            Reason::Batch => "the batch continues in sector order",
            Reason::Expired => "a new batch begins with the oldest request, which has expired",
            Reason::Wrapped => "a new batch begins with the oldest request, since nothing lies ahead of the sweep",
            Reason::Resumed => "a new batch continues where the sweep of its direction stopped",
            Reason::Aged => "a lower class has been held back for longer than prio_aging_expire",
            Reason::HigherClassInFlight => "a higher class has requests in flight, lower ones must wait",
            Reason::DomainBatch => "it is the oldest of its domain, whose batch continues",
            Reason::DomainTurn => "it is the oldest of its domain, to which the turn has come",
            Reason::NoToken => "the domains that have requests have no token left",
            Reason::InService => "it is the next one of the queue in service",
            Reason::OverTime => "it is the oldest of the queue in service, and over its time",
            Reason::Idling => "the device is kept idle for the queue in service",
            Reason::GroupIdling => "the device is kept idle for the group in service",
            Reason::SliceOver => "the slice is over, but requests of it are still out",
            Reason::Quantum => "the queue in service has as many requests out as it may",
            Reason::AsyncInFlight => "sync I/O waits for the async requests at the device",
            Reason::SyncInFlight => "async I/O waits for the sync requests at the device",
            Reason::AsyncRamp => "async I/O is held back since a sync request was over its time",
            Reason::NewSlot => "a new service slot begins",
            Reason::Injected => "injected while the device is kept for the queue in service, which is empty",
            Reason::DeviceDrains => "strict guarantees: one request in the device at a time",
            Reason::Own => "the scheduler chose it, for a reason of its own",
            Reason::HeldBack => "the scheduler holds back what it has, for a reason of its own",
            Reason::Adopted => "taken over from the recording",
            Reason::RealTimeLevel => "it is the oldest of the highest real-time level that has any",
            Reason::BoundReached => "max_inflight requests are at the device",
            Reason::Durable => "it is the oldest that must be durable",
            Reason::DeadlineBatch => "it is the next of the batch, which was filled by deadline",
            Reason::WindowFull => "what is at the device is expected to take as long as the latency window allows",
            Reason::OwnStartTag => "its start tag is the least of this hardware queue, and within the threshold",
            Reason::LeastStartTag => "its start tag is the least of all",
            Reason::NoSlot => "all slots are taken",
            Reason::ClassHigh => "its process is not ahead of the others, so the high class takes it",
            Reason::ClassMedium => "its process is a little ahead of the others, so the medium class takes it",
            Reason::ClassLow => "its process is ahead by more than the threshold, so the low class takes it",
            Reason::OnlyFlow => "no other process is active, so the medium class takes it",
            Reason::ForLatency => {
                "a process of the real-time class waits for it, so it takes the first queue of its CPU"
            }
            Reason::ForThroughput => "it is not of the real-time class, so it takes the second queue of its CPU",
            Reason::SteeredToBatch => "its CPU has too many, and this worker's batch is nearest to full",
            Reason::SteeredOfTwo => "all workers are busy, and this one of two that were drawn has fewer",
            Reason::Steered => "a policy chose its hardware queue, for a reason of its own",
            Reason::FuaToken => "its bucket covers the writes with FUA, or nothing else is at the device",
            Reason::NoFuaToken => "writes with FUA wait for their bucket",
            Reason::OtherTypeMeasured => "the other type of request is being measured alone",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_words() {
        assert_eq!(Reason::HigherClassInFlight.word(), "higher_class_in_flight");
        assert_eq!(Reason::Fifo.word(), "fifo");
    }
}
