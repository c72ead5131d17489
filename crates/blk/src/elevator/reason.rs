//! Why a scheduler chose a request, or none: one byte in every answer, and a sentence for people.

use std::fmt;

/// The reasons of all schedulers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Reason {
    /// There is nothing.
    Empty,
    /// First in, first out.
    Fifo,
    /// Taken from the head list: requeued, or inserted at the head.
    HeadList,
    /// The running batch goes on in sector order.
    Batch,
    /// A new batch begins with the oldest request, because it has expired.
    Expired,
    /// A new batch begins with the oldest request, because nothing lies ahead of the sweep.
    Wrapped,
    /// A new batch goes on where the sweep of its direction stopped.
    Resumed,
    /// A lower class has waited for so long that it goes first.
    Aged,
    /// A higher class still has requests in flight, so lower ones must wait.
    HigherClassInFlight,
    /// The kernel's choice was taken over.
    Adopted,
}

impl Reason {
    /// The reason as a sentence.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Reason::Empty => "nothing is queued",
            Reason::Fifo => "it is the oldest",
            Reason::HeadList => "it is at the head list, which goes first",
            Reason::Batch => "the batch goes on in sector order",
            Reason::Expired => "a new batch begins with the oldest request, which has expired",
            Reason::Wrapped => "a new batch begins with the oldest request, since nothing lies ahead of the sweep",
            Reason::Resumed => "a new batch goes on where the sweep of its direction stopped",
            Reason::Aged => "a lower class has been held back for longer than prio_aging_expire",
            Reason::HigherClassInFlight => "a higher class has requests in flight, lower ones must wait",
            Reason::Adopted => "taken over from the recording",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
