//! A pseudo-terminal on which a program runs, and a user who types and reads there.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Output that has not come after this time counts as missing.
const LIMIT: Duration = Duration::from_secs(120);

/// Both ends of a terminal with this many columns: ours, and that of the program.
pub(crate) fn terminal(columns: u16) -> (OwnedFd, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let theirs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    tcsetwinsize(&theirs, Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (ours, theirs)
}

/// A program on a terminal, killed when dropped.
pub(crate) struct Session {
    pub(crate) child: Child,
    keys: File,
    heard: Receiver<Vec<u8>>,
    /// Everything printed so far.
    pub(crate) printed: String,
}

impl Session {
    /// Starts a command whose standard streams are, or are not, this terminal.
    pub(crate) fn new(ours: OwnedFd, mut command: Command) -> Session {
        let child = command.spawn().unwrap();
        // The command holds copies of the program's end.
        drop(command);
        let keys = File::from(ours);
        let mut screen = keys.try_clone().unwrap();
        let (sender, heard) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading the end of a terminal's output fails with EIO.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Session { child, keys, heard, printed: String::new() }
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the condition holds of the output, or of anything else that the closure checks.
    pub(crate) fn wait_until(&mut self, what: &str, holds: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        while !holds(&self.printed) {
            assert!(begin.elapsed() < LIMIT, "{what} never came: {:?}", self.printed);
            match self.heard.recv_timeout(Duration::from_millis(50)) {
                Ok(bytes) => self.printed += &String::from_utf8_lossy(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    assert!(holds(&self.printed), "{what} never came: {:?}", self.printed);
                }
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
