//! The files in `iosched/`: defaults, parsing, clamping and what is read back (DD-5 to DD-7, at HZ=250).

use super::*;
use crate::ground::meter::NoMeter;
use crate::ground::time::Now;
use crate::ground::tunables::{StoreError, value_of};
use crate::policy::ElevatorCx;
use crate::policy::Serialized;

fn scheduler(generation: DeadlineGeneration) -> Serialized<MqDeadline, Local> {
    Serialized::new(MqDeadline::new(config(generation, Hz(250)), CAPACITY), CAPACITY)
}

/// Writes a text and reads the file.
fn write(generation: DeadlineGeneration, file: &str, text: &str) -> Result<i128, StoreError> {
    let scheduler = scheduler(generation);
    set(&scheduler, file, text)?;
    shown(&scheduler, file)
}

fn shown(scheduler: &Serialized<MqDeadline, Local>, file: &str) -> Result<i128, StoreError> {
    value_of(&scheduler.tunables(), file)
}

fn set(scheduler: &Serialized<MqDeadline, Local>, file: &str, text: &str) -> Result<(), StoreError> {
    ElevatorCx::alone(Now::default(), |cx| scheduler.set_tunable(&NoMeter, cx, file, text))
}

#[test]
fn each_generation_has_its_files_with_their_defaults() {
    let defaults = [
        ("read_expire", 500),
        ("write_expire", 5000),
        ("writes_starved", 2),
        ("front_merges", 1),
        ("fifo_batch", 16),
        ("async_depth", i128::from(CAPACITY)),
        ("prio_aging_expire", 10_000),
    ];
    for (generation, files) in [(A, 5), (B1, 6), (B2, 7), (C, 7), (CPrime, 7)] {
        let scheduler = scheduler(generation);
        assert_eq!(scheduler.tunables().len(), files, "{generation:?}");
        for (name, default) in &defaults[..files] {
            assert_eq!(shown(&scheduler, name), Ok(*default), "{generation:?} {name}");
        }
        for (name, _) in &defaults[files..] {
            assert_eq!(shown(&scheduler, name), Err(StoreError::Unknown), "{generation:?} {name}");
        }
    }
}

#[test]
fn milliseconds_are_kept_in_ticks_and_read_back_rounded_up() {
    for (text, shown) in [("1", 4), ("5", 8), ("0x10", 16), ("010", 8), ("0", 0), ("500\n", 500)] {
        assert_eq!(write(CPrime, "read_expire", text), Ok(shown), "{text:?}");
        assert_eq!(write(CPrime, "write_expire", text), Ok(shown), "{text:?}");
    }
    assert_eq!(write(CPrime, "prio_aging_expire", "9999"), Ok(10_000));
}

#[test]
fn the_largest_expiry_overflows_the_printed_number() {
    for file in ["read_expire", "write_expire", "prio_aging_expire"] {
        assert_eq!(write(CPrime, file, "2147483647"), Ok(-2_147_483_648), "{file}");
    }
}

#[test]
fn values_outside_of_a_files_range_are_clamped_silently() {
    assert_eq!(write(CPrime, "read_expire", "-7"), Ok(0));
    assert_eq!(write(CPrime, "front_merges", "5"), Ok(1));
    assert_eq!(write(CPrime, "front_merges", "-1"), Ok(0));
    assert_eq!(write(CPrime, "fifo_batch", "-1"), Ok(0));
    assert_eq!(write(CPrime, "async_depth", "0"), Ok(1));
    assert_eq!(write(CPrime, "async_depth", "1000000"), Ok(1_000_000));
}

#[test]
fn writes_starved_takes_any_32_bit_number() {
    for (text, value) in [("-2147483648", -2_147_483_648), ("2147483647", 2_147_483_647), ("-1", -1)] {
        assert_eq!(write(CPrime, "writes_starved", text), Ok(value));
    }
}

#[test]
fn a_non_number_is_einval_and_an_overflow_is_erange() {
    for generation in [B1, B2, C, CPrime] {
        for text in ["12abc", "", " 1", "1 ", "0x", "08", "1\n\n", "one"] {
            assert_eq!(write(generation, "read_expire", text), Err(StoreError::Invalid), "{generation:?} {text:?}");
        }
        for text in ["2147483648", "-2147483649", "99999999999999999999"] {
            assert_eq!(write(generation, "writes_starved", text), Err(StoreError::Range), "{generation:?} {text:?}");
        }
        assert_eq!(write(generation, "no_such_file", "1"), Err(StoreError::Unknown));
    }
}

#[test]
fn up_to_5_13_the_leading_number_counts_and_garbage_is_0() {
    for (text, shown) in [("12abc", 12), ("abc", 0), ("", 0), ("-5", 0), ("7\n", 8)] {
        assert_eq!(write(A, "read_expire", text), Ok(shown), "{text:?}");
    }
    assert_eq!(write(A, "writes_starved", "-3 apples"), Ok(-3));
    assert_eq!(write(A, "front_merges", "9"), Ok(1));
}

#[test]
fn a_refused_write_changes_nothing() {
    let scheduler = scheduler(CPrime);
    assert!(set(&scheduler, "fifo_batch", "8x").is_err());
    assert_eq!(shown(&scheduler, "fifo_batch"), Ok(16));
}
