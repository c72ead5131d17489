//! Times between the events of an I/O (Q2C, D2C, ...), with btt's names and definitions.
//!
//! Only I/Os with data count. A split I/O has no D2C and no Q2C, because none of its completions covers all of it.

use rustc_hash::FxHashMap;

use super::event::Device;
use super::flights::{Flight, Step};

/// An interval between two events of an I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interval {
    /// From the submission of one I/O to that of the next.
    Q2Q,
    /// From submission to allocation of the request.
    Q2G,
    /// From allocation to insertion of the request: its time under a plug.
    G2I,
    /// From submission to the merge into a request.
    Q2M,
    /// From insertion to issue: time in the scheduler.
    I2D,
    /// From the merge to issue.
    M2D,
    /// From issue to completion: driver and device.
    D2C,
    /// From submission to completion.
    Q2C,
}

impl Interval {
    /// All intervals, in btt's order.
    pub const ALL: [Interval; 8] = [
        Interval::Q2Q,
        Interval::Q2G,
        Interval::G2I,
        Interval::Q2M,
        Interval::I2D,
        Interval::M2D,
        Interval::D2C,
        Interval::Q2C,
    ];

    /// btt's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ["Q2Q", "Q2G", "G2I", "Q2M", "I2D", "M2D", "D2C", "Q2C"][self as usize]
    }
}

/// Statistics of one interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Number of values.
    pub count: u64,
    /// Sum of the values, in nanoseconds.
    pub sum_ns: u128,
    /// The shortest, in nanoseconds; [`u64::MAX`] if there are no values.
    pub min_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

impl Default for Spread {
    fn default() -> Spread {
        Spread { count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }
}

impl Spread {
    fn add(&mut self, time_ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(time_ns);
        self.min_ns = self.min_ns.min(time_ns);
        self.max_ns = self.max_ns.max(time_ns);
    }

    fn merge(&mut self, other: &Spread) {
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// The mean in nanoseconds; `None` without values.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

/// All intervals of a device or task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spreads {
    by_interval: [Spread; 8],
    last_queue_ns: Option<u64>,
}

impl Spreads {
    /// The statistics of this interval.
    #[must_use]
    pub const fn get(&self, interval: Interval) -> &Spread {
        &self.by_interval[interval as usize]
    }

    /// Adds the values of another device or task.
    pub fn merge(&mut self, other: &Spreads) {
        self.by_interval.iter_mut().zip(&other.by_interval).for_each(|(own, other)| own.merge(other));
    }

    fn add(&mut self, interval: Interval, time_ns: u64) {
        self.by_interval[interval as usize].add(time_ns);
    }

    fn add_step(&mut self, step: Step, flight: &Flight, now_ns: u64) {
        match step {
            Step::Queued => {
                if let Some(last_ns) = self.last_queue_ns.replace(now_ns) {
                    self.add(Interval::Q2Q, now_ns - last_ns);
                }
            }
            Step::Submitted { .. } => {
                let interval = if flight.is_merged { Interval::Q2M } else { Interval::Q2G };
                self.add(interval, now_ns - flight.queue_ns);
            }
            Step::Inserted if !flight.is_merged => self.add(Interval::G2I, now_ns - flight.submitted_ns),
            Step::Issued if !flight.is_split => {
                if let Some(insert_ns) = flight.insert_ns {
                    self.add(Interval::I2D, now_ns - insert_ns);
                }
                if flight.is_merged {
                    self.add(Interval::M2D, now_ns - flight.submitted_ns);
                }
            }
            Step::Transferred if !flight.is_split => {
                if let Some(issue_ns) = flight.issue_ns {
                    self.add(Interval::D2C, now_ns - issue_ns);
                }
                self.add(Interval::Q2C, now_ns - flight.queue_ns);
            }
            _ => {}
        }
    }
}

/// The intervals of a recording.
#[derive(Clone, Debug, Default)]
pub struct Intervals {
    devices: Vec<(Device, Spreads)>,
    tasks: FxHashMap<u32, Spreads>,
}

impl Intervals {
    /// Processes a step of an I/O at time `now_ns`.
    pub fn take(&mut self, step: Step, flight: &Flight, now_ns: u64) {
        const TASKS_MAX: usize = 1 << 14;
        if flight.bytes == 0 {
            return;
        }
        let index = match self.devices.iter().position(|(device, _)| *device == flight.device) {
            Some(index) => index,
            None => {
                self.devices.push((flight.device, Spreads::default()));
                self.devices.len() - 1
            }
        };
        self.devices[index].1.add_step(step, flight, now_ns);
        if self.tasks.len() < TASKS_MAX || self.tasks.contains_key(&flight.pid) {
            self.tasks.entry(flight.pid).or_default().add_step(step, flight, now_ns);
        }
    }

    /// The intervals of each device, in order of appearance.
    #[must_use]
    pub fn devices(&self) -> &[(Device, Spreads)] {
        &self.devices
    }

    /// The intervals of each task, by pid.
    #[must_use]
    pub fn tasks(&self) -> Vec<(u32, Spreads)> {
        let mut tasks: Vec<_> = self.tasks.iter().map(|(pid, spreads)| (*pid, *spreads)).collect();
        tasks.sort_unstable_by_key(|(pid, _)| *pid);
        tasks
    }
}
