//! What was measured, as plain data.

use super::figure::Figure;

/// The costs of a machine. Times are ns.
#[derive(Clone, Debug)]
pub struct Costs {
    /// CPUs that the process may use.
    pub cpus: usize,
    /// Rounds that were measured, and how many had been asked for.
    pub rounds: [u32; 2],
    /// CPU time of an I/O through the engine over a target that does nothing, without a scheduler.
    pub engine: Figure,
    /// Of the block layer's part in that, the share of submissions (the rest is for completions).
    pub submit_share: Figure,
    /// The schedulers.
    pub schedulers: Vec<SchedulerCost>,
    /// A section under the lock of a list in which requests are left for the holder of a scheduler's lock.
    pub list: Figure,
    /// What two and more CPUs show; nothing with one.
    pub contention: Option<Contention>,
    /// CPU time of a switch from a thread to another on one CPU.
    pub switch: Figure,
    /// From a wake-up until the thread runs, on a CPU of its own that has just become idle: tenth and ninetieth percentile.
    pub wake: [Figure; 2],
    /// What waking it costs the waker.
    pub waker: Figure,
    /// Wake-ups after longer sleeps, the shortest first.
    pub sleeps: Vec<Sleep>,
    /// From a submission until a worker of the engine that slept has carried it out: tenth and ninetieth percentile.
    pub worker: [Figure; 2],
    /// The kernel's schedulers, or why they were not measured.
    pub kernel: Result<KernelCost, String>,
}

/// What a scheduler costs, on one thread, without contention for its locks.
#[derive(Clone, Debug)]
pub struct SchedulerCost {
    /// Its name.
    pub name: &'static str,
    /// CPU time of an I/O in the block layer.
    pub per_io: Figure,
    /// Sections under its locks that an I/O goes through.
    pub sections_per_io: f64,
    /// A section; nothing without a scheduler.
    pub section: Option<Figure>,
    /// What an I/O costs more than without a scheduler, beside what is done under its locks; nothing without one.
    pub beside: Option<Figure>,
    /// Its operations, those that occur.
    pub operations: Vec<Operation>,
    /// I/Os a second of this number of threads together.
    pub rates: Vec<(usize, Figure)>,
}

/// An operation of a scheduler.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it is called.
    pub name: &'static str,
    /// How long it takes under the lock.
    pub time: Figure,
    /// How often it comes for an I/O.
    pub per_io: f64,
}

/// What several CPUs show.
#[derive(Clone, Debug)]
pub struct Contention {
    /// A lock comes from another CPU.
    pub lock: Figure,
    /// What is under it comes from there, too: how much longer a section of mq-deadline takes then. Nothing if none was seen.
    pub data: Option<Figure>,
    /// What a hand-over takes longer for each CPU more that waits; nothing with two CPUs.
    pub growth: Option<Figure>,
}

/// Wake-ups of a thread that has slept.
#[derive(Clone, Debug)]
pub struct Sleep {
    /// How long.
    pub slept_ns: u64,
    /// The median until it runs.
    pub wake: Figure,
}

/// The kernel's schedulers through a null device.
#[derive(Clone, Debug)]
pub struct KernelCost {
    /// Its name, such as `nullb0`.
    pub device: String,
    /// CPU time of a read in the kernel, the engine's own time taken off, by scheduler.
    pub per_io: Vec<(String, Figure)>,
}

impl Costs {
    /// A lock and what is under it come from another CPU, ns.
    #[must_use]
    pub fn handover_ns(&self) -> Option<u64> {
        let contention = self.contention.as_ref()?;
        Some(contention.lock.rounded() + contention.data.map_or(0, |data| data.rounded()))
    }
}
