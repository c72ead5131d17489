//! Marks and colours for the best and worst figures of a table.
//!
//! Colours are added after the layout, since escape sequences would count as text.

use std::ops::Range;

/// The mark of a figure in a column, shown as a colour or otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Green: among the best.
    Best,
    /// Red: among the worst.
    Worst,
}

impl Mark {
    fn escape(self) -> &'static str {
        match self {
            Self::Best => "\x1b[32m",
            Self::Worst => "\x1b[31m",
        }
    }
}

const RESET: &str = "\x1b[0m";

/// The line with colours for the text in these columns (ranges of characters, ascending).
pub(crate) fn paint(line: &str, marks: &[(Range<usize>, Mark)]) -> String {
    let characters: Vec<char> = line.chars().collect();
    let mut painted = String::with_capacity(line.len() + marks.len() * 9);
    let mut done = 0;
    for (column, mark) in marks {
        let column = column.start.min(characters.len())..column.end.min(characters.len());
        let text = |index: &usize| characters[*index] != ' ';
        let (Some(first), Some(last)) = (column.clone().find(text), column.rev().find(text)) else { continue };
        painted.extend(&characters[done..first]);
        painted.push_str(mark.escape());
        painted.extend(&characters[first..=last]);
        painted.push_str(RESET);
        done = last + 1;
    }
    painted.extend(&characters[done..]);
    painted
}

/// The marks of a column's values; no marks if all of them look the same.
///
/// `shown` is the visible text: values with the same text count as equal.
pub(crate) fn marks(values: &[f64], shown: &[String], higher_is_better: bool) -> Vec<Option<Mark>> {
    let rank_value = |index: &usize| if higher_is_better { values[*index] } else { -values[*index] };
    let by_rank = |a: &usize, b: &usize| rank_value(a).total_cmp(&rank_value(b));
    let indexes = 0..values.len();
    let (Some(worst), Some(best)) = (indexes.clone().min_by(by_rank), indexes.clone().max_by(by_rank)) else {
        return Vec::new();
    };
    let mark = |index: usize| match &shown[index] {
        _ if shown[best] == shown[worst] => None,
        text if *text == shown[best] => Some(Mark::Best),
        text if *text == shown[worst] => Some(Mark::Worst),
        _ => None,
    };
    indexes.map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_of_a_cell_is_coloured() {
        let painted = paint("none   12 µs   7 ms", &[(4..12, Mark::Best), (12..30, Mark::Worst)]);
        assert_eq!(painted, "none   \x1b[32m12 µs\x1b[0m   \x1b[31m7 ms\x1b[0m");
        assert_eq!(paint("none", &[(10..12, Mark::Best)]), "none");
    }

    #[test]
    fn equal_looking_values_get_the_same_mark() {
        let shown = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let marked = marks(&[1.001, 2.0, 1.002, 1.5], &shown(&["1.00", "2.00", "1.00", "1.50"]), true);
        assert_eq!(marked, [Some(Mark::Worst), Some(Mark::Best), Some(Mark::Worst), None]);
        assert_eq!(marks(&[1.001, 1.002], &shown(&["1.00", "1.00"]), false), [None, None]);
        assert_eq!(marks(&[], &[], true), []);
    }
}
