//! `hoistway top` on a terminal.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::control::refused;
use crate::running::{Running, hoistway};

/// What it shows until it is ended by these keys so much later, and whether the terminal is as it was.
fn ended_by(control: &Path, keys: &[u8], later: Duration) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: 140, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let before = tcgetattr(&theirs).unwrap().local_modes;
    assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO));
    let mut command = hoistway();
    command.arg("top").arg("--control").arg(control).env("TERM", "xterm");
    let end = || Stdio::from(theirs.try_clone().unwrap());
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    let mut screen = File::from(ours);
    let mut shown = String::new();
    let mut some = [0; 4096];
    while !shown.contains("vm1") || !shown.contains("quit;") {
        let count = screen.read(&mut some).unwrap();
        shown += &String::from_utf8_lossy(&some[..count]);
    }
    assert!(shown.contains("mq-deadline") && shown.contains("\x1b[?1049h"), "{shown:?}");
    thread::sleep(later);
    screen.write_all(keys).unwrap();
    while !shown.contains("\x1b[?1049l") {
        let count = screen.read(&mut some).unwrap();
        shown += &String::from_utf8_lossy(&some[..count]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(tcgetattr(&theirs).unwrap().local_modes, before, "the terminal is as it was");
}

#[test]
fn it_shows_the_exports_and_leaves_the_terminal_as_it_was() {
    let arguments = ["--target", "mem:4M", "--scheduler", "mq-deadline", "--export", "name=vm1"];
    let server = Running::start(&arguments);
    for keys in [b"q", b"\x03"] {
        ended_by(&server.folder().join("control.sock"), keys, Duration::ZERO);
    }
}

#[test]
fn top_can_quit_while_the_server_is_silent() {
    let arguments = ["--target", "mem:4M", "--scheduler", "mq-deadline", "--export", "name=vm1"];
    let server = Running::start(&arguments);
    let place = server.folder().join("between.sock");
    let listener = UnixListener::bind(&place).unwrap();
    let control = server.folder().join("control.sock");
    let between = thread::spawn(move || {
        let mut asked = BufReader::new(listener.accept().unwrap().0);
        let mut answers = UnixStream::connect(control).unwrap();
        let mut line = String::new();
        asked.read_line(&mut line).unwrap();
        answers.write_all(line.as_bytes()).unwrap();
        io::copy(&mut answers, &mut asked.into_inner()).unwrap();
        // The next one is left to wait.
        let left = listener.accept().unwrap().0;
        BufReader::new(&left).read_line(&mut line).unwrap();
        left
    });
    // It asks again after a second.
    ended_by(&place, b"q", Duration::from_secs(2));
    between.join().unwrap();
}

#[test]
fn top_reports_a_missing_server_or_terminal() {
    let nobody = hoistway().args(["top", "--control", "/nonexistent"]).output().unwrap();
    assert!(refused(&nobody).contains("/nonexistent: cannot connect to the server"));
    let server = Running::start(&["--target", "mem:1M"]);
    let nowhere = hoistway().arg("top").arg("--control").arg(server.folder().join("control.sock")).output().unwrap();
    assert!(refused(&nowhere).contains("top needs a terminal"));
}
