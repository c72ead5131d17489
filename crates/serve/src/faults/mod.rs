//! The whole server in one thread and in virtual time, under faults that a seed decides: clients, with TLS and without, that leave
//! in mid-request, that never listen and that send anything; a target that errs, stalls, transfers short and vanishes; changes of exports, limits and schedulers;
//! restarts, and power cuts. A seed that fails reproduces the failure.

mod book;
mod client;
mod life;
mod streams;
mod wire;
mod world;

use std::panic::catch_unwind;

use world::World;

/// Lives of a server in one history, and things that happen in each.
const LIVES: u64 = 3;
const STEPS: u64 = 6000;

/// One history, by its seed. Answers how many requests were answered, and of those by TLS, a sum over the answers, and in how many
/// steps of workers.
fn history(seed: u64) -> (u64, u64, u64, u64) {
    let mut world = World::new(seed);
    for life in 0..LIVES {
        world.go_on(STEPS);
        match (seed + life) % 3 {
            0 => world.restart(),
            _ => world.cut_the_power(),
        }
    }
    world.go_on(STEPS);
    world.end()
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn whatever_goes_wrong_each_client_is_answered_once_and_what_was_made_durable_is_there() {
    let (first, seeds, begin) = (number("HOISTWAY_SEED", 0), number("HOISTWAY_SEEDS", 25), std::time::Instant::now());
    let (mut answers, mut in_tls, mut all_steps) = (0, 0, 0);
    for seed in first..first + seeds {
        let came = catch_unwind(|| history(seed));
        let (answered, answered_in_tls, _, steps) =
            came.unwrap_or_else(|_| panic!("HOISTWAY_SEED={seed} HOISTWAY_SEEDS=1 fails again"));
        assert!(answered > 200, "seed {seed}: {answered} answers are no history");
        (answers, in_tls, all_steps) = (answers + answered, in_tls + answered_in_tls, all_steps + steps);
    }
    assert!(in_tls > 0, "nobody was answered by TLS");
    println!("{seeds} histories, {all_steps} steps, {answers} answers, {in_tls} by TLS, in {:?}", begin.elapsed());
}

/// Time that is told is time, and nothing else is left to chance.
#[test]
fn the_same_seed_is_the_same_history() {
    assert_eq!(history(7), history(7));
}
