//! The search of a fit: minimises the squared logarithms of simulated over measured figures, as a function of the
//! logarithms of the parameters, by COBYLA and Gauss-Newton steps.

use std::cell::RefCell;

use cobyla::{RhoBeg, StopTols, minimize};

use super::sensitivity::coefficients;

/// A parameter may change by at most this factor in either direction.
const FACTOR_MAX: f64 = 20.0;
/// Initial step sizes of successive searches, each of which continues from the previous result. Then all are repeated,
/// since large steps escape local minima, until there is no more gain.
const STEPS: [f64; 3] = [0.4, 0.15, 0.05];
/// A search ends when its steps are smaller than this: half a percent of a parameter.
const STEP_MIN: f64 = 0.005;
/// Minimum relative gain for continuing.
const GAIN_MIN: f64 = 0.01;
/// Step of numerical derivatives: large enough for integer parameters and for random variation of figures.
const DERIVATIVE_STEP: f64 = 0.15;
/// Root of the sum of squared errors below which a fit is exact.
const EXACT_ERROR_MAX: f64 = 1e-3;
/// The value of the objective for invalid parameters.
const INVALID_ERROR: f64 = 1e6;

/// The result of a search.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SearchMinimum {
    /// Logarithms of the parameters relative to their initial values.
    pub(super) log_factors: Vec<f64>,
    /// Whether the search converged instead of being stopped.
    pub(super) has_converged: bool,
    /// Number of evaluations.
    pub(super) evaluations: u32,
}

/// Returns the errors of all figures at these parameters, as logarithms; `None` if the parameters are invalid.
pub(super) type FigureErrors<'a> = dyn Fn(&[f64]) -> Option<Vec<f64>> + 'a;

/// Minimises the sum of squared errors over `count` parameters; calls `should_continue` before each evaluation.
///
/// Alternates between COBYLA, which needs no derivatives and so copes with steps and noise, and Gauss-Newton steps,
/// which follow narrow valleys, until neither improves the result.
pub(super) fn least_squares(
    count: usize,
    evaluations_max: u32,
    errors: &FigureErrors<'_>,
    should_continue: &dyn Fn(u32) -> bool,
) -> SearchMinimum {
    let state = RefCell::new(FitState { evaluations: 0, best: (f64::INFINITY, vec![0.0; count]), is_stopped: false });
    let evaluate = |at: &[f64]| {
        let mut state = state.borrow_mut();
        state.is_stopped |= state.evaluations >= evaluations_max || !should_continue(state.evaluations);
        if state.is_stopped {
            return None;
        }
        state.evaluations += 1;
        let errors = errors(at)?;
        let error = norm(&errors);
        if error < state.best.0 {
            state.best = (error, at.to_vec());
        }
        Some(errors)
    };
    let mut has_converged = false;
    while !has_converged && !state.borrow().is_stopped {
        let error_before = state.borrow().best.0;
        for step in STEPS {
            let begin = state.borrow().best.1.clone();
            // Take the root, because COBYLA assumes a linear objective. After a stop the objective is constant, which
            // ends the search.
            let objective = |at: &[f64], (): &mut ()| evaluate(at).map_or(INVALID_ERROR, |errors| norm(&errors));
            let no_constraints: [fn(&[f64], &mut ()) -> f64; 0] = [];
            let bounds = vec![(-FACTOR_MAX.ln(), FACTOR_MAX.ln()); count];
            let tolerances = StopTols { xtol_abs: vec![STEP_MIN; count], ..StopTols::default() };
            let evaluations_limit = evaluations_max as usize;
            // Its status does not matter: the best point seen is kept, and the next search continues from there.
            let _ = minimize(
                objective,
                &begin,
                &bounds,
                &no_constraints,
                (),
                evaluations_limit,
                RhoBeg::All(step),
                Some(tolerances),
            );
        }
        while let Some(gain) = gauss_newton_step(&state, &evaluate)
            && gain > GAIN_MIN
        {}
        let state = state.borrow();
        has_converged =
            !state.is_stopped && (state.best.0 > error_before * (1.0 - GAIN_MIN) || state.best.0 < EXACT_ERROR_MAX);
    }
    let FitState { evaluations, best, .. } = state.into_inner();
    SearchMinimum { log_factors: best.1, has_converged, evaluations }
}

struct FitState {
    evaluations: u32,
    /// The least error so far, and its parameters.
    best: (f64, Vec<f64>),
    is_stopped: bool,
}

/// Makes a Gauss-Newton step from the best point so far, halved until it is an improvement. Returns the relative
/// improvement.
fn gauss_newton_step(state: &RefCell<FitState>, evaluate: &FigureErrors<'_>) -> Option<f64> {
    let (error_before, at) = state.borrow().best.clone();
    let errors = evaluate(&at)?;
    let columns = derivatives(&at, &errors, evaluate);
    let full_step: Vec<f64> =
        coefficients(&columns, &errors).into_iter().map(|step| (-step).clamp(-1.0, 1.0)).collect();
    for fraction in [1.0, 0.5, 0.25] {
        let point: Vec<f64> = at.iter().zip(&full_step).map(|(at, step)| at + fraction * step).collect();
        evaluate(&point);
        let error = state.borrow().best.0;
        if error < error_before {
            return Some(1.0 - error / error_before);
        }
    }
    None
}

/// Derivatives of the logarithms of figures with respect to the logarithms of parameters: one list per parameter.
/// `errors_at_point` are the errors at `at`.
pub(super) fn derivatives(at: &[f64], errors_at_point: &[f64], errors: &FigureErrors<'_>) -> Vec<Vec<f64>> {
    let slope = |more: &[f64], less: &[f64], step: f64| {
        more.iter().zip(less).map(|(more, less)| (more - less) / step).collect::<Vec<f64>>()
    };
    let column = |index: usize| {
        let errors_after_step = |step: f64| {
            let mut at = at.to_vec();
            at[index] += step;
            errors(&at)
        };
        // At the limit of the valid range the derivative is one-sided.
        match (errors_after_step(DERIVATIVE_STEP), errors_after_step(-DERIVATIVE_STEP)) {
            (Some(more), Some(less)) => slope(&more, &less, 2.0 * DERIVATIVE_STEP),
            (Some(more), None) => slope(&more, errors_at_point, DERIVATIVE_STEP),
            (None, Some(less)) => slope(errors_at_point, &less, DERIVATIVE_STEP),
            (None, None) => vec![0.0; errors_at_point.len()],
        }
    };
    (0..at.len()).map(column).collect()
}

fn norm(errors: &[f64]) -> f64 {
    errors.iter().map(|error| error * error).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two figures: a sum and a difference.
    fn line(at: &[f64]) -> Option<Vec<f64>> {
        Some(vec![at[0] + at[1] - 1.0, 2.0 * (at[0] - at[1]) + 0.6])
    }

    #[test]
    fn the_least_sum_of_squares_is_found_and_said_to_be_so() {
        let found = least_squares(2, 500, &line, &|_| true);
        assert!(found.has_converged, "{found:?}");
        assert!((found.log_factors[0] - 0.35).abs() < 0.01 && (found.log_factors[1] - 0.65).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_search_that_had_to_stop_says_so_and_has_the_best_so_far() {
        let found = least_squares(2, 5, &line, &|_| true);
        assert!(!found.has_converged && found.evaluations <= 5, "{found:?}");
        let stopped = least_squares(2, 500, &line, &|done| done < 8);
        assert!(!stopped.has_converged && stopped.evaluations == 8, "{stopped:?}");
        let sum = |at: &[f64]| line(at).unwrap().iter().map(|error| error * error).sum::<f64>();
        assert!(sum(&stopped.log_factors) < sum(&[0.0, 0.0]), "{stopped:?}");
    }
}
