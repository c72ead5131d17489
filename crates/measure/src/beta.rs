//! The incomplete beta function, which gives the tails of Student's t and of F.
//!
//! Used by: `stats`.
//! Tests: below, `crates/measure/src/stats.rs`.

use libm::lgamma;

/// The natural logarithm of the beta function.
fn ln_beta(a: f64, b: f64) -> f64 {
    lgamma(a) + lgamma(b) - lgamma(a + b)
}

/// The regularised incomplete beta function I_x(a, b) of positive a and b, for x from 0 to 1.
pub(crate) fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    // The fraction converges fast on this side of the mean; the other side follows from symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let front = (a * x.ln() + b * (-x).ln_1p() - ln_beta(a, b)).exp() / a;
    front * continued_fraction(x, a, b)
}

/// Terms after which the fraction is close enough even for a hundred million degrees of freedom.
const TERMS_MAX: u32 = 20_000;

/// The continued fraction of I_x(a, b) (DLMF 8.17.22), evaluated from the front by Lentz's method.
fn continued_fraction(x: f64, a: f64, b: f64) -> f64 {
    // Stands for a zero, by which the method would divide.
    let nonzero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut denominator = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let (mut numerator, mut value) = (1.0, denominator);
    for term in 1..TERMS_MAX {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut factor = 1.0;
        for coefficient in [even, odd] {
            denominator = 1.0 / nonzero(1.0 + coefficient * denominator);
            numerator = nonzero(1.0 + coefficient / numerator);
            factor = numerator * denominator;
            value *= factor;
        }
        if (factor - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The t that the absolute value of Student's t exceeds with this probability, at most a half; for at least one degree of freedom.
pub(crate) fn t_exceeded_with(probability: f64, freedom: f64) -> f64 {
    let ln_scale = ln_beta(freedom / 2.0, 0.5) + freedom.ln() / 2.0;
    // Both tails fall ever more slowly as t grows, so that Newton's steps from below never pass the solution.
    let mut t = 0.0;
    loop {
        let tails = incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5);
        let slope = -2.0 * (-(freedom + 1.0) / 2.0 * (t * t / freedom).ln_1p() - ln_scale).exp();
        let step = (probability - tails) / slope;
        t += step;
        if step <= t * 1e-12 {
            return t;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_closed_forms_say() {
        for x in [0.0_f64, 1e-9, 0.03, 0.5, 0.77, 0.999_999, 1.0] {
            for (a, b, value) in [
                (1.0, 1.0, x),
                (3.0, 1.0, x * x * x),
                (1.0, 4.0, 1.0 - (1.0 - x).powi(4)),
                (2.0, 2.0, x * x * (3.0 - 2.0 * x)),
                (0.5, 0.5, x.sqrt().asin() * std::f64::consts::FRAC_2_PI),
            ] {
                let found = incomplete_beta(x, a, b);
                assert!((found - value).abs() <= 1e-12, "I_{x}({a}, {b}) = {found}, not {value}");
            }
        }
    }

    #[test]
    fn t_of_one_and_two_degrees_of_freedom_has_closed_forms() {
        for probability in [0.5, 0.1, 0.05, 0.01, 1e-4] {
            let one = 1.0 / (std::f64::consts::FRAC_PI_2 * probability).tan();
            let two = (2.0 / (probability * (2.0 - probability)) - 2.0).sqrt();
            for (freedom, t) in [(1.0, one), (2.0, two)] {
                let found = t_exceeded_with(probability, freedom);
                assert!((found / t - 1.0).abs() < 1e-11, "{freedom} at {probability}: {found}, not {t}");
            }
        }
    }
}
