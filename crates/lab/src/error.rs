//! What is wrong with a comparison, and with which field of it.

use std::fmt;

/// A field of a [`Comparison`](crate::Comparison), or of a [`Search`](crate::tune::Search).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "they are called as the fields are, which say what they are")]
pub enum Field {
    Load,
    Devices,
    Kernels,
    Hosts,
    Cpus,
    MemoryBytes,
    Schedulers,
    Elevator,
    GuestSchedulers,
    VirtualDisk,
    GuestWeights,
    Tunables,
    QueueFiles,
    Vary,
    HwQueues,
    ReadQueues,
    PollQueues,
    SharedTags,
    Writes,
    IoMax,
    IoPrioClass,
    RuntimeNs,
    RampNs,
    Repeats,
    Baseline,
    Focus,
    SmallestEffect,
    Logs,
    Objective,
    Budget,
}

impl Field {
    /// Its name in a comparison.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Field::Load => "load",
            Field::Devices => "devices",
            Field::Kernels => "kernels",
            Field::Hosts => "hosts",
            Field::Cpus => "cpus",
            Field::MemoryBytes => "memory_bytes",
            Field::Schedulers => "schedulers",
            Field::Elevator => "elevator",
            Field::GuestSchedulers => "guests.schedulers",
            Field::VirtualDisk => "guests.virtual_disk",
            Field::GuestWeights => "guests.weights",
            Field::Tunables => "tunables",
            Field::QueueFiles => "queue_files",
            Field::Vary => "vary",
            Field::HwQueues => "hw_queues",
            Field::ReadQueues => "read_queues",
            Field::PollQueues => "poll_queues",
            Field::SharedTags => "shared_tags",
            Field::Writes => "writes",
            Field::IoMax => "io_max",
            Field::IoPrioClass => "io_prio_class",
            Field::RuntimeNs => "runtime_ns",
            Field::RampNs => "ramp_ns",
            Field::Repeats => "repeats",
            Field::Baseline => "baseline",
            Field::Focus => "focus",
            Field::SmallestEffect => "smallest_effect",
            Field::Logs => "logs",
            Field::Objective => "objective",
            Field::Budget => "budget",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name())
    }
}

/// Why a comparison cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The field at fault.
    pub field: Field,
    /// What is wrong, and what was expected. It names the field as the [`Surroundings`](crate::Surroundings) call it, or, if
    /// a text is at fault, that and its line.
    pub message: String,
}

impl Error {
    pub(crate) fn new(field: Field, message: impl fmt::Display) -> Error {
        Error { field, message: message.to_string() }
    }
}

/// Makes an error about a field of it, if the outcome is another one that says all that is to be said.
pub(crate) trait About<T> {
    fn about(self, field: Field) -> Result<T, Error>;
}

impl<T, E: fmt::Display> About<T> for Result<T, E> {
    fn about(self, field: Field) -> Result<T, Error> {
        self.map_err(|error| Error::new(field, error))
    }
}
