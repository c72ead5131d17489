//! Recordings that are refused before anything is created.

use std::fs;
use std::process::Command;

use crate::skips::skipped;
use crate::support::Bench;

#[track_caller]
fn refused(bench: &Bench, arguments: &[&str], words: &[&str]) {
    let before = fs::read_dir(bench.folder.path()).unwrap().count();
    let output = bench.hoistway().arg("record").args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{output:?}");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
    assert_eq!(fs::read_dir(bench.folder.path()).unwrap().count(), before);
    assert_eq!(Bench::instances(), [""; 0]);
}

#[test]
fn devices_and_names_that_cannot_be_are_refused() {
    let Some(bench) = Bench::new() else { return };
    let device = &*bench.device;
    refused(&bench, &["no-such-disk", "-o", "x"], &["no-such-disk: no such device (expected one of ", bench.name()]);
    refused(&bench, &["/dev/no-such-disk", "-o", "x"], &["/dev/no-such-disk: no such device"]);
    refused(&bench, &["./disk", "-o", "x"], &["is not a block device"]);
    refused(&bench, &[device, "-o", "missing/x"], &["missing/x: ", "expected NAME in an existing writable folder"]);
    refused(&bench, &[device, "-o", "x/"], &["x/: this is not a recording name"]);
    refused(&bench, &[device, "-o", "x", "--for", "0s"], &["--for"]);
    refused(&bench, &[device, "-o", "x", "--max", "much"], &["--max", "such as 1G"]);
    refused(&bench, &[device, "-o", "x", "--buffer", "1k"], &["--buffer", "64K to 4G"]);
}

#[test]
fn without_privileges_the_error_names_the_missing_ones() {
    let Some(bench) = Bench::new() else { return };
    // The binary may be in a folder that only root may enter, so a copy is used.
    let binary = bench.path("hoistway");
    fs::copy(env!("CARGO_BIN_EXE_hoistway"), &binary).unwrap();
    fs::create_dir(bench.path("open")).unwrap();
    for path in [bench.folder.path(), &bench.path("open")] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(path, mode).unwrap();
    }
    let arguments = ["--reuid=65534", "--clear-groups"];
    let mut command = Command::new("setpriv");
    command
        .args(arguments)
        .arg(&binary)
        .args(["record", bench.name(), "-o", "open/x"])
        .current_dir(bench.folder.path());
    let Ok(output) = command.output() else {
        skipped("there is no setpriv");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("permission denied (expected root"), "{output:?}");
}
