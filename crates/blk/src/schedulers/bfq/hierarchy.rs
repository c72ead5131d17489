//! The hierarchy: levels of service trees, and how work and service propagate through them (B-WF2Q+). Rules: BFQ-9,
//! BFQ-18 to BFQ-33, BFQ-35.

use super::entity::{BE, CLASSES, Entities, Entity, EntityId, GroupId, IDLE, Membership, Owner, QueueId};
use super::service_tree::ServiceTree;
use super::state_lines::{StateChange, StateLog};
use super::variant::BfqVariant;
use super::vtime::{delta, is_after};
use super::weights::{WeightCounters, clamp};
use crate::ground::id_list::{IdList, Links};

/// The children of one group.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// The group's entity; the root has none.
    pub entity: Option<EntityId>,
    /// A tree for each class.
    pub trees: [ServiceTree; CLASSES],
    /// The child that is being served.
    pub in_service: Option<EntityId>,
    /// The child to be served next, which is not the one in service.
    pub next: Option<EntityId>,
    /// Children on the active trees.
    active_children: u32,
    /// Tick at which the IDLE class was last considered.
    idle_turn: i64,
}

/// All levels and entities.
#[derive(Clone, Debug)]
pub(super) struct Hierarchy {
    variant: BfqVariant,
    /// Ticks between two turns of the IDLE class.
    idle_turn_ticks: i64,
    /// The tick of the running call.
    pub tick: i64,
    pub entities: Entities,
    pub levels: Vec<Level>,
    /// Weights of the queues that are considered for symmetry.
    pub weights: WeightCounters,
    /// Queues on active trees, the newest activation first, for each actuator.
    pub active_queues: Vec<IdList>,
    /// Links of `active_queues`, by entity.
    pub active_links: Links,
    /// Queues that virtual time has caught up with: they may no longer be needed.
    pub forgotten: Vec<QueueId>,
    pub log: StateLog,
}

/// Which way a walk upwards continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expiring {
    Yes,
    No,
}

impl From<bool> for Expiring {
    fn from(expiring: bool) -> Self {
        if expiring { Expiring::Yes } else { Expiring::No }
    }
}

impl Hierarchy {
    /// The root level alone.
    pub fn new(variant: BfqVariant, idle_turn_ticks: i64, actuators: usize) -> Self {
        Hierarchy {
            variant,
            idle_turn_ticks,
            tick: 0,
            entities: Entities::default(),
            levels: vec![Level::new(None, 0)],
            weights: WeightCounters::default(),
            active_queues: vec![IdList::default(); actuators],
            active_links: Links::default(),
            forgotten: Vec::new(),
            log: StateLog::default(),
        }
    }

    /// Adds an entity, also to the per-actuator links.
    pub fn add_entity(&mut self, entity: Entity) -> EntityId {
        let id = self.entities.add(entity);
        self.active_links.grow(id.0 as usize + 1);
        id
    }

    /// Adds the level of a new group whose entity is `entity`.
    pub fn add_level(&mut self, entity: EntityId) -> GroupId {
        self.levels.push(Level::new(Some(entity), self.tick));
        GroupId(self.levels.len() as u32 - 1)
    }

    pub fn level(&self, group: GroupId) -> &Level {
        &self.levels[group.0 as usize]
    }

    fn level_mut(&mut self, group: GroupId) -> &mut Level {
        &mut self.levels[group.0 as usize]
    }

    /// The entity of the group that `id` is scheduled in; `None` at the top.
    pub fn parent(&self, id: EntityId) -> Option<EntityId> {
        self.level(self.entities[id].level).entity
    }

    fn tree(&self, id: EntityId) -> &ServiceTree {
        let entity = &self.entities[id];
        &self.levels[entity.level.0 as usize].trees[entity.class]
    }

    fn is_in_service(&self, id: EntityId) -> bool {
        self.level(self.entities[id].level).in_service == Some(id)
    }

    // --- trees ---

    /// Computes the finish time for `service` sectors.
    fn set_finish(&mut self, id: EntityId, service: u64) {
        let entity = &mut self.entities[id];
        let delta = delta(service, entity.weight);
        entity.finish = entity.start.wrapping_add(delta);
        if entity.label.is_some() {
            let entity = &self.entities[id];
            self.log.queue(entity.label, || StateChange::Vtime {
                start: entity.start,
                finish: entity.finish,
                delta,
                service,
                weight: entity.weight,
            });
        }
    }

    fn insert_active(&mut self, id: EntityId) {
        let Entity { level, class, owner, actuator, .. } = self.entities[id];
        let level = &mut self.levels[level.0 as usize];
        level.trees[class].insert_active(&mut self.entities, id);
        level.active_children += 1;
        if let Owner::Queue(_) = owner {
            self.active_queues[usize::from(actuator)].push_front(&mut self.active_links, id.0);
        }
    }

    fn extract_active(&mut self, id: EntityId) {
        let Entity { level, class, owner, actuator, .. } = self.entities[id];
        let level = &mut self.levels[level.0 as usize];
        level.trees[class].extract_active(&mut self.entities, id);
        level.active_children -= 1;
        if let Owner::Queue(_) = owner {
            self.active_queues[usize::from(actuator)].remove(&mut self.active_links, id.0);
        }
    }

    /// Stops accounting an entity that is on no tree.
    fn forget(&mut self, id: EntityId) {
        let entity = &mut self.entities[id];
        debug_assert!(entity.on == Membership::None && entity.accounted);
        entity.accounted = false;
        let Entity { level, class, weight, owner, .. } = *entity;
        self.level_mut(level).trees[class].weight_sum -= weight;
        if let Owner::Queue(queue) = owner {
            self.forgotten.push(queue);
        }
    }

    fn forget_overtaken(&mut self, overtaken: Option<EntityId>) {
        let Some(id) = overtaken else { return };
        let Entity { level, class, .. } = self.entities[id];
        self.levels[level.0 as usize].trees[class].extract_idle(&mut self.entities, id);
        self.forget(id);
    }

    // --- weights (BFQ-19) ---

    /// Asks for a change; it is applied when the entity next gets onto an active tree.
    pub fn request_change(&mut self, id: EntityId, change: impl FnOnce(&mut Entity)) {
        let entity = &mut self.entities[id];
        change(entity);
        entity.change_pending = true;
    }

    /// Applies a pending change of an accounted entity. Its class changes only if it is on no tree.
    pub fn apply_change(&mut self, id: EntityId, class_too: bool) {
        let Entity { level, class: old_class, weight: old_weight, change_pending, accounted, .. } = self.entities[id];
        if !change_pending {
            return;
        }
        debug_assert!(accounted, "only accounted entities have their weight in the sum");
        self.level_mut(level).trees[old_class].weight_sum -= old_weight;
        let entity = &mut self.entities[id];
        entity.base_weight = clamp(entity.requested_weight);
        if class_too {
            entity.class = entity.requested_class;
        }
        entity.change_pending = entity.class != entity.requested_class;
        entity.weight = entity.base_weight * entity.raise;
        let Entity { class, weight, owner, raise, .. } = *entity;
        if weight != old_weight {
            self.uncount_weight(id);
            if matches!(owner, Owner::Queue(_)) && raise == 1 {
                self.count_weight(id);
            }
        }
        let tree = &mut self.level_mut(level).trees[class];
        tree.weight_sum += weight;
        if class != old_class {
            self.entities[id].start = self.tree(id).vtime;
        }
    }

    /// Counts a queue's weight for symmetry, if it is not counted yet.
    pub fn count_weight(&mut self, id: EntityId) {
        let entity = &mut self.entities[id];
        if entity.counted_weight.is_none() {
            entity.counted_weight = Some(entity.weight);
            self.weights.add(entity.weight);
        }
    }

    /// Counts a queue's weight no longer.
    pub fn uncount_weight(&mut self, id: EntityId) {
        if let Some(weight) = self.entities[id].counted_weight.take() {
            self.weights.remove(weight);
        }
    }

    // --- transitions (BFQ-25 to BFQ-28) ---

    /// An entity gets work.
    fn activate_one(&mut self, id: EntityId, recover: bool) {
        let vtime = self.tree(id).vtime;
        let Entity { finish, on, level, class, weight, .. } = self.entities[id];
        let backshifted = recover && is_after(vtime, finish);
        let base = if backshifted { finish } else { vtime };
        let start = if on == Membership::Idle {
            self.levels[level.0 as usize].trees[class].extract_idle(&mut self.entities, id);
            if is_after(base, finish) { base } else { finish }
        } else {
            debug_assert!(!self.entities[id].accounted);
            self.entities[id].accounted = true;
            self.level_mut(level).trees[class].weight_sum += weight;
            base
        };
        self.entities[id].start = start;
        self.apply_change(id, true);
        self.set_finish(id, self.entities[id].budget);
        let vtime = self.tree(id).vtime;
        let entity = &mut self.entities[id];
        if backshifted && is_after(vtime, entity.finish) {
            let shift = vtime.wrapping_sub(entity.finish) / entity.raise;
            entity.start = entity.start.wrapping_add(shift);
            entity.finish = entity.finish.wrapping_add(shift);
        }
        self.insert_active(id);
    }

    /// The entity in service goes back among the others, with what it received counted.
    fn requeue_in_service(&mut self, id: EntityId) {
        self.set_finish(id, self.entities[id].service);
        self.entities[id].start = self.entities[id].finish;
        if self.entities[id].on == Membership::Active {
            self.extract_active(id);
        }
        self.apply_change(id, true);
        self.set_finish(id, self.entities[id].budget);
        self.insert_active(id);
    }

    /// The budget or weight of a waiting entity has changed.
    fn reposition(&mut self, id: EntityId) {
        self.extract_active(id);
        self.apply_change(id, true);
        self.set_finish(id, self.entities[id].budget);
        self.insert_active(id);
    }

    fn enqueue_one(&mut self, id: EntityId, recover: bool) {
        if self.is_in_service(id) {
            self.requeue_in_service(id);
        } else if self.entities[id].on == Membership::Active {
            self.reposition(id);
        } else {
            self.activate_one(id, recover);
        }
    }

    /// An entity has no work any more. Returns whether it had been accounted.
    fn deactivate_one(&mut self, id: EntityId, into_idle: bool) -> bool {
        if !self.entities[id].accounted {
            return false;
        }
        self.set_finish(id, self.entities[id].service);
        let Entity { level, class, on, finish, .. } = self.entities[id];
        if self.is_in_service(id) {
            self.level_mut(level).in_service = None;
        } else if !self.variant.service_reset_at_selection {
            self.entities[id].service = 0;
        }
        match on {
            Membership::Active => self.extract_active(id),
            Membership::Idle => self.levels[level.0 as usize].trees[class].extract_idle(&mut self.entities, id),
            Membership::None => {}
        }
        if into_idle && is_after(finish, self.tree(id).vtime) {
            self.levels[level.0 as usize].trees[class].insert_idle(&mut self.entities, id);
        } else {
            self.forget(id);
        }
        true
    }

    // --- walks upwards (BFQ-31) ---

    /// An entity got work, or its budget, weight or service changed, or (`expiring`) its slot has ended with work
    /// left.
    pub fn enqueue(&mut self, id: EntityId, recover: bool, expiring: bool) {
        self.walk_up(Some(id), recover, expiring.into());
    }

    fn walk_up(&mut self, mut at: Option<EntityId>, recover: bool, expiring: Expiring) {
        while let Some(id) = at {
            self.enqueue_one(id, recover);
            let affected = self.refresh_next(self.entities[id].level, Some(id), expiring);
            if !affected && expiring == Expiring::No {
                return;
            }
            at = self.parent(id);
        }
    }

    /// An entity has lost its work.
    pub fn deactivate(&mut self, id: EntityId, into_idle: bool, expiring: bool) {
        let expiring = Expiring::from(expiring);
        let (mut id, mut into_idle) = (id, into_idle);
        loop {
            let group = self.entities[id].level;
            if !self.deactivate_one(id, into_idle) {
                return;
            }
            if self.level(group).next == Some(id) {
                self.refresh_next(group, None, expiring);
            }
            let level = self.level(group);
            if level.next.is_some() || level.in_service.is_some() {
                self.walk_up(level.entity, false, expiring);
                return;
            }
            match level.entity {
                Some(parent) => (id, into_idle) = (parent, true),
                None => return,
            }
        }
    }

    // --- the next candidate (BFQ-21 to BFQ-23, BFQ-30) ---

    /// Brings a level's next candidate up to date after `changed` was put on an active tree. Returns whether the
    /// level above is affected.
    fn refresh_next(&mut self, group: GroupId, changed: Option<EntityId>, expiring: Expiring) -> bool {
        let before = self.level(group).next;
        let takes_over = match (changed, before) {
            (Some(changed), None) => Some(changed),
            (Some(changed), Some(before)) if changed != before => {
                let (one, other) = (&self.entities[changed], &self.entities[before]);
                let eligible = !is_after(one.start, self.tree(changed).vtime);
                let sooner = one.class == other.class && eligible && is_after(other.finish, one.finish);
                let higher = !self.variant.full_lookup && one.class < other.class;
                if sooner || higher {
                    Some(changed)
                } else if self.variant.full_lookup {
                    None
                } else {
                    Some(before)
                }
            }
            _ => None,
        };
        let next = match takes_over {
            Some(next) => Some(next),
            None => self.look_up_next(group, expiring),
        };
        self.level_mut(group).next = next;
        let Some(next) = next else { return false };
        let shrunk = self.take_budget_of(group, next);
        before.is_none() || shrunk
    }

    /// Gives a group the budget of its next candidate. Returns whether that made it smaller.
    fn take_budget_of(&mut self, group: GroupId, next: EntityId) -> bool {
        let Some(entity) = self.level(group).entity else { return false };
        let budget = self.entities[next].budget;
        let shrunk = budget < self.entities[entity].budget;
        self.entities[entity].budget = budget;
        shrunk
    }

    /// The full lookup, with the turn of the IDLE class.
    fn look_up_next(&mut self, group: GroupId, expiring: Expiring) -> Option<EntityId> {
        let (tick, turn) = (self.tick, self.idle_turn_ticks);
        let level = self.level_mut(group);
        let mut first = 0;
        if level.idle_turn + turn < tick {
            if !level.trees[IDLE].active.is_empty() {
                first = IDLE;
            }
            level.idle_turn = tick;
        }
        let jumps = level.in_service.is_none() || (expiring == Expiring::Yes && self.variant.jump_at_expiration);
        (first..CLASSES).find_map(|class| self.first_of_class(group, class, jumps))
    }

    /// The choice of one service tree. If nothing is eligible virtual time is pushed forward: permanently only if
    /// `jumps`.
    fn first_of_class(&mut self, group: GroupId, class: usize, jumps: bool) -> Option<EntityId> {
        let tree = &mut self.levels[group.0 as usize].trees[class];
        let min_start = tree.min_start(&self.entities)?;
        let mut at = tree.vtime;
        // The kernel compares these two as unsigned numbers. That differs only where virtual time wraps around, and
        // there the kernel would find nothing eligible.
        if is_after(min_start, at) {
            at = min_start;
            if jumps {
                tree.vtime = min_start;
                let overtaken = tree.overtaken(&self.entities);
                self.forget_overtaken(overtaken);
            }
        }
        self.level(group).trees[class].first_eligible(&self.entities, at)
    }

    // --- slots (BFQ-32, BFQ-33, BFQ-35) ---

    /// Puts the next queue in service.
    pub fn select(&mut self) -> Option<QueueId> {
        let mut group = GroupId::ROOT;
        let (leaf, queue) = loop {
            let id = self.level(group).next?;
            self.level_mut(group).in_service = Some(id);
            match self.entities[id].owner {
                Owner::Queue(queue) => {
                    self.extract_active(id);
                    break (id, queue);
                }
                Owner::Group(child) => {
                    if self.level(child).active_children == 1 {
                        self.extract_active(id);
                    }
                    group = child;
                }
            }
        };
        let mut at = Some(leaf);
        while let Some(id) = at {
            if self.variant.service_reset_at_selection {
                self.entities[id].service = 0;
            }
            at = self.parent(id);
        }
        let mut at = Some(leaf);
        while let Some(id) = at {
            if !self.refresh_next(self.entities[id].level, None, Expiring::No) {
                break;
            }
            at = self.parent(id);
        }
        Some(queue)
    }

    /// Makes an active queue the next one to be selected, regardless of the trees.
    pub fn nominate(&mut self, id: EntityId) {
        let mut at = Some(id);
        while let Some(id) = at {
            let group = self.entities[id].level;
            self.level_mut(group).next = Some(id);
            at = self.parent(id);
        }
    }

    /// The slot of a queue is over, and the queue has been enqueued or deactivated: nothing on its path is in
    /// service.
    pub fn leave_service(&mut self, id: EntityId) {
        let mut at = Some(id);
        while let Some(id) = at {
            let group = self.entities[id].level;
            self.level_mut(group).in_service = None;
            at = self.parent(id);
        }
    }

    /// The service of the groups above a queue has been accounted for.
    pub fn reset_service_above(&mut self, id: EntityId) {
        let mut at = self.parent(id);
        while let Some(id) = at {
            self.entities[id].service = 0;
            at = self.parent(id);
        }
    }

    /// Charges a queue, and all groups above it, with service.
    pub fn charge(&mut self, id: EntityId, sectors: u64) {
        let mut at = Some(id);
        while let Some(id) = at {
            let entity = &mut self.entities[id];
            entity.service += sectors;
            let Entity { level, class, .. } = *entity;
            let overtaken = self.levels[level.0 as usize].trees[class].advance(&self.entities, sectors);
            self.forget_overtaken(overtaken);
            at = self.parent(id);
        }
    }

    /// Whether an entity other than the one in service would come next at the top.
    pub fn next_differs_from_in_service(&self) -> bool {
        let root = self.level(GroupId::ROOT);
        root.next != root.in_service
    }

    /// Takes an idle entity off its tree, so that it can be freed or moved.
    pub fn drop_idle(&mut self, id: EntityId) {
        if self.entities[id].on == Membership::Idle {
            self.forget_overtaken(Some(id));
        }
    }
}

impl Level {
    fn new(entity: Option<EntityId>, tick: i64) -> Self {
        Level { entity, trees: Default::default(), in_service: None, next: None, active_children: 0, idle_turn: tick }
    }

    /// The level's best-effort tree, on which groups are.
    pub fn best_effort(&self) -> &ServiceTree {
        &self.trees[BE]
    }
}
