//! Disks of the system, as they really are: a block device, one without space, one that is in use elsewhere.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::running::{Running, hoistway, is_installed, succeeded};

/// A file as a block device. It is given back when this goes.
struct Loop(PathBuf);

impl Loop {
    /// `None` if the system does not give us one, which is said.
    fn over(file: &Path) -> Option<Loop> {
        let output = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        match output {
            Ok(output) if output.status.success() => {
                Some(Loop(String::from_utf8(output.stdout).unwrap().trim().into()))
            }
            other => {
                eprintln!("skipped: no loop device ({other:?})");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

/// What `qemu-io` makes of these commands on a disk.
fn qemu_io(options: &[&str], commands: &[&str], disk: &str) -> Output {
    let mut program = Command::new("timeout");
    program.args(["60", "qemu-io", "-f", "raw"]).args(options);
    commands.iter().for_each(|command| _ = program.args(["-c", command]));
    program.arg(disk).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn a_served_block_device_is_readable_writable_and_exclusive() {
    if !is_installed("qemu-io") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    File::create(&backing).unwrap().set_len(16 << 20).unwrap();
    let Some(device) = Loop::over(&backing) else { return };
    let target = format!("blk:{}", device.0.display());
    for scheduler in ["none", "bfq"] {
        let server = Running::start(&["--target", &target, "--scheduler", scheduler, "--workers", "2"]);
        let second = hoistway().args(["serve", "--target", &target, "--socket"]).arg(folder.path().join("s")).output();
        let second = second.unwrap();
        assert_eq!(second.status.code(), Some(2));
        assert!(said(&second).contains("busy"), "{}", said(&second));
        let commands = [
            "write -P 0x11 0 4M",
            "write -f -P 0x22 1M 64k",
            "write -z 2M 64k",
            "discard 3M 1M",
            "flush",
            "read -P 0x22 1M 64k",
            "read -P 0 2M 64k",
            "read -P 0x11 65536 64k",
        ];
        let done = qemu_io(&[], &commands, &server.uri(""));
        assert!(done.status.success() && !said(&done).contains("failed"), "{}", said(&done));
        assert!(server.end().ends_with("Some(0)"));
    }
    // Another way to the same bytes.
    let seen = fs::read(&device.0).unwrap();
    assert_eq!(seen.len(), 16 << 20);
    let holds = |from: usize, byte: u8| seen[from..from + (64 << 10)].iter().all(|&it| it == byte);
    assert!(holds(0, 0x11) && holds(1 << 20, 0x22) && holds(2 << 20, 0) && holds((2 << 20) + (64 << 10), 0x11));
}

/// A file system of 2 MiB that only the server sees, within a name space of its own.
#[test]
fn a_full_disk_is_reported_to_the_writer_and_writing_resumes_with_space() {
    if !is_installed("qemu-io") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let space = if is_root { &["--mount"][..] } else { &["--user", "--map-root-user", "--mount"] };
    let small = folder.path().join("small");
    fs::create_dir(&small).unwrap();
    let mount = format!("mount -t tmpfs -o size=2M none {}", small.display());
    let tried = Command::new("unshare").args(space).args(["sh", "-c", &mount]).output();
    if !tried.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no name space with a file system of its own ({tried:?})");
        return;
    }
    File::create(folder.path().join("other")).unwrap().set_len(1 << 20).unwrap();
    let place = folder.path().to_str().unwrap().to_owned();
    let prepare = format!("{mount} && truncate -s 16M {place}/small/disk && truncate -s 1M {place}/small/ballast");
    let script =
        format!("{prepare} && dd if=/dev/zero of={place}/small/ballast bs=1M count=1 status=none && exec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(space).args(["sh", "-c", &script, "sh", env!("CARGO_BIN_EXE_hoistway-serve"), "serve"]);
    command.args(["--export", &format!("name=full,path={place}/small/disk")]);
    command.args(["--export", &format!("name=other,path={place}/other")]);
    command.args(["--socket", &format!("{place}/nbd.sock"), "--control", &format!("{place}/control.sock")]);
    let mut server = Running::launch(folder, command);

    let neighbour_works = |server: &Running| {
        let done = qemu_io(&[], &["write -P 7 0 64k", "flush", "read -P 7 0 64k"], &server.uri("other"));
        assert!(done.status.success() && !said(&done).contains("failed"), "{}", said(&done));
    };
    let full = qemu_io(&[], &["write -P 1 0 512k", "write -P 2 4M 4M"], &server.uri("full"));
    assert!(said(&full).contains("write failed: No space left on device"), "{}", said(&full));
    let failures = |log: &str| log.matches("export \"full\": a request failed on ").count();
    // The reply may be there before the line.
    server.wait_until("the failure is logged", |server| failures(&server.log()) > 0);
    assert!(failures(&server.log()) == 1 && server.log().contains(": No space left on device"), "{}", server.log());
    neighbour_works(&server);
    let kept = qemu_io(&[], &["read -P 1 0 512k"], &server.uri("full"));
    assert!(kept.status.success() && !said(&kept).contains("failed"), "{}", said(&kept));

    // Seen from here, the server's files are below its own root.
    let id = server.id().as_raw_nonzero();
    fs::remove_file(format!("/proc/{id}/root{place}/small/ballast")).unwrap();
    let again = qemu_io(&[], &["discard 4M 4M", "write -P 3 4M 1M", "flush", "read -P 3 4M 1M"], &server.uri("full"));
    assert!(again.status.success() && !said(&again).contains("failed"), "{}", said(&again));
    neighbour_works(&server);
    assert!(server.end().ends_with("Some(0)"));
}

/// Its device is there, but has no blocks any more, as that of a drive that was pulled out.
#[test]
fn a_removed_disk_fails_only_its_own_requests_and_may_return() {
    if !is_installed("qemu-io") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let backing = folder.path().join("backing");
    let make = |bytes| File::options().create(true).append(true).open(&backing).unwrap().set_len(bytes).unwrap();
    make(16 << 20);
    File::create(folder.path().join("other")).unwrap().set_len(1 << 20).unwrap();
    let Some(device) = Loop::over(&backing) else { return };
    let has_blocks = |bytes| {
        make(bytes);
        succeeded("losetup", &["-c", device.0.to_str().unwrap()]);
    };
    let disk = format!("name=disk,path={}", device.0.display());
    let server = Running::start_in(folder, &["--export", &disk, "--export", "name=other,path={}/other"]);
    let on = |export: &str, commands: &[&str]| said(&qemu_io(&[], commands, &server.uri(export)));

    let whole = on("disk", &["write -P 1 0 64k", "flush", "read -P 1 0 64k"]);
    assert!(whole.contains("read 65536/65536") && !whole.contains("failed"), "{whole}");
    has_blocks(0);
    let gone = on("disk", &["read 0 64k", "write -P 2 64k 64k", "write -f -P 2 128k 64k"]);
    assert!(gone.contains("read failed") && gone.matches("write failed").count() == 2, "{gone}");
    let neighbour = on("other", &["write -P 7 0 64k", "flush", "read -P 7 0 64k"]);
    assert!(neighbour.contains("read 65536/65536") && !neighbour.contains("failed"), "{neighbour}");
    has_blocks(16 << 20);
    let again = on("disk", &["write -P 3 0 64k", "flush", "read -P 3 0 64k"]);
    assert!(again.contains("read 65536/65536") && !again.contains("failed"), "{again}");
    has_blocks(0);
    let gone = on("disk", &["read 0 64k"]);
    assert!(gone.contains("read failed"), "{gone}");
    assert!(server.end().ends_with("Some(0)"));
}

#[test]
fn a_server_that_may_not_lock_memory_says_so_and_serves_all_the_same() {
    if !is_installed("qemu-io") || !is_installed("setpriv") || !is_installed("prlimit") {
        return;
    }
    let is_root = rustix::process::geteuid().is_root();
    let registers_less = "fixed buffers of ";
    for (limit_kib, workers, note) in [
        (64, "1", Some("no fixed buffers, 1 x 4096 KiB cannot be locked")),
        (2048, "1", Some(registers_less)),
        // The usual limit of an ordinary user.
        (8192, "1", None),
        (8192, "2", Some(registers_less)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_str().unwrap().to_owned();
        File::create(folder.path().join("disk")).unwrap().set_len(1 << 20).unwrap();
        let mut command = Command::new(if is_root { "setpriv" } else { "env" });
        // A user of its own, whose other programs have locked nothing; without this right the limit is one for root, too.
        if is_root {
            succeeded("chown", &["-R", "64321", &place]);
            command.args(["--reuid=64321", "--bounding-set=-ipc_lock", "--inh-caps=-all"]);
        }
        let limit = format!("--memlock={0}:{0}", limit_kib << 10);
        command.args(["prlimit", &limit, env!("CARGO_BIN_EXE_hoistway-serve"), "serve", "--workers", workers]);
        command.args(["--target", &format!("file:{place}/disk"), "--socket", &format!("{place}/nbd.sock")]);
        let server = Running::launch(folder, command);
        let done = said(&qemu_io(&[], &["write -P 5 0 64k", "flush", "read -P 5 0 64k"], &server.uri("")));
        assert!(done.contains("read 65536/65536") && !done.contains("failed"), "{done}");
        let log = server.end();
        let has_no_ring = log.contains("io_uring cannot be used");
        let is_said = note.map_or(!log.contains("fixed buffers"), |note| log.contains(note));
        assert!(has_no_ring || is_said, "{limit_kib} KiB, {workers} workers: {log}");
    }
}

#[test]
fn qemu_and_the_server_never_open_the_same_disk() {
    if !is_installed("qemu-io") || !is_installed("qemu-storage-daemon") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    File::create(&disk).unwrap().set_len(1 << 20).unwrap();
    let path = disk.to_str().unwrap().to_owned();
    let server = Running::start_in(folder, &["--target", "file:{}/disk"]);
    for options in [&[][..], &["-r"]] {
        let refused = qemu_io(options, &["read 0 512"], &path);
        assert!(said(&refused).contains("Failed to lock"), "{options:?}: {}", said(&refused));
    }
    let folder = server.killed();
    assert!(succeeded("qemu-io", &["-f", "raw", "-c", "read 0 512", &path]).contains("read 512/512"));

    let place = folder.path().to_str().unwrap();
    let mut qemu = Command::new("qemu-storage-daemon");
    qemu.args(["--blockdev", &format!("driver=file,node-name=disk,filename={path}")]);
    qemu.args(["--nbd-server", &format!("addr.type=unix,addr.path={place}/qemu")]);
    qemu.args(["--export", "type=nbd,id=export,node-name=disk,writable=on", "--pidfile", &format!("{place}/pid")]);
    let mut qemu = Guarded(qemu.spawn().unwrap());
    // It writes its number when all that is open.
    while !folder.path().join("pid").exists() {
        assert!(qemu.0.try_wait().unwrap().is_none(), "qemu-storage-daemon has ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let ours = ["serve", "--target", &format!("file:{path}"), "--socket", &format!("{place}/s")];
    let refused = hoistway().args(ours).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("is in use by another program"), "{}", said(&refused));
}

/// A program that is killed when this goes.
struct Guarded(std::process::Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
