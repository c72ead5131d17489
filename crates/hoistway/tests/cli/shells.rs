//! The files installed with the binary: shell completions and manual pages.

use std::fs;
use std::process::Command;

use tempfile::tempdir;

use crate::pty::{Session, terminal};
use crate::support::{hoistway, printed};

/// Whether a program that checks our output is installed. Where all tests are required, it must be.
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
fn bash_completes_the_names_of_devices_hosts_schedulers_loads_kernels_and_tunables() {
    if !is_installed("bash") {
        return;
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("completions");
    fs::write(&file, printed(&["completions", "bash"])).unwrap();
    let completed = |words: &[&str]| -> String {
        let (last, before) = (words.last().unwrap(), words[words.len() - 2]);
        let line = shell_words::join(words);
        let script = format!(
            "source {}; COMP_WORDS=({line}); COMP_CWORD={}; _hoistway hoistway '{last}' '{before}'; echo \"${{COMPREPLY[@]}}\"",
            file.display(),
            words.len() - 1
        );
        let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    for (words, expected) in [
        (&["compare", "my.fio", "--device", "hg"][..], "hgst-he10-8tb"),
        (&["compare", "my.fio", "--device", "cl"], "cloud-volume"),
        (&["compare", "my.fio", "--host", "se"], "server"),
        (&["compare", "my.fio", "--schedulers", "ky"], "kyber"),
        (&["compare", "my.fio", "--elevator", "dead"], "deadline"),
        (&["compare", "my.fio", "--kernel", "4.1"], "4.12 4.19"),
        (&["compare", "my.fio", "--set", "bfq.low"], "bfq.low_latency="),
        (&["compare", "desk"], "desktop-freeze"),
        (&["scenarios", "data"], "database"),
        (&["devices", "usb"], "usb-stick"),
        (&["explain", "queue.nr"], "queue.nr_requests"),
    ] {
        assert_eq!(completed(&[&["hoistway"], words].concat()), expected, "{words:?}");
    }
    assert_eq!(completed(&["hoistway", "compare", "my.fio", "--device", "./my"]), "", "then bash offers files");
    assert!(fs::read_to_string(&file).unwrap().contains("-o default hoistway"));
}

#[test]
fn fish_takes_the_completions_and_completes_with_them() {
    if !is_installed("fish") {
        return;
    }
    let folder = tempdir().unwrap();
    let file = folder.path().join("completions");
    fs::write(&file, printed(&["completions", "fish"])).unwrap();
    let completed = |line: &str| -> Vec<String> {
        let script = format!("source {}; complete -C '{line}'", file.display());
        let output = Command::new("fish").args(["--no-config", "-c", &script]).env("HOME", folder.path()).output();
        let output = output.unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        // A tab separates a completion from its description.
        text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
    };
    for (line, expected) in [
        ("hoistway compa", "compare"),
        ("hoistway compare --repea", "--repeat"),
        ("hoistway compare my.fio --device hg", "hgst-he10-8tb"),
        ("hoistway compare my.fio --schedulers ky", "kyber"),
        ("hoistway compare my.fio --set bfq.low", "bfq.low_latency="),
        ("hoistway tune my.fio --objec", "--objective"),
        ("hoistway tune my.fio --over ky", "kyber"),
    ] {
        assert_eq!(completed(line), [expected], "{line}");
    }
}

#[test]
fn zsh_takes_the_completions_and_completes_with_them() {
    if !is_installed("zsh") {
        return;
    }
    let folder = tempdir().unwrap();
    let (file, seen) = (folder.path().join("completions"), folder.path().join("seen"));
    fs::write(&file, printed(&["completions", "zsh"])).unwrap();
    let (ours, theirs) = terminal(200);
    let mut command = Command::new("zsh");
    command.args(["-f", "-i"]).env("TERM", "xterm").env("HOME", folder.path()).env("ZDOTDIR", folder.path());
    command.stdin(theirs.try_clone().unwrap()).stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let mut session = Session::new(ours, command);
    // A key that completes the line, and writes the line, completed or not, to a file.
    session.types(&format!(
        "PS1='; '; autoload -U compinit; compinit -u -D; source {}; \
         tell() {{ zle complete-word; print -r -- \"$BUFFER\" > {seen}.new; mv {seen}.new {seen} }}; zle -N tell; \
         bindkey '^T' tell; print REA''DY\n",
        file.display(),
        seen = seen.display()
    ));
    session.wait_until("the shell", |printed| printed.contains("READY"));
    for (line, expected) in [
        ("hoistway compa", "hoistway compare"),
        ("hoistway compare --repea", "hoistway compare --repeat"),
        ("hoistway compare my.fio --device hg", "hoistway compare my.fio --device hgst-he10-8tb"),
        ("hoistway compare my.fio --schedulers ky", "hoistway compare my.fio --schedulers kyber"),
        ("hoistway compare desk", "hoistway compare desktop-freeze"),
        ("hoistway tune my.fio --objec", "hoistway tune my.fio --objective"),
    ] {
        session.types(&format!("{line}\u{14}"));
        session.wait_until(line, |_| seen.exists());
        // After an option that takes a value, values are offered at once.
        let completed = fs::read_to_string(&seen).unwrap();
        assert_eq!(completed.trim_end().trim_end_matches('='), expected, "{line}");
        fs::remove_file(&seen).unwrap();
        // Clears the line.
        session.types("\u{15}");
    }
}

#[test]
fn zsh_and_fish_completions_offer_the_same_names() {
    for shell in ["zsh", "fish"] {
        let text = printed(&["completions", shell]);
        for name in ["hgst-he10-8tb", "cloud-volume", "server", "kyber", "bfq.low_latency=", "4.19"] {
            assert!(text.contains(name), "{shell} lacks {name}");
        }
    }
    assert!(printed(&["completions", "zsh"]).contains("desktop-freeze"), "completions for fish have options only");
}

#[test]
fn names_in_completions_are_not_all_that_may_be_typed() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(&file, printed(&["devices", "null", "--toml"])).unwrap();
    let arguments = ["compare", "--runtime", "20ms", "--schedulers", "none", "--device", file.to_str().unwrap()];
    assert!(printed(&arguments).contains(" on null,"));
    assert!(!printed(&["man"]).contains("hgst-he10-8tb"), "and pages do not list them");
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
    assert!(String::from_utf8_lossy(&output.stderr).contains("man /dev/null/man1: cannot be created"));
}
