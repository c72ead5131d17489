//! Redirects a fio job file to another target.
//!
//! Used by: `real`; crate `hoistway`.
//! Tests: below, `crates/hoistway/tests/machine/verify.rs`.

use std::path::Path;

use super::error;
use crate::{Comparison, Error, Field, Load, LoadText};

/// Options that name the target, or combine processes in fio's document.
const DROPPED: [&str; 6] = ["filename", "directory", "filename_format", "group_reporting", "output", "output-format"];

/// A job file with this target for all jobs, and with the runtime and the ramp time of the comparison, if it has any.
///
/// # Errors
/// If it includes another file, which may set the same options.
pub fn on_target(job_file: &LoadText, target: &Path, comparison: &Comparison) -> Result<Load, Error> {
    let redirected = redirected(job_file.text(), target, comparison);
    let text = redirected.map_err(|why| error(Field::Load, format!("{}: {why}", job_file.name())))?;
    Ok(Load::Text { name: job_file.name().to_owned(), text })
}

fn redirected(text: &str, target: &Path, comparison: &Comparison) -> Result<String, String> {
    let mut dropped = DROPPED.to_vec();
    // fio takes a colon as a separator of file names.
    let mut redirected = format!("[global]\nfilename={}\n", target.display().to_string().replace(':', "\\:"));
    if let Some(ns) = comparison.runtime_ns {
        dropped.extend(["runtime", "timeout", "time_based"]);
        redirected += &format!("runtime={}ms\ntime_based=1\n", (ns / 1_000_000).max(1));
    }
    if let Some(ns) = comparison.ramp_ns {
        dropped.push("ramp_time");
        redirected += &format!("ramp_time={}ms\n", ns / 1_000_000);
    }
    for (index, line) in text.lines().enumerate() {
        let name = line.split(['=', ';', '#']).next().unwrap_or_default().trim();
        if line.trim_start().starts_with("include ") {
            return Err(format!("line {}: includes another file (expected a job file without include)", index + 1));
        }
        if !dropped.contains(&name) {
            redirected += line;
            redirected.push('\n');
        }
    }
    Ok(redirected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_and_the_runtime_are_replaced_and_all_else_stays() {
        let text = "; a comment\n[global]\nbs=4k\ngroup_reporting\nfilename=/dev/sda\n[a]\nrw=read\nruntime=30s\n";
        let own = redirected(text, Path::new("/dev/b:1"), &Comparison::default()).unwrap();
        assert_eq!(own, "[global]\nfilename=/dev/b\\:1\n; a comment\n[global]\nbs=4k\n[a]\nrw=read\nruntime=30s\n");
        let times = Comparison { runtime_ns: Some(500_000_000), ramp_ns: Some(20_000_000), ..Comparison::default() };
        let own = redirected(text, Path::new("/dev/b"), &times).unwrap();
        let expected = "[global]\nfilename=/dev/b\nruntime=500ms\ntime_based=1\nramp_time=20ms\n";
        assert!(own.starts_with(expected) && !own.contains("30s"), "{own}");
        let including = redirected("[a]\ninclude other.fio\n", Path::new("x"), &Comparison::default());
        assert!(including.unwrap_err().starts_with("line 2: "));
    }
}
