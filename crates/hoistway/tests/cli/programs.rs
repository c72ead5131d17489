//! Commands that other programs carry out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use tempfile::tempdir;

#[test]
fn a_command_of_another_program_is_executed_there_and_named_where_it_is_missing() {
    let folder = tempdir().unwrap();
    let alone = folder.path().join("hoistway");
    fs::copy(env!("CARGO_BIN_EXE_hoistway"), &alone).unwrap();
    let run = || Command::new(&alone).args(["reproduce", "--list"]).env("PATH", folder.path()).output().unwrap();
    let output = run();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let message = String::from_utf8(output.stderr).unwrap();
    let expected = "hoistway: reproduce: needs the program hoistway-evidence, which is neither in hoistway's folder nor on PATH (build it \
                    with `cargo build -p hoistway-evidence`)\n";
    assert_eq!(message, expected);
    let program = folder.path().join("hoistway-evidence");
    fs::write(&program, "#!/bin/sh\necho \"$@\"\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(String::from_utf8(run().stdout).unwrap(), "reproduce --list\n");
}
