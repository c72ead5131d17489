//! A server that is killed: its successor answers what it had taken, each once.

use super::client::*;
use super::socket;
use crate::running::Running;

/// Kills the server under requests, starts another one on the same disk, and continues.
#[test]
fn a_guest_continues_after_a_server_kill_and_each_request_is_answered_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("disk")).unwrap().set_len(16 << 20).unwrap();
    // Slow enough for requests to be in flight whenever it is killed, and out of order: 4 KiB ones overtake 32 KiB ones.
    let arguments = [
        "--target",
        "file:{}/disk",
        "--scheduler",
        "mq-deadline",
        "--queue-depth",
        "2",
        "--vhost-user",
        "{}/guest.sock",
    ];
    let mut server = Running::start_in(folder, &arguments);
    let mut guest = Client::start(&socket(&server), Options { queues: 2, ..Options::default() });
    let mut expected = [0_u8; 42 * 2];
    let mut under_way = 0;
    for round in 1..=12_u8 {
        for ring in 0..2 {
            let heads: Vec<u16> = (0..42).map(|at| at * 3).collect();
            for &head in &heads {
                let place = ring * 42 + usize::from(head / 3);
                expected[place] = round;
                let bytes = if head % 2 == 0 { 32 << 10 } else { 4 << 10 };
                let sector = place as u64 * 64;
                guest.prepare(ring, head, WRITE_OUT, sector, Data::Out(&vec![round; bytes]));
            }
            guest.rings[ring].offer_all(&heads);
            guest.rings[ring].kick.write(1).unwrap();
        }
        // Some have been answered, when it dies.
        let mut answered = [[0; 42]; 2];
        for _ in 0..round * 3 {
            let (head, len) = guest.rings[0].next_used();
            answered[0][usize::from(head / 3)] += 1;
            assert_eq!((guest.status(0, head), len), (OK, 1));
        }
        let folder = server.killed();
        let given_back = |guest: &Client, ring: usize| {
            let used: u16 = guest.memory.load(guest.rings[ring].used + 2);
            guest.rings[ring].available_index.wrapping_sub(used)
        };
        under_way += given_back(&guest, 0) + given_back(&guest, 1);
        server = Running::start_in(folder, &arguments);
        guest.reconnect(&socket(&server));
        for (ring, answered) in answered.iter_mut().enumerate() {
            while answered.iter().sum::<i32>() < 42 {
                let (head, _) = guest.rings[ring].next_used();
                answered[usize::from(head / 3)] += 1;
                assert_eq!(guest.status(ring, head), OK);
            }
            assert_eq!(*answered, [1; 42], "ring {ring} in round {round}");
            assert!(guest.rings[ring].take_used().is_none(), "more came back than was asked for");
        }
        for (place, &round) in expected.iter().enumerate() {
            assert_eq!(guest.request(READ, place as u64 * 64, Data::In(4096)), (OK, 4097, vec![round; 4096]));
        }
    }
    assert!(under_way > 0, "it was never killed while it had something to do");
}

#[test]
fn a_stopping_server_completes_its_requests_and_a_successor_continues() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("disk")).unwrap().set_len(16 << 20).unwrap();
    let arguments = ["--target", "file:{}/disk", "--vhost-user", "{}/guest.sock"];
    let mut server = Running::start_in(folder, &arguments);
    let mut guest = Client::start(&socket(&server), Options::default());
    let heads: Vec<u16> = (0..42).map(|at| at * 3).collect();
    for &head in &heads {
        guest.prepare(0, head, WRITE_OUT, u64::from(head) * 8, Data::Out(&[9; 4096]));
    }
    guest.rings[0].offer_all(&heads);
    guest.rings[0].kick.write(1).unwrap();
    rustix::process::kill_process(server.id(), rustix::process::Signal::TERM).unwrap();
    let log = server.ended();
    assert!(log.contains("disconnected after") && log.ends_with("Some(0)"), "{log}");
    server = Running::start_in(server.killed(), &arguments);
    guest.reconnect(&socket(&server));
    for _ in &heads {
        let (head, len) = guest.rings[0].next_used();
        assert_eq!((guest.status(0, head), len), (OK, 1));
    }
    assert!(guest.rings[0].take_used().is_none() && guest.works());
}

#[test]
fn written_through_data_survives_a_kill_without_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("disk")).unwrap().set_len(1 << 20).unwrap();
    let arguments = ["--target", "file:{}/disk", "--vhost-user", "{}/guest.sock"];
    let server = Running::start_in(folder, &arguments);
    let mut guest = Client::start(&socket(&server), Options::default());
    guest.set_write_back(false);
    assert_eq!(guest.request(WRITE_OUT, 64, Data::Out(&[3; 4096])).0, OK);
    let folder = server.killed();
    let disk = std::fs::read(folder.path().join("disk")).unwrap();
    assert!(disk[64 * 512..64 * 512 + 4096] == [3; 4096]);
    // And the driver, which does not flush any more, finds a disk that still writes through.
    let server = Running::start_in(folder, &arguments);
    guest.reconnect(&socket(&server));
    assert_eq!(guest.config(32, 1), [0]);
}
