//! The rule of `docs/rules` by which a scheduler made a choice, from the reason that it gives.

use hoistway_blk::watch::Reason;

/// The number of the rule; of several that apply, the one that a reader should open first. A reason that a scheduler
/// never gives has no rule.
#[must_use]
pub fn rule_of(scheduler: &str, reason: Reason) -> &'static str {
    match (scheduler, reason) {
        ("none", _) => "NONE-5",
        ("noop", _) => "NOOP-6",
        ("mq-deadline", Reason::HeadList) => "DD-11",
        ("mq-deadline", Reason::Aged) => "DD-12",
        ("mq-deadline", Reason::HigherClassInFlight) => "DD-13",
        ("mq-deadline", Reason::Batch) => "DD-14",
        ("mq-deadline", Reason::Expired | Reason::Wrapped | Reason::Resumed) => "DD-15",
        ("mq-deadline" | "deadline", Reason::Empty) => "DL-11",
        ("deadline", Reason::Batch) => "DL-10",
        ("deadline", Reason::Expired | Reason::Wrapped | Reason::Resumed) => "DL-12",
        ("kyber", Reason::DomainBatch | Reason::DomainTurn) => "KY-7",
        ("kyber", Reason::NoToken) => "KY-10",
        ("kyber", Reason::Empty) => "KY-13",
        ("bfq", Reason::HeadList | Reason::DeviceDrains) => "BFQ-119",
        ("bfq", Reason::InService | Reason::OverTime) => "BFQ-60",
        ("bfq", Reason::NewSlot) => "BFQ-32",
        ("bfq", Reason::Idling) => "BFQ-71",
        ("bfq", Reason::Injected) => "BFQ-85",
        ("bfq", Reason::Empty) => "BFQ-120",
        ("cfq", Reason::InService | Reason::Empty) => "CFQ-44",
        ("cfq", Reason::OverTime) => "CFQ-49",
        ("cfq", Reason::Idling) => "CFQ-47",
        ("cfq", Reason::GroupIdling) => "CFQ-48",
        ("cfq", Reason::SliceOver) => "CFQ-45",
        ("cfq", Reason::AsyncInFlight | Reason::SyncInFlight) => "CFQ-50",
        ("cfq", Reason::Quantum) => "CFQ-51",
        ("cfq", Reason::AsyncRamp) => "CFQ-52",
        _ => "",
    }
}
