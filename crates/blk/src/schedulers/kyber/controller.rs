//! The controllers: completions add samples without a lock, and the timer evaluates them. Rules: KY-14 to KY-17, KY-20
//! to KY-24.

use std::sync::atomic::Ordering::Relaxed;

use crate::ground::meter::{Meter, Site};
use crate::ground::sharing::{Lock, Sharing, Word};
use crate::ground::time::{Hz, Instant, Nanos, Now, Tick};
use crate::policy::ElevatorCx;

use super::domain::{DOMAINS, Domain, Steering};
use super::histogram::{CpuHistograms, Kind, MEASURED, bucket_of};
use super::percentiles::{ControllerRound, Percentiles};
use super::tokens::TokenPool;
use super::windows::{CpuMeans, FIRST_WINDOW, NEXT_WINDOW, end_of_window};

/// No timer is set.
const IDLE: u64 = u64::MAX;

/// Adjusts the depths.
pub(super) enum Controller<Sh: Sharing> {
    /// Rounds while there are completions.
    Percentiles {
        samples: CpuHistograms<Sh>,
        /// When the next round is due, ns; [`IDLE`] if no request has completed since the last.
        due: Sh::Word,
        state: Sh::Lock<Percentiles>,
        hz: Hz,
    },
    /// A missed target opens a window.
    Windows {
        samples: CpuMeans<Sh>,
        /// 1 while a window is open.
        open: Sh::Word,
    },
}

/// The latencies of a request that has completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latencies {
    /// Since its allocation.
    pub(super) total: Nanos,
    /// Since its issue.
    pub(super) io: Nanos,
}

/// When a round that a completion asks for takes place: after 100 ms, counted in ticks, at the first tick that is
/// certainly not early. With a tick of 4 ms that is every 104 ms under load.
fn round_after(now: Now, hz: Hz) -> Instant {
    hz.start_of(Tick(now.tick.0 + u64::from(hz.0 / 10) + 1))
}

impl<Sh: Sharing> Controller<Sh> {
    /// A controller that has seen nothing yet.
    pub(super) fn new(steering: Steering, hz: Hz, cpus: usize) -> Self {
        match steering {
            Steering::Percentiles => Controller::Percentiles {
                samples: CpuHistograms::new(cpus),
                due: Sh::Word::new(IDLE),
                state: Sh::Lock::new(Percentiles::default()),
                hz,
            },
            Steering::Windows => Controller::Windows { samples: CpuMeans::new(cpus), open: Sh::Word::new(0) },
        }
    }

    /// A request has completed on a CPU.
    #[inline]
    pub(super) fn completed(
        &self,
        cx: &mut ElevatorCx<'_>,
        domain: Domain,
        latencies: Latencies,
        targets_ns: &[Sh::Word; MEASURED],
    ) {
        let (now, cpu) = (cx.now, cx.cpu);
        let target_ns = targets_ns.get(domain.index()).map(|target_ns| target_ns.load(Relaxed));
        match (self, target_ns) {
            (Controller::Percentiles { .. }, None) => {}
            (Controller::Percentiles { samples, due, hz, .. }, Some(target_ns)) => {
                samples.add(cpu, domain.index(), Kind::Total, bucket_of(latencies.total, target_ns));
                samples.add(cpu, domain.index(), Kind::Io, bucket_of(latencies.io, target_ns));
                let next = round_after(now, *hz);
                if next.0 < due.load(Relaxed) {
                    due.store(next.0, Relaxed);
                    cx.requested.set_timer = Some(next);
                }
            }
            (Controller::Windows { samples, open }, target_ns) => {
                if open.load(Relaxed) != 0 {
                    samples.add(cpu, domain, latencies.io);
                } else if matches!(domain, Domain::Read | Domain::Write)
                    && target_ns.is_some_and(|target_ns| latencies.io.0 > target_ns)
                    && open.swap(1, Relaxed) == 0
                {
                    cx.requested.set_timer = Some(now.at + FIRST_WINDOW);
                }
            }
        }
    }

    /// The timer has fired.
    pub(super) fn timer(
        &self,
        meter: &impl Meter,
        cx: &mut ElevatorCx<'_>,
        pools: &[TokenPool<Sh>; DOMAINS],
        targets_ns: &[Sh::Word; MEASURED],
    ) {
        let now = cx.now;
        let depths: [(u32, u32); DOMAINS] =
            std::array::from_fn(|index| (pools[index].depth(), pools[index].depth_max()));
        match self {
            Controller::Percentiles { samples, due, state, hz } => {
                // First, so that a completion from here on asks for a round of its own. A sample that this round misses
                // is counted in the next one.
                due.store(IDLE, Relaxed);
                let round = state.with(meter, Site::Elevator, |state| {
                    samples.collect(&mut state.sums);
                    state.round(now, *hz, [depths[0], depths[1], depths[2]])
                });
                for (pool, depth) in pools.iter().zip(round.depths) {
                    if let Some(depth) = depth {
                        pool.set_depth(depth);
                    }
                }
            }
            Controller::Windows { samples, open } => {
                if open.load(Relaxed) == 0 {
                    return;
                }
                let targets = [targets_ns[0].load(Relaxed), targets_ns[1].load(Relaxed)];
                let end = end_of_window(samples.take(), targets, depths);
                for ((pool, depth), (present, _)) in pools.iter().zip(end.depths).zip(depths) {
                    if depth != present {
                        pool.set_depth(depth);
                    }
                }
                if end.goes_on {
                    cx.requested.set_timer = Some(now.at + NEXT_WINDOW);
                } else {
                    open.store(0, Relaxed);
                }
            }
        }
    }

    /// What the last round did. The controller with windows has no rounds.
    pub(super) fn last_round(&self) -> Option<ControllerRound> {
        match self {
            Controller::Percentiles { state, .. } => Some(state.aside(|state| state.last_round())),
            Controller::Windows { .. } => None,
        }
    }
}
