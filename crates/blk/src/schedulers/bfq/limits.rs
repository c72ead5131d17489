//! How many tags an allocation may use, by its kind and by the share of its process. Rules: BFQ-114, BFQ-115.

use super::Bfq;
use super::entity::{BE, EntityId, IDLE, RT};
use super::hierarchy::Level;
use super::state_lines::StateChange;
use super::weights::LEVELS;
use crate::bio::{Bio, Op, is_sync};
use crate::ground::kernel::ShallowRule;
use crate::tags::word_bits;

impl Bfq {
    /// The shallow depth for a bio, if it has one.
    pub(super) fn tag_limit(&mut self, bio: &Bio) -> Option<u32> {
        if !self.config.variant.tag_limits {
            return None;
        }
        let sync = is_sync(bio.op, bio.flags);
        let by_kind = if bio.op == Op::Read { None } else { Some(sync) };
        // The share is computed in requests; the result is in tags of a word or of the whole map.
        let requests = by_kind.map_or(self.config.nr_requests, |sync| self.depth_of(self.config.nr_requests, sync));
        let mut depth = by_kind.map(|sync| self.depth_of(self.limited_tags(), sync));
        if self.config.variant.share_limits && self.exceeds_share(bio, sync, requests) {
            depth = Some(1);
        }
        let (raised_busy, shown) = (self.raised_busy, depth.unwrap_or(self.config.nr_requests));
        self.hierarchy.log.device(|| StateChange::Limit { raised_busy, sync, depth: shown });
        depth
    }

    /// The number of tags that a shallow depth is a part of.
    fn limited_tags(&self) -> u32 {
        match self.config.shallow {
            ShallowRule::PerWord => word_bits(self.config.nr_requests),
            ShallowRule::WholeMap => self.config.nr_requests,
        }
    }

    /// The part of `tags` for sync writes or async requests: less while raised queues have work. Where queues have an
    /// `async_depth`, which counts requests, it is a part of that.
    fn depth_of(&self, tags: u32, sync: bool) -> u32 {
        if let Some(depth) = self.config.async_depth {
            return match (self.raised_busy > 0, sync) {
                (false, false) => depth * 2 / 3,
                (false, true) => depth,
                (true, false) => depth / 4,
                (true, true) => depth / 2,
            }
            .max(1);
        }
        let depth = match (self.raised_busy > 0, sync) {
            (false, false) => tags / 2,
            (false, true) => tags * 3 / 4,
            (true, false) => tags * 3 / 16,
            (true, true) => tags * 6 / 16,
        };
        depth.max(1)
    }

    /// Whether the process has as many requests as its weight entitles it to, out of `limit`, or one of the groups
    /// above it.
    fn exceeds_share(&mut self, bio: &Bio, sync: bool, limit: u32) -> bool {
        let Some(context) = self.contexts.find(bio.io_context) else { return false };
        // The actuator depends on the request's sectors, which are not known yet: the first one stands for all.
        let queues = &self.contexts[context].queues[0];
        let Some(q) = (if sync { queues.sync } else { queues.async_ }) else { return false };
        let entity = self.queues[q].entity;
        let mut at = Some(entity);
        while let Some(id) = at {
            if !self.hierarchy.entities[id].accounted {
                return false;
            }
            at = self.hierarchy.parent(id);
        }
        match self.share_down_to(entity, u64::from(limit), true) {
            Ok(_) => false,
            Err(over) => {
                self.log_queue(q, || over);
                true
            }
        }
    }

    /// Follows the shares of `limit` from the topmost group down to an entity. Returns its share and how many levels
    /// it lies below the topmost, or where the limit is exceeded on the way.
    fn share_down_to(&self, id: EntityId, limit: u64, is_queue: bool) -> Result<(u64, u32), StateChange> {
        let (limit, level) = match self.hierarchy.parent(id) {
            Some(parent) => self.share_down_to(parent, limit, false).map(|(limit, level)| (limit, level + 1))?,
            None => (limit, 0),
        };
        let Some(limit) = self.share(id, limit, is_queue) else { return Ok((limit, level)) };
        let allocated = self.hierarchy.entities[id].allocated;
        if u64::from(allocated) >= limit {
            return Err(StateChange::OverLimit { allocated, limit: limit as u32, level });
        }
        Ok((limit, level))
    }

    /// An entity's share of `limit` by weight, rounded to nearest; `None` if nothing has weight.
    fn share(&self, id: EntityId, limit: u64, is_queue: bool) -> Option<u64> {
        let entity = &self.hierarchy.entities[id];
        let level = self.hierarchy.level(entity.level);
        let sum = if is_queue { weight_from_class_up(level, entity.class) } else { level.best_effort().weight_sum };
        (sum > 0).then(|| (limit * entity.weight + sum / 2) / sum)
    }
}

/// The weights that an entity of a class competes with: a higher class counts as many times as there are levels.
fn weight_from_class_up(level: &Level, class: usize) -> u64 {
    let sum = |class: usize| level.trees[class].weight_sum;
    let levels = LEVELS as u64;
    match class {
        RT => sum(RT),
        BE => sum(RT) * levels + sum(BE),
        _ => (sum(RT) * levels + sum(BE)) * levels + sum(IDLE),
    }
}
