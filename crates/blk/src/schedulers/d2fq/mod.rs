//! D2FQ, a research policy that no kernel has: fair queueing by the drive. A flow that is ahead is sent to a slower class of the drive's
//! hardware queues; nothing waits in software.
//!
//! Used by: `schedulers`, `schedulers::registry`.
//! Tests: `crates/blk/src/schedulers/d2fq/tests.rs`, `checks/tests/shuttle/steering.rs`.
//!
//! **Promises**: of flows that always have requests waiting at the drive, each gets bytes by its weight, as far as the ratio of the
//! classes' speeds allows. **Costs**: two look-ups of a flow for each request, a word that all CPUs share, and no lock. Fairness needs a
//! drive with weighted round robin whose submission queues are never empty. **Rules**: docs/rules/d2fq.md.
//!
//! **What CPUs share.** Words, all `Relaxed`: a choice from a clock that is a little late is a choice between the same classes. The
//! table of flows changes only where a flow begins.

mod adaptation;
mod flows;
mod global_time;
mod tunables;

#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering::Relaxed;

use crate::bio::Bio;
use crate::bio::ioprio::{IoPriority, PriorityClass};
use crate::ground::ids::{CpuId, HctxId, IoContextId};
use crate::ground::sharing::{ReadMostly, Sharing, Word};
use crate::ground::time::Nanos;
use crate::ground::tunables::{StoreError, Tunable};
use crate::policy::{ElevatorCx, SchedulerEvent, Steering, SteeringFamily};
use crate::request::Request;
use crate::request::cpu_map::{Arbitration, CpuMap, QueueClass};
use crate::watch::reason::Reason;

use flows::{Flow, Table};
use global_time::GlobalTime;
use tunables::Settings;

/// What a KiB of a flow with weight 1 adds to its virtual time: divisible by all weights.
const UNITS_PER_KIB: u64 = 840;
/// How long after its last flow has become inactive everything starts from zero.
const RESET: Nanos = Nanos::from_secs(5);
/// No time, in nanoseconds.
const NEVER: u64 = u64::MAX;

/// Makes the policy for a queue.
pub struct D2fqFamily {
    /// What the drive offers.
    pub arbitration: Option<Arbitration>,
}

impl SteeringFamily for D2fqFamily {
    type Of<Sh: Sharing> = D2fq<Sh>;

    fn make<Sh: Sharing>(&self, map: &CpuMap) -> D2fq<Sh> {
        D2fq::new(map, self.arbitration.map_or(256, |arbitration| arbitration.weight_max))
    }
}

/// The policy.
pub struct D2fq<Sh: Sharing> {
    map: CpuMap,
    /// The largest weight of a class of the drive.
    weight_max: u16,
    settings: Settings<Sh>,
    flows: Sh::ReadMostly<Table<Sh>>,
    time: GlobalTime<Sh>,
    /// The number of active flows.
    active: Sh::Word,
    /// When the next flow may become inactive, ns.
    next_idle_check: Sh::Word,
    /// When the last flow became inactive, ns.
    last_left: Sh::Word,
    /// When the current period of the adaptation ends, ns; 0 before the first.
    period_ends: Sh::Word,
}

impl<Sh: Sharing> D2fq<Sh> {
    fn new(map: &CpuMap, weight_max: u16) -> Self {
        D2fq {
            map: map.clone(),
            weight_max,
            settings: Settings::new(weight_max),
            flows: Sh::ReadMostly::new(Table::default(), map.cpus() as u16),
            time: GlobalTime::new(),
            active: Sh::Word::new(0),
            next_idle_check: Sh::Word::new(NEVER),
            last_left: Sh::Word::new(0),
            period_ends: Sh::Word::new(0),
        }
    }

    /// What a KiB adds to the virtual time of a flow with this priority (D2FQ-3).
    fn unit_cost(&self, ioprio: IoPriority) -> u64 {
        let weight = match ioprio.class() {
            PriorityClass::None => self.settings.unset_weight.load(Relaxed),
            _ => 8 - u64::from(ioprio.level()),
        };
        UNITS_PER_KIB / weight
    }

    /// Calls `body` with a flow and its number; returns `None` if it does not exist.
    fn with_flow<R>(&self, cpu: CpuId, io_context: IoContextId, body: impl FnOnce(u16, &Flow<Sh>) -> R) -> Option<R> {
        self.flows.read(cpu, |flows| flows.find(io_context).map(|(number, flow)| body(number, flow)))
    }

    // --- activity ---

    /// Makes a flow active if it is not (D2FQ-8).
    fn activate(&self, flow: &Flow<Sh>, now: u64) {
        if flow.is_active.swap(1, Relaxed) != 0 {
            return;
        }
        // One of the same number has begun.
        flow.has_ended.store(0, Relaxed);
        flow.idle_since.store(now, Relaxed);
        if self.active.fetch_add(1, Relaxed) == 0 && now >= self.last_left.load(Relaxed).saturating_add(RESET.0) {
            self.time.reset();
        }
        flow.virtual_time.store(self.time.value(), Relaxed);
        flow.begin_period();
        self.check_idle_at(now.saturating_add(self.settings.idle_ns()));
    }

    /// Makes a flow inactive at `at`: it gives up its role, and keeps its time until it comes back.
    fn deactivate(&self, number: u16, flow: &Flow<Sh>, at: u64) {
        if flow.is_active.swap(0, Relaxed) != 0 {
            self.time.release(number);
            self.last_left.store(self.last_left.load(Relaxed).max(at), Relaxed);
            self.active.fetch_sub(1, Relaxed);
        }
    }

    fn check_idle_at(&self, at: u64) {
        if at < self.next_idle_check.load(Relaxed) {
            self.next_idle_check.store(at, Relaxed);
        }
    }

    /// Makes flows inactive that had no request in flight for `idle_ms`. Nothing depends on them before the next request comes.
    fn check_idle(&self, cpu: CpuId, now: u64) {
        if now < self.next_idle_check.load(Relaxed) {
            return;
        }
        let idle_ns = self.settings.idle_ns();
        self.next_idle_check.store(NEVER, Relaxed);
        self.flows.read(cpu, |flows| {
            for (number, flow) in flows.iter() {
                if flow.is_active.load(Relaxed) == 0 || flow.in_flight.load(Relaxed) != 0 {
                    continue;
                }
                let at = flow.idle_since.load(Relaxed).saturating_add(idle_ns);
                if at <= now {
                    self.deactivate(number, flow, at);
                } else {
                    self.check_idle_at(at);
                }
            }
        });
    }

    // --- the choice ---

    /// The class for a request of a flow (D2FQ-4).
    fn choose(&self, flow: &Flow<Sh>) -> (QueueClass, Reason) {
        if self.active.load(Relaxed) <= 1 {
            return (QueueClass::Medium, Reason::OnlyFlow);
        }
        let gap = flow.virtual_time.load(Relaxed).saturating_sub(self.time.value());
        let [threshold, medium_threshold] = self.settings.thresholds();
        if gap > threshold {
            (QueueClass::Low, Reason::ClassLow)
        } else if gap > medium_threshold {
            (QueueClass::Medium, Reason::ClassMedium)
        } else {
            (QueueClass::High, Reason::ClassHigh)
        }
    }

    fn class_of(&self, hctx: HctxId) -> QueueClass {
        self.map.classes().get(hctx.index()).copied().unwrap_or(QueueClass::Medium)
    }
}

impl<Sh: Sharing> Steering<Sh> for D2fq<Sh> {
    fn place(&self, cx: &mut ElevatorCx<'_>, bio: &Bio, home: HctxId) -> (HctxId, Reason) {
        let now = cx.now.at.0;
        self.check_idle(cx.cpu, now);
        let choose = |_, flow: &Flow<Sh>| {
            self.activate(flow, now);
            self.choose(flow)
        };
        let mut chosen = self.with_flow(cx.cpu, bio.io_context, choose);
        if chosen.is_none() {
            self.flows.change(|flows| flows.create(bio.io_context));
            chosen = self.with_flow(cx.cpu, bio.io_context, choose);
        }
        let (class, reason) = chosen.unwrap_or((QueueClass::Medium, Reason::Steered));
        (self.map.hctx_of_class(cx.cpu, class).unwrap_or(home), reason)
    }

    fn weights(&self) -> Option<[u16; 3]> {
        Some(weights(self.settings.ratio.load(Relaxed), self.weight_max))
    }

    fn on_issued(&self, cx: &mut ElevatorCx<'_>, rq: &Request) {
        self.with_flow(cx.cpu, rq.io_context, |_, flow| {
            self.activate(flow, cx.now.at.0);
            flow.in_flight.fetch_add(1, Relaxed);
        });
    }

    fn on_ended(&self, cx: &mut ElevatorCx<'_>, rq: &Request) {
        let now = cx.now.at.0;
        // Half a KiB a sector.
        let cost = self.unit_cost(rq.ioprio) * u64::from(rq.sectors) / 2;
        self.with_flow(cx.cpu, rq.io_context, |number, flow| {
            flow.charge(self.class_of(rq.hctx), cost);
            self.time.on_completed(number, flow.virtual_time.load(Relaxed));
            if flow.in_flight.fetch_sub(1, Relaxed) == 1 {
                flow.idle_since.store(now, Relaxed);
                if flow.has_ended.load(Relaxed) != 0 {
                    self.deactivate(number, flow, now);
                } else {
                    self.check_idle_at(now.saturating_add(self.settings.idle_ns()));
                }
                // Another CPU may have found it idle just before this request was issued.
                if flow.is_active.load(Relaxed) == 0 {
                    self.time.release(number);
                }
            }
        });
        if self.settings.adapt.load(Relaxed) != 0 {
            self.adapt_if_due(cx, now);
        }
    }

    fn on_event(&self, cx: &mut ElevatorCx<'_>, event: SchedulerEvent) {
        if let SchedulerEvent::IoContextExited(io_context) = event {
            self.flows.read(cx.cpu, |flows| {
                let Some((number, flow)) = flows.find(io_context) else { return };
                flows.end(flow);
                if flow.in_flight.load(Relaxed) == 0 {
                    self.deactivate(number, flow, cx.now.at.0);
                }
            });
        }
    }

    fn tunables(&self) -> Vec<(&'static Tunable, i128)> {
        self.settings.shown()
    }

    fn set_tunable(&self, cx: &mut ElevatorCx<'_>, name: &str, text: &str) -> Result<(), StoreError> {
        let old_ratio = self.settings.ratio.load(Relaxed);
        self.settings.set(name, text, self.weight_max)?;
        let ratio = self.settings.ratio.load(Relaxed);
        if ratio != old_ratio {
            cx.requested.arbitrate = Some(weights(ratio, self.weight_max));
        }
        // The idle time may be shorter now.
        self.next_idle_check.store(0, Relaxed);
        Ok(())
    }
}

/// The weights of the classes high, medium and low for a ratio of high to low; the weights of neighbouring classes have about the
/// same ratio (D2FQ-9).
fn weights(ratio: u64, weight_max: u16) -> [u16; 3] {
    let ratio = ratio.clamp(RATIO_MIN, u64::from(weight_max));
    let low = u64::from(weight_max) / ratio;
    let root = ratio.isqrt();
    let root = if root * root < ratio { root + 1 } else { root };
    [low * ratio, low * root, low].map(|weight| weight as u16)
}

/// The least ratio.
const RATIO_MIN: u64 = 3;
