//! Measures wake-up latencies after short and long sleeps, context switches on one CPU, and wake-ups of the engine's
//! workers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant as WallClock};

use hoistway_blk::ground::Nanos;
use hoistway_engine::{Buffer, Completion, Config, Context, Engine, Null, Request};

use super::figure::percentile;
use super::machine::{pin, thread_cpu_ns};

const BLOCK: usize = 4096;

/// Time from the wake-up of a thread until it runs, ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reaction {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
    /// CPU time that the wake-up costs the waker, ns.
    pub(super) waker: f64,
}

impl Reaction {
    fn of(mut times: Vec<f64>, mut waker_times: Vec<f64>) -> Reaction {
        times.sort_by(f64::total_cmp);
        waker_times.sort_by(f64::total_cmp);
        let [low, median, high] = [0.1, 0.5, 0.9].map(|fraction| percentile(&times, fraction));
        Reaction { low, median, high, waker: percentile(&waker_times, 0.5) }
    }
}

fn spin_for(time: Duration) {
    let begin = WallClock::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Measures how fast a thread on CPU `sleeper` reacts when one on CPU `waker` wakes it, `times` times after a sleep of
/// `slept`.
pub(super) fn reaction([waker, sleeper]: [usize; 2], slept: Duration, times: usize) -> Reaction {
    let (begin, woken_at_ns, is_asleep) = (WallClock::now(), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (begin, woken_at_ns, is_asleep) = (&begin, &woken_at_ns, &is_asleep);
        let now_ns = move || begin.elapsed().as_nanos() as u64;
        let sleeper = scope.spawn(move || {
            pin(sleeper);
            let mut reaction_times = Vec::with_capacity(times);
            for _ in 0..times {
                is_asleep.store(true, SeqCst);
                // A thread may wake up spuriously.
                let woken_ns = loop {
                    thread::park();
                    match woken_at_ns.swap(0, SeqCst) {
                        0 => {}
                        woken_ns => break woken_ns,
                    }
                };
                reaction_times.push(now_ns().saturating_sub(woken_ns) as f64);
            }
            reaction_times
        });
        let target = sleeper.thread().clone();
        let waker = scope.spawn(move || {
            pin(waker);
            let mut waker_times = Vec::with_capacity(times);
            for _ in 0..times {
                // There may be only one CPU, so yield.
                while !is_asleep.swap(false, SeqCst) {
                    thread::yield_now();
                }
                spin_for(slept);
                let woken_ns = now_ns();
                woken_at_ns.store(woken_ns.max(1), SeqCst);
                target.unpark();
                waker_times.push((now_ns() - woken_ns) as f64);
            }
            waker_times
        });
        let waker_times = waker.join().unwrap_or_default();
        Reaction::of(sleeper.join().unwrap_or_default(), waker_times)
    })
}

/// CPU time of a context switch, ns: two threads on one CPU wake each other and sleep, `rounds` times.
pub(super) fn switch_ns(cpu: usize, rounds: u32) -> f64 {
    let (turn, start) = (AtomicU64::new(0), Barrier::new(2));
    let threads_by_index: [OnceLock<thread::Thread>; 2] = Default::default();
    let take_turns = |index: usize| {
        pin(cpu);
        let _ = threads_by_index[index].set(thread::current());
        start.wait();
        let begin_ns = thread_cpu_ns();
        for _ in 0..rounds {
            while turn.load(SeqCst) % 2 != index as u64 {
                thread::park();
            }
            turn.fetch_add(1, SeqCst);
            // Both threads are set at the start.
            threads_by_index[1 - index].get().into_iter().for_each(thread::Thread::unpark);
        }
        thread_cpu_ns() - begin_ns
    };
    let take_turns = &take_turns;
    let cpu_ns: u64 = thread::scope(|scope| {
        let threads = [0, 1].map(|index| scope.spawn(move || take_turns(index)));
        threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    cpu_ns as f64 / f64::from(2 * rounds)
}

/// Time from a client's submission until a sleeping worker of the engine has completed it, ns.
///
/// # Errors
/// If the engine cannot be started.
pub(super) fn worker([client_cpu, worker_cpu]: [usize; 2], slept: Duration, times: usize) -> Result<Reaction, String> {
    let config = Config { busy_poll_time: Nanos::ZERO, ..Config::default() };
    // Threads inherit the CPU of the thread that starts them.
    let started = thread::spawn(move || {
        pin(worker_cpu);
        Engine::start(&config, Null::new(1 << 20))
    });
    let engine = started.join().map_err(|_| "a thread ended early")?.map_err(|error| error.to_string())?;
    let (begin, answered_at_ns) = (WallClock::now(), Arc::new(AtomicU64::new(0)));
    let handler = {
        let answered_at_ns = Arc::clone(&answered_at_ns);
        move |batch: &mut Vec<Completion>| {
            batch.clear();
            answered_at_ns.store((begin.elapsed().as_nanos() as u64).max(1), SeqCst);
        }
    };
    let client = engine.volume().client(Context::default(), 1, handler);
    let work = move || {
        pin(client_cpu);
        let (mut reaction_times, mut waker_times) = (Vec::with_capacity(times), Vec::with_capacity(times));
        for _ in 0..times {
            spin_for(slept);
            let request = Request::read(0, Buffer::zeroed(BLOCK), 0);
            let submitted_ns = begin.elapsed().as_nanos() as u64;
            client.submit(request).map_err(|refused| format!("a request was refused ({:?})", refused.why))?;
            waker_times.push((begin.elapsed().as_nanos() as u64 - submitted_ns) as f64);
            let answered_ns = loop {
                match answered_at_ns.swap(0, SeqCst) {
                    0 => thread::yield_now(),
                    answered_ns => break answered_ns,
                }
            };
            reaction_times.push(answered_ns.saturating_sub(submitted_ns) as f64);
            while client.uncompleted_requests() > 0 {
                thread::yield_now();
            }
        }
        Ok(Reaction::of(reaction_times, waker_times))
    };
    thread::spawn(work).join().map_err(|_| "a thread ended early".to_owned())?
}

#[cfg(test)]
mod tests {
    use super::super::machine::allowed_cpus;
    use super::*;

    #[test]
    fn a_woken_thread_a_switch_and_a_worker_take_time() {
        let cpus = allowed_cpus();
        let pair = [cpus[0], cpus[cpus.len() - 1]];
        let woken = reaction(pair, Duration::from_micros(10), 20);
        assert!(0.0 < woken.low && woken.low <= woken.median && woken.median <= woken.high, "{woken:?}");
        assert!(switch_ns(cpus[0], 100) > 0.0);
        assert!(worker(pair, Duration::from_micros(10), 20).unwrap().median > 0.0);
    }
}
