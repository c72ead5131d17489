//! Many clients, too many, and the end.

use std::io::{Read as _, Write as _};

use rustix::process::{Signal, kill_process};

use crate::running::Running;

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
    assert!(server.ended().ends_with("hoistway: ended\nSome(0)"));

    let mut server = Running::start(&["--target", "mem:64M"]);
    let mut deaf = server.connect();
    deaf.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x07\0\0\0\x06\0\0\0\0\0\0").unwrap();
    deaf.write_all(b"\x25\x60\x95\x13\0\0\0\0abcdefgh\0\0\0\0\0\0\0\0\x02\0\0\0").unwrap();
    server.wait_until("it begins", |server| server.log().contains("begins on export"));
    kill_process(server.id(), Signal::TERM).unwrap();
    server.wait_until("it drains", |server| server.log().contains("no more clients"));
    kill_process(server.id(), Signal::INT).unwrap();
    assert!(server.ended().ends_with("ended at once\nSome(130)"));
}
