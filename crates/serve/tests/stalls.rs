//! A disk that hangs: a frozen file system beside others. Only clients of its own exports notice.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::time::Duration;

use crate::hostile::request;
use crate::running::Running;
use crate::wire::Client;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// The exports of each of three disks.
const ON_DISKS: [&[&str]; 3] = [&["f1", "f2", "f3"], &["b1", "b2", "b3", "b4"], &["c1", "c2", "c3"]];
/// Which of the disks freezes.
const FROZEN: usize = 0;

/// A server over files on three file systems, two of which only it sees; `None` if this user may not mount them.
fn start(arguments: &[&str]) -> Option<Running> {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap().to_owned();
    let mut script = String::new();
    for disk in 0..2 {
        File::create(folder.path().join(format!("image{disk}"))).unwrap().set_len(16 << 20).unwrap();
        fs::create_dir(folder.path().join(format!("disk{disk}"))).unwrap();
        script +=
            &format!("mkfs.ext4 -qF {place}/image{disk} && mount -o loop {place}/image{disk} {place}/disk{disk} && ");
    }
    fs::create_dir(folder.path().join("disk2")).unwrap();
    let tried = Command::new("unshare").args(["--mount", "sh", "-c", &format!("{script} true")]).output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no file systems of its own ({tried:?})");
        return None;
    }
    let mut command = Command::new("unshare");
    let mut exports = Vec::new();
    for (disk, names) in ON_DISKS.iter().enumerate() {
        for name in *names {
            script += &format!("dd if=/dev/zero of={place}/disk{disk}/{name} bs=256k count=1 status=none && ");
            exports.extend(["--export".to_owned(), format!("name={name},path={place}/disk{disk}/{name}")]);
        }
    }
    command.args(["--mount", "sh", "-c", &format!("{script} exec \"$@\""), "sh"]);
    command.args([env!("CARGO_BIN_EXE_hoistway-serve"), "serve"]).args(exports).args(arguments);
    command.args(["--socket", &format!("{place}/nbd.sock"), "--control", &format!("{place}/control.sock")]);
    Some(Running::launch(folder, command))
}

/// The frozen file system, until this goes.
struct Frozen(String);

impl Frozen {
    fn at(server: &Running) -> Frozen {
        let id = server.id().as_raw_nonzero();
        // Seen from here, the server's file systems are below its own root.
        let path = format!("/proc/{id}/root{}/disk{FROZEN}", server.folder().display());
        assert!(Command::new("fsfreeze").args(["-f", &path]).status().unwrap().success());
        Frozen(path)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").args(["-u", &self.0]).status();
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
            let scheduler: Vec<&str> = scheduler.into_iter().flat_map(|name| ["--scheduler", name]).collect();
            let Some(server) = start(&[cache, &scheduler].concat()) else { return };
            let frozen = Frozen::at(&server);
            let mut stuck: Vec<_> = ON_DISKS[FROZEN].iter().map(|name| Client::at(&server, name).unwrap()).collect();
            for client in &mut stuck {
                send(client, WRITE, 4096);
                client.0.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            }
            assert!(!is_answered(&mut stuck[0], WRITE, 0), "nothing is frozen, so this proves nothing");
            for name in ON_DISKS.iter().enumerate().filter(|&(disk, _)| disk != FROZEN).flat_map(|(_, names)| *names) {
                // Connecting has a timeout, too.
                let mut client = Client::at(&server, name).unwrap();
                for (command, bytes) in [(WRITE, 4096), (READ, 4096), (FLUSH, 0), (READ, 64 << 10)] {
                    send(&mut client, command, bytes);
                    assert!(is_answered(&mut client, command, bytes), "{scheduler:?} {cache:?} {name}: {command}");
                }
            }
            assert!(server.ctl(&["show"]).status.success());
            drop(frozen);
            for client in &mut stuck {
                client.0.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                assert!(is_answered(client, WRITE, 0), "{scheduler:?} {cache:?}");
            }
            let file = server.folder().join("disk2/c1");
            let mut byte = [0];
            File::open(file).unwrap().read_exact_at(&mut byte, 0).unwrap();
            assert!(server.end().ends_with("Some(0)"));
            assert_eq!(byte, [7]);
        }
    }
}

#[test]
fn exports_of_one_disk_share_a_queue_and_a_scheduler_can_be_set_for_each_disk() {
    let Some(server) = start(&[]) else { return };
    let shown =
        || -> serde_json::Value { serde_json::from_slice(&server.ctl(&["show", "--format", "json"]).stdout).unwrap() };
    let state = shown();
    let disks: Vec<_> = state["disks"].as_array().unwrap().iter().map(|disk| disk["name"].as_str().unwrap()).collect();
    assert_eq!(disks.len(), 3);
    for export in state["exports"].as_array().unwrap() {
        let (name, disk) = (export["name"].as_str().unwrap(), export["disk"].as_str().unwrap());
        let expected = ON_DISKS.iter().position(|names| names.contains(&name)).unwrap();
        assert_eq!(disk, disks[expected], "{name}");
    }
    let schedulers = || {
        let state = shown();
        let disks = state["disks"].as_array().unwrap().clone();
        disks.iter().map(|disk| disk["schedulers"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let set = |arguments: &[&str]| {
        let output = server.ctl(&[&["set"], arguments].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(set(&["scheduler=mq-deadline"]).0, Some(0));
    assert_eq!(set(&["--disk", disks[1], "scheduler=bfq"]).0, Some(0));
    assert!(["[mq-deadline]", "[bfq]", "[mq-deadline]"].iter().zip(schedulers()).all(|(name, all)| all.contains(name)));
    // A tunable goes where its scheduler is.
    assert_eq!(set(&["bfq.low_latency=0", "mq-deadline.fifo_batch=3"]).0, Some(0));
    for (arguments, why) in [
        (&["kyber.read_lat_nsec=1"][..], "no disk has the scheduler \"kyber\""),
        (&["--disk", "sdzz", "scheduler=bfq"], "unknown disk \"sdzz\" (expected one of "),
        (&["--disk", disks[0], "bfq.low_latency=0"], "the scheduler is mq-deadline"),
    ] {
        let (status, said) = set(arguments);
        assert!(status == Some(2) && said.contains(why), "{arguments:?}: {said}");
    }
    // A file on a disk that is not served yet gets a queue of its own.
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let add = format!("name=new,path={}", file.path().display());
    assert_eq!(server.ctl(&["add", &add]).status.code(), Some(0));
    assert_eq!(shown()["disks"].as_array().unwrap().len(), 4);
    assert!(Client::at(&server, "new").unwrap().is_served());
    assert_eq!(server.ctl(&["remove", "new"]).status.code(), Some(0));
    assert!(server.end().ends_with("Some(0)"));
}
