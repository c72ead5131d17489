//! How well figures determine parameters, that is, how much they change with each parameter, and how far other
//! parameters could compensate.

/// How well the figures determine one parameter.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sensitivity {
    /// Relative standard error: 0.05 for 5 %. Infinite if no figure depends on it.
    pub(super) error: f64,
    /// The other parameter with the most similar effect, and the similarity: 1 if the effects are the same.
    pub(super) like: Option<(usize, f64)>,
}

/// Computes how well each parameter is determined. `columns` are the derivatives of the logarithms of figures by the
/// logarithms of parameters (one list per parameter); `scatter` is the relative scatter of figures around the model.
///
/// In least squares, the variance of a parameter is that of the figures divided by the squared length of its column after
/// removing the components along all other columns.
pub(super) fn sensitivities(columns: &[Vec<f64>], scatter: f64) -> Vec<Sensitivity> {
    let norm = |column: &[f64]| dot(column, column).sqrt();
    columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let others: Vec<&Vec<f64>> =
                columns.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, column)| column).collect();
            let independent_length = norm(&orthogonal_part(column, &others));
            let like = columns
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != index)
                .map(|(other, other_column)| {
                    (other, (dot(column, other_column) / (norm(column) * norm(other_column)).max(1e-12)).abs())
                })
                .max_by(|one, other| one.1.total_cmp(&other.1));
            // Smaller values are rounding errors, or noise of the figures.
            let error = if independent_length > 1e-3 { scatter / independent_length } else { f64::INFINITY };
            Sensitivity { error, like }
        })
        .collect()
}

/// The coefficients of the linear combination of columns that is closest to a vector. A column that depends linearly on
/// the others gets 0.
pub(super) fn coefficients(columns: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    let coefficient = |(index, column): (usize, &Vec<f64>)| {
        let others: Vec<&Vec<f64>> =
            columns.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, column)| column).collect();
        let independent_part = orthogonal_part(column, &others);
        let square = dot(&independent_part, &independent_part);
        if square > 1e-6 { dot(&independent_part, vector) / square } else { 0.0 }
    };
    columns.iter().enumerate().map(coefficient).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// A vector without its components along the others (Gram-Schmidt).
fn orthogonal_part(vector: &[f64], others: &[&Vec<f64>]) -> Vec<f64> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let minus_parts = |mut vector: Vec<f64>, basis: &[Vec<f64>]| {
        for unit in basis {
            let part = dot(&vector, unit);
            vector.iter_mut().zip(unit).for_each(|(value, unit)| *value -= part * unit);
        }
        vector
    };
    for other in others {
        let remainder = minus_parts((*other).clone(), &basis);
        let length = dot(&remainder, &remainder).sqrt();
        if length > 1e-9 {
            basis.push(remainder.iter().map(|value| value / length).collect());
        }
    }
    minus_parts(vector.to_vec(), &basis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_shown_by_one_figure_is_known_as_well_as_that_figure() {
        let found = sensitivities(&[vec![1.0, 0.0], vec![0.0, 2.0]], 0.02);
        assert!((found[0].error - 0.02).abs() < 1e-12 && (found[1].error - 0.01).abs() < 1e-12, "{found:?}");
    }

    #[test]
    fn a_vector_is_taken_apart_into_columns_that_are_not_square_to_each_other() {
        let columns = [vec![1.0, 1.0, 0.0], vec![0.0, 1.0, 1.0]];
        let vector: Vec<f64> = (0..3).map(|i| 2.0 * columns[0][i] - 3.0 * columns[1][i]).collect();
        let parts = coefficients(&columns, &vector);
        assert!((parts[0] - 2.0).abs() < 1e-9 && (parts[1] + 3.0).abs() < 1e-9, "{parts:?}");
        assert_eq!(coefficients(&[vec![0.0, 0.0]], &[1.0, 1.0]), [0.0]);
    }

    #[test]
    fn collinear_parameters_are_indistinguishable_and_inert_ones_unknown() {
        let found =
            sensitivities(&[vec![1.0, 1.0, 0.0], vec![2.0, 2.0, 0.0], vec![0.0, 0.0, 0.0], vec![0.0, 0.0, 1.0]], 0.02);
        assert!(found[0].error.is_infinite() && found[1].error.is_infinite() && found[2].error.is_infinite());
        let (like, how) = found[0].like.unwrap();
        assert!(like == 1 && how > 0.999, "{found:?}");
        assert!(found[3].error < 0.021);
    }
}
