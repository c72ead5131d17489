//! How deep an idle CPU sleeps, and how long it takes to wake.
//!
//! The CPU chooses before it knows how long it will be idle: the deepest state that would have paid in most of its last
//! idle times. Linux's governors `menu` and `teo` guess from the recent past as well; this is the outline of it, without timers.
//! A wrong guess shows as it does there: a deep sleep that was cut short delays its wake-up all the same.
//!
//! What sysfs lists for a state is the worst case, as of a CPU that has to finish falling asleep first. A wake-up takes any part
//! of it: no published distribution is known for the processors of the built-in profiles.

use hoistway_blk::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::host::IDLE_STATES_MAX;

/// Idle times of a CPU that count: bits of a byte.
const REMEMBERED: u32 = u8::BITS;
const _: () = assert!(IDLE_STATES_MAX as u32 * REMEMBERED == u32::BITS, "a byte of the history for each state");

/// A state is chosen that would have paid in so many of them.
const MOST: u32 = 5;

/// A wake-up in so many finds its CPU taken by something else of the host: assumed.
const TAKEN_ONCE_IN: u64 = 256;

/// Wake-ups until the next one that does.
fn until_taken(random: &mut Xoshiro256PlusPlus) -> u32 {
    (u64::from(random.next_u32()) * (2 * TAKEN_ONCE_IN) >> 32) as u32
}

/// The states of the host's CPUs.
pub(super) struct IdleStates {
    /// A state pays from this idle time on; never, if there is no such state.
    pay_after: [Nanos; IDLE_STATES_MAX],
    /// What the state of each depth takes longest to wake from, ns: 0 is awake.
    exit_max_ns: [u64; IDLE_STATES_MAX + 1],
}

impl IdleStates {
    pub(super) fn new(idle_ns: &[[u64; 2]]) -> Self {
        let mut states =
            IdleStates { pay_after: [Nanos(u64::MAX); IDLE_STATES_MAX], exit_max_ns: [0; IDLE_STATES_MAX + 1] };
        for (index, &[after, exit]) in idle_ns.iter().enumerate() {
            (states.pay_after[index], states.exit_max_ns[index + 1]) = (Nanos(after), exit);
        }
        states
    }

    /// What the deepest state takes longest to wake from, ns.
    pub(super) fn deepest_exit_ns(&self) -> u64 {
        self.exit_max_ns.iter().copied().fold(0, u64::max)
    }

    /// For each state a byte: whether an idle time made it pay.
    #[inline]
    fn paid(&self, idle: Nanos) -> u32 {
        let bytes = self.pay_after.iter().enumerate();
        bytes.fold(0, |paid, (index, &after)| paid | u32::from(idle >= after) << (index as u32 * REMEMBERED))
    }
}

/// The sleep of one CPU.
pub(super) struct Sleep {
    /// A byte for each state: in which of the last idle times it would have paid, the last one in the lowest bit.
    history: u32,
    /// Wake-ups on it until one finds it taken by something else of the host.
    until_taken: u32,
    random: Xoshiro256PlusPlus,
}

impl Sleep {
    /// A CPU that has long been idle.
    pub(super) fn new(states: &IdleStates, seed: u64) -> Self {
        let paid = states.paid(Nanos(u64::MAX - 1));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let until_taken = until_taken(&mut random);
        Sleep { history: paid * u32::from(u8::MAX), until_taken, random }
    }

    /// Whether a process that wakes finds the CPU taken by something else of the host.
    #[inline]
    pub(super) fn is_taken_by_others(&mut self) -> bool {
        if self.until_taken > 0 {
            self.until_taken -= 1;
            return false;
        }
        self.until_taken = until_taken(&mut self.random);
        true
    }

    /// How deep the CPU sleeps now: the number of states that most of its last idle times made pay.
    #[inline]
    fn depth(&self) -> usize {
        // Bits are counted in all bytes at once.
        let pairs = self.history - (self.history >> 1 & 0x5555_5555);
        let fours = (pairs & 0x3333_3333) + (pairs >> 2 & 0x3333_3333);
        let counts = (fours + (fours >> 4)) & 0x0f0f_0f0f;
        let is_chosen = (counts + 0x0101_0101 * (0x80 - MOST)) & 0x8080_8080;
        // Where a deeper state pays a shallower one does, so the chosen ones are the lowest.
        ((u32::BITS - is_chosen.leading_zeros()) / REMEMBERED) as usize
    }

    /// The CPU wakes after this idle time. Returns what waking takes longer than from the lightest sleep.
    #[inline]
    pub(super) fn exit(&mut self, states: &IdleStates, idle: Nanos) -> Nanos {
        let exit_max_ns = states.exit_max_ns[self.depth()];
        self.history = (self.history << 1 & 0xfefe_fefe) | states.paid(idle);
        if exit_max_ns == 0 {
            return Nanos::ZERO;
        }
        // Host profiles allow a second at most, so that the product fits.
        Nanos(u64::from(self.random.next_u32()) * exit_max_ns >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [[u64; 2]; 2] = [[100, 20], [400, 120]];

    fn after(idle_ns: &[u64]) -> (IdleStates, Sleep) {
        let states = IdleStates::new(&STATES);
        let mut sleep = Sleep::new(&states, 1);
        for &ns in idle_ns {
            sleep.exit(&states, Nanos(ns));
        }
        (states, sleep)
    }

    #[test]
    fn a_cpu_sleeps_as_deep_as_paid_in_most_of_its_last_idle_times() {
        let depth = |idle_ns: &[u64]| after(idle_ns).1.depth();
        assert_eq!(depth(&[]), 2, "it has long been idle");
        assert_eq!(depth(&[50; 3]), 2);
        assert_eq!(depth(&[50; 4]), 0);
        assert_eq!(depth(&[100; 8]), 1);
        assert_eq!(depth(&[50, 50, 50, 150, 500, 500, 500, 500]), 1);
        assert_eq!(depth(&[50, 50, 50, 500, 500, 500, 500, 500]), 2);
    }

    #[test]
    fn a_wake_up_takes_any_part_of_what_the_chosen_state_takes_longest() {
        let (states, mut sleep) = after(&[]);
        let exits: Vec<u64> = (0..1000).map(|_| sleep.exit(&states, Nanos(500)).0).collect();
        assert!(exits.iter().all(|&ns| ns < 120));
        assert!(exits.iter().any(|&ns| ns < 6) && exits.iter().any(|&ns| ns > 114));
        let short: Vec<u64> = (0..3).map(|_| sleep.exit(&states, Nanos(1)).0).collect();
        assert!(short.iter().any(|&ns| ns > 0), "it slept deep, though not for long: {short:?}");
        let none = IdleStates::new(&[]);
        let mut sleep = Sleep::new(&none, 1);
        assert_eq!((0..100).map(|_| sleep.exit(&none, Nanos(1 << 40)).0).max(), Some(0));
    }
}
