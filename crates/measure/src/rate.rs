//! Rates.
//!
//! Used by: `fio`; crate `answer`.
//! Tests: `crates/measure/tests/fio_output.rs`.

/// `amount` per second over `runtime_ns`; 0 if the time is 0.
pub fn per_second(amount: u64, runtime_ns: u64) -> f64 {
    if runtime_ns == 0 { 0.0 } else { amount as f64 * 1e9 / runtime_ns as f64 }
}
