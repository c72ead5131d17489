//! CPU idle states: how deep an idle CPU sleeps, and its exit latency.
//!
//! A CPU is in the deepest state whose target residency its idle time has reached, as if the governor had guessed right. The latency
//! in sysfs is the worst case, that of a CPU that has to finish entering the state first, so a wake-up takes a uniformly distributed
//! part of it, drawn from the seed. No published distribution is known for the processors of the built-in profiles.

use hoistway_blk::ground::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::host::IDLE_STATES_MAX;

/// One wake-up in this many finds its CPU occupied by other work, such as a kernel thread: assumed.
const WAKEUPS_PER_TAKEN_CPU: u64 = 256;

/// An idle state: its target residency, and its longest exit latency.
#[derive(Clone, Copy)]
struct IdleState {
    after: Nanos,
    exit_max: Nanos,
}

/// The idle states of the host's CPUs, the shallowest first.
pub(super) struct IdleStates([IdleState; IDLE_STATES_MAX]);

impl IdleStates {
    /// From `[target residency, longest exit latency]` of each state, ns.
    pub(super) fn new(idle_ns: &[[u64; 2]]) -> Self {
        let mut states = [IdleState { after: Nanos(u64::MAX), exit_max: Nanos::ZERO }; IDLE_STATES_MAX];
        for (state, &[after, exit_latency]) in states.iter_mut().zip(idle_ns) {
            *state = IdleState { after: Nanos(after), exit_max: Nanos(exit_latency) };
        }
        IdleStates(states)
    }

    /// Longest exit latency after this idle time.
    #[inline]
    pub(super) fn exit_max(&self, idle: Nanos) -> Nanos {
        // Deeper states have longer exits. The loop has no branches, because idle times are unpredictable.
        let paid = self.0.iter().map(|state| if idle >= state.after { state.exit_max } else { Nanos::ZERO });
        paid.fold(Nanos::ZERO, Nanos::max)
    }

    /// Longest exit latency of the deepest state.
    pub(super) fn deepest(&self) -> Nanos {
        self.exit_max(Nanos(u64::MAX - 1))
    }
}

/// A uniformly distributed part of a time.
pub(super) fn part_of(time: Nanos, random: &mut Xoshiro256PlusPlus) -> Nanos {
    // Host profiles allow a second at most, so that the product fits.
    Nanos((u64::from(random.next_u32()) * time.0) >> 32)
}

/// Random events on one CPU.
pub(super) struct CpuRandomness {
    random: Xoshiro256PlusPlus,
    /// Wake-ups until one finds the CPU occupied by other work.
    until_taken: u64,
}

impl CpuRandomness {
    pub(super) fn new(seed: u64) -> Self {
        let mut randomness = CpuRandomness { random: Xoshiro256PlusPlus::seed_from_u64(seed), until_taken: 0 };
        randomness.draw_wakeups_until_taken();
        randomness
    }

    fn draw_wakeups_until_taken(&mut self) {
        self.until_taken = part_of(Nanos(2 * WAKEUPS_PER_TAKEN_CPU), &mut self.random).0;
    }

    /// Counts a wake-up. Returns whether it finds the CPU occupied by other work.
    #[inline]
    pub(super) fn count_wakeup(&mut self) -> bool {
        if self.until_taken > 0 {
            self.until_taken -= 1;
            return false;
        }
        self.draw_wakeups_until_taken();
        true
    }

    /// Draws the exit latency of a wake-up after this idle time.
    #[inline]
    pub(super) fn exit_latency(&mut self, states: &IdleStates, idle: Nanos) -> Nanos {
        let longest = states.exit_max(idle);
        if longest == Nanos::ZERO { longest } else { part_of(longest, &mut self.random) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_takes_any_part_of_the_exit_of_the_deepest_state_that_pays() {
        let states = IdleStates::new(&[[100, 20], [400, 120]]);
        let mut randomness = CpuRandomness::new(1);
        for (idle, most) in [(99, 0), (100, 20), (399, 20), (400, 120), (1 << 40, 120)] {
            let exits: Vec<u64> = (0..1000).map(|_| randomness.exit_latency(&states, Nanos(idle)).0).collect();
            let mean = exits.iter().sum::<u64>() as f64 / 1000.0;
            assert!(exits.iter().all(|&ns| ns == 0 || ns < most), "idle for {idle}: {exits:?}");
            assert!((mean - most as f64 / 2.0).abs() <= most as f64 / 20.0, "idle for {idle}: mean {mean}");
        }
        assert_eq!(states.deepest(), Nanos(120));
        assert_eq!(IdleStates::new(&[]).deepest(), Nanos::ZERO);
    }

    #[test]
    fn one_wake_up_in_256_finds_its_cpu_taken() {
        let mut randomness = CpuRandomness::new(1);
        let taken = (0..256 * 1000).filter(|_| randomness.count_wakeup()).count();
        assert!((900..1100).contains(&taken), "{taken}");
    }
}
