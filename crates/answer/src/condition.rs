//! Conditions on figures: a comparison fails if one holds, and a search requires that its conditions hold.
//!
//! Used by: `objective`; crates `experiment`, `hoistway`.
//! Tests: below, `crates/answer/tests/integrity.rs`.
//!
//! ```text
//! backends:read:p99 > 2ms            a value with its unit
//! wal:sync:p95 <= 1.5*default        1.5 times the figure under the kernel's default, on the same setup
//! reader:read:p99 > 2x none          twice the figure under a named scheduler
//! ```

use std::fmt;
use std::str::FromStr;

use crate::analysis::{Analysis, NoSuchFigure, find_by_scheduler};
use crate::figure::Figure;
use crate::figure_name::{FigureName, FigureNameError, figures};

/// A figure, a relation and a limit.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// The figure.
    pub figure: FigureName,
    /// The relation of the figure to the limit.
    pub relation: Relation,
    /// The limit.
    pub limit: Limit,
    text: String,
}

/// The limit that a figure is compared with.
#[derive(Clone, PartialEq, Debug)]
pub enum Limit {
    /// A value in the figure's unit: ns, I/Os or bytes a second.
    Value(f64),
    /// A multiple of the figure under a scheduler with its default settings, in runs with the same seeds.
    Under {
        /// The multiple, above 0.
        factor: f64,
        /// The scheduler, or `default` for the kernel's default for the device.
        scheduler: String,
    },
}

/// The relation of a figure to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Above the limit.
    Above,
    /// At the limit or above.
    AtLeast,
    /// Below the limit.
    Below,
    /// At the limit or below.
    AtMost,
}

impl Relation {
    /// The signs in the order in which the parser tries them: the longer ones first.
    pub(crate) const SIGNS: [(&'static str, Self); 4] =
        [(">=", Self::AtLeast), ("<=", Self::AtMost), (">", Self::Above), ("<", Self::Below)];

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
        }
    }
}

/// Why a text is not a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a condition: {problem} (expected JOB:OPERATION:FIGURE with one of {}; one of > >= < <=; and a value, or N*SCHEDULER \
     for N times the figure under a scheduler: backends:read:p99>2ms, wal:write:iops<10k, backup:read:bandwidth<100MiB/s, reader:read:p95>2*none)",
    figures()
)]
pub struct ConditionError {
    text: String,
    problem: String,
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        Self::parse(text).map_err(|problem| ConditionError { text: text.to_owned(), problem })
    }
}

/// Why a condition cannot be evaluated on some results.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BreakingError {
    /// No variant had such I/O.
    #[error(transparent)]
    Figure(#[from] NoSuchFigure),
    /// The scheduler of the limit did not run.
    #[error("{scheduler:?} is not among the compared schedulers (expected default, or one of {})", known.join(", "))]
    Scheduler {
        /// The scheduler.
        scheduler: String,
        /// The schedulers that ran.
        known: Vec<String>,
    },
}

impl Analysis<'_> {
    /// The labels of the variants under which a condition holds, each with the figure: the mean over the repeats, for maxima the largest.
    ///
    /// # Errors
    /// If no variant had such I/O, or the scheduler of the limit did not run; the error lists the valid names.
    pub fn violations(&self, condition: &Condition) -> Result<Vec<(String, f64)>, BreakingError> {
        let (_, operation) = self.find(&condition.figure)?;
        let mean = |variant: usize| operation.row(variant).map(|row| row.estimate(condition.figure.figure).mean);
        let mut violations = Vec::new();
        for row in &operation.rows {
            let limit = match &condition.limit {
                Limit::Value(limit) => Some(*limit),
                Limit::Under { factor, scheduler } => {
                    mean(self.limit_variant(scheduler, row.variant)?).map(|mean| factor * mean)
                }
            };
            let value = row.estimate(condition.figure.figure).mean;
            if limit.is_some_and(|limit| condition.relation.holds(value, limit)) {
                violations.push((self.variants[row.variant].label.clone(), value));
            }
        }
        Ok(violations)
    }

    /// The variant that defines the limit for another variant of the same setup.
    fn limit_variant(&self, scheduler: &str, variant: usize) -> Result<usize, BreakingError> {
        let setup = self.variants[variant].first().setup;
        let candidates: Vec<usize> =
            (0..self.variants.len()).filter(|index| self.variants[*index].first().setup == setup).collect();
        let default = || self.document.default_scheduler_of(setup);
        let name = if scheduler == "default" { default().unwrap_or(scheduler) } else { scheduler };
        find_by_scheduler(&self.variants, &candidates, name).ok_or_else(|| {
            let mut known: Vec<String> = self.variants.iter().map(|variant| variant.scheduler().to_owned()).collect();
            known.sort_unstable();
            known.dedup();
            BreakingError::Scheduler { scheduler: scheduler.to_owned(), known }
        })
    }
}

/// The factor and the scheduler of `2*none` or `2x none`.
fn parse_multiple(limit: &str) -> Option<(&str, &str)> {
    let digits = limit.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(limit.len());
    let (number, rest) = limit.split_at(digits);
    let by_letter = rest.trim_start().strip_prefix("x ").filter(|_| !number.is_empty());
    let parts = by_letter.map(|scheduler| (number, scheduler)).or_else(|| limit.rsplit_once('*'))?;
    Some((parts.0.trim(), parts.1.trim()))
}

/// A value with its unit.
fn parse_value(figure: Figure, text: &str) -> Result<f64, String> {
    let units: &[(&str, f64)] = match figure {
        Figure::Iops => &[("", 1.0), ("k", 1e3), ("M", 1e6)],
        Figure::Bandwidth => &[
            ("B/s", 1.0),
            ("KiB/s", 1024.0),
            ("MiB/s", 1_048_576.0),
            ("GiB/s", 1_073_741_824.0),
            ("kB/s", 1e3),
            ("MB/s", 1e6),
            ("GB/s", 1e9),
        ],
        _ => &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
    };
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|(known, _)| *known == unit.trim()).map(|(_, factor)| *factor);
    number.parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor).ok_or_else(|| {
        let known: Vec<&str> =
            units.iter().map(|(known, _)| if known.is_empty() { "no unit" } else { *known }).collect();
        format!("{text:?} is not a value for {}: a number with {}, or a scheduler", figure.name(), known.join(", "))
    })
}

/// The characters of a text outside quoted job names, with their byte positions.
pub(crate) fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.char_indices().filter(move |(_, c)| {
        let was_quoted = is_quoted;
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => {}
        }
        !was_quoted && *c != '"'
    })
}

/// Two conditions that cannot both hold.
pub(crate) fn contradiction(conditions: &[Condition]) -> Option<(&Condition, &Condition)> {
    let pairs = conditions
        .iter()
        .enumerate()
        .flat_map(|(index, first)| conditions[index + 1..].iter().map(move |second| (first, second)));
    pairs.into_iter().find(|(first, second)| first.rules_out_condition(second) || second.rules_out_condition(first))
}

impl Condition {
    pub(crate) fn parse(text: &str) -> Result<Condition, String> {
        if text.is_empty() {
            return Err("a condition is missing".to_owned());
        }
        // A job's name may contain such a sign, too, so the last one counts.
        let (sign_position, _) = unquoted(text)
            .filter(|(_, c)| "<>".contains(*c))
            .last()
            .ok_or_else(|| format!("\"{text}\" has no comparison (expected one of >= <= > <)"))?;
        let (name, rest) = text.split_at(sign_position);
        let (sign, relation) =
            Relation::SIGNS.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or("it has no comparison")?;
        let figure: FigureName = name.trim().parse().map_err(|wrong: FigureNameError| wrong.problem)?;
        let limit = rest[sign.len()..].trim();
        let limit = match parse_multiple(limit) {
            Some((factor, scheduler)) => {
                let factor = factor.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
                let factor = factor.ok_or_else(|| format!("\"{limit}\" does not begin with a number above 0"))?;
                Limit::Under { factor, scheduler: scheduler.to_owned() }
            }
            None if limit.starts_with(char::is_alphabetic) => Limit::Under { factor: 1.0, scheduler: limit.to_owned() },
            None => Limit::Value(parse_value(figure.figure, limit)?),
        };
        Ok(Condition { figure, relation, limit, text: text.to_owned() })
    }

    /// Whether the limit is a lower bound of the figure.
    pub fn is_lower_bound(&self) -> bool {
        matches!(self.relation, Relation::Above | Relation::AtLeast)
    }

    /// Whether this condition's lower bound exceeds the other's upper bound on the same figure.
    fn rules_out_condition(&self, other: &Condition) -> bool {
        let (least, most) = match (&self.limit, &other.limit) {
            (Limit::Value(least), Limit::Value(most)) => (*least, *most),
            (Limit::Under { factor: least, scheduler }, Limit::Under { factor: most, scheduler: other })
                if scheduler == other =>
            {
                (*least, *most)
            }
            _ => return false,
        };
        let is_strict = self.relation == Relation::Above || other.relation == Relation::Below;
        let is_range = self.is_lower_bound() && !other.is_lower_bound();
        is_range && self.figure == other.figure && (least > most || least == most && is_strict)
    }

    /// The factor by which a value is on the required side of a limit, as a logarithm: negative on the wrong side.
    pub fn margin(&self, value: f64, limit: f64) -> f64 {
        let margin = if value == limit { 0.0 } else { (value / limit).ln().clamp(-MARGIN_MAX, MARGIN_MAX) };
        if self.is_lower_bound() { margin } else { -margin }
    }

    /// Whether a [margin](Self::margin) meets the condition.
    pub fn is_met(&self, margin: f64) -> bool {
        match self.relation {
            Relation::Above | Relation::Below => margin > 0.0,
            Relation::AtLeast | Relation::AtMost => margin >= 0.0,
        }
    }
}

/// Largest margin, as a logarithm: about a factor of 10^21. It keeps the margin of a figure that is zero finite.
pub(crate) const MARGIN_MAX: f64 = 50.0;

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_a_figure_a_sign_and_a_value_with_its_unit() {
        for (text, relation, limit) in [
            ("a:read:p99>2ms", Relation::Above, 2e6),
            ("a:sync:max >= 1.5 s", Relation::AtLeast, 1.5e9),
            ("a:write:iops<10k", Relation::Below, 10e3),
            ("\"a>b\":read:bandwidth<=100MiB/s", Relation::AtMost, 104_857_600.0),
        ] {
            let read: Condition = text.parse().unwrap();
            assert_eq!((read.relation, read.limit, text), (relation, Limit::Value(limit), read.text.as_str()));
        }
    }

    #[test]
    fn a_limit_may_be_a_multiple_of_a_schedulers_figure() {
        for (text, multiple, scheduler) in [
            ("reader:read:p99 > 2x none", 2.0, "none"),
            ("reader:read:p95 > 2 x none", 2.0, "none"),
            ("reader:read:p99>1.5*default", 1.5, "default"),
            ("\"a x b\":read:iops<bfq", 1.0, "bfq"),
            ("reader:read:iops<xyz", 1.0, "xyz"),
        ] {
            let read: Condition = text.parse().unwrap();
            assert_eq!(read.limit, Limit::Under { factor: multiple, scheduler: scheduler.to_owned() }, "{text}");
        }
    }

    #[test]
    fn an_invalid_condition_is_refused_with_the_grammar() {
        for (text, problem) in [
            ("a:read:p99", "has no comparison"),
            ("a:read>2ms", "it has no operation and figure"),
            ("a:read:p99>2", "\"2\" is not a value for p99: a number with ns, us"),
            ("a:read:p98>2ms", "\"p98\" is not a figure"),
            ("a:read:p99>0*none", "does not begin with a number above 0"),
            ("a:read:iops<2ms", "is not a value for iops: a number with no unit, k, M"),
            ("a:read:bandwidth<2M", "is not a value for bandwidth"),
            ("a:read:p99>", "is not a value"),
        ] {
            let error = text.parse::<Condition>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("p50, p95, p99, p99.9, max; one of > >="), "{error}");
        }
    }

    #[test]
    fn a_value_equal_to_the_limit_satisfies_only_non_strict_relations() {
        let holds = |relation: Relation| [1.0, 2.0, 3.0].map(|value| relation.holds(value, 2.0));
        assert_eq!(holds(Relation::Above), [false, false, true]);
        assert_eq!(holds(Relation::AtLeast), [false, true, true]);
        assert_eq!(holds(Relation::Below), [true, false, false]);
        assert_eq!(holds(Relation::AtMost), [true, true, false]);
    }
}
