//! A disk that hangs: a frozen file system, or a device that answers nothing, beside others. Only clients of its own exports notice.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::hostile::request;
use crate::running::Running;
use crate::wire::Client;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// The exports of each of three disks.
const ON_DISKS: [&[&str]; 3] = [&["f1", "f2", "f3"], &["b1", "b2", "b3", "b4"], &["c1", "c2", "c3"]];
/// Which of the disks hangs.
const STALLED: usize = 0;

/// How it hangs.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// Its file system is frozen: writes wait.
    FileSystem,
    /// The program that answers for its device is stopped: everything waits that is not cached.
    Device,
}

/// A server over files on three file systems, two of which only it sees; `None` if this user may not mount them.
fn start(kind: Kind, arguments: &[&str]) -> Option<(Running, Option<Daemon>)> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap().to_owned();
    let mut script = String::from("set -e; ");
    for disk in 0..2 {
        File::create(folder.path().join(format!("image{disk}"))).unwrap().set_len(16 << 20).unwrap();
        fs::create_dir(folder.path().join(format!("disk{disk}"))).unwrap();
        let mut image = format!("{place}/image{disk}");
        if kind == Kind::Device && disk == STALLED {
            File::create(folder.path().join("device")).unwrap();
            let export = format!("fuse,id=device,node-name=image,mountpoint={place}/device,writable=on");
            script += &format!(
                "qemu-storage-daemon --daemonize --pidfile {place}/daemon.pid \
                 --blockdev file,node-name=image,filename={image} --export {export}; "
            );
            image = format!("{place}/device");
        }
        script += &format!("mkfs.ext4 -qF {image}; mount -o loop {image} {place}/disk{disk}; ");
    }
    fs::create_dir(folder.path().join("disk2")).unwrap();
    let mut exports = Vec::new();
    for (disk, names) in ON_DISKS.iter().enumerate() {
        for name in *names {
            script += &format!("dd if=/dev/zero of={place}/disk{disk}/{name} bs=256k count=1 conv=fsync status=none; ");
            exports.extend(["--export".to_owned(), format!("name={name},path={place}/disk{disk}/{name}")]);
        }
    }
    let tried = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    drop(Daemon::of(folder.path()));
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no file systems of its own ({kind:?}, {tried:?})");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{script} exec \"$@\""), "sh"]);
    command.args([env!("CARGO_BIN_EXE_hoistway-serve"), "serve"]).args(exports).args(arguments);
    command.args(["--socket", &format!("{place}/nbd.sock"), "--control", &format!("{place}/control.sock")]);
    let server = Running::launch(folder, command);
    let daemon = Daemon::of(server.folder());
    Some((server, daemon))
}

/// The program that answers for the device, until this goes.
struct Daemon(Pid);

impl Daemon {
    /// The one whose id is in this folder, if there is one.
    fn of(folder: &Path) -> Option<Daemon> {
        let id = fs::read_to_string(folder.join("daemon.pid")).ok()?;
        Some(Daemon(Pid::from_raw(id.trim().parse().ok()?)?))
    }

    fn signal(&self, signal: Signal) {
        // It may have ended.
        let _ = kill_process(self.0, signal);
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        [Signal::CONT, Signal::TERM].into_iter().for_each(|signal| self.signal(signal));
        let begin = Instant::now();
        while Path::new(&format!("/proc/{}", self.0)).exists() && begin.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.signal(Signal::KILL);
    }
}

/// The hanging disk, until this goes.
enum Stalled<'a> {
    FileSystem(String),
    Device(&'a Daemon),
}

impl Stalled<'_> {
    fn at<'a>(server: &Running, daemon: Option<&'a Daemon>) -> Stalled<'a> {
        if let Some(daemon) = daemon {
            daemon.signal(Signal::STOP);
            return Stalled::Device(daemon);
        }
        let id = server.id().as_raw_nonzero();
        // Seen from here, the server's file systems are below its own root.
        let path = format!("/proc/{id}/root{}/disk{STALLED}", server.folder().display());
        assert!(Command::new("fsfreeze").args(["-f", &path]).status().unwrap().success());
        Stalled::FileSystem(path)
    }
}

impl Drop for Stalled<'_> {
    fn drop(&mut self) {
        match self {
            Stalled::FileSystem(path) => {
                let _ = Command::new("fsfreeze").args(["-u", path]).status();
            }
            Stalled::Device(daemon) => daemon.signal(Signal::CONT),
        }
    }
}
fn send(client: &mut Client, command: u16, bytes: u32) {
    client.0.write_all(&request(0, command, 1, 0, bytes)).unwrap();
    if command == WRITE {
        client.0.write_all(&vec![7; bytes as usize]).unwrap();
    }
}

/// Whether the reply to a request comes in time.
fn is_answered(client: &mut Client, command: u16, bytes: u32) -> bool {
    let mut reply = vec![0; 16 + if command == READ { bytes as usize } else { 0 }];
    client.0.read_exact(&mut reply).is_ok_and(|()| reply[4..8] == [0; 4])
}

#[test]
fn a_frozen_disk_delays_only_its_own_exports() {
    for cache in [&[][..], &["--page-cache"]] {
        for scheduler in [None, Some("none"), Some("mq-deadline"), Some("kyber"), Some("bfq")] {
            others_go_on(Kind::FileSystem, scheduler, cache);
        }
    }
}

#[test]
fn a_device_that_answers_nothing_delays_only_its_own_exports() {
    for cache in [&[][..], &["--page-cache"]] {
        for scheduler in [None, Some("none"), Some("bfq")] {
            others_go_on(Kind::Device, scheduler, cache);
        }
    }
}

fn others_go_on(kind: Kind, scheduler: Option<&str>, cache: &[&str]) {
    let case = format!("{kind:?} {scheduler:?} {cache:?}");
    let scheduler: Vec<&str> = scheduler.into_iter().flat_map(|name| ["--scheduler", name]).collect();
    let Some((server, daemon)) = start(kind, &[cache, &scheduler].concat()) else { return };
    let stalled = Stalled::at(&server, daemon.as_ref());
    let mut stuck: Vec<_> = ON_DISKS[STALLED].iter().map(|name| Client::at(&server, name).unwrap()).collect();
    // The page cache takes a write of a device that hangs, but no flush comes back.
    let is_cached = kind == Kind::Device && !cache.is_empty();
    for client in &mut stuck {
        send(client, WRITE, 4096);
        if is_cached {
            assert!(is_answered(client, WRITE, 0), "{case}");
            send(client, FLUSH, 0);
        }
        client.0.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    }
    assert!(!is_answered(&mut stuck[0], WRITE, 0), "{case}: nothing hangs, so this proves nothing");
    for name in ON_DISKS.iter().enumerate().filter(|&(disk, _)| disk != STALLED).flat_map(|(_, names)| *names) {
        // Connecting has a timeout, too.
        let mut client = Client::at(&server, name).unwrap();
        for (command, bytes) in [(WRITE, 4096), (READ, 4096), (FLUSH, 0), (READ, 64 << 10)] {
            send(&mut client, command, bytes);
            assert!(is_answered(&mut client, command, bytes), "{case} {name}: {command}");
        }
    }
    assert!(server.ctl(&["show"]).status.success());
    drop(stalled);
    for client in &mut stuck {
        client.0.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert!(is_answered(client, WRITE, 0), "{case}");
    }
    let file = server.folder().join("disk2/c1");
    let mut byte = [0];
    File::open(file).unwrap().read_exact_at(&mut byte, 0).unwrap();
    assert!(server.end().ends_with("Some(0)"));
    assert_eq!(byte, [7]);
}
