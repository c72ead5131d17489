//! Measures lock hand-over: the time to get a lock from another CPU, and the additional time per waiting CPU.

use std::sync::Barrier;
use std::thread;
use std::time::Instant as WallClock;

use hoistway_blk::ground::{Lock, NoMeter, Site};

use super::machine::pin;
use super::spinning::SpinLock;

/// Number of times that each thread takes the lock.
const ACQUISITIONS: u32 = 20_000;

/// Data under the lock: the number of hand-overs between threads, and the last owner.
#[derive(Default)]
struct HandoverCount {
    handed: u64,
    last: usize,
}

/// Time to take a contended lock with a thread on each of these CPUs, in ns per hand-over from another thread. With one
/// CPU there are no hand-overs, so in ns per acquisition. `None` with too few hand-overs.
pub(super) fn handover_ns(cpus: &[usize], alone_ns: f64) -> Option<f64> {
    let (lock, start) = (SpinLock::new(HandoverCount::default()), Barrier::new(cpus.len()));
    let work = |thread_index: usize, cpu: usize| {
        pin(cpu);
        start.wait();
        let begin = WallClock::now();
        for _ in 0..ACQUISITIONS {
            lock.with(&NoMeter, Site::Elevator, |count| {
                count.handed += u64::from(count.last != thread_index);
                count.last = thread_index;
            });
        }
        begin.elapsed().as_nanos() as u64
    };
    let work = &work;
    let durations: Vec<u64> = thread::scope(|scope| {
        let threads: Vec<_> =
            cpus.iter().enumerate().map(|(thread_index, &cpu)| scope.spawn(move || work(thread_index, cpu))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    // The last thread's time is used, although contention is lower near its end.
    let elapsed = durations.iter().copied().max()? as f64;
    let acquisitions = f64::from(ACQUISITIONS) * cpus.len() as f64;
    if cpus.len() == 1 {
        return Some(elapsed / acquisitions);
    }
    let handed = lock.with(&NoMeter, Site::Elevator, |count| count.handed) as f64;
    // With few hand-overs the figure would be random.
    (handed > 100.0).then(|| ((elapsed - (acquisitions - handed) * alone_ns) / handed - alone_ns).max(0.0))
}

/// The slope of the hand-over time over the number of waiting CPUs, from points `[waiting, ns]`; `None` with fewer than
/// two points.
pub(super) fn growth_ns(points: &[[f64; 2]]) -> Option<f64> {
    let count = points.len() as f64;
    let mean = |index: usize| points.iter().map(|point| point[index]).sum::<f64>() / count;
    let (x, y) = (mean(0), mean(1));
    let spread: f64 = points.iter().map(|point| (point[0] - x).powi(2)).sum();
    (spread > 0.0).then(|| points.iter().map(|point| (point[0] - x) * (point[1] - y)).sum::<f64>() / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_growth_is_the_slope_over_the_waiting_cpus() {
        assert_eq!(growth_ns(&[[1.0, 100.0], [2.0, 110.0], [3.0, 120.0]]), Some(10.0));
        assert_eq!(growth_ns(&[[1.0, 100.0]]), None);
        assert_eq!(growth_ns(&[]), None);
    }

    #[test]
    fn a_lock_used_by_one_cpu_costs_no_hand_over() {
        let cpu = super::super::machine::allowed_cpus()[0];
        assert!(handover_ns(&[cpu], 0.0).unwrap() > 0.0);
    }
}
