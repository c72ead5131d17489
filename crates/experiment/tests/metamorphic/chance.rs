//! Tests whether two samples differ by more than chance explains.

/// Size of the first sample, and of the larger second sample that confirms a difference.
pub const FIRST: u32 = 4;
pub const CONFIRMING: u32 = 8;

/// Which of two samples has all values below the other's, and a mean lower by more than this fraction.
fn below(one: &[f64], other: &[f64], part: f64) -> Option<bool> {
    let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let (low, high) = (mean(one).min(mean(other)), mean(one).max(mean(other)));
    if high <= low * (1.0 + part) {
        return None;
    }
    (most(one) < least(other)).then_some(true).or_else(|| (most(other) < least(one)).then_some(false))
}

/// Whether a figure differs beyond chance between two equivalent formulations, and by more than `part`. `sample` returns the
/// figure of each run of a formulation from a seed on. If they are equal, all values of one are below all of the other in one of 35
/// first samples, and again in the same direction in one of 12,870.
pub fn differ(part: f64, mut sample: impl FnMut(bool, u64, u32) -> Vec<f64>) -> bool {
    let mut look = |seed, runs| below(&sample(false, seed, runs), &sample(true, seed + 500, runs), part);
    match look(1, FIRST) {
        None => false,
        first => look(1000, CONFIRMING) == first,
    }
}

#[test]
fn only_large_differences_beyond_chance_are_reported() {
    let noisy = |mean: f64, seed: u64, runs: u32| {
        let mut random = super::case::Random(seed);
        (0..runs).map(|_| mean * (0.8 + 0.4 * (random.number() % 1000) as f64 / 1000.0)).collect::<Vec<_>>()
    };
    assert!(!differ(0.1, |_, seed, runs| noisy(1.0, seed, runs)));
    assert!(!differ(0.1, |other, seed, runs| noisy(if other { 1.05 } else { 1.0 }, seed, runs)));
    assert!(differ(0.1, |other, seed, runs| noisy(if other { 2.0 } else { 1.0 }, seed, runs)));
    assert!(!differ(0.1, |other, _, runs| vec![if other { 1.05 } else { 1.0 }; runs as usize]), "too little");
}
