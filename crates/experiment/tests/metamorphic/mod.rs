//! Metamorphic tests over random jobs, devices, schedulers and kernels: equivalent formulations give the same figures, and laws between
//! figures hold.
//!
//! `HOISTWAY_CASES=5000 cargo test --release -p hoistway-experiment --test all metamorphic` checks 5000 cases of each relation. A failing case
//! prints its number and its job file; `HOISTWAY_SEED=17` begins with case 17.

mod case;
mod chance;
mod equal;
mod laws;
mod likely;

pub use case::Case;
pub use case::Random;

/// Checks cases, `some` of them by default.
fn cases(some: u64, check: impl Fn(&Case) -> Result<(), String>) {
    let asked = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let first = asked("HOISTWAY_SEED").unwrap_or(0);
    let count = asked("HOISTWAY_CASES").unwrap_or(some);
    let failed: Vec<String> = (first..first + count)
        .filter_map(|number| {
            let case = Case::new(number);
            let failure = check(&case).err().map(|why| format!("case {number}: {why}\n{}", case.in_words()));
            // A run of thousands of cases shows each failure as it is found.
            failure.inspect(|failure| eprintln!("{failure}"))
        })
        .collect();
    assert!(failed.is_empty(), "{} of {count} cases:\n{}", failed.len(), failed.join("\n"));
}
