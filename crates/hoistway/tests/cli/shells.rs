//! What is installed beside the binary: completions and manual pages.

use std::fs;
use std::process::Command;

use tempfile::tempdir;

use crate::support::{hoistway, printed};

/// Whether a program that judges our output is there. Where everything has to be tested, it must be.
fn is_installed(program: &str) -> bool {
    let is_installed = Command::new(program).arg("--version").output().is_ok();
    assert!(is_installed || std::env::var_os("CI").is_none(), "{program} is not installed");
    if !is_installed {
        eprintln!("skipped: {program} is not installed");
    }
    is_installed
}

#[test]
fn every_shell_gets_completions_of_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = printed(&["completions", shell]);
        for word in ["compare", "scenarios", "fio-logs", "repeat"] {
            assert!(text.contains(word), "{shell} lacks {word}");
        }
    }
}

#[test]
fn bash_takes_the_completions_and_completes_with_them() {
    if !is_installed("bash") {
        return;
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("completions");
    fs::write(&file, printed(&["completions", "bash"])).unwrap();
    let script = format!(
        "source {}; COMP_WORDS=(hoistway compare --repea); COMP_CWORD=2; _hoistway hoistway --repea compare; \
         echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "--repeat", "{output:?}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempdir().unwrap();
    let written = printed(&["man", folder.path().to_str().unwrap()]);
    let names: Vec<&str> = written.lines().collect();
    for name in ["hoistway.1", "hoistway-compare.1", "hoistway-scenarios.1"] {
        assert!(names.contains(&name), "{written}");
        let page = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(page.contains(".TH ") && page.contains(".SH NAME") && page.contains(".SH DESCRIPTION"), "{page}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), names.len());
    assert!(printed(&["man"]).contains(".TH "));
}

#[test]
fn manual_pages_make_their_folder_or_say_that_it_cannot_be() {
    let folder = tempdir().unwrap();
    let new = folder.path().join("share").join("man1");
    printed(&["man", new.to_str().unwrap()]);
    assert!(new.join("hoistway.1").is_file());
    let output = hoistway().args(["man", "/dev/null/man1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("man /dev/null/man1: cannot be made"));
}
