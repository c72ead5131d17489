//! Redirects a fio job file to another target.

use std::path::Path;

/// Options that name the target, or combine processes in fio's document.
const DROPPED: [&str; 6] = ["filename", "directory", "filename_format", "group_reporting", "output", "output-format"];

/// The job file with this target for all jobs, and with this runtime in ms, if given.
///
/// # Errors
/// If it includes another file, which may set the same options.
pub(super) fn on_target(text: &str, target: &Path, runtime_ms: Option<u64>) -> Result<String, String> {
    let mut dropped = DROPPED.to_vec();
    // fio takes a colon as a separator of file names.
    let mut redirected = format!("[global]\nfilename={}\n", target.display().to_string().replace(':', "\\:"));
    if let Some(ms) = runtime_ms {
        dropped.extend(["runtime", "timeout", "time_based"]);
        redirected += &format!("runtime={ms}ms\ntime_based=1\n");
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
        let own = on_target(text, Path::new("/dev/b:1"), None).unwrap();
        assert_eq!(own, "[global]\nfilename=/dev/b\\:1\n; a comment\n[global]\nbs=4k\n[a]\nrw=read\nruntime=30s\n");
        let own = on_target(text, Path::new("/dev/b"), Some(500)).unwrap();
        assert!(own.starts_with("[global]\nfilename=/dev/b\nruntime=500ms\ntime_based=1\n") && !own.contains("30s"));
        assert!(on_target("[a]\ninclude other.fio\n", Path::new("x"), None).unwrap_err().starts_with("line 2: "));
    }
}
