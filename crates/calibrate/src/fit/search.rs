//! The search: least squares of the logarithms of simulated over measured figures, over the logarithms of parameters, by COBYLA and
//! by steps of Gauss and Newton.

use std::cell::RefCell;

use cobyla::{RhoBeg, StopTols, minimize};

use super::sensitivity::coefficients;

/// How far a parameter may go from where it began, either way: by this factor.
const FARTHEST: f64 = 20.0;
/// First steps of a search and of those that follow it from where it ended. Then all begins again with large steps, which leave
/// places where small ones were caught, until that gains nothing more.
const STEPS: [f64; 3] = [0.4, 0.15, 0.05];
/// A search ends when steps are smaller than this: half a percent of a parameter.
const SMALLEST: f64 = 0.005;
/// What less is gained by than this, as a part of it, is nothing.
const GAIN: f64 = 0.01;
/// Steps of derivatives: large enough for numbers that are whole, and for chance.
const STEP: f64 = 0.15;
/// All figures together off by less than this are met.
const EXACT: f64 = 1e-3;
/// Where parameters cannot be.
const NOWHERE: f64 = 1e6;

/// Where a search ended.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Found {
    /// Logarithms of the parameters over their first values.
    pub(super) at: Vec<f64>,
    /// Whether nothing better was near, rather than that it had to stop.
    pub(super) has_converged: bool,
    /// Evaluations.
    pub(super) evaluations: u32,
}

/// How far each figure is off at such parameters, as a logarithm; nothing where they cannot be so.
pub(super) type Misses<'a> = dyn Fn(&[f64]) -> Option<Vec<f64>> + 'a;

/// Looks for the least sum of squares of `count` parameters; `goes_on` is asked before each evaluation.
///
/// By turns: a search without derivatives, which crosses steps and noise, and Gauss and Newton's steps, which follow narrow valleys;
/// until neither gains anything.
pub(super) fn least_squares(
    count: usize,
    evaluations_max: u32,
    misses: &Misses<'_>,
    goes_on: &dyn Fn(u32) -> bool,
) -> Found {
    let state = RefCell::new(State { evaluations: 0, best: (f64::INFINITY, vec![0.0; count]), is_stopped: false });
    let counted = |at: &[f64]| {
        let mut state = state.borrow_mut();
        state.is_stopped |= state.evaluations >= evaluations_max || !goes_on(state.evaluations);
        if state.is_stopped {
            return None;
        }
        state.evaluations += 1;
        let misses = misses(at)?;
        let miss = length(&misses);
        if miss < state.best.0 {
            state.best = (miss, at.to_vec());
        }
        Some(misses)
    };
    let mut has_converged = false;
    while !has_converged && !state.borrow().is_stopped {
        let before = state.borrow().best.0;
        for step in STEPS {
            let begin = state.borrow().best.1.clone();
            // The root, because this search takes what it looks at for straight. Where it was stopped all is alike, and it ends.
            let objective = |at: &[f64], (): &mut ()| counted(at).map_or(NOWHERE, |misses| length(&misses));
            let none: [fn(&[f64], &mut ()) -> f64; 0] = [];
            let bounds = vec![(-FARTHEST.ln(), FARTHEST.ln()); count];
            let tolerances = StopTols { xtol_abs: vec![SMALLEST; count], ..StopTols::default() };
            let most = evaluations_max as usize;
            // How it ended does not matter: the best that it saw is kept, and what follows goes on from there.
            let _ = minimize(objective, &begin, &bounds, &none, (), most, RhoBeg::All(step), Some(tolerances));
        }
        while let Some(gain) = step_of_gauss_and_newton(&state, &counted)
            && gain > GAIN
        {}
        let state = state.borrow();
        has_converged = !state.is_stopped && (state.best.0 > before * (1.0 - GAIN) || state.best.0 < EXACT);
    }
    let State { evaluations, best, .. } = state.into_inner();
    Found { at: best.1, has_converged, evaluations }
}

struct State {
    evaluations: u32,
    /// The least miss so far, and where that was.
    best: (f64, Vec<f64>),
    is_stopped: bool,
}

/// From the best place so far, halved until it gains something. Returns how much, as a fraction of the miss.
fn step_of_gauss_and_newton(state: &RefCell<State>, counted: &Misses<'_>) -> Option<f64> {
    let (before, at) = state.borrow().best.clone();
    let misses = counted(&at)?;
    let columns = derivatives(&at, &misses, counted);
    let whole: Vec<f64> = coefficients(&columns, &misses).into_iter().map(|step| (-step).clamp(-1.0, 1.0)).collect();
    for part in [1.0, 0.5, 0.25] {
        let there: Vec<f64> = at.iter().zip(&whole).map(|(at, step)| at + part * step).collect();
        counted(&there);
        let now = state.borrow().best.0;
        if now < before {
            return Some(1.0 - now / before);
        }
    }
    None
}

/// Derivatives of the figures' logarithms by those of the parameters: a list for each parameter. `here` are the misses at this place.
pub(super) fn derivatives(at: &[f64], here: &[f64], misses: &Misses<'_>) -> Vec<Vec<f64>> {
    let slope = |more: &[f64], less: &[f64], step: f64| {
        more.iter().zip(less).map(|(more, less)| (more - less) / step).collect::<Vec<f64>>()
    };
    let column = |index: usize| {
        let moved = |step: f64| {
            let mut at = at.to_vec();
            at[index] += step;
            misses(&at)
        };
        // At the edge of what can be it moves one way only.
        match (moved(STEP), moved(-STEP)) {
            (Some(more), Some(less)) => slope(&more, &less, 2.0 * STEP),
            (Some(more), None) => slope(&more, here, STEP),
            (None, Some(less)) => slope(here, &less, STEP),
            (None, None) => vec![0.0; here.len()],
        }
    };
    (0..at.len()).map(column).collect()
}

fn length(misses: &[f64]) -> f64 {
    misses.iter().map(|miss| miss * miss).sum::<f64>().sqrt()
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
        assert!((found.at[0] - 0.35).abs() < 0.01 && (found.at[1] - 0.65).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_search_that_had_to_stop_says_so_and_has_the_best_so_far() {
        let found = least_squares(2, 5, &line, &|_| true);
        assert!(!found.has_converged && found.evaluations <= 5, "{found:?}");
        let stopped = least_squares(2, 500, &line, &|done| done < 8);
        assert!(!stopped.has_converged && stopped.evaluations == 8, "{stopped:?}");
        let sum = |at: &[f64]| line(at).unwrap().iter().map(|miss| miss * miss).sum::<f64>();
        assert!(sum(&stopped.at) < sum(&[0.0, 0.0]), "{stopped:?}");
    }
}
