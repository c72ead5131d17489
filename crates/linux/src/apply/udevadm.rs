//! Checks rules with udevadm.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

/// The first version of systemd whose udevadm has `verify`.
const VERIFIES_SINCE: u32 = 254;

/// The program udevadm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Udevadm {
    program: String,
    version: u32,
}

impl Udevadm {
    /// The program with this name or path; `None` if it cannot be run.
    #[must_use]
    pub fn find(program: &str) -> Option<Udevadm> {
        let text = run(program, &["--version"]).ok().filter(|output| output.status.success())?.stdout;
        let text = String::from_utf8_lossy(&text).into_owned();
        // Distributions append their own version: "254 (254.5-1)".
        let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
        Some(Udevadm { program: program.to_owned(), version: digits.parse().ok()? })
    }

    /// Checks a rule with `udevadm verify`; does nothing before version 254, which introduced it.
    ///
    /// # Errors
    /// The message of udev.
    pub fn verify(&self, rule: &str) -> Result<(), String> {
        if self.version < VERIFIES_SINCE {
            return Ok(());
        }
        let file = tempfile::Builder::new().suffix(".rules").tempfile().and_then(|mut file| {
            file.write_all(rule.as_bytes())?;
            Ok(file)
        });
        let file = file.map_err(|error| format!("no file for udevadm verify: {error}"))?;
        let output = run(&self.program, &["verify", &file.path().to_string_lossy()])?;
        if output.status.success() {
            return Ok(());
        }
        let messages = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        let line = messages.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Err(format!("udevadm verify: {}", line.replace(&*file.path().to_string_lossy(), "the rule")))
    }

    /// Runs all rules for a device as for a `change` event. Before version 257 this writes the device's attributes.
    ///
    /// # Errors
    /// If udevadm cannot be run, or fails.
    pub fn test(&self, device: &str) -> Result<(), String> {
        let output = run(&self.program, &["test", "--action=change", &format!("/sys/block/{device}")])?;
        if output.status.success() { Ok(()) } else { Err(format!("udevadm test ended with {}", output.status)) }
    }

    /// Makes a running udevd reload its rules. Errors are ignored: without udevd there is nothing to reload.
    pub(super) fn reload(&self) {
        let _ = run(&self.program, &["control", "--reload"]);
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<Output, String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.map_err(|error| format!("{program}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A fake udevadm of this version, which rejects rules that contain the word "bad".
    fn program(version: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("udevadm");
        let text = format!(
            "#!/bin/sh\ncase $1 in --version) echo '{version}';; verify) ! grep -q bad \"$2\" || {{ echo \"$2:1 Invalid\" >&2; exit 1; }};; *) exit 3;; esac\n"
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path.to_string_lossy().into_owned())
    }

    #[test]
    fn versions_that_can_verify_do_and_older_ones_are_not_asked() {
        let (_folder, new) = program("256 (256.4-2)");
        let udevadm = Udevadm::find(&new).unwrap();
        assert_eq!(udevadm.verify("good"), Ok(()));
        assert_eq!(udevadm.verify("bad"), Err("udevadm verify: the rule:1 Invalid".to_owned()));
        assert!(udevadm.test("sda").unwrap_err().contains("udevadm test ended with"));
        let (_folder, old) = program("252");
        assert_eq!(Udevadm::find(&old).unwrap().verify("bad"), Ok(()));
        assert_eq!(Udevadm::find("/no/such/program"), None);
    }
}
