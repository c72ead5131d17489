//! The main decision: the queue whose turn it is.
//!
//! From the top: the group that has had least, its best busy class, the kind of load whose turn it is, the first queue
//! of that tree. While a queue is active, the question is whether it keeps the device, possibly idle.
//!
//! Rules: CFQ-40 to CFQ-48.

use hoistway_blk::policy::PolicyCx;
use hoistway_blk::watch::Reason;

use super::Cfq;
use super::class::{Class, TreeId, Workload};
use super::group::GroupId;
use super::log::{CfqEvent, CfqLog};
use super::queue::QueueId;
use super::turn::Residual;

/// The decision about the active queue.
enum TurnDecision {
    /// It continues.
    Serve,
    /// It keeps the device although it has nothing to dispatch.
    Hold(Reason),
    /// Its turn is over.
    Expire,
    /// Its turn is over, and this queue continues where it stopped.
    HandOver(QueueId),
}

impl<L: CfqLog> Cfq<L> {
    /// The queue that may be served now, which becomes the active one, or the reason why none may.
    pub(super) fn select(&mut self, cx: &mut PolicyCx<'_>) -> Result<QueueId, Reason> {
        let mut successor = None;
        if let Some(active) = self.active {
            match self.judge_active(cx, active) {
                TurnDecision::Serve => return Ok(active),
                TurnDecision::Hold(reason) => return Err(reason),
                TurnDecision::Expire => {}
                TurnDecision::HandOver(queue) => successor = Some(queue),
            }
            self.expire_active(cx, Residual::Dropped);
        }
        let chosen = match successor {
            Some(queue) => Some(queue),
            None => self.choose_queue(self.now(cx)),
        };
        let id = chosen.ok_or(Reason::Empty)?;
        self.set_active(cx, id);
        Ok(id)
    }

    /// Whether the active queue keeps the device.
    fn judge_active(&mut self, cx: &PolicyCx<'_>, id: QueueId) -> TurnDecision {
        let now = self.now(cx);
        if self.waiting == 0 {
            return TurnDecision::Hold(Reason::Empty);
        }
        let queue = self.queue(id);
        let (empty, in_flight) = (queue.backlog.is_empty(), queue.in_flight > 0);
        if queue.waiting_busy && !empty {
            return TurnDecision::Expire;
        }
        if queue.slice_used(now) && !queue.must_dispatch {
            let alone = self.groups[queue.group].busy_queues == 1;
            // Wait for its completion, which will keep its group in the group tree.
            if alone && empty && in_flight && self.should_idle(id) {
                return TurnDecision::Hold(Reason::SliceOver);
            }
            return self.judge_group(id);
        }
        if !empty {
            return TurnDecision::Serve;
        }
        if let Some(other) = self.close_cooperator(id) {
            if self.queue(id).merge_target.is_none() {
                self.plan_merge(id, other);
            }
            return TurnDecision::HandOver(other);
        }
        if self.timer_armed {
            return TurnDecision::Hold(Reason::Idling);
        }
        let queue = self.queue_mut(id);
        let is_fresh = queue.slice.is_none_or(|slice| slice.end - now > now - slice.start);
        if queue.is_seeky() && queue.idle_window && is_fresh {
            // It became empty although it was deep, so the device is faster than it is.
            queue.deep = false;
            queue.idle_window = false;
        }
        if in_flight && self.should_idle(id) {
            return TurnDecision::Hold(Reason::Idling);
        }
        self.judge_group(id)
    }

    /// Whether the last queue of a group keeps the device because the group is about to continue.
    fn judge_group(&self, id: QueueId) -> TurnDecision {
        let group = &self.groups[self.queue(id).group];
        let group_idle = self.settings.group_idle;
        if group_idle > 0 && group.busy_queues == 1 && group.in_flight > 0 && !group.think.exceeds(group_idle) {
            return TurnDecision::Hold(Reason::GroupIdling);
        }
        TurnDecision::Expire
    }

    /// The next queue.
    fn choose_queue(&mut self, now: i64) -> Option<QueueId> {
        let group = self.groups.first()?;
        self.enter_group(group, now);
        self.choose_workload(group, now);
        if self.waiting == 0 {
            return None;
        }
        let tree = self.groups[group].tree(self.serving.class, self.serving.workload).queues;
        tree.first(&self.service_nodes).map(QueueId)
    }

    /// Starts serving a group, with the rest of its workload slice.
    fn enter_group(&mut self, id: GroupId, now: i64) {
        match self.groups[id].saved {
            Some(saved) => {
                self.serving.end = now + saved.remaining;
                self.serving.class = saved.class;
                self.serving.workload = saved.workload;
            }
            None => self.serving.end = now - 1,
        }
    }

    /// Chooses the class and kind of load to serve in a group, and for how long.
    fn choose_workload(&mut self, id: GroupId, now: i64) {
        let group = &self.groups[id];
        let previous_class = self.serving.class;
        self.serving.class = if group.busy_in_class(Class::RealTime) > 0 {
            Class::RealTime
        } else if group.busy_in_class(Class::BestEffort) > 0 {
            Class::BestEffort
        } else {
            Class::Idle
        };
        let class = self.serving.class;
        if class == Class::Idle {
            self.serving.end = now + self.clock.jiffy();
            return;
        }
        let continues = class == previous_class && group.tree(class, self.serving.workload).count > 0;
        if continues && now <= self.serving.end {
            return;
        }
        let first_key = |&workload: &Workload| {
            let first = group.tree(class, workload).queues.first(&self.service_nodes)?;
            Some((self.service_nodes.key(first), workload))
        };
        // If keys are equal the first kind wins.
        let first = Workload::ALL.iter().filter_map(first_key).min_by_key(|&(key, _)| key);
        let Some((_, workload)) = first else { return };
        self.serving.workload = workload;
        let average = group.busy_average[usize::from(class == Class::RealTime)];
        let slice = self.settings.workload_slice(
            group.share_of(self.settings.target_latency),
            group.tree(class, workload).count,
            average.max(group.busy_in_class(class)),
            (workload == Workload::Async).then(|| (group.busy_async(), self.busy_queues)),
            self.clock.jiffy(),
        );
        self.note(None, CfqEvent::WorkloadSlice(slice));
        self.serving.end = now + slice;
    }

    /// The next queue when the scheduler is forcibly drained: limits and times are ignored.
    pub(super) fn first_to_drain(&mut self) -> Option<QueueId> {
        let group = self.groups.first()?;
        let trees = &self.groups[group].trees;
        let first = TreeId::ALL.iter().find_map(|tree| trees[tree.index()].queues.first(&self.service_nodes));
        first.map(QueueId)
    }
}
