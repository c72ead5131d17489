//! Limits that figures must keep: `backends:read:p99>2ms` is broken by a p99 of more than 2 ms.

use std::fmt;
use std::str::FromStr;

use crate::analysis::Analysis;
use crate::analysis::NoSuchFigure;
use crate::figure::Figure;
use crate::figure_name::FigureName;

/// A limit on a figure: the condition that breaks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// The figure.
    pub figure: FigureName,
    /// When it is broken.
    pub relation: Relation,
    /// The limit, in the figure's unit: ns, I/Os or bytes a second.
    pub limit: f64,
    text: String,
}

/// How a value that breaks a limit stands to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// Above it.
    Above,
    /// At it or above.
    AtLeast,
    /// Below it.
    Below,
    /// At it or below.
    AtMost,
}

impl Relation {
    /// In the order in which they are looked for.
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

/// Why a text is no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no condition: {problem} (expected JOB:OPERATION:FIGURE, one of > >= < <=, and a value: backends:read:p99>2ms, \
     wal:write:iops<10k, backup:read:bandwidth<100MiB/s)"
)]
pub struct ThresholdError {
    text: String,
    problem: String,
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let error = |problem: String| ThresholdError { text: text.to_owned(), problem };
        // A job's name may hold such a sign, too, so the last one counts.
        let at = text.rfind(['<', '>']).ok_or_else(|| error("nothing is compared".to_owned()))?;
        let (name, rest) = text.split_at(at);
        let sign = Relation::SIGNS.into_iter().find(|(sign, _)| rest.starts_with(sign));
        let (sign, relation) = sign.ok_or_else(|| error("nothing is compared".to_owned()))?;
        let figure: FigureName = name.trim().parse().map_err(|wrong: crate::FigureNameError| error(wrong.problem))?;
        let limit = value(figure.figure, rest[sign.len()..].trim()).map_err(error)?;
        Ok(Self { figure, relation, limit, text: text.to_owned() })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A value with its unit.
pub(crate) fn value(figure: Figure, text: &str) -> Result<f64, String> {
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
        format!("{text:?} is no value of {}: a number with {}", figure.name(), known.join(", "))
    })
}

impl Analysis<'_> {
    /// The variants under which a limit is broken, with what they have there: the mean over the repeats, of maxima the largest.
    ///
    /// # Errors
    /// If no variant had such I/O; the error lists what there was.
    pub fn breaking(&self, threshold: &Threshold) -> Result<Vec<(String, f64)>, NoSuchFigure> {
        let all = self.figure(&threshold.figure)?.into_iter().map(|(label, estimate)| (label, estimate.mean));
        Ok(all.filter(|(_, mean)| threshold.relation.holds(*mean, threshold.limit)).collect())
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
            let read: Threshold = text.parse().unwrap();
            assert_eq!((read.relation, read.limit, read.to_string().as_str()), (relation, limit, text));
        }
    }

    #[test]
    fn what_is_no_condition_is_told_with_the_grammar() {
        for (text, problem) in [
            ("a:read:p99", "nothing is compared"),
            ("a:read>2ms", "it has no operation and figure"),
            ("a:read:p99>2", "\"2\" is no value of p99: a number with ns, us"),
            ("a:read:iops<2ms", "is no value of iops: a number with no unit, k, M"),
            ("a:read:bandwidth<2M", "is no value of bandwidth"),
            ("a:read:p99>", "is no value"),
        ] {
            let error = text.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("backends:read:p99>2ms"), "{error}");
        }
    }

    #[test]
    fn what_is_at_the_limit_breaks_it_only_if_that_was_said() {
        let holds = |relation: Relation| [1.0, 2.0, 3.0].map(|value| relation.holds(value, 2.0));
        assert_eq!(holds(Relation::Above), [false, false, true]);
        assert_eq!(holds(Relation::AtLeast), [false, true, true]);
        assert_eq!(holds(Relation::Below), [true, false, false]);
        assert_eq!(holds(Relation::AtMost), [true, true, false]);
    }
}
