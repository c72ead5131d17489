//! Work on all threads of a pool: [`map`]. Results come in the order of the items, whichever thread was faster.
//!
//! Used by: crates `linux`, `experiment`, `evidence`.
//! Tests: below.
//!
//! ```
//! assert_eq!(hoistway_parallel::map(&[1, 2, 3], |number| number * number), [1, 4, 9]);
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

/// Applies a function to all items, on the threads of the current pool. Each thread takes the next item when it has finished one.
pub fn map<T: Sync, R: Send>(items: &[T], function: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = |_: rayon_core::BroadcastContext<'_>| {
        let mut results = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return results };
            results.push((index, function(item)));
        }
    };
    let mut results: Vec<(usize, R)> = rayon_core::broadcast(work).into_iter().flatten().collect();
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    fn in_pool<R: Send>(threads: usize, body: impl FnOnce() -> R + Send) -> R {
        rayon_core::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(body)
    }

    #[test]
    fn results_are_in_the_order_of_the_items() {
        for threads in [1, 2, 7] {
            for items in [0, 1, 5, 100] {
                let numbers: Vec<usize> = (0..items).collect();
                let slow_at_first = |&number: &usize| {
                    (number..50).for_each(|_| std::thread::yield_now());
                    number
                };
                assert_eq!(in_pool(threads, || map(&numbers, slow_at_first)), numbers);
            }
        }
    }

    #[test]
    fn items_run_at_once_and_items_may_map_others() {
        // Would never end on a single thread.
        let barrier = Barrier::new(3);
        let sums = in_pool(3, || {
            map(&[10, 20, 30], |&base| {
                barrier.wait();
                map(&[1, 2, 3], |number| base + number).into_iter().sum::<i32>()
            })
        });
        assert_eq!(sums, [36, 66, 96]);
    }
}
