//! Units in words.

/// A size: `4 KiB`, `1.5 MiB`.
#[must_use]
pub fn size_in_words(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes >= 1_048_576.0 => (bytes / 1_048_576.0, "MiB"),
        bytes if bytes >= 1024.0 => (bytes / 1024.0, "KiB"),
        bytes => (bytes, "B"),
    };
    if value.fract() == 0.0 { format!("{value:.0} {unit}") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_at_most_one_decimal() {
        assert_eq!([512.0, 4096.0, 1536.0, 2_097_152.0].map(size_in_words), ["512 B", "4 KiB", "1.5 KiB", "2 MiB"]);
    }
}
