//! Skips tests that a machine does not support.

/// The document that lists the accepted reasons.
const LIST: &str = include_str!("../../../../docs/host.md");

/// Reports that a test is skipped, and why. In CI only the reasons that docs/host.md lists are accepted, since a test that is always skipped
/// tests nothing.
#[track_caller]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!is_ci || is_listed(why), "CI may not skip this: {why} (expected one of docs/host.md, What CI may skip)");
}

fn is_listed(why: &str) -> bool {
    let list = LIST.split("### What CI may skip").nth(1).unwrap_or_default();
    list.lines()
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.starts_with('#'))
        .any(|line| line.strip_prefix("- ") == Some(why))
}

#[test]
fn only_what_the_document_lists_may_be_skipped_in_ci() {
    assert!(is_listed("there is no perf"));
    assert!(!is_listed("there is no fio") && !is_listed("") && !is_listed("- "));
}
