//! A queue of either kind: a scheduler's name decides whether a device has a multi-queue or a single queue. Callers that support
//! both, such as the simulator, drive an [`AnyQueue`].
//!
//! Used by: `change`; crates `sim`, `experiment`, `linux`.
//! Tests: below.

use std::sync::Arc;

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::caller::{BlockQueue, Cx, Env, Submission, Submitted};
use hoistway_blk::drive::Effects;
use hoistway_blk::elevator::Elevator;
use hoistway_blk::ground::{CpuId, Generation, HctxId, Instant, Now, RqId, Sharing, StoreError, Tunable, Waiter};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::queue::{CompletionPlace, ConfigError, Queue, QueueConfig, QueueSubmission};
use hoistway_blk::request::{Plug, Rq};
use hoistway_blk::schedulers::Layer;
use hoistway_blk::sysfs::AttributeError;
use hoistway_blk::tags::TagSet;

use crate::queue::{LegacyConfig, LegacyQueue, LegacySubmission};

/// The queue of a device, of either kind.
pub enum AnyQueue<Sh: Sharing> {
    /// Multi-queue.
    Mq(Box<Queue<Sh>>),
    /// Single queue.
    Legacy(Box<LegacyQueue<Sh>>),
}

/// A bio on its way into a queue of either kind.
#[derive(Debug)]
pub enum AnySubmission {
    /// Into a multi-queue.
    Mq(QueueSubmission),
    /// Into a single queue.
    Legacy(LegacySubmission),
}

/// Makes the same call on a queue of either kind, with or without a submission to it.
macro_rules! with_queue {
    ($any:expr, $queue:ident => $call:expr) => {
        match $any {
            AnyQueue::Mq($queue) => $call,
            AnyQueue::Legacy($queue) => $call,
        }
    };
    ($any:expr, $queue:ident, $submission:ident => $call:expr) => {
        match ($any, $submission) {
            (AnyQueue::Mq($queue), AnySubmission::Mq($submission)) => $call,
            (AnyQueue::Legacy($queue), AnySubmission::Legacy($submission)) => $call,
            _ => panic!("a submission belongs to the kind of queue that made it"),
        }
    };
}

impl Submission for AnySubmission {
    #[inline]
    fn begin(&mut self, bio: Bio) {
        match self {
            AnySubmission::Mq(submission) => submission.begin(bio),
            AnySubmission::Legacy(submission) => submission.begin(bio),
        }
    }

    #[inline]
    fn withdraw(&mut self) -> Option<Bio> {
        match self {
            AnySubmission::Mq(submission) => submission.withdraw(),
            AnySubmission::Legacy(submission) => submission.withdraw(),
        }
    }
}

impl<Sh: Sharing> AnyQueue<Sh> {
    /// Makes the queue for this scheduler, which must be one of the configuration's. A single queue has one hardware queue, whatever the
    /// configuration says; for its kernel see [`Registry::kernel_under`](hoistway_blk::schedulers::Registry::kernel_under).
    ///
    /// # Errors
    /// If the name is unknown or the configuration contradicts itself.
    pub fn new(config: &QueueConfig, scheduler: &str) -> Result<Self, ConfigError> {
        let Some(row) = config.schedulers.find(scheduler) else {
            return Err(ConfigError::unknown(scheduler, config.schedulers.rows().iter()));
        };
        Ok(match row.layer {
            Layer::MultiQueue => AnyQueue::Mq(Box::new(Queue::new(config, scheduler)?)),
            Layer::SingleQueue => AnyQueue::Legacy(Box::new(LegacyQueue::new(&LegacyConfig::new(config), scheduler)?)),
        })
    }

    /// The same as [`new`](Self::new), with driver tags shared with other queues.
    ///
    /// # Errors
    /// Also if the queue does not fit the tags, or the scheduler needs a single queue, which cannot share tags.
    pub fn with_shared_tags(
        config: &QueueConfig,
        scheduler: &str,
        tags: &Arc<TagSet<Sh>>,
    ) -> Result<Self, ConfigError> {
        if config.schedulers.is_legacy(scheduler) {
            let why = format!("{scheduler} runs on the legacy queue, which cannot share tags");
            return Err(ConfigError::new("scheduler", why));
        }
        Ok(AnyQueue::Mq(Box::new(Queue::with_shared_tags(config, scheduler, tags)?)))
    }

    /// Whether it is a single queue.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        matches!(self, AnyQueue::Legacy(_))
    }

    /// The kernel that is reproduced.
    #[must_use]
    pub fn generation(&self) -> &Generation {
        with_queue!(self, queue => queue.generation())
    }

    /// The name of its scheduler, "none" without one.
    #[must_use]
    pub fn scheduler(&self) -> &'static str {
        with_queue!(self, queue => queue.scheduler())
    }

    /// The place where a request's completion runs after an interrupt on `cpu`. `share_cache` describes the machine.
    #[inline]
    pub fn completion_place(&self, rq: &Rq, cpu: CpuId, share_cache: impl Fn(CpuId, CpuId) -> bool) -> CompletionPlace {
        with_queue!(self, queue => queue.completion_place(rq, cpu, share_cache))
    }

    /// Requests that exist now.
    #[must_use]
    pub fn requests_in_use(&self) -> usize {
        with_queue!(self, queue => queue.requests_in_use())
    }

    /// Driver tags in use.
    #[must_use]
    pub fn driver_tags_in_use(&self) -> u32 {
        with_queue!(self, queue => queue.driver_tags_in_use())
    }

    /// How far a page cache reads ahead of a sequential reader, KiB (`queue/read_ahead_kb`).
    #[must_use]
    pub fn read_ahead_kib(&self) -> u32 {
        with_queue!(self, queue => queue.read_ahead_kib())
    }

    /// Its number of requests (`queue/nr_requests`).
    #[must_use]
    pub fn nr_requests(&self) -> u32 {
        with_queue!(self, queue => queue.nr_requests())
    }

    /// The number of parts that a bio will be split into.
    #[must_use]
    pub fn parts_of(&self, bio: &Bio) -> u32 {
        with_queue!(self, queue => queue.parts_of(bio))
    }

    /// Starts or stops throttling of a writing task because too much memory is dirty.
    pub fn set_dirty_throttled(&self, now: Instant, is_throttled: bool) {
        if let AnyQueue::Mq(queue) = self {
            queue.set_dirty_throttled(now, is_throttled);
        }
    }

    /// Notifies the scheduler of an event.
    pub fn notify(&self, now: Now, effects: &mut Effects, event: SchedulerEvent) {
        with_queue!(self, queue => queue.notify(now, effects, event))
    }

    /// The tunables of the scheduler.
    #[must_use]
    pub fn tunables(&self) -> Vec<&'static Tunable> {
        match self {
            AnyQueue::Mq(queue) => queue.elevator(Elevator::tunables),
            AnyQueue::Legacy(queue) => queue.tunables(),
        }
    }

    /// A tunable's value.
    ///
    /// # Errors
    /// If there is no such tunable.
    pub fn tunable(&self, name: &str) -> Result<i128, StoreError> {
        match self {
            AnyQueue::Mq(queue) => queue.elevator(|elevator| elevator.tunable(name)),
            AnyQueue::Legacy(queue) => queue.tunable(name),
        }
    }

    /// The content of a file of `queue/`.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn attribute(&self, file: &str) -> Result<String, AttributeError> {
        with_queue!(self, queue => queue.attribute(file))
    }

    /// Writes a file of `queue/`.
    ///
    /// # Errors
    /// If the kernel would reject the text, or the resource that it changes is in use.
    pub fn set_attribute(&self, now: Now, file: &str, text: &str, effects: &mut Effects) -> Result<(), AttributeError> {
        with_queue!(self, queue => queue.set_attribute(now, file, text, effects))
    }

    /// Writes a tunable of the scheduler, with the kernel's parsing, clamping and errors.
    ///
    /// # Errors
    /// If there is no such tunable or the kernel would refuse the text.
    pub fn set_tunable(&self, now: Now, name: &str, text: &str, effects: &mut Effects) -> Result<(), StoreError> {
        with_queue!(self, queue => queue.set_tunable(now, name, text, effects))
    }
}

impl<Sh: Sharing> BlockQueue for AnyQueue<Sh> {
    type Submission = AnySubmission;

    fn submission(&self, waiter: Waiter) -> AnySubmission {
        match self {
            AnyQueue::Mq(queue) => AnySubmission::Mq(queue.submission(waiter)),
            AnyQueue::Legacy(queue) => AnySubmission::Legacy(queue.submission(waiter)),
        }
    }

    /// # Panics
    /// If the submission was made by a queue of the other kind.
    #[inline]
    fn submit<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut AnySubmission, plug: Option<&mut Plug>) -> Submitted {
        with_queue!(self, queue, submission => queue.submit(cx, submission, plug))
    }

    /// # Panics
    /// If the submission was made by a queue of the other kind.
    fn cancel<E: Env>(&self, cx: &mut Cx<'_, E>, submission: &mut AnySubmission) -> Option<Bio> {
        with_queue!(self, queue, submission => queue.cancel(cx, submission))
    }

    #[inline]
    fn flush_plug<E: Env>(&self, cx: &mut Cx<'_, E>, plug: &mut Plug) {
        with_queue!(self, queue => queue.flush_plug(cx, plug))
    }

    #[inline]
    fn complete<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq, status: Status) {
        with_queue!(self, queue => queue.complete(cx, rq, status))
    }

    fn requeue<E: Env>(&self, cx: &mut Cx<'_, E>, rq: Rq) {
        with_queue!(self, queue => queue.requeue(cx, rq))
    }

    #[inline]
    fn hw_queues(&self) -> u16 {
        with_queue!(self, queue => queue.hw_queues())
    }

    #[inline]
    fn worker_cpu(&self, hctx: HctxId, calls: u32) -> CpuId {
        with_queue!(self, queue => queue.worker_cpu(hctx, calls))
    }

    #[inline]
    fn is_run_by_run_all(&self, cpu: CpuId, hctx: HctxId) -> bool {
        with_queue!(self, queue => queue.is_run_by_run_all(cpu, hctx))
    }

    #[inline]
    fn run_hctx<E: Env>(&self, cx: &mut Cx<'_, E>, hctx: HctxId) {
        with_queue!(self, queue => queue.run_hctx(cx, hctx))
    }

    fn kick_requeue<E: Env>(&self, cx: &mut Cx<'_, E>) {
        with_queue!(self, queue => queue.kick_requeue(cx))
    }

    fn timer<E: Env>(&self, cx: &mut Cx<'_, E>) {
        with_queue!(self, queue => queue.timer(cx))
    }

    fn scan_timeouts<E: Env>(&self, cx: &mut Cx<'_, E>) {
        with_queue!(self, queue => queue.scan_timeouts(cx))
    }

    fn timed_out<E: Env>(&self, cx: &mut Cx<'_, E>, id: RqId) {
        with_queue!(self, queue => queue.timed_out(cx, id))
    }

    fn wbt_window_expired<E: Env>(&self, cx: &mut Cx<'_, E>) {
        with_queue!(self, queue => queue.wbt_window_expired(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hoistway_blk::ground::{Kernel, Local};

    use crate::schedulers::{ALL_SCHEDULERS, all_schedulers};

    #[test]
    fn a_schedulers_name_decides_the_kind_of_queue_and_its_kernel() {
        let config =
            QueueConfig { cpus: 4, hw_queues: 4, schedulers: all_schedulers(), ..QueueConfig::new(Kernel::V6_18) };
        for scheduler in ALL_SCHEDULERS {
            let queue: AnyQueue<Local> = AnyQueue::new(&config, scheduler).unwrap();
            let (hw_queues, kernel) =
                if config.schedulers.is_legacy(scheduler) { (1, Kernel::series(4, 20)) } else { (4, Kernel::V6_18) };
            assert_eq!((queue.scheduler(), queue.hw_queues()), (scheduler, hw_queues));
            assert_eq!(
                (queue.generation().kernel, config.schedulers.kernel_under(config.kernel, scheduler)),
                (kernel, kernel)
            );
        }
        let Err(error) = AnyQueue::<Local>::new(&config, "anticipatory") else { panic!("there is no such scheduler") };
        assert!(
            error.to_string().starts_with("scheduler: \"anticipatory\" is unknown (expected one of none, "),
            "{error}"
        );
    }
}
