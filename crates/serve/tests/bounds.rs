//! Many clients, too many, and the end.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::running::{Running, hoistway};
use crate::wire::Client;

#[test]
fn a_log_that_nobody_reads_keeps_no_client_waiting_and_not_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nbd.sock");
    let mut command = hoistway();
    command.args(["serve", "--target", "mem:1M", "--socket"]).arg(&socket).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while UnixStream::connect(&socket).is_err() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    // Each visit is two lines; a pipe holds 64 KiB, and some thousand lines more wait for it.
    for _ in 0..4000 {
        let stream = UnixStream::connect(&socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert!(Client::on(stream, "").unwrap().is_served());
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < until + Duration::from_secs(60), "it does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_thousand_clients_are_served_and_one_more_is_turned_away() {
    let server = Running::start(&["--target", "mem:1M", "--max-connections", "1000", "--workers", "2"]);
    let mut greeting = [0; 18];
    let mut clients: Vec<_> = (0..1000).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.read_exact(&mut greeting).unwrap();
        client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0").unwrap();
        client.read_exact(&mut [0; 86]).unwrap();
    }
    assert_eq!(server.connect().read(&mut greeting).unwrap(), 0, "it is closed without a word");
    for client in &mut clients {
        client.write_all(b"\x25\x60\x95\x13\0\0\0\0abcdefgh\0\0\0\0\0\0\0\0\0\0\x02\0").unwrap();
    }
    for client in &mut clients {
        let mut answer = [1; 16 + 512];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer[..16], b"\x67\x44\x66\x98\0\0\0\0abcdefgh");
    }
    clients.truncate(999);
    // The place of the one that went is free, as soon as the server has seen it go.
    let mut is_in = false;
    for _ in 0..1000 {
        is_in = server.connect().read(&mut greeting).unwrap() > 0;
        if is_in {
            break;
        }
        std::thread::yield_now();
    }
    assert!(is_in);
    drop(clients);
    assert!(server.end().ends_with("Some(0)"));
}

#[test]
fn a_signal_ends_it_when_what_is_under_way_is_answered_and_a_second_one_at_once() {
    let mut server = Running::start(&["--target", "mem:1M", "--export", "name=slow,riops=2"]);
    let mut client = server.connect();
    client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0").unwrap();
    client.read_exact(&mut [0; 18 + 86]).unwrap();
    let read = b"\x25\x60\x95\x13\0\0\0\0abcdefgh\0\0\0\0\0\0\0\0\0\0\x02\0";
    client.write_all(&read.repeat(4)).unwrap();
    let mut first = [0; 16 + 512];
    client.read_exact(&mut first).unwrap();
    assert_eq!(first[4..8], [0; 4]);
    kill_process(server.id(), Signal::TERM).unwrap();
    // Those that waited for their turn are refused, with ESHUTDOWN, and then it is over.
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).unwrap();
    assert!(rest.chunks(16).any(|answer| answer[4..8] == [0, 0, 0, 108]), "{rest:?}");
    assert!(server.ended().ends_with("hoistway-serve: stopped\nSome(0)"));

    let mut server = Running::start(&["--target", "mem:64M"]);
    let mut deaf = server.connect();
    deaf.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0").unwrap();
    deaf.write_all(b"\x25\x60\x95\x13\0\0\0\0abcdefgh\0\0\0\0\0\0\0\0\x02\0\0\0").unwrap();
    server.wait_until("it begins", |server| server.log().contains("opened export"));
    kill_process(server.id(), Signal::TERM).unwrap();
    server.wait_until("it drains", |server| server.log().contains("shutting down: refusing new connections"));
    kill_process(server.id(), Signal::INT).unwrap();
    assert!(server.ended().ends_with("second signal: exiting at once\nSome(130)"));
}
