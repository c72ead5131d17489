//! How far one word is from another.

/// The number of single-character insertions, deletions, replacements and swaps of neighbours that turn `a`
/// into `b`.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    let mut previous = None;
    for (i, ca) in a.chars().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &cb) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(ca != cb);
            let mut best = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if j > 0 && previous == Some(cb) && b[j - 1] == ca {
                best = best.min(before_last[j - 1] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
        previous = Some(ca);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distance_counts_edits_and_swaps() {
        for (a, b, edits) in [
            ("bs", "bs", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("iodpeth", "iodepth", 1),
            ("bsize", "size", 1),
            ("ab", "ba", 1),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
    }
}
