//! A cloud volume: limited I/Os and megabytes per second, and more while credits last.
//!
//! Each limit has two token buckets. One fills at the base rate and holds the credits; the other only spaces commands,
//! so that they never exceed the burst rate. Without a burst both buckets are equal: the base rate, and no credits. Commands
//! pass in the order of arrival. Only reads and writes cost tokens; all others still wait for the commands before them.

use std::collections::VecDeque;

use hoistway_blk::bio::Op;
use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape};

/// The limits of a volume: the `[throttle]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThrottleParameters {
    /// I/Os per second.
    pub iops: f64,
    /// An I/O of more than this many kibibytes (1024 bytes) counts as several.
    pub io_kib: u32,
    /// Megabytes (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// The limits while credits last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<ThrottleBurst>,
}

/// Bursts: the `[throttle.burst]` section. A volume starts with all its credits, and gains them at its base rate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThrottleBurst {
    /// I/Os per second while credits last.
    pub iops: f64,
    /// Maximum I/O credits.
    pub ios: f64,
    /// Megabytes (10^6 bytes) per second while credits last.
    pub mb_per_s: f64,
    /// Maximum credits in megabytes (10^6 bytes).
    pub mb: f64,
}

/// A device with a limited rate: it wraps another one.
pub struct Throttle {
    inner: Box<dyn Device>,
    /// An I/O of more bytes counts as several.
    io_bytes: u64,
    /// Buckets of I/Os: credits and spacing.
    ios: [Bucket; 2],
    /// Buckets of bytes: credits and spacing.
    bytes: [Bucket; 2],
    /// Waiting commands, and when each may pass.
    waiting: VecDeque<(Instant, Command)>,
    /// Whether the wrapper's own alarm is set.
    own_alarm_is_set: bool,
}

/// The number of the wrapper's own alarm; those of the wrapped device get numbers from 1 on.
const OWN_ALARM: u32 = 0;

/// Time until a command is retried after the wrapped device has refused it. Arbitrary: short compared with a command of a
/// cloud volume.
const RETRY: Nanos = Nanos(20_000);

/// A token bucket. Its level is stored as the time at which it will be full, so nothing has to be refilled.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Time per token, ps.
    token_ps: u128,
    /// Capacity of the bucket, ps.
    capacity_ps: u128,
    /// When the bucket will be full, ps.
    full_at_ps: u128,
}

impl Bucket {
    fn new(tokens_per_s: f64, capacity: f64) -> Bucket {
        let token_ps = 1e12 / tokens_per_s;
        Bucket { token_ps: (token_ps as u128).max(1), capacity_ps: (capacity * token_ps) as u128, full_at_ps: 0 }
    }

    /// When this many tokens may be taken. More tokens than the bucket can hold may be taken once it is full; it is then in
    /// debt.
    fn ready_ps(&self, tokens: u64) -> u128 {
        let surplus_ps = self.capacity_ps.saturating_sub(u128::from(tokens) * self.token_ps);
        self.full_at_ps.saturating_sub(surplus_ps)
    }

    fn take(&mut self, at_ps: u128, tokens: u64) {
        self.full_at_ps = self.full_at_ps.max(at_ps) + u128::from(tokens) * self.token_ps;
    }
}

impl Throttle {
    /// A volume on `inner`, with all its credits.
    #[must_use]
    pub fn new(inner: Box<dyn Device>, parameters: &ThrottleParameters) -> Throttle {
        let (iops, bytes_per_s) = (parameters.iops, parameters.mb_per_s * 1e6);
        let (ios, bytes) = match &parameters.burst {
            None => ([Bucket::new(iops, 0.0); 2], [Bucket::new(bytes_per_s, 0.0); 2]),
            Some(burst) => (
                [Bucket::new(iops, burst.ios), Bucket::new(burst.iops.max(iops), 0.0)],
                [Bucket::new(bytes_per_s, burst.mb * 1e6), Bucket::new((burst.mb_per_s * 1e6).max(bytes_per_s), 0.0)],
            ),
        };
        let io_bytes = u64::from(parameters.io_kib) * 1024;
        Throttle { inner, io_bytes, ios, bytes, waiting: VecDeque::new(), own_alarm_is_set: false }
    }

    /// The price of a command: I/Os and bytes.
    fn cost(&self, command: &Command) -> (u64, u64) {
        match command.op {
            Op::Read | Op::Write => {
                let bytes = u64::from(command.sectors) * SECTOR_BYTES;
                (bytes.div_ceil(self.io_bytes).max(1), bytes)
            }
            Op::Flush | Op::Discard | Op::WriteZeroes => (0, 0),
        }
    }

    /// When a command that arrives at `now` may pass, ps.
    fn earliest_pass_ps(&self, now: Instant, (ios, bytes): (u64, u64)) -> u128 {
        let earliest_ps = self.waiting.back().map_or(now, |&(at, _)| at.max(now)).0;
        let ios_ready = self.ios.iter().map(|bucket| bucket.ready_ps(ios));
        let bytes_ready = self.bytes.iter().map(|bucket| bucket.ready_ps(bytes));
        ios_ready.chain(bytes_ready).fold(u128::from(earliest_ps) * 1000, u128::max)
    }

    fn charge(&mut self, at_ps: u128, (ios, bytes): (u64, u64)) {
        self.ios.iter_mut().for_each(|bucket| bucket.take(at_ps, ios));
        self.bytes.iter_mut().for_each(|bucket| bucket.take(at_ps, bytes));
    }

    /// Calls the wrapped device, and adds 1 to the numbers of the alarms that it sets.
    fn call_inner<R>(&mut self, schedule: &mut Schedule, call: impl FnOnce(&mut dyn Device, &mut Schedule) -> R) -> R {
        let from = schedule.alarms.len();
        let result = call(&mut *self.inner, schedule);
        for (_, alarm) in &mut schedule.alarms[from..] {
            *alarm += 1;
        }
        result
    }

    fn set_alarm(&mut self, now: Instant, schedule: &mut Schedule) {
        if let (false, Some(&(at, _))) = (self.own_alarm_is_set, self.waiting.front()) {
            self.own_alarm_is_set = true;
            schedule.alarms.push((at.max(now), OWN_ALARM));
        }
    }
}

impl Device for Throttle {
    fn shape(&self) -> &Shape {
        self.inner.shape()
    }

    fn inner(&self) -> Option<&dyn Device> {
        Some(&*self.inner)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Device> {
        Some(&mut *self.inner)
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        let cost = self.cost(&command);
        let at_ps = self.earliest_pass_ps(now, cost);
        // Rounded up to the next nanosecond.
        let at = Instant(u64::try_from(at_ps.div_ceil(1000)).unwrap_or(u64::MAX));
        if self.waiting.is_empty() && at <= now {
            self.call_inner(schedule, |inner, schedule| inner.submit(now, command, schedule))?;
        } else {
            self.waiting.push_back((at, command));
            self.set_alarm(now, schedule);
        }
        if cost != (0, 0) {
            self.charge(at_ps, cost);
        }
        Ok(())
    }

    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule) {
        if alarm != OWN_ALARM {
            self.call_inner(schedule, |inner, schedule| inner.wake(now, alarm - 1, schedule));
            return;
        }
        self.own_alarm_is_set = false;
        while let Some(&(at, command)) = self.waiting.front()
            && at <= now
        {
            if self.call_inner(schedule, |inner, schedule| inner.submit(now, command, schedule)).is_err() {
                self.own_alarm_is_set = true;
                schedule.alarms.push((now + RETRY, OWN_ALARM));
                return;
            }
            self.waiting.pop_front();
        }
        self.set_alarm(now, schedule);
    }
}
