//! A RAID controller: many hardware queues with a common set of tags, and one device behind it.
//!
//! Used by: `preset`.
//! Tests: `crates/device/tests/exact.rs`, `crates/device/tests/models.rs`.
//!
//! The card accepts commands until its tags are used up and passes them on in the order of arrival, as many as the
//! inner device accepts. The cost of many hardware queues is not modelled here, since it belongs to the host.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hoistway_blk::ground::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use crate::model::{Command, Device, Refusal, Schedule, Shape};
use crate::random::from_us;

/// The parameters of a [`Raid`]: the `[raid]` section of a preset.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaidParameters {
    /// The device behind the card: a built-in preset.
    pub inner: String,
    /// Time that the card adds to each command, us.
    pub command_us: f64,
}

/// The model.
pub struct Raid {
    shape: Shape,
    inner: Box<dyn Device>,
    command: Nanos,
    /// Maximum commands of all hardware queues together.
    host_tags: usize,
    /// Commands that the card holds and has not passed on yet.
    waiting: VecDeque<Command>,
    /// Commands at the inner device, by its tag: their own tags.
    passed: Vec<u32>,
    free: Vec<u32>,
    /// When the inner device completes commands, for those where this is known: its tags become free then.
    completing_inner: BinaryHeap<Reverse<(Instant, u32)>>,
    /// When the host sees completions: the card's tags become free then.
    completing: BinaryHeap<Reverse<Instant>>,
    /// Commands whose completion the host has not seen.
    unseen: usize,
    /// The last alarm that was set and has not fired.
    alarm_at: Option<Instant>,
}

/// The card's own alarm; those of the inner device follow.
const OWN_ALARM: u32 = 0;

impl Raid {
    /// A card of this shape in front of `inner`.
    #[must_use]
    pub fn new(shape: Shape, parameters: &RaidParameters, inner: Box<dyn Device>) -> Raid {
        let depth = u32::from(inner.shape().hw_queues) * inner.shape().queue_depth;
        Raid {
            inner,
            command: from_us(parameters.command_us),
            // Commands beyond this are refused until one completes.
            host_tags: shape.queue_depth as usize,
            waiting: VecDeque::new(),
            passed: vec![0; depth as usize],
            free: (0..depth).rev().collect(),
            completing_inner: BinaryHeap::new(),
            completing: BinaryHeap::new(),
            unseen: 0,
            alarm_at: None,
            shape,
        }
    }

    /// Frees the tags of commands that have completed by now.
    fn settle(&mut self, now: Instant) {
        while let Some(&Reverse((at, tag))) = self.completing_inner.peek()
            && at <= now
        {
            self.completing_inner.pop();
            self.free.push(tag);
        }
        while self.completing.peek().is_some_and(|&Reverse(at)| at <= now) {
            self.completing.pop();
            self.unseen -= 1;
        }
    }

    /// Passes on as many commands as the inner device has room for.
    fn submit_to_inner_device(&mut self, now: Instant, schedule: &mut Schedule) {
        while let (Some(&command), Some(&tag)) = (self.waiting.front(), self.free.last()) {
            let queue = command.queue % self.inner.shape().hw_queues.max(1);
            let (first_completion, first_alarm) = (schedule.completions.len(), schedule.alarms.len());
            if self.inner.submit(now, Command { tag, queue, ..command }, schedule).is_err() {
                break;
            }
            self.waiting.pop_front();
            self.free.pop();
            self.passed[tag as usize] = command.tag;
            self.translate(first_completion, first_alarm, schedule);
        }
        if !self.waiting.is_empty()
            && let Some(&Reverse((at, _))) = self.completing_inner.peek()
            && self.alarm_at.is_none_or(|set| set > at)
        {
            self.alarm_at = Some(at);
            schedule.alarms.push((at, OWN_ALARM));
        }
    }

    /// Converts completions and alarms of the inner device to those of the card.
    fn translate(&mut self, first_completion: usize, first_alarm: usize, schedule: &mut Schedule) {
        for completion in &mut schedule.completions[first_completion..] {
            let tag = completion.tag;
            self.completing_inner.push(Reverse((completion.at, tag)));
            completion.tag = self.passed[tag as usize];
            completion.at += self.command;
            self.completing.push(Reverse(completion.at));
        }
        for (_, alarm) in &mut schedule.alarms[first_alarm..] {
            *alarm += 1;
        }
    }
}

impl Device for Raid {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn submit(&mut self, now: Instant, command: Command, schedule: &mut Schedule) -> Result<(), Refusal> {
        self.settle(now);
        if self.unseen == self.host_tags {
            return Err(Refusal::UntilCompletion);
        }
        self.unseen += 1;
        self.waiting.push_back(command);
        self.submit_to_inner_device(now, schedule);
        Ok(())
    }

    fn wake(&mut self, now: Instant, alarm: u32, schedule: &mut Schedule) {
        if alarm == OWN_ALARM {
            if self.alarm_at.is_some_and(|at| at <= now) {
                self.alarm_at = None;
            }
        } else {
            let (first_completion, first_alarm) = (schedule.completions.len(), schedule.alarms.len());
            self.inner.wake(now, alarm - 1, schedule);
            self.translate(first_completion, first_alarm, schedule);
        }
        self.settle(now);
        self.submit_to_inner_device(now, schedule);
    }
}
