//! A search objective: a figure to minimise or maximise, subject to conditions.
//!
//! Used by: `tuning`; crates `experiment`, `hoistway`.
//! Tests: below.
//!
//! ```text
//! min backends:read:p99
//! min backends:read:p99 subject to writers:write:iops >= 0.9*none
//! max backup:read:bandwidth subject to backends:read:p99 <= 2ms and wal:sync:max <= 1.5*default
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::condition::{Condition, MARGIN_MAX, contradiction, unquoted};
use crate::figure_name::{FigureName, FigureNameError, figures};

/// A figure to minimise or maximise, subject to conditions.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Objective {
    /// Whether the figure is minimised or maximised.
    pub goal: Goal,
    /// The figure.
    pub figure: FigureName,
    /// The conditions, all of which must hold.
    pub conditions: Vec<Condition>,
    text: String,
}

/// The direction of optimisation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// Minimise the figure.
    Min,
    /// Maximise the figure.
    Max,
}

/// Why a text is not an objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not an objective: {problem} (expected \"min FIGURE\" or \"max FIGURE\", optionally followed by \"subject to FIGURE >= \
     LIMIT and ...\"; a FIGURE is JOB:OPERATION:FIGURE such as backends:read:p99, with one of {}; a LIMIT is a value such as 2ms, or a \
     multiple of the figure under a scheduler, such as 0.9*none or 1.5*default)",
    figures()
)]
pub struct ObjectiveError {
    text: String,
    problem: String,
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        parse_objective(text).map_err(|problem| ObjectiveError { text: text.to_owned(), problem })
    }
}

fn parse_objective(text: &str) -> Result<Objective, String> {
    let words = words(text);
    let (goal, rest) = match words.split_first() {
        Some((&"min", rest)) => (Goal::Min, rest),
        Some((&"max", rest)) => (Goal::Max, rest),
        Some((other, _)) => return Err(format!("it begins with {other:?}")),
        None => return Err("it is empty".to_owned()),
    };
    let (figure, rest) = rest.split_first().ok_or("it has no figure")?;
    let figure = figure.parse().map_err(|wrong: FigureNameError| wrong.problem)?;
    let conditions = match rest {
        [] => Vec::new(),
        ["subject", "to", conditions @ ..] => conditions
            .split(|word| *word == "and")
            .map(|words| Condition::parse(&words.join(" ")))
            .collect::<Result<_, _>>()?,
        [other, ..] => return Err(format!("{other:?} is where \"subject to\" was expected")),
    };
    if let Some((first, second)) = contradiction(&conditions) {
        return Err(format!("\"{first}\" and \"{second}\" contradict each other"));
    }
    Ok(Objective { goal, figure, conditions, text: text.trim().to_owned() })
}

fn words(text: &str) -> Vec<&str> {
    let blanks = unquoted(text).filter(|(_, c)| c.is_whitespace()).map(|(begin, c)| (begin, begin + c.len_utf8()));
    let mut words = Vec::new();
    let mut word_begin = 0;
    for (begin, end) in blanks.chain([(text.len(), text.len())]) {
        words.extend(Some(&text[word_begin..begin]).filter(|word| !word.is_empty()));
        word_begin = end;
    }
    words
}

impl Objective {
    /// All figures of the objective and its conditions, without duplicates.
    pub fn figures(&self) -> Vec<&FigureName> {
        let mut figures = vec![&self.figure];
        for condition in &self.conditions {
            if !figures.contains(&&condition.figure) {
                figures.push(&condition.figure);
            }
        }
        figures
    }

    /// The cost of a value, as a logarithm: lower is better.
    pub fn log_cost(&self, value: f64) -> f64 {
        let logarithm = value.ln().clamp(-MARGIN_MAX, MARGIN_MAX);
        if self.goal == Goal::Min { logarithm } else { -logarithm }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Objective {
    type Error = ObjectiveError;

    fn try_from(text: String) -> Result<Self, ObjectiveError> {
        text.parse()
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> String {
        objective.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::{Limit, Relation};

    #[test]
    fn an_objective_is_a_goal_a_figure_and_conditions() {
        let text = "min backends:read:p99 subject to writers:write:iops>=0.9*none and \"a and >b\":sync:max < 2 ms";
        let read: Objective = text.parse().unwrap();
        assert_eq!(
            (read.goal, read.figure.to_string().as_str(), read.to_string().as_str()),
            (Goal::Min, "backends:read:p99", text)
        );
        let [iops, max] = &read.conditions[..] else { panic!("{read:?}") };
        assert_eq!(iops.limit, Limit::Under { factor: 0.9, scheduler: "none".to_owned() });
        assert_eq!((iops.relation, iops.to_string().as_str()), (Relation::AtLeast, "writers:write:iops>=0.9*none"));
        assert_eq!(
            (&max.limit, max.relation, max.figure.job.as_str()),
            (&Limit::Value(2e6), Relation::Below, "a and >b")
        );
        assert_eq!(read.figures().len(), 3);
        let alone: Objective = "max a:read:bandwidth".parse().unwrap();
        assert!(alone.conditions.is_empty() && alone.log_cost(2.0) < alone.log_cost(1.0));
        let json = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Objective>(&json).unwrap(), read);
    }

    #[test]
    fn an_invalid_objective_is_refused_with_the_grammar() {
        for (text, problem) in [
            ("", "it is empty"),
            ("minimise a:read:p99", "it begins with \"minimise\""),
            ("min", "it has no figure"),
            ("min a:read", "it has no operation and figure"),
            ("min a:read:p98", "\"p98\" is not a figure"),
            ("min a:read:p99 with b:read:p99<2ms", "\"with\" is where"),
            ("min a:read:p99 subject to", "a condition is missing"),
            ("min a:read:p99 subject to b:read:iops", "has no comparison"),
            ("min a:read:p99 subject to b:read:iops>=x*none", "does not begin with a number above 0"),
            ("min a:read:p99 subject to b:read:iops>=0*none", "does not begin with a number above 0"),
            ("min a:read:p99 subject to b:read:p99<=2", "is not a value for p99"),
            ("min a:read:p99 subject to b:read:p99<=2ms and", "a condition is missing"),
        ] {
            let error = text.parse::<Objective>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("subject to FIGURE >= LIMIT"), "{error}");
        }
    }

    #[test]
    fn conditions_that_exclude_each_other_are_both_named() {
        for (conditions, is_possible) in [
            ("b:read:p99<=1ms and b:read:p99>=2ms", false),
            ("b:read:p99>1ms and b:read:p99<1ms", false),
            ("b:read:p99>=1ms and b:read:p99<=1000us", true),
            ("b:read:iops>=1.1*none and b:read:iops<none", false),
            ("b:read:iops>=1.1*none and b:read:iops<bfq", true),
            ("b:read:p99<=1ms and c:read:p99>=2ms", true),
        ] {
            let read = format!("min a:read:p99 subject to {conditions}").parse::<Objective>();
            match read {
                Ok(_) => assert!(is_possible, "{conditions}"),
                Err(error) => {
                    let (one, other) = conditions.split_once(" and ").unwrap();
                    let message = error.to_string();
                    assert!(
                        !is_possible && message.contains(&format!("\"{one}\" and \"{other}\" contradict")),
                        "{message}"
                    );
                }
            }
        }
    }

    #[test]
    fn margins_are_positive_where_the_condition_is_met() {
        let of =
            |text: &str| format!("min a:read:p99 subject to {text}").parse::<Objective>().unwrap().conditions.remove(0);
        let (least, below) = (of("b:read:iops>=100"), of("b:read:p99<1ms"));
        assert!(least.margin(110.0, 100.0) > 0.0 && least.margin(90.0, 100.0) < 0.0);
        assert!(below.margin(0.9e6, 1e6) > 0.0 && below.margin(1.1e6, 1e6) < 0.0);
        assert!(least.is_met(least.margin(100.0, 100.0)) && !below.is_met(below.margin(1e6, 1e6)));
        assert_eq!((least.margin(0.0, 100.0), least.margin(0.0, 0.0)), (-50.0, 0.0));
    }
}
