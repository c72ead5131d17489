//! The controller of a device: which bios pass, which wait, and when they are released.

use std::collections::VecDeque;

use hoistway_blk::bio::{Bio, BioFlags, Direction, Op};
use hoistway_blk::ground::{CgroupId, Instant, Nanos};

use super::clock::{DeviceClock, DeviceTime, NANOSECOND};
use super::model::{CostModel, Costs, has_cost};
use super::qos::{IoCostQos, Percent};
use super::saturation::Signs;
use super::shares::{Group, Shares, WHOLE};

/// A bio that begins within this many sectors of the end of its group's last one is sequential: 128 KiB (IC-2).
const NEAR_SECTORS: u64 = 256;

/// A lender keeps a quarter more than it used in the last period (IC-11).
const LENDER_KEEPS_PERCENT: u64 = 125;

/// Bits of the inverse of a share below 1.
const INVERSE_BITS: u32 = 20;

/// What a cgroup has spent and waited, without its descendants.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GroupCost {
    /// Device time of its bios by the model.
    pub device_time: Nanos,
    /// Bios that waited.
    pub delayed: u64,
    /// Time in which at least one of its bios waited.
    pub throttled: Nanos,
}

/// The device time of all cgroups on one device, and the bios that wait for it.
///
/// A group's own time advances by the cost of each of its bios divided by its share. A bio passes if the group's time is not ahead of
/// the device's. So the device's time is shared by weight, an idle group's share goes to the others, and a bio on an idle device never
/// waits. Bios of the root are not controlled. Source: IC-1 to IC-23.
///
/// Cost: a bio reads the clock of its group; shares are planned when a group becomes active or inactive, and once a period. After the
/// maximum number of waiting bios has been reached once, nothing is allocated per bio.
///
/// ```
/// use hoistway_blk::bio::{Bio, Op};
/// use hoistway_blk::ground::{CgroupId, Instant, Sector};
/// use hoistway_cgroup::{CostModel, IoCost, IoCostQos};
///
/// // A random read of 4 KiB takes a millisecond.
/// let model = CostModel { rbps: 1 << 30, rseqiops: 1000, rrandiops: 1000, wbps: 1 << 30, wseqiops: 1000, wrandiops: 1000 };
/// let mut cost = IoCost::new(IoCostQos { is_enabled: true, ..IoCostQos::AUTOMATIC }, &model);
/// cost.add_group(CgroupId(1), CgroupId::ROOT);
///
/// let bio = Bio { cgroup: CgroupId(1), ..Bio::new(Op::Read, Sector(1 << 20), 8) };
/// assert!(cost.submit(Instant::ZERO, bio.clone()).is_some(), "the group is not ahead");
/// assert!(cost.submit(Instant::ZERO, bio).is_none(), "kept");
///
/// let mut released = Vec::new();
/// let due = cost.due().unwrap();
/// cost.release(due, &mut released);
/// assert_eq!((due, released.len()), (Instant(1_000_000), 1));
/// ```
#[derive(Clone, Debug)]
pub struct IoCost {
    qos: IoCostQos,
    model: CostModel,
    costs: Costs,
    clock: DeviceClock,
    period: Nanos,
    period_start: Instant,
    signs: Signs,
    shares: Shares,
    /// The accounts of all groups, the root first.
    accounts: Vec<Account>,
    /// The group of each cgroup, by its number; 0, the root, for those that were not added.
    by_cgroup: Vec<u32>,
    /// Groups with waiting bios, by their times; the next one is *last*.
    pending: Vec<(DeviceTime, u32)>,
}

/// The account of a group's own bios.
#[derive(Clone, Debug, Default)]
struct Account {
    /// The group's time.
    time: DeviceTime,
    /// [`WHOLE`] divided by the group's share, with [`INVERSE_BITS`] fractional bits.
    inverse: u64,
    is_active: bool,
    /// Whether a bio was submitted in this period.
    has_submitted: bool,
    /// Whether a bio waited in this period.
    has_waited: bool,
    /// Sectors of bios that have passed and not completed.
    in_flight_sectors: u64,
    /// Cost of the bios that passed in this period, ns.
    used_ns: u64,
    /// The end of the last bio, by direction.
    ends: [u64; 2],
    /// Waiting bios with their costs, ns.
    waiting: VecDeque<(Bio, u64)>,
    /// Since when bios wait.
    waiting_since: Instant,
    total: GroupCost,
}

impl Account {
    /// Whether the next bio has to wait.
    fn is_ahead(&self, device: DeviceTime) -> bool {
        self.time > device
    }

    fn charge(&mut self, cost_ns: u64) {
        self.time += (DeviceTime::from(cost_ns) * DeviceTime::from(self.inverse) * NANOSECOND) >> INVERSE_BITS;
        self.used_ns += cost_ns;
        self.total.device_time += Nanos(cost_ns);
    }

    /// Whether a bio that begins here is random after the last one.
    fn seek(&mut self, direction: Direction, begin: u64, sectors: u32) -> bool {
        let end = std::mem::replace(&mut self.ends[direction.index()], begin + u64::from(sectors));
        begin.abs_diff(end) > NEAR_SECTORS
    }
}

impl IoCost {
    /// A device without groups.
    #[must_use]
    pub fn new(qos: IoCostQos, model: &CostModel) -> Self {
        IoCost {
            clock: DeviceClock::new(Percent::WHOLE.clamp(qos.rate_min, qos.rate_max)),
            period: qos.period(),
            period_start: Instant::ZERO,
            signs: Signs::default(),
            costs: Costs::of(model),
            model: *model,
            qos,
            shares: Shares::new(),
            accounts: vec![Account::default()],
            by_cgroup: vec![0],
            pending: Vec::new(),
        }
    }

    /// Adds a cgroup as a child of `parent`, with the default weight. A known cgroup keeps its parent. Bios of cgroups that were not
    /// added are not controlled, as those of the root.
    pub fn add_group(&mut self, cgroup: CgroupId, parent: CgroupId) {
        if self.by_cgroup.len() <= cgroup.index() {
            self.by_cgroup.resize(cgroup.index() + 1, 0);
        }
        if cgroup != CgroupId::ROOT && self.by_cgroup[cgroup.index()] == 0 {
            let parent = self.group_of(parent);
            self.by_cgroup[cgroup.index()] = self.shares.add(parent) as u32;
            self.accounts.push(Account::default());
            // Reserved for every group, so that a bio never makes this grow.
            self.pending.reserve(self.accounts.len());
        }
    }

    /// Sets the weight of a cgroup that was added (`io.weight`).
    ///
    /// # Panics
    /// If the weight is 0.
    pub fn set_weight(&mut self, cgroup: CgroupId, weight: u32) {
        assert!(weight > 0, "a weight is at least 1");
        match self.group_of(cgroup) {
            0 => {}
            group => self.shares.set_weight(group, weight),
        }
        self.plan(self.clock.at(self.period_start));
    }

    /// Submits a bio: returns it if it may continue; otherwise it waits until [`IoCost::release`].
    ///
    /// Bios with META or SWAP always continue, since others may wait for them: the excess is a debt, which the group pays before another
    /// of its bios passes.
    #[must_use = "a bio that comes back has not been sent"]
    pub fn submit(&mut self, now: Instant, bio: Bio) -> Option<Bio> {
        let group = self.group_of(bio.cgroup);
        if group == 0 || !self.qos.is_enabled || !has_cost(bio.op, bio.sectors) {
            return Some(bio);
        }
        self.end_periods(now);
        let device = self.clock.at(now);
        if !self.accounts[group].is_active {
            self.activate(group, device);
        }
        let account = &mut self.accounts[group];
        account.has_submitted = true;
        let direction = bio.op.direction();
        let is_random = account.seek(direction, bio.sector.0, bio.sectors);
        let cost_ns = self.costs.cost_ns(direction, is_random, bio.sectors);
        let must_pass = bio.flags.intersects(BioFlags::META.with(BioFlags::SWAP));
        if !account.waiting.is_empty() {
            if must_pass {
                self.pass_waiting(group, cost_ns, bio.sectors);
                return Some(bio);
            }
            account.waiting.push_back((bio, cost_ns));
            account.total.delayed += 1;
            return None;
        }
        // An active group may save a quarter of a period at most.
        account.time = account.time.max(device.saturating_sub(DeviceTime::from(self.period.0 / 4) * NANOSECOND));
        if !must_pass && account.is_ahead(device) && !self.takes_back(group, device) {
            self.wait(now, group, bio, cost_ns);
            return None;
        }
        let account = &mut self.accounts[group];
        account.charge(cost_ns);
        account.in_flight_sectors += u64::from(bio.sectors);
        Some(bio)
    }

    /// Notifies that a part of a bio that passed has completed.
    #[inline]
    pub fn ended(&mut self, cgroup: CgroupId, op: Op, sectors: u32) {
        if has_cost(op, sectors) {
            let group = self.group_of(cgroup);
            let in_flight = &mut self.accounts[group].in_flight_sectors;
            *in_flight = in_flight.saturating_sub(u64::from(sectors));
        }
    }

    /// Notifies that a request of the device, of any group, has completed, and how long after its start.
    #[inline]
    pub fn completed(&mut self, now: Instant, op: Op, sectors: u32, latency: Nanos) {
        if has_cost(op, sectors) {
            self.end_periods(now);
            // Data takes its time on any device, so it does not show saturation.
            let data = self.costs.data(op.direction(), sectors);
            self.signs.completed(&self.qos, op.direction(), Nanos(latency.0.saturating_sub(data.0)));
        }
    }

    /// Notifies that a submitter sleeps because all tags of the device are in use.
    pub fn tags_ran_out(&mut self) {
        self.signs.tags_ran_out = true;
    }

    /// When [`IoCost::release`] has to be called next; `None` if nothing waits. At that time a bio may pass, or the rate of device time
    /// may change.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let &(time, _) = self.pending.last()?;
        Some(self.clock.when(time).min(self.period_start + self.period))
    }

    /// Appends the bios that may continue at `now` to `out`, groups by their times.
    pub fn release(&mut self, now: Instant, out: &mut Vec<Bio>) {
        self.end_periods(now);
        let device = self.clock.at(now);
        while let Some((_, group)) = self.pending.pop_if(|&mut (time, _)| time <= device) {
            let account = &mut self.accounts[group as usize];
            while !account.is_ahead(device)
                && let Some((bio, cost_ns)) = account.waiting.pop_front()
            {
                account.charge(cost_ns);
                account.in_flight_sectors += u64::from(bio.sectors);
                out.push(bio);
            }
            if account.waiting.is_empty() {
                account.total.throttled += now.since(account.waiting_since);
            } else {
                self.schedule(group as usize);
            }
        }
    }

    /// Number of waiting bios.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pending.iter().map(|&(_, group)| self.accounts[group as usize].waiting.len()).sum()
    }

    /// `io.cost.qos` of the device.
    #[must_use]
    pub fn qos(&self) -> &IoCostQos {
        &self.qos
    }

    /// The figures that costs are computed from.
    #[must_use]
    pub fn model(&self) -> &CostModel {
        &self.model
    }

    /// `io.weight` of a cgroup.
    #[must_use]
    pub fn weight(&self, cgroup: CgroupId) -> u32 {
        self.shares.weight(self.group_of(cgroup))
    }

    /// How fast device time passes.
    #[must_use]
    pub fn rate(&self) -> Percent {
        self.clock.rate()
    }

    /// How fast device time has passed in the mean until `now`.
    #[must_use]
    pub fn mean_rate(&self, now: Instant) -> Percent {
        match now.since(Instant::ZERO).0 {
            0 => self.rate(),
            ns => Percent((self.clock.at(now) / DeviceTime::from(ns)) as u32),
        }
    }

    /// What a cgroup has spent and waited until `now`.
    #[must_use]
    pub fn group_cost(&self, now: Instant, cgroup: CgroupId) -> GroupCost {
        let account = &self.accounts[self.group_of(cgroup)];
        let waits = if account.waiting.is_empty() { Nanos::ZERO } else { now.since(account.waiting_since) };
        GroupCost { throttled: account.total.throttled + waits, ..account.total }
    }

    #[inline]
    fn group_of(&self, cgroup: CgroupId) -> Group {
        self.by_cgroup.get(cgroup.index()).map_or(0, |&group| group as Group)
    }

    /// A group returns to the device's time, without credit.
    #[cold]
    fn activate(&mut self, group: Group, device: DeviceTime) {
        let account = &mut self.accounts[group];
        account.is_active = true;
        account.time = account.time.max(device);
        self.shares.set_active(group, true);
        self.shares.set_demand(group, WHOLE);
        self.plan(device);
    }

    /// A lender that is ahead takes its share back at once. Returns whether its bio may pass then.
    fn takes_back(&mut self, group: Group, device: DeviceTime) -> bool {
        if self.shares.demand(group) == WHOLE {
            return false;
        }
        self.shares.set_demand(group, WHOLE);
        self.plan(device);
        !self.accounts[group].is_ahead(device)
    }

    fn wait(&mut self, now: Instant, group: Group, bio: Bio, cost_ns: u64) {
        let account = &mut self.accounts[group];
        account.waiting.push_back((bio, cost_ns));
        account.waiting_since = now;
        account.has_waited = true;
        account.total.delayed += 1;
        self.signs.has_waited = true;
        self.schedule(group);
    }

    /// A bio overtakes the waiting ones of its group, which then wait for longer.
    #[cold]
    fn pass_waiting(&mut self, group: Group, cost_ns: u64, sectors: u32) {
        let account = &mut self.accounts[group];
        account.charge(cost_ns);
        account.in_flight_sectors += u64::from(sectors);
        self.pending.retain(|&(_, other)| other as usize != group);
        self.schedule(group);
    }

    /// Adds a group to the pending ones, after others with the same time.
    fn schedule(&mut self, group: Group) {
        let time = self.accounts[group].time;
        let at = self.pending.partition_point(|&(other, _)| other > time);
        self.pending.insert(at, (time, group as u32));
    }

    /// Plans the shares anew. What a group is ahead is device time that it owes: it is paid at the new share, or a bio of a group that has
    /// lent nearly everything would cost it seconds.
    fn plan(&mut self, device: DeviceTime) {
        self.shares.plan();
        for (group, account) in self.accounts.iter_mut().enumerate().filter(|(_, account)| account.is_active) {
            let before = std::mem::replace(&mut account.inverse, (WHOLE << INVERSE_BITS) / self.shares.share(group));
            if account.is_ahead(device) && account.inverse != before && before > 0 {
                let ahead = account.time - device;
                account.time = device + ahead * DeviceTime::from(account.inverse) / DeviceTime::from(before);
            }
        }
        for (time, group) in &mut self.pending {
            *time = self.accounts[*group as usize].time;
        }
        self.pending.sort_unstable_by_key(|&(time, group)| std::cmp::Reverse((time, group)));
    }

    #[inline]
    fn end_periods(&mut self, now: Instant) {
        if now.since(self.period_start) >= self.period {
            self.end_period(now);
        }
    }

    /// Ends the period, and further ones without I/O if more than one has passed.
    #[inline(never)]
    fn end_period(&mut self, now: Instant) {
        /// So many periods return the rate to 100 % from any other one.
        const DRIFTS_MAX: u64 = 128;
        let lasted = now.since(self.period_start);
        let spent_ns = (self.clock.at(now) - self.clock.at(self.period_start)) / NANOSECOND;
        let mut rate = self.signs.next_rate(&self.qos, self.clock.rate());
        for _ in 1..(lasted.0 / self.period.0).min(DRIFTS_MAX) {
            rate = Signs::default().next_rate(&self.qos, rate);
        }
        self.clock.set_rate(now, rate);
        self.period_start = now;
        self.signs = Signs::default();
        self.signs.has_waited = !self.pending.is_empty();
        for (group, account) in self.accounts.iter_mut().enumerate().filter(|(_, account)| account.is_active) {
            let waits = !account.waiting.is_empty();
            if !account.has_submitted && !waits && account.in_flight_sectors == 0 {
                account.is_active = false;
                self.shares.set_active(group, false);
            }
            let demand = if account.has_waited || waits {
                WHOLE
            } else {
                let used = u128::from(account.used_ns) * u128::from(WHOLE) / spent_ns.max(1);
                (used * u128::from(LENDER_KEEPS_PERCENT) / 100).clamp(1, u128::from(WHOLE)) as u64
            };
            self.shares.set_demand(group, demand);
            (account.has_submitted, account.has_waited, account.used_ns) = (false, waits, 0);
        }
        self.plan(self.clock.at(now));
    }
}

#[cfg(test)]
impl IoCost {
    /// Whether a group is ahead of the device at `now` and lends nothing, and how many of its bios wait.
    pub(super) fn state_at(&self, now: Instant, cgroup: CgroupId) -> (bool, usize) {
        let mut later = self.clone();
        later.end_periods(now);
        let group = later.group_of(cgroup);
        let account = &later.accounts[group];
        (account.is_ahead(later.clock.at(now)) && later.shares.demand(group) == WHOLE, account.waiting.len())
    }
}
