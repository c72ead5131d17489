//! What a server does not start with.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::Command;

use hoistway_engine::{FileSpec, Files};

use crate::running::{Running, hoistway};
use crate::wire::Client;

#[test]
fn bad_input_is_one_sentence_and_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let socket = format!("{place}/s");
    std::fs::write(format!("{place}/empty"), []).unwrap();
    std::fs::File::create(format!("{place}/disk")).unwrap().set_len(1 << 20).unwrap();
    let in_use = format!("{place}/used");
    let _listener = UnixListener::bind(&in_use).unwrap();
    let (empty, disk, no_disk) =
        (format!("file:{place}/empty"), format!("file:{place}/disk"), format!("blk:{place}/disk"));
    let path = format!("path={place}/disk");
    std::os::unix::fs::symlink(format!("{place}/disk"), format!("{place}/link")).unwrap();
    let by_another_name = format!("name=b,path={place}/link");
    let too_long = format!("name=a,path={place}/disk,offset=512K,size=1M");
    let listening = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listening.local_addr().unwrap().to_string();
    let cannot_listen = format!("cannot listen on {taken}");
    let file = format!("{place}/disk");
    for (arguments, said) in [
        (
            &["--target", "mem:1M"][..],
            "nowhere to listen (expected --socket PATH, --tcp HOST:PORT, --vhost-user PATH or --ublk)",
        ),
        (&["--socket", &socket], "--target is missing"),
        (&["--target", "mem", "--socket", &socket], "expected file:PATH"),
        (&["--target", "tape:x", "--socket", &socket], "expected file:PATH"),
        (&["--target", "mem:lots", "--socket", &socket], "expected a size"),
        (&["--target", "mem:0", "--socket", &socket], "expected a size"),
        (&["--target", "sim:floppy", "--socket", &socket], "floppy"),
        (&["--target", "mem:1M", "--data", "disk", "--socket", &socket], "--data disk: only a simulated device"),
        (&["--target", "file:/nonexistent", "--socket", &socket], "/nonexistent"),
        (&["--target", &empty, "--socket", &socket], "is empty"),
        (&["--target", &no_disk, "--socket", &socket], "not a block device"),
        (&["--target", "mem:1M", "--socket", "/nonexistent/s"], "cannot listen on /nonexistent/s"),
        (&["--target", "mem:1M", "--socket", &in_use], "Address already in use"),
        (&["--target", "mem:1M", "--socket", &file], "exists and is not a socket"),
        (&["--target", "mem:1M", "--tcp", "nowhere"], "cannot listen on nowhere"),
        (&["--target", "mem:1M", "--socket", &socket, "--tcp", &taken], &cannot_listen),
        (&["--target", &disk, "--export", "name=a,size=2M", "--socket", &socket], "the target has 1048576"),
        (
            &["--target", &disk, "--export", "name=a,offset=1,vhost-user=/nonexistent/v", "--socket", &socket],
            "offset and size of a guest's disk (vhost-user) must be multiples of",
        ),
        (&["--export", &path, "--export", &by_another_name, "--socket", &socket], "is the same file as"),
        (&["--export", &too_long, "--socket", &socket], "the target has 1048576"),
        (&["--target", "mem:1M", "--control", "/nonexistent/c", "--socket", &socket], "/nonexistent/c"),
        (&["--target", "mem:1M", "--control", &file, "--socket", &socket], "exists and is not a socket"),
        (&["--target", "mem:1M", "--scheduler", "cfq", "--socket", &socket], "cfq"),
        (&["--target", "mem:1M", "--scheduler", "d2fq", "--socket", &socket], "d2fq needs weighted round robin"),
        (&["--target", "mem:1M", "--scheduler", "blk-switch", "--socket", &socket], "blk-switch needs a transport"),
        (&["--target", "mem:1M", "--set", "bfq.slice_idle=0", "--socket", &socket], "the scheduler is none"),
        (&["--target", "mem:1M", "--set", "low_latency=0", "--socket", &socket], "SCHEDULER.TUNABLE=VALUE"),
        (&["--target", "mem:1M", "--export", "name=a,size=2M", "--socket", &socket], "the target has 1048576"),
        (&["--target", "mem:1M", "--export", "offset=1M", "--socket", &socket], "would begin at byte 1048576, but the"),
        (&["--target", "mem:1M", "--export", "name=a", "--export", "name=a", "--socket", &socket], "two exports"),
        (
            &["--target", "mem:1M", "--export", "name=a", "--export", "name=b,offset=512K", "--socket", &socket],
            "export \"b\" overlaps export \"a\"",
        ),
        (&["--target", "mem:1M", "--export", "weight=0", "--socket", &socket], "--export weight=0"),
        (&["--target", &disk, "--export", &path, "--socket", &socket], "exclude each other"),
        (&["--export", "name=a", "--socket", &socket], "or path= of each --export"),
        (&["--target", "mem:1M", "--queue-depth", "9999", "--socket", &socket], "more than the target's maximum"),
    ] {
        let output = hoistway().arg("serve").args(arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains(said) && complaint.lines().count() == 1, "{arguments:?}: {complaint}");
        assert!(!std::path::Path::new(&socket).exists(), "{arguments:?} left its socket behind");
    }
    assert!(std::path::Path::new(&file).exists(), "a file in the way of a socket is not removed");
}

#[test]
fn a_block_device_is_refused_with_the_reason_if_the_kernel_has_no_driver() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("target = \"mem:4M\"\n{text}")).unwrap();
        path.display().to_string()
    };
    let (first, numbered) = (file("first", "ublk = true\n"), file("numbered", "ublk = 7\n"));
    let (off, export) = (file("off", "ublk = false\n"), file("export", "[[export]]\nublk = true\n"));
    let word = file("word", "[[export]]\nname = \"a\"\nublk = \"no\"\n");
    let run = |arguments: &[&str]| {
        let output = hoistway().arg("serve").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (arguments, said) in [
        (&["--config", &word][..], "word:4: export: ublk \"no\" is not a number from 0 to 1048575"),
        (&["--config", &off], "nowhere to listen"),
        (&["--target", "mem:1M", "--ublk", "1048576"], "1048576 is not in 0..1048576"),
        (&["--target", "mem:1M", "--ublk", "--export", "name=a,ublk=1"], "--ublk: the first export has ublk already"),
        (
            &["--target", "mem:4M", "--export", "size=1000,ublk"],
            "of a block device (ublk) must be multiples of 512 bytes",
        ),
    ] {
        let (status, complaint) = run(arguments);
        assert!(status == Some(2) && complaint.contains(said), "{arguments:?}: {complaint}");
    }
    for config in [&first, &numbered, &export] {
        assert_eq!(run(&["--check", "--config", config]), (Some(0), String::new()));
    }
    if std::path::Path::new("/dev/ublk-control").exists() {
        eprintln!("skipped: this kernel has the driver");
        return;
    }
    let socket = folder.path().join("s").display().to_string();
    for arguments in [
        &["--config", &first, "--socket", &socket][..],
        &["--config", &numbered],
        &["--config", &export],
        &["--target", "mem:1M", "--ublk", "--socket", &socket],
        &["--target", "mem:1M", "--ublk", "3"],
        &["--target", "mem:1M", "--export", "name=a,ublk=0"],
    ] {
        let (status, complaint) = run(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains("ublk_drv") && complaint.lines().count() == 1, "{arguments:?}: {complaint}");
        assert!(!std::path::Path::new(&socket).exists(), "{arguments:?} left its socket behind");
    }
    let server = Running::start(&["--target", "mem:4M", "--export", "name=a,size=1M"]);
    let output = server.ctl(&["add", "name=b,offset=1M,ublk"]);
    assert!(!output.status.success() && String::from_utf8(output.stderr).unwrap().contains("ublk_drv"));
    assert!(Client::at(&server, "b").is_none() && Client::at(&server, "a").unwrap().is_served());
}

#[test]
fn a_socket_that_was_left_behind_is_replaced() {
    let folder = Running::start(&["--target", "mem:1M"]).killed();
    assert!(folder.path().join("nbd.sock").exists());
    assert!(Running::start_in(folder, &["--target", "mem:1M"]).end().ends_with("Some(0)"));
}

#[test]
fn an_unknown_export_is_refused_and_a_known_one_still_served() {
    let server = Running::start(&["--target", "mem:1M", "--export", "name=vm1"]);
    assert!(Client::at(&server, "vm2").is_none());
    assert!(Client::at(&server, "vm1").unwrap().is_served());
}

#[test]
fn a_served_file_is_locked_until_the_server_ends_in_any_way() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("disk")).unwrap().set_len(1 << 20).unwrap();
    let disk = folder.path().join("disk").display().to_string();
    let target = format!("file:{disk}");
    let refused = |arguments: &[&str]| {
        let output = hoistway().args(arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains("is in use by another program") && complaint.contains(&disk), "{complaint}");
    };
    let refused_to_engines = || {
        let error = Files::open(&[FileSpec::new(&disk)]).err().unwrap().to_string();
        assert!(error.contains("is in use by another program"), "{error}");
    };
    let elsewhere = format!("{disk}.sock");
    let server = Running::start_in(folder, &["--target", &target]);
    refused(&["serve", "--target", &target, "--socket", &elsewhere]);
    refused(&["serve", "--target", &target, "--read-only", "--socket", &elsewhere]);
    refused_to_engines();
    let server = Running::start_in(server.killed(), &["--target", &target, "--read-only"]);
    let other = Running::start(&["--target", &target, "--read-only"]);
    refused_to_engines();
    let again = format!("path={disk},read-only");
    assert!(Running::start(&["--export", &again]).end().ends_with("Some(0)"));
    assert!(other.end().ends_with("Some(0)") && server.end().ends_with("Some(0)"));
}

#[test]
fn a_disk_in_use_by_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("image");
    std::fs::File::create(&image).unwrap().set_len(1 << 20).unwrap();
    // Only root can make a disk of a file, and not everywhere.
    let made = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
    let Some(made) = made.ok().filter(|made| made.status.success()) else {
        eprintln!("skipped: no loop device can be made here");
        return;
    };
    let disk = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let target = format!("blk:{disk}");
    let server = Running::start(&["--target", &target]);
    let socket = folder.path().join("s").display().to_string();
    let second = hoistway().args(["serve", "--target", &target, "--socket", &socket]).output().unwrap();
    server.end();
    Command::new("losetup").args(["--detach", &disk]).status().unwrap();
    let complaint = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains(&disk) && complaint.contains("busy") && complaint.lines().count() == 1, "{complaint}");
}
