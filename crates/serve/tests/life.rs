//! How a server begins and ends under a service manager.

use std::fs;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::running::{Running, hoistway};
use crate::wire::Client;

fn heard(manager: &UnixDatagram) -> String {
    let mut text = [0; 256];
    let count = manager.recv(&mut text).unwrap();
    String::from_utf8_lossy(&text[..count]).into_owned()
}

#[test]
fn systemd_sockets_are_served_with_ready_and_stopping_notifications() {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, notify) = (folder.path().join("activated"), folder.path().join("notify"));
    let listener = UnixListener::bind(&theirs).unwrap();
    let manager = UnixDatagram::bind(&notify).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    std::fs::write(folder.path().join("serve.toml"), "target = \"mem:1M\"\n").unwrap();
    // As systemd does: the socket is descriptor 3, and the process knows that it is meant.
    let mut command = Command::new("sh");
    let hand_over = "exec 3<&0 </dev/null; LISTEN_PID=$$; export LISTEN_PID; exec \"$0\" \"$@\"";
    command.args(["-c", hand_over]).arg(env!("CARGO_BIN_EXE_hoistway-serve")).args(["serve", "--config"]);
    command.arg(folder.path().join("serve.toml")).stdin(Stdio::from(OwnedFd::from(listener)));
    command.env("LISTEN_FDS", "1").env("NOTIFY_SOCKET", &notify);
    let mut server = Running::launch(folder, command);

    assert_eq!(heard(&manager), "READY=1\n");
    let stream = UnixStream::connect(&theirs).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert!(Client::on(stream, "").unwrap().is_served());
    kill_process(server.id(), Signal::HUP).unwrap();
    assert!(heard(&manager).starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(heard(&manager), "READY=1\n");
    kill_process(server.id(), Signal::TERM).unwrap();
    assert_eq!(heard(&manager), "STOPPING=1\n");
    assert!(server.ended().ends_with("Some(0)"));
    assert!(theirs.exists(), "a socket that systemd made is removed by systemd");
}

#[test]
fn a_descriptor_that_is_no_listening_stream_is_refused() {
    let (datagram, _other) = UnixDatagram::pair().unwrap();
    // As systemd hands over a client with Accept=yes.
    let (client, _its_peer) = UnixStream::pair().unwrap();
    let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    for (count, socket, why) in [
        ("1", OwnedFd::from(datagram), "LISTEN_FDS: descriptor 3 is not a stream socket"),
        ("1", OwnedFd::from(client), "LISTEN_FDS: descriptor 3: does not listen (expected ListenStream= and Accept=no"),
        ("one", null(), "LISTEN_FDS=one: expected a number of descriptors"),
        ("99999999999", null(), "LISTEN_FDS=99999999999: expected a number of descriptors"),
    ] {
        let mut command = Command::new("sh");
        let hand_over = "exec 3<&0 </dev/null; LISTEN_PID=$$; export LISTEN_PID; exec \"$0\" \"$@\"";
        command.args(["-c", hand_over]).arg(env!("CARGO_BIN_EXE_hoistway-serve")).args(["serve", "--target", "mem:1M"]);
        command.stdin(Stdio::from(socket)).env("LISTEN_FDS", count).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(30);
        while child.try_wait().unwrap().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        // If it serves it would do so until it is asked to end.
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_service_manager_that_does_not_listen_keeps_neither_clients_nor_the_end_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let notify = folder.path().join("notify");
    let manager = UnixDatagram::bind(&notify).unwrap();
    let full = UnixDatagram::unbound().unwrap();
    full.set_nonblocking(true).unwrap();
    while full.send_to(b"x", &notify).is_ok() {}
    let mut command = hoistway();
    command.args(["serve", "--target", "mem:1M", "--socket"]).arg(folder.path().join("nbd.sock"));
    command.env("NOTIFY_SOCKET", &notify);
    let server = Running::launch(folder, command);
    assert!(Client::at(&server, "").unwrap().is_served());
    assert!(server.end().ends_with("Some(0)"));
    drop(manager);
}

#[test]
fn unfinished_requests_do_not_delay_the_stop_beyond_the_grace_period() {
    let mut server = Running::start(&["--target", "mem:64M", "--grace", "0"]);
    let mut deaf = Client::at(&server, "").unwrap();
    // An answer of 32 MiB, which is not taken.
    std::io::Write::write_all(&mut deaf.0, b"\x25\x60\x95\x13\0\0\0\0abcdefgh\0\0\0\0\0\0\0\0\x02\0\0\0").unwrap();
    deaf.0.read_exact(&mut [0; 16]).unwrap();
    kill_process(server.id(), Signal::TERM).unwrap();
    let log = server.ended();
    assert!(
        log.contains("grace period of 0 s expired with 1 client still busy; exiting") && log.ends_with("Some(1)"),
        "{log}"
    );
    assert!(!server.socket().exists());
}

#[test]
fn without_a_configuration_sighup_stops_the_server() {
    let mut server = Running::start(&["--target", "mem:1M"]);
    kill_process(server.id(), Signal::HUP).unwrap();
    assert!(server.ended().ends_with("stopped\nSome(0)"));
}

#[test]
fn all_threads_become_another_user_when_everything_is_open() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var("CI").is_err(), "only root can become another user");
        eprintln!("skipped: only root can become another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Root's alone: it has to be open before.
    let disk = folder.path().join("disk");
    std::fs::File::create(&disk).unwrap().set_len(1 << 20).unwrap();
    std::fs::set_permissions(&disk, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let server = Running::start_in(folder, &["--target", "file:{}/disk", "--user", "nobody", "--workers", "2"]);
    assert!(Client::at(&server, "").unwrap().is_served());
    let tasks = std::fs::read_dir(format!("/proc/{}/task", server.id().as_raw_nonzero())).unwrap();
    let mut threads = 0;
    for task in tasks {
        let status = std::fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let of = |key: &str| status.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
        assert!(of("Uid:").split_whitespace().skip(1).all(|id| id == "65534"), "{status}");
        assert!(!of("Gid:").split_whitespace().skip(1).any(|id| id == "0"), "{status}");
        assert!(!of("Groups:").split_whitespace().skip(1).any(|id| id == "0"), "{status}");
        assert!(of("CapEff:").ends_with("0000000000000000"), "{status}");
        threads += 1;
    }
    assert!(threads > 3);
}

#[test]
fn switching_to_an_unknown_user_is_refused() {
    let socket = "/nonexistent/s";
    let output =
        hoistway().args(["serve", "--target", "mem:1M", "--socket", socket, "--user", "no-such-user"]).output();
    let output = output.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), said.as_str()),
        (Some(2), "hoistway-serve: --user no-such-user: there is no such user\n")
    );
}

#[test]
fn sockets_of_systemd_are_for_clients_guests_and_control_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let launched = |names: &str, more: &[&str]| {
        let sockets = ["nbd", "vm1", "ctl"].map(|name| {
            let _ = std::fs::remove_file(place(name));
            UnixListener::bind(place(name)).unwrap()
        });
        let [nbd, guest, control] = sockets.map(OwnedFd::from);
        let mut command = Command::new("sh");
        // As systemd does: descriptors 3, 4 and 5.
        let hand_over =
            "exec 3<&0 4>&1 5>&2 </dev/null >/dev/null 2>log; LISTEN_PID=$$; export LISTEN_PID; exec \"$0\" \"$@\"";
        command.args(["-c", hand_over]).arg(env!("CARGO_BIN_EXE_hoistway-serve"));
        command.args(["serve", "--target", "mem:1M", "--export", "name=vm1"]).args(more).current_dir(folder.path());
        command.stdin(Stdio::from(nbd)).stdout(Stdio::from(guest)).stderr(Stdio::from(control));
        command.env("LISTEN_FDS", "3").env("LISTEN_FDNAMES", names).spawn().unwrap()
    };
    let log = || std::fs::read_to_string(place("log")).unwrap_or_default();
    let until = |what: &str| {
        let begin = Instant::now();
        while !log().contains(what) {
            assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain for {what}: {}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let mut server = launched("hoistway.socket:vhost-user=vm1:control", &[]);
    until("serving under");
    let said = log();
    assert!(said.contains("/nbd, ") && said.contains("/vm1\n") && !said.contains("/ctl"), "{said}");
    let shown = hoistway().arg("ctl").arg("--control").arg(place("ctl")).arg("show").output().unwrap();
    assert!(String::from_utf8_lossy(&shown.stdout).contains("export \"vm1\""), "{shown:?}");
    kill_process(rustix::process::Pid::from_child(&server), Signal::TERM).unwrap();
    assert!(server.wait().unwrap().success());
    for (names, more, why) in [
        ("a:vhost-user=vm2:control", &[][..], "vhost-user=vm2: there is no export \"vm2\""),
        ("control:vhost-user=vm1:control", &[], "two sockets are named control"),
        (
            "a:b:control",
            &["--control", "x"],
            "--control and a socket of systemd with the name control exclude each other",
        ),
    ] {
        assert_eq!(launched(names, more).wait().unwrap().code(), Some(2), "{}", log());
        assert!(log().contains(why), "{}", log());
    }
}

/// Several exports share a slow target by bfq; on a fast one, and with one export, there is no scheduler.
#[test]
fn the_default_scheduler_is_what_the_target_needs() {
    let two = ["--export", "name=a,size=1M", "--export", "name=b,offset=1M,size=1M"];
    let disk = ["--target", "sim:hgst-he10-8tb"];
    let slow = ["--target", "sim:throttled-cloud-volume", "--data", "{}/data"];
    let named = [&disk[..], &["--scheduler", "none"]].concat();
    let rotational = "scheduler bfq for 2 exports, because the target is rotational";
    for (target, exports, scheduler, why) in [
        (&disk[..], &two[..], "bfq", rotational),
        (&slow[..], &two[..], "bfq", "scheduler bfq for 2 exports, because a read of the target takes "),
        (
            &["--target", "mem:2M"][..],
            &two[..],
            "none",
            "none, and shares by weight for 2 exports, because the target is not",
        ),
        (&disk[..], &two[..2], "none", ""),
        (&named[..], &two[..], "none", ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::write(&data, vec![7; 2 << 20]).unwrap();
        fs::File::options().write(true).open(&data).unwrap().set_len(500_107_862_016).unwrap();
        let server = Running::start_in(folder, &[target, exports].concat());
        let log = server.log();
        assert!(log.contains(&format!("serving under {scheduler} at")) && log.contains(why), "{log}");
        assert_eq!(log.contains("--scheduler NAME sets another one"), !why.is_empty(), "{log}");
        assert!(Client::at(&server, "a").unwrap().is_served());
    }
}

#[test]
fn a_check_says_whether_a_server_would_start_and_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("disk")).unwrap().set_len(1_000_001).unwrap();
    let server = Running::start_in(folder, &["--target", "file:{}/disk"]);
    let disk = format!("file:{}/disk", server.folder().display());
    let check = |arguments: &[&str]| hoistway().args(["serve", "--check"]).args(arguments).output().unwrap();
    // Though it is served, and locked.
    let output = check(&["--target", &disk, "--export", "name=a,size=1000001", "--scheduler", "bfq"]);
    assert_eq!(
        (output.status.code(), &output.stdout[..]),
        (Some(0), &b"the configuration is correct\n"[..]),
        "{output:?}"
    );
    for (arguments, why) in [
        (&["--target", &disk, "--export", "name=a,size=1000002"][..], "the target has 1000001"),
        (&["--target", &disk, "--set", "none.x=1"], "none.x"),
        (&["--target", "file:/nonexistent"], "/nonexistent"),
        (&["--export", "name=a,path=/nonexistent"], "/nonexistent"),
        (&["--target", "mem:1M", "--socket-mode", "888"], "expected an octal number up to 777"),
        (&["--target", "mem:1M", "--socket-owner", "nobody-of-that-name"], "there is no user"),
        (&["--target", "mem:1M", "--control-owner", "root:no-such-group"], "there is no group"),
    ] {
        let output = check(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
}

#[test]
fn sockets_get_the_requested_modes() {
    use std::os::unix::fs::PermissionsExt as _;
    let modes = ["--socket-mode", "660", "--control-mode", "0606"];
    let server = Running::start(&[&["--target", "mem:1M", "--vhost-user", "{}/vm"][..], &modes].concat());
    let mode = |name: &str| server.folder().join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(["nbd.sock", "vm", "control.sock"].map(mode), [0o660, 0o660, 0o606]);
}
