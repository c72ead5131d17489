//! What a search is to find: a figure that is to be as small or as large as possible, and what must hold meanwhile.
//!
//! ```text
//! min backends:read:p99
//! min backends:read:p99 subject to writers:write:iops >= 0.9*none
//! max backup:read:bandwidth subject to backends:read:p99 <= 2ms and wal:sync:max <= 1.5*default
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::figure_name::{FigureName, FigureNameError};
use crate::threshold::{self, Relation};

/// A goal, and what must hold.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Objective {
    /// Whether less of the figure is wanted, or more.
    pub goal: Goal,
    /// The figure.
    pub figure: FigureName,
    /// All of them must hold.
    pub conditions: Vec<Condition>,
    text: String,
}

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// Less is.
    Min,
    /// More is.
    Max,
}

/// What must hold of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// The figure.
    pub figure: FigureName,
    /// How it must stand to the limit.
    pub relation: Relation,
    /// The limit.
    pub limit: Limit,
    text: String,
}

/// What a figure is held against.
#[derive(Clone, PartialEq, Debug)]
pub enum Limit {
    /// A value in the figure's unit: ns, I/Os or bytes a second.
    Value(f64),
    /// So many times what the figure is under a scheduler with its default settings, in runs with the same seeds.
    Under {
        /// Above 0.
        factor: f64,
        /// The scheduler, or `default` for the one that the kernel gives the device.
        scheduler: String,
    },
}

/// Why a text is no objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no objective: {problem} (expected \"min FIGURE\" or \"max FIGURE\", then if need be \"subject to FIGURE >= LIMIT and \
     ...\"; a FIGURE is JOB:OPERATION:FIGURE such as backends:read:p99, a LIMIT is a value such as 2ms, or so many times what a \
     scheduler has, such as 0.9*none or 1.5*default)"
)]
pub struct ObjectiveError {
    text: String,
    problem: String,
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        parsed(text).map_err(|problem| ObjectiveError { text: text.to_owned(), problem })
    }
}

fn parsed(text: &str) -> Result<Objective, String> {
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
            .map(|words| condition(&words.join(" ")))
            .collect::<Result<_, _>>()?,
        [other, ..] => return Err(format!("{other:?} stands where \"subject to\" was expected")),
    };
    if let Some((one, other)) = contradiction(&conditions) {
        return Err(format!("\"{one}\" and \"{other}\" contradict each other"));
    }
    Ok(Objective { goal, figure, conditions, text: text.trim().to_owned() })
}

/// The places of a text outside of the quotes that names of jobs may stand in.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> {
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

fn words(text: &str) -> Vec<&str> {
    let blanks = unquoted(text).filter(|(_, c)| c.is_whitespace()).map(|(at, c)| (at, at + c.len_utf8()));
    let mut words = Vec::new();
    let mut from = 0;
    for (at, behind) in blanks.chain([(text.len(), text.len())]) {
        words.extend(Some(&text[from..at]).filter(|word| !word.is_empty()));
        from = behind;
    }
    words
}

fn condition(text: &str) -> Result<Condition, String> {
    if text.is_empty() {
        return Err("a condition is missing".to_owned());
    }
    let (at, _) = unquoted(text)
        .find(|(_, c)| "<>".contains(*c))
        .ok_or_else(|| format!("\"{text}\" compares nothing (expected one of >= <= > <)"))?;
    let (name, rest) = text.split_at(at);
    let (sign, relation) =
        Relation::SIGNS.into_iter().find(|(sign, _)| rest.starts_with(sign)).ok_or("nothing is compared")?;
    let figure: FigureName = name.trim().parse().map_err(|wrong: FigureNameError| wrong.problem)?;
    let limit = rest[sign.len()..].trim();
    let limit = match limit.rsplit_once('*') {
        Some((factor, scheduler)) => {
            let factor = factor.trim().parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
            let factor = factor.ok_or_else(|| format!("\"{limit}\" does not begin with a number above 0"))?;
            Limit::Under { factor, scheduler: scheduler.trim().to_owned() }
        }
        None if limit.starts_with(char::is_alphabetic) => Limit::Under { factor: 1.0, scheduler: limit.to_owned() },
        None => Limit::Value(threshold::value(figure.figure, limit)?),
    };
    Ok(Condition { figure, relation, limit, text: text.to_owned() })
}

/// Two conditions that cannot both hold.
fn contradiction(conditions: &[Condition]) -> Option<(&Condition, &Condition)> {
    let pairs = conditions
        .iter()
        .enumerate()
        .flat_map(|(place, one)| conditions[place + 1..].iter().map(move |other| (one, other)));
    pairs.into_iter().find(|(one, other)| one.excludes(other) || other.excludes(one))
}

impl Condition {
    /// Whether more of the figure is needed.
    pub fn wants_more(&self) -> bool {
        matches!(self.relation, Relation::Above | Relation::AtLeast)
    }

    /// Whether it wants more than the other allows.
    fn excludes(&self, other: &Condition) -> bool {
        let (least, most) = match (&self.limit, &other.limit) {
            (Limit::Value(least), Limit::Value(most)) => (*least, *most),
            (Limit::Under { factor: least, scheduler: one }, Limit::Under { factor: most, scheduler: other })
                if one == other =>
            {
                (*least, *most)
            }
            _ => return false,
        };
        let is_strict = self.relation == Relation::Above || other.relation == Relation::Below;
        let is_range = self.wants_more() && !other.wants_more();
        is_range && self.figure == other.figure && (least > most || least == most && is_strict)
    }

    /// By what factor a value is on the right side of a limit, as a logarithm: below 0 on the wrong one.
    pub fn margin(&self, value: f64, limit: f64) -> f64 {
        let margin = if value == limit { 0.0 } else { (value / limit).ln().clamp(-MARGIN_MAX, MARGIN_MAX) };
        if self.wants_more() { margin } else { -margin }
    }

    /// Whether such a margin is enough.
    pub fn is_met(&self, margin: f64) -> bool {
        match self.relation {
            Relation::Above | Relation::Below => margin > 0.0,
            Relation::AtLeast | Relation::AtMost => margin >= 0.0,
        }
    }
}

/// A factor of 10^21: what is zero is so far away.
const MARGIN_MAX: f64 = 50.0;

impl Objective {
    /// The figures that it names, each once.
    pub fn figures(&self) -> Vec<&FigureName> {
        let mut figures = vec![&self.figure];
        for condition in &self.conditions {
            if !figures.contains(&&condition.figure) {
                figures.push(&condition.figure);
            }
        }
        figures
    }

    /// How bad a value is, as a logarithm: the smallest is wanted.
    pub fn badness(&self, value: f64) -> f64 {
        let logarithm = value.ln().clamp(-MARGIN_MAX, MARGIN_MAX);
        if self.goal == Goal::Min { logarithm } else { -logarithm }
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Condition {
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
        assert!(alone.conditions.is_empty() && alone.badness(2.0) < alone.badness(1.0));
        let json = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Objective>(&json).unwrap(), read);
    }

    #[test]
    fn what_is_no_objective_is_told_with_the_grammar() {
        for (text, problem) in [
            ("", "it is empty"),
            ("minimise a:read:p99", "it begins with \"minimise\""),
            ("min", "it has no figure"),
            ("min a:read", "it has no operation and figure"),
            ("min a:read:p98", "\"p98\" is no figure"),
            ("min a:read:p99 with b:read:p99<2ms", "\"with\" stands where"),
            ("min a:read:p99 subject to", "a condition is missing"),
            ("min a:read:p99 subject to b:read:iops", "compares nothing"),
            ("min a:read:p99 subject to b:read:iops>=x*none", "does not begin with a number above 0"),
            ("min a:read:p99 subject to b:read:iops>=0*none", "does not begin with a number above 0"),
            ("min a:read:p99 subject to b:read:p99<=2", "is no value of p99"),
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
                    let told = error.to_string();
                    assert!(!is_possible && told.contains(&format!("\"{one}\" and \"{other}\" contradict")), "{told}");
                }
            }
        }
    }

    #[test]
    fn margins_are_above_zero_on_the_right_side() {
        let of =
            |text: &str| format!("min a:read:p99 subject to {text}").parse::<Objective>().unwrap().conditions.remove(0);
        let (least, below) = (of("b:read:iops>=100"), of("b:read:p99<1ms"));
        assert!(least.margin(110.0, 100.0) > 0.0 && least.margin(90.0, 100.0) < 0.0);
        assert!(below.margin(0.9e6, 1e6) > 0.0 && below.margin(1.1e6, 1e6) < 0.0);
        assert!(least.is_met(least.margin(100.0, 100.0)) && !below.is_met(below.margin(1e6, 1e6)));
        assert_eq!((least.margin(0.0, 100.0), least.margin(0.0, 0.0)), (-50.0, 0.0));
    }
}
