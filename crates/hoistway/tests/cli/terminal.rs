//! What differs on a terminal.

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What the binary prints on a terminal of so many columns.
fn on_a_terminal(columns: u16, environment: &[(&str, &str)]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    tcsetwinsize(&theirs, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hoistway"));
    command.args(["compare", "--runtime", "50ms"]).env_remove("NO_COLOR").env("TERM", "xterm");
    command.envs(environment.iter().copied());
    let mut child = command.stdin(Stdio::null()).stdout(theirs).stderr(Stdio::null()).spawn().unwrap();
    // It holds a copy of their end.
    drop(command);
    let mut printed = Vec::new();
    // The end of what a terminal prints is an error (EIO).
    let _ = File::from(ours).read_to_end(&mut printed);
    assert!(child.wait().unwrap().success());
    String::from_utf8(printed).unwrap()
}

#[test]
fn tables_are_coloured_on_a_terminal_unless_no_color_is_set() {
    let coloured = on_a_terminal(160, &[]);
    assert!(coloured.contains("\x1b[32m") && coloured.contains("\x1b[0m"), "{coloured:?}");
    // https://no-color.org: an empty value does not count.
    assert_eq!(on_a_terminal(160, &[("NO_COLOR", "")]), coloured);
    let plain = on_a_terminal(160, &[("NO_COLOR", "1")]);
    assert!(!plain.contains('\x1b'), "{plain:?}");
    let mut without = coloured;
    for escape in ["\x1b[32m", "\x1b[31m", "\x1b[0m"] {
        without = without.replace(escape, "");
    }
    assert_eq!(without, plain);
}

#[test]
fn a_terminal_of_any_width_will_do() {
    for columns in [0, 1, 20, 80, u16::MAX] {
        assert!(on_a_terminal(columns, &[("NO_COLOR", "1")]).contains("mq-deadline"), "{columns} columns");
    }
}
