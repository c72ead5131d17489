//! The text report of a fit.

use super::Fit;

impl Fit {
    /// The parameters, and the residuals of each row.
    #[must_use]
    pub fn report(&self) -> String {
        self.parameters_text() + &self.residuals_text()
    }

    /// The parameters, and how well each is known.
    #[must_use]
    pub fn parameters_text(&self) -> String {
        let mut text = String::new();
        if !self.has_converged {
            text += &format!("NOT CONVERGED: the best of {} evaluations, but not an optimum.\n\n", self.evaluations);
        }
        let width = self.parameters.iter().map(|parameter| parameter.key.len()).max().unwrap_or(0);
        text += &format!("parameter (after {} evaluations)\n", self.evaluations);
        for parameter in &self.parameters {
            text += &format!(
                "  {:width$}  {} (before: {})",
                parameter.key,
                short(parameter.value),
                short(parameter.before)
            );
            text += &match (parameter.is_determined(), &parameter.like) {
                (true, _) => format!(", known to {:.1} %\n", 100.0 * parameter.error),
                (false, Some(other)) => format!(", NOT DETERMINED by these rows: {other} has the same effect\n"),
                (false, None) => ", NOT DETERMINED by these rows\n".to_owned(),
            };
        }
        text
    }

    fn residuals_text(&self) -> String {
        let mut text = "\nresiduals\n".to_owned();
        for (row, figure, model) in &self.residuals {
            let error = 100.0 * (model / figure.value - 1.0);
            text += &format!(
                "  line {}: {}, {}: measured {}, model {} ({error:+.1} %)\n",
                row.line,
                row.load_text(),
                figure.what,
                short(figure.value),
                short(*model)
            );
        }
        text + &format!("\nvalid for: {}\n", self.preset.calibration().valid_range)
    }
}

/// Formats a value with four digits, or with all digits before the decimal point.
fn short(value: f64) -> String {
    let digits = value.abs().max(1e-3).log10().floor() as i32 + 1;
    format!("{value:.*}", usize::try_from(4 - digits).unwrap_or(0).min(4))
}
