//! The fields of an experiment and their names in a comparison, on the command line and in Python, so that an error message
//! names a field as the user wrote it.

use std::fmt;

/// Makes the enum and its names from one table, so that none of the three lists of names can lack a field.
macro_rules! fields {
    ($($field:ident, $name:literal, $option:literal, $keyword:literal;)*) => {
        /// A field of a [`Comparison`](crate::Comparison), of a [`Search`](crate::tune::Search), or of an experiment in real time.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[expect(missing_docs, reason = "each variant is documented by the field of the same name")]
        pub enum Field {
            $($field,)*
        }

        impl Field {
            /// All fields.
            pub const ALL: &[Field] = &[$(Field::$field,)*];

            /// Its name in a comparison, a search or an experiment in real time.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Field::$field => $name,)*
                }
            }

            /// The command-line option or argument that sets it.
            #[must_use]
            pub const fn option(self) -> &'static str {
                match self {
                    $(Field::$field => $option,)*
                }
            }

            /// The argument of the Python functions that sets it.
            #[must_use]
            pub const fn keyword(self) -> &'static str {
                match self {
                    $(Field::$field => $keyword,)*
                }
            }
        }
    };
}

fields! {
    // In a comparison, on the command line, in Python.
    Load,            "load",                  "JOB",                "job";
    RecordedDevice,  "replay.device",         "--recorded-device",  "replay";
    Columns,         "replay.columns",        "--columns",          "replay";
    Window,          "replay.window_ns",      "--window",           "replay";
    Speed,           "replay.speed",          "--speed",            "replay";
    Copies,          "replay.copies",         "--copies",           "replay";
    Streams,         "replay.streams",        "--streams",          "replay";
    Depths,          "replay.depths",         "--depth",            "replay";
    Priorities,      "replay.priorities",     "--prio",             "replay";
    CgroupWeights,   "replay.cgroup_weights", "--cgroup",           "replay";
    RecordedUnder,   "replay.recorded_under", "--recorded-under",   "replay";
    ScaleToFit,      "replay.scale_to_fit",   "--scale-to-fit",     "replay";
    Lossy,           "replay.lossy",          "--lossy",            "replay";
    Devices,         "devices",               "--device",           "device";
    Stacks,          "stacks",                "--stack",            "stacks";
    Kernels,         "kernels",               "--kernel",           "kernels";
    Hosts,           "hosts",                 "--host",             "hosts";
    Cpus,            "cpus",                  "--cpus",             "cpus";
    MemoryBytes,     "memory_bytes",          "--memory",           "memory_bytes";
    Sysctls,         "sysctls",               "--sysctl",           "sysctl";
    Journal,         "journal",               "--journal",          "journal";
    Schedulers,      "schedulers",            "--schedulers",       "schedulers";
    Elevator,        "elevator",              "--elevator",         "elevator";
    GuestSchedulers, "guests.schedulers",     "--guest-schedulers", "guest_schedulers";
    VirtualDisk,     "guests.virtual_disk",   "--virtual-disk",     "virtual_disk";
    GuestWeights,    "guests.weights",        "--guest-weight",     "guest_weights";
    Tunables,        "tunables",              "--set",              "set";
    QueueFiles,      "queue_files",           "--queue",            "queue";
    Vary,            "vary",                  "--vary",             "vary";
    HwQueues,        "hw_queues",             "--hw-queues",        "hw_queues";
    ReadQueues,      "read_queues",           "--read-queues",      "read_queues";
    PollQueues,      "poll_queues",           "--poll-queues",      "poll_queues";
    SharedTags,      "shared_tags",           "--shared-tags",      "shared_tags";
    FillPercent,     "fill_percent",          "--fill",             "fill_percent";
    Trimmed,         "trimmed",               "--trimmed",          "trimmed";
    SubmitterDispatches, "submitter_dispatches", "--submitter-dispatches", "submitter_dispatches";
    ContentionOptions, "techniques",            "--techniques",       "techniques";
    TimedWrites,     "writes",                "--at",               "at";
    IoMax,           "io_max",                "--io-max",           "io_max";
    IoCost,          "io_cost",               "--io-cost",          "io_cost";
    IoWeight,        "io_weight",             "--io-weight",        "io_weight";
    IoLatency,       "io_latency",            "--io-latency",       "io_latency";
    IoPrioClass,     "io_prio_class",         "--io-prio-class",    "io_prio_class";
    RuntimeNs,       "runtime_ns",            "--runtime",          "runtime";
    RampNs,          "ramp_ns",               "--ramp",             "ramp";
    Repeats,         "repeats",               "--repeat",           "repeats";
    Measured,        "measured",              "--from-start",       "from_start";
    Baseline,        "baseline",              "--baseline",         "baseline";
    Focus,           "focus",                 "--focus",            "focus";
    SmallestEffect,  "smallest_effect",       "--smallest-effect",  "smallest_effect";
    Logs,            "logs",                  "--fio-logs",         "logs";
    Objective,       "objective",             "--objective",        "objective";
    Budget,          "budget",                "--budget",           "budget";
    Target,          "target",                "--target",           "target";
    Force,           "force",                 "--writes",           "force";
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.name())
    }
}
