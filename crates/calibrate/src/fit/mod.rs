//! Fits the parameters of a device model to measurements without a scheduler.
//!
//! Used by: `device`; crate `hoistway`.
//! Tests: `crates/calibrate/src/fit/` (in its files).
//!
//! [`rows`](MeasurementRow) are loads with their measurements. The fit takes a model from a preset, runs it under the
//! same loads through the simulated block layer without a scheduler, and adjusts its parameters until the figures are
//! as close as possible. `sensitivity` finds the parameters that the figures do not determine.

mod fio;
mod parameters;
mod report;
mod rows;
mod search;
mod sensitivity;
mod simulated;
#[cfg(test)]
mod tests;

use hoistway_blk::ground::Kernel;
use hoistway_device::{CalibratedRange, Calibration, Preset, PresetFile, Residual};
use hoistway_sim::Host;

pub use fio::from_fio_json;
pub use rows::{FigureKind, MeasuredFigure, MeasurementRow, RowsError, from_csv};

use parameters::AdjustablePreset;
use search::{derivatives, least_squares};
use sensitivity::sensitivities;

/// Maximum evaluations of a search.
pub const EVALUATIONS_MAX: u32 = 2000;
/// Relative standard error from which a parameter counts as not determined by the figures.
const DETERMINED_ERROR_MAX: f64 = 0.5;
/// Minimum relative scatter of figures, since simulated figures scatter by this much.
const SCATTER_MIN: f64 = 0.01;

/// The plan of a fit.
#[derive(Clone, Debug)]
pub struct FitPlan {
    /// The measurements.
    pub rows: Vec<MeasurementRow>,
    /// The file name of the measurements, for the preset's description.
    pub source: String,
    /// The preset with the model and all numbers that are not fitted.
    pub like: Preset,
    /// The host of the measurements.
    pub host: Host,
    /// The kernel of the measurements.
    pub kernel: Kernel,
    /// Names of the model's parameters to fit; if empty, those that the rows can determine.
    pub parameters: Vec<String>,
    /// Maximum evaluations, 1 to [`EVALUATIONS_MAX`].
    pub evaluations: u32,
    /// The name of the fitted preset.
    pub name: String,
}

/// Why a fit failed: the invalid part of the plan, and the reason.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FitError {
    /// The rows are invalid, or the model does not run under them.
    #[error("{0}")]
    Rows(String),
    /// The preset's model has no parameters to fit.
    #[error("{0}")]
    Like(String),
    /// A name is unknown or repeated.
    #[error("{0}")]
    Parameters(String),
}

/// The result of a fit.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The preset, with its residuals, valid range and the source of each number.
    pub preset: Preset,
    /// The parameters.
    pub parameters: Vec<Fitted>,
    /// The error of each figure: the row, the measurement, and the model's value.
    pub residuals: Vec<(MeasurementRow, MeasuredFigure, f64)>,
    /// Whether the search has converged.
    pub has_converged: bool,
    /// Number of evaluations; each runs all rows.
    pub evaluations: u32,
}

/// A fitted parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Fitted {
    /// Its key in the preset's TOML, with its section.
    pub key: String,
    /// Initial value, from the preset.
    pub before: f64,
    /// Fitted value.
    pub value: f64,
    /// Its relative standard error.
    pub error: f64,
    /// The key of another parameter with almost the same effect, if any.
    pub like: Option<String>,
}

impl Fitted {
    /// Whether the figures determine it.
    #[must_use]
    pub fn is_determined(&self) -> bool {
        self.error < DETERMINED_ERROR_MAX
    }
}

/// Runs the fit. `should_continue` gets the number of finished evaluations; returning `false` ends the search with the best
/// result so far.
///
/// # Errors
/// If there are too few rows for the parameters, a parameter is unknown, or the load does not run on the device.
pub fn fit(plan: &FitPlan, should_continue: impl Fn(u32) -> bool) -> Result<Fit, FitError> {
    let adjustable = AdjustablePreset::new(&plan.like).map_err(FitError::Like)?;
    let names: Vec<String> = if plan.parameters.is_empty() {
        adjustable.determined_by(&plan.rows).into_iter().map(str::to_owned).collect()
    } else {
        plan.parameters.clone()
    };
    if let Some((_, duplicate)) = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name)) {
        return Err(FitError::Parameters(format!("`{duplicate}` is given twice; expected each parameter once")));
    }
    let values = names.iter().map(|name| adjustable.value(name)).collect::<Result<Vec<f64>, _>>();
    let values = values.map_err(FitError::Parameters)?;
    check_figure_count(&names, &plan.rows)?;
    let preset_at = |log_factors: &[f64]| {
        let values = names
            .iter()
            .cloned()
            .zip(values.iter().zip(log_factors).map(|(value, log_factor)| value * log_factor.exp()));
        adjustable.with_values(&values.collect::<Vec<_>>())
    };
    let simulate = |preset: &Preset| {
        let figures = plan.rows.iter().map(|row| {
            simulated::figures(row, preset, &plan.host, plan.kernel)
                .map_err(|error| format!("line {}: {error}", row.line))
        });
        figures.collect::<Result<Vec<Vec<f64>>, _>>()
    };
    // Reject loads that do not run before the search starts.
    simulate(&plan.like).map_err(FitError::Rows)?;
    let errors = |log_factors: &[f64]| {
        let figures = simulate(&preset_at(log_factors).ok()?).ok()?;
        let pairs = plan.rows.iter().zip(figures).flat_map(|(row, figures)| {
            row.figures.iter().zip(figures).map(|(figure, model)| log_error(model, figure.value)).collect::<Vec<_>>()
        });
        Some(pairs.collect::<Vec<f64>>())
    };
    let minimum = least_squares(names.len(), plan.evaluations.clamp(1, EVALUATIONS_MAX), &errors, &should_continue);
    let final_errors = errors(&minimum.log_factors).ok_or_else(|| {
        FitError::Rows("the model does not run with the parameters that the search reached".to_owned())
    })?;
    let preset = preset_at(&minimum.log_factors).map_err(FitError::Rows)?;
    let columns = derivatives(&minimum.log_factors, &final_errors, &errors);
    let degrees_of_freedom = final_errors.len().saturating_sub(names.len()).max(1) as f64;
    let scatter = (final_errors.iter().map(|log_error| log_error * log_error).sum::<f64>() / degrees_of_freedom)
        .sqrt()
        .max(SCATTER_MIN);
    let sensitivities = sensitivities(&columns, scatter);
    let fitted = AdjustablePreset::new(&preset).map_err(FitError::Rows)?;
    let mut parameters = Vec::with_capacity(names.len());
    for ((name, before), sensitivity) in names.iter().zip(&values).zip(sensitivities) {
        let like =
            sensitivity.like.filter(|(_, similarity)| sensitivity.error >= DETERMINED_ERROR_MAX && *similarity > 0.95);
        parameters.push(Fitted {
            key: adjustable.key(name),
            before: *before,
            value: fitted.value(name).map_err(FitError::Rows)?,
            error: sensitivity.error,
            like: like.map(|(other, _)| adjustable.key(&names[other])),
        });
    }
    let figures = simulate(&preset).map_err(FitError::Rows)?;
    let residuals: Vec<_> = plan
        .rows
        .iter()
        .zip(figures)
        .flat_map(|(row, figures)| row.figures.iter().zip(figures).map(|(figure, model)| (row.clone(), *figure, model)))
        .collect();
    let mut fit =
        Fit { preset, parameters, residuals, has_converged: minimum.has_converged, evaluations: minimum.evaluations };
    let mut file: PresetFile = fit.preset.clone().into();
    file.name.clone_from(&plan.name);
    file.title = format!("fitted to {}, with the other numbers of {}", plan.source, plan.like.name);
    file.calibration = fit.calibration(plan);
    fit.preset = file.try_into().map_err(|error: hoistway_device::PresetError| FitError::Rows(error.to_string()))?;
    Ok(fit)
}

/// The logarithm of a model's figure over the measured one. Limited, because a model without I/Os has a figure of 0.
fn log_error(model: f64, measured: f64) -> f64 {
    (model.max(measured * 1e-3) / measured).ln()
}

/// Checks that there are at least as many figures as parameters.
fn check_figure_count(names: &[String], rows: &[MeasurementRow]) -> Result<(), FitError> {
    if names.is_empty() {
        return Err(FitError::Rows(
            "these rows determine no parameter of this model (expected --parameters)".to_owned(),
        ));
    }
    let figures: usize = rows.iter().map(|row| row.figures.len()).sum();
    if figures < names.len() {
        let [covered, uncovered] = [&names[..figures], &names[figures..]].map(|names| names.join(", "));
        return Err(FitError::Rows(format!(
            "{figures} figure(s) are too few for {} parameters: they are enough for {covered}, but not for {uncovered}; expected more \
             rows, at other depths and sizes, or fewer parameters",
            names.len()
        )));
    }
    Ok(())
}

impl Fit {
    fn calibration(&self, plan: &FitPlan) -> Calibration {
        let state = if self.has_converged { "" } else { "; the fit did not converge, and this is its best result" };
        let sources = self.parameters.iter().map(|parameter| {
            let text = if parameter.is_determined() {
                format!("fit to {}, known to {:.0} %", plan.source, 100.0 * parameter.error)
            } else {
                format!("fit to {}, which does not determine it", plan.source)
            };
            (parameter.key.clone(), text)
        });
        let mut all_sources: std::collections::BTreeMap<String, String> = plan
            .like
            .calibration()
            .sources
            .iter()
            .map(|(key, text)| (key.clone(), format!("{}: {text}", plan.like.name)))
            .collect();
        all_sources.extend(sources);
        let (range, range_text) = valid_range(&plan.rows);
        Calibration {
            on: format!("{} (scheduler none), {} rows{state}", plan.source, plan.rows.len()),
            valid_range: format!("{range_text}; for anything else as {}", plan.like.name),
            host: Some(plan.host.name.clone()),
            kernel: Some(plan.kernel.to_string()),
            assumed: false,
            range,
            residuals: self
                .residuals
                .iter()
                .map(|(row, figure, model)| Residual {
                    what: format!("line {}: {}, {}", row.line, row.load_text(), figure.what),
                    measured: figure.value,
                    model: *model,
                })
                .collect(),
            sources: all_sources,
        }
    }
}

/// The range of the loads in the rows: as data if a range can express it, and in words.
fn valid_range(rows: &[MeasurementRow]) -> (Option<CalibratedRange>, String) {
    let min_max = |value: fn(&MeasurementRow) -> u32| {
        let values = rows.iter().map(value);
        [values.clone().min().unwrap_or(0), values.max().unwrap_or(0)]
    };
    let range = CalibratedRange {
        io_bytes: min_max(|row| row.block_bytes),
        outstanding: min_max(MeasurementRow::outstanding),
        reads_percent: min_max(|row| row.reads_percent.into()),
        sequential: rows.iter().any(|row| !row.is_random),
        flushes: false,
    };
    // Unmixed reads and writes do not cover mixes.
    let has_mixes = rows.iter().any(|row| !matches!(row.reads_percent, 0 | 100));
    if range.reads_percent == [0, 100] && !has_mixes {
        let order = if range.sequential { "random and sequential" } else { "random" };
        let ([least, most], [few, many]) = (range.io_bytes, range.outstanding);
        return (
            None,
            format!("{order} reads and writes of {least} to {most} bytes, each alone, {few} to {many} outstanding"),
        );
    }
    let range_text = range.to_string();
    (Some(range), range_text)
}
