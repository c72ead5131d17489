//! Commands of `hoistway-serve`, which `hoistway` executes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::tempdir;

use crate::support::printed;

/// A program named `hoistway-serve` that prints its arguments.
fn put_server_into(folder: &Path) {
    let program = folder.join("hoistway-serve");
    fs::write(&program, "#!/bin/sh\nprintf '[%s]' \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn serve_ctl_and_top_are_executed_beside_hoistway_or_on_the_path() {
    let (own, elsewhere) = (tempdir().unwrap(), tempdir().unwrap());
    let program = own.path().join("hoistway");
    let built = env!("CARGO_BIN_EXE_hoistway");
    fs::hard_link(built, &program).or_else(|_| fs::copy(built, &program).map(drop)).unwrap();
    let run = |arguments: &[&str]| -> Output {
        let path = format!("{}:/usr/bin:/bin", elsewhere.path().display());
        Command::new(&program).args(arguments).env("PATH", path).output().unwrap()
    };
    for command in ["serve", "ctl", "top"] {
        let output = run(&[command, "--control", "x"]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).unwrap();
        let missing = "needs the program hoistway-serve, which is neither in hoistway's folder nor on PATH";
        assert!(said.contains(&format!("hoistway: {command}: {missing}")) && said.lines().count() == 1, "{said}");
    }
    for folder in [&elsewhere, &own] {
        put_server_into(folder.path());
        let output = run(&["serve", "--target", "mem:1M", "--help", "a b"]);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "[serve][--target][mem:1M][--help][a b]");
        assert_eq!(output.status.code(), Some(7));
    }
    fs::set_permissions(own.path().join("hoistway-serve"), fs::Permissions::from_mode(0o644)).unwrap();
    let said = String::from_utf8(run(&["top"]).stderr).unwrap();
    assert!(said.contains("top: cannot execute") && said.contains("Permission denied"), "{said}");
}

#[test]
fn help_completions_and_manual_pages_list_the_commands_of_the_server() {
    let help = printed(&["help", "serve"]);
    assert!(help.contains("--max-connections") && help.contains("--vhost-user"), "{help}");
    let all = printed(&["--help"]);
    let bash = printed(&["completions", "bash"]);
    let folder = tempdir().unwrap();
    let pages = printed(&["man", folder.path().to_str().unwrap()]);
    for command in ["serve", "ctl", "top"] {
        assert!(all.contains(&format!("\n  {command} ")), "{all}");
        assert!(bash.contains(&format!("hoistway,{command})")), "{command}");
        assert!(pages.contains(&format!("hoistway-{command}.1")), "{pages}");
    }
    assert!(bash.contains("--fixed-buffers"));
}
