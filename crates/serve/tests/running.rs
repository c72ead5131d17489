//! A server that runs while a test does, and the programs that visit it.

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Whatever takes longer hangs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running server. It is killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    folder: TempDir,
}

impl Running {
    /// Starts one that listens at [`socket`](Self::socket), and waits until it does.
    pub(crate) fn start(arguments: &[&str]) -> Running {
        Running::start_in(tempfile::tempdir().unwrap(), arguments)
    }

    /// The same, with what is in a folder. `{}` in an argument is the folder.
    pub(crate) fn start_in(folder: TempDir, arguments: &[&str]) -> Running {
        let path = folder.path().to_str().unwrap().to_owned();
        let mut command = hoistway();
        command.arg("serve").args(arguments.iter().map(|argument| argument.replace("{}", &path)));
        command.args(["--socket", &format!("{path}/nbd.sock"), "--control", &format!("{path}/control.sock")]);
        Running::launch(folder, command)
    }

    /// The same for a server that does not log that it serves.
    pub(crate) fn start_quietly(folder: TempDir, arguments: &[&str]) -> Running {
        let path = folder.path().to_str().unwrap().to_owned();
        let mut command = hoistway();
        command.arg("serve").args(arguments.iter().map(|argument| argument.replace("{}", &path)));
        command.args(["--socket", &format!("{path}/nbd.sock")]);
        Running::launch_until(folder, command, |running| UnixStream::connect(running.socket()).is_ok())
    }

    /// Starts whatever becomes one, and waits until it serves.
    pub(crate) fn launch(folder: TempDir, command: Command) -> Running {
        Running::launch_until(folder, command, |running| running.log().contains("serving under"))
    }

    fn launch_until(folder: TempDir, mut command: Command, serves: impl Fn(&Running) -> bool) -> Running {
        command.stderr(File::create(folder.path().join("log")).unwrap());
        let mut running = Running { child: command.spawn().unwrap(), folder };
        running.wait_until("it serves", |running| {
            assert!(running.child.try_wait().unwrap().is_none(), "it ended: {}", running.log());
            serves(running)
        });
        running
    }

    pub(crate) fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&mut Running) -> bool) {
        let begin = Instant::now();
        while !holds(self) {
            assert!(begin.elapsed() < TIMEOUT, "waited in vain until {what}; log:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder().join("nbd.sock")
    }

    pub(crate) fn uri(&self, export: &str) -> String {
        format!("nbd+unix:///{export}?socket={}", self.socket().display())
    }

    pub(crate) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder().join("log")).unwrap()
    }

    pub(crate) fn ctl(&self, arguments: &[&str]) -> Output {
        let control = self.folder().join("control.sock");
        hoistway().arg("ctl").arg("--control").arg(control).args(arguments).output().unwrap()
    }

    pub(crate) fn id(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }

    /// Asks it to end, and waits until it has; its log, with its status behind it.
    pub(crate) fn end(mut self) -> String {
        rustix::process::kill_process(self.id(), rustix::process::Signal::TERM).unwrap();
        self.ended()
    }

    /// Waits until it has ended; its log, with its status behind it.
    pub(crate) fn ended(&mut self) -> String {
        let mut status = None;
        self.wait_until("it ends", |running| {
            status = running.child.try_wait().unwrap();
            status.is_some()
        });
        format!("{}{:?}", self.log(), status.and_then(|status| status.code()))
    }

    /// Kills it as the system would, and returns what it leaves behind.
    pub(crate) fn killed(mut self) -> TempDir {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::mem::replace(&mut self.folder, tempfile::tempdir().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary: the one that HOISTWAY_SERVER names, or the tests' own.
pub(crate) fn hoistway() -> Command {
    let named = std::env::var_os("HOISTWAY_SERVER");
    Command::new(named.unwrap_or_else(|| env!("CARGO_BIN_EXE_hoistway-serve").into()))
}

/// Whether a program is there that we compare ourselves with. Without it a test says so and ends; in CI that is an error.
pub(crate) fn is_installed(program: &str) -> bool {
    let is_found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    assert!(is_found || std::env::var("CI").is_err(), "{program} is not installed");
    if !is_found {
        eprintln!("skipped: {program} is not installed");
    }
    is_found
}

/// What a program prints. It must end well.
pub(crate) fn succeeded(program: &str, arguments: &[&str]) -> String {
    let output = Command::new("timeout").arg("60").arg(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
