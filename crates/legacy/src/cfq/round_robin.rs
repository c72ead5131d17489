//! The round robin: the busy queues, and the keys that order them.
//!
//! A key is a time, so waiting queues come before new ones after a while. The trees store it as an unsigned number with
//! the same order.
//!
//! Rules: CFQ-8, CFQ-9, CFQ-25, CFQ-26, CFQ-30.

use hoistway_blk::ground::CfqGeneration;

use super::class::Class;
use super::group::GroupId;
use super::log::{CfqEvent, CfqLog};
use super::queue::QueueId;
use super::{Cfq, PositionTree};

/// How far behind the last group a new group joins, in raw virtual time: 49 us of an undivided device.
const GROUP_JOIN_DELAY: u64 = 200_000_000;

/// The position of a queue in its tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Position {
    /// By its priority and its credit.
    Ordinary,
    /// Before all others.
    Front,
}

/// A time as a key of a tree.
fn encode(moment: i64) -> u64 {
    moment as u64 ^ 1 << 63
}

fn decode(key: u64) -> i64 {
    (key ^ 1 << 63) as i64
}

impl<L: CfqLog> Cfq<L> {
    /// A queue has got its first request.
    pub(super) fn add_to_round_robin(&mut self, id: QueueId, now: i64) {
        self.note(Some(id), CfqEvent::AddToRoundRobin);
        let queue = self.queue_mut(id);
        debug_assert!(!queue.busy);
        queue.busy = true;
        let (sync, group) = (queue.sync, queue.group);
        self.busy_queues += 1;
        if sync {
            self.busy_sync_queues += 1;
            self.groups[group].busy_sync_queues += 1;
        }
        self.place_in_tree(id, Position::Ordinary, now);
        self.place_in_position_tree(id);
    }

    /// A queue is empty, and its turn is over.
    pub(super) fn del_from_round_robin(&mut self, id: QueueId) {
        self.note(Some(id), CfqEvent::DelFromRoundRobin);
        let queue = self.queue_mut(id);
        debug_assert!(queue.busy && queue.backlog.is_empty());
        queue.busy = false;
        let (sync, group, tree) = (queue.sync, queue.group, queue.tree.take());
        if let Some(tree) = tree {
            let tree = &mut self.groups[group].trees[tree.index()];
            tree.queues.remove(&mut self.service_nodes, id.0);
            tree.count -= 1;
        }
        self.leave_position_tree(id);
        self.groups[group].busy_queues -= 1;
        if self.groups[group].busy_queues == 0 {
            self.note(None, CfqEvent::GroupDelFromRoundRobin);
            self.groups.leave(group);
        }
        self.busy_queues -= 1;
        if sync {
            self.busy_sync_queues -= 1;
            self.groups[group].busy_sync_queues -= 1;
        }
    }

    /// Puts a busy queue into the right tree with a new key.
    pub(super) fn place_in_tree(&mut self, id: QueueId, position: Position, now: i64) {
        let (group, to) = (self.queue(id).group, self.queue(id).fitting_tree());
        let key = self.key_of(id, position, now);
        match self.queue(id).tree {
            Some(from) if from == to && self.service_nodes.key(id.0) == encode(key) => return,
            Some(from) => {
                let tree = &mut self.groups[group].trees[from.index()];
                tree.queues.remove(&mut self.service_nodes, id.0);
                tree.count -= 1;
            }
            None => self.join_group(group),
        }
        let tree = &mut self.groups[group].trees[to.index()];
        tree.queues.insert(&mut self.service_nodes, id.0, encode(key));
        tree.count += 1;
        self.queue_mut(id).tree = Some(to);
    }

    /// A group has one more busy queue.
    fn join_group(&mut self, group: GroupId) {
        self.groups[group].busy_queues += 1;
        if self.groups[group].busy_queues == 1 {
            let in_ticks = self.is_iops_mode() || self.config.generation == CfqGeneration::Ticks;
            let delay = if in_ticks { u64::from(self.config.hz.0 / 5) } else { GROUP_JOIN_DELAY };
            self.groups.join(group, delay);
        }
    }

    /// The key of a queue in the right tree. An ordinary key uses up the queue's credit.
    fn key_of(&mut self, id: QueueId, position: Position, now: i64) -> i64 {
        let queue = self.queue(id);
        let group = &self.groups[queue.group];
        let tree = group.trees[queue.fitting_tree().index()].queues;
        let key_of = |id| decode(self.service_nodes.key(id));
        if queue.priority.class == Class::Idle {
            let last = tree.last(&self.service_nodes).filter(|&last| last != id.0);
            return last.map_or(now, key_of) + self.clock.second_over(5);
        }
        if position == Position::Front {
            return tree.first(&self.service_nodes).map_or(now, key_of) - self.clock.second();
        }
        // A queue outside of any tree is not counted: if no queue is busy, its key is *before* now.
        let others = i64::from(group.busy_queues) - 1;
        let step = self.settings.level_slice(true, 0) - self.settings.level_slice(queue.sync, queue.priority.level);
        let key = now + others * step - queue.residual;
        self.queue_mut(id).residual = 0;
        key
    }

    /// Puts a queue into the position tree of its level, by its next request. It stays outside if it has no request, is
    /// of class idle, or another queue has the same sector.
    pub(super) fn place_in_position_tree(&mut self, id: QueueId) {
        self.leave_position_tree(id);
        let queue = self.queue(id);
        if queue.priority.class == Class::Idle {
            return;
        }
        let Some(next) = queue.backlog.next() else { return };
        let (level, sector) = (queue.original.level, self.requests.sector(next));
        let tree = &mut self.position_trees[usize::from(level)];
        if tree.insert(&mut self.position_nodes, id.0, sector) {
            self.queue_mut(id).position_tree = Some(level);
        }
    }

    /// Removes a queue from its position tree.
    pub(super) fn leave_position_tree(&mut self, id: QueueId) {
        if let Some(level) = self.queue_mut(id).position_tree.take() {
            self.position_trees[usize::from(level)].remove(&mut self.position_nodes, id.0);
        }
    }

    /// The next request of a queue has changed, or has a new start: searches use the new sector, but the queue keeps
    /// its place in the position tree.
    pub(super) fn note_position(&mut self, id: QueueId) {
        let queue = self.queue(id);
        if let (Some(_), Some(next)) = (queue.position_tree, queue.backlog.next()) {
            PositionTree::moved(&mut self.position_nodes, id.0, self.requests.sector(next));
        }
    }
}
