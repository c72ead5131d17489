//! Several guests and clients on one disk.

use std::time::{Duration, Instant};

use super::client::*;
use super::socket;
use crate::running::Running;

#[test]
fn two_guests_share_a_disk_by_their_weights() {
    let server = Running::start(&[
        "--target",
        "sim:throttled-cloud-volume",
        "--scheduler",
        "bfq",
        "--set",
        "bfq.low_latency=0",
        "--queue-depth",
        "32",
        "--export",
        "name=light,size=16G,weight=100,vhost-user={}/light.sock",
        "--export",
        "name=heavy,offset=16G,size=16G,weight=400,vhost-user={}/heavy.sock",
    ]);
    let mut guests =
        ["light", "heavy"].map(|name| Client::start(&server.folder().join(format!("{name}.sock")), Options::default()));
    let mut sector = 0;
    for guest in &mut guests {
        for slot in 0..32 {
            sector += 8;
            guest.submit(0, slot * 3, READ, sector, Data::In(4096));
        }
    }
    // Both are kept busy, and what each comes to is counted. Where this test itself has to wait for a CPU, one of them is not,
    // and there is nothing to be shared: then it is tried again.
    let mut rounds = Vec::new();
    for _ in 0..10 {
        let mut ended = [0_u32; 2];
        let begin = Instant::now();
        while ended.iter().sum::<u32>() < 3000 {
            assert!(begin.elapsed() < Duration::from_secs(60), "{ended:?}");
            for (guest, ended) in guests.iter_mut().zip(&mut ended) {
                while let Some((head, _)) = guest.rings[0].take_used() {
                    *ended += 1;
                    sector = (sector + 8 * 977) % (30 << 20);
                    guest.submit(0, head, READ, sector, Data::In(4096));
                }
            }
            std::thread::yield_now();
        }
        rounds.push(ended);
        if f64::from(ended[1]) > 1.5 * f64::from(ended[0]) {
            return;
        }
    }
    panic!("of weights 1 to 4 came {rounds:?}");
}

#[test]
fn a_guest_and_a_client_of_nbd_have_the_same_disk_and_its_limits_hold_for_both() {
    let server =
        Running::start(&["--target", "mem:1M", "--vhost-user", "{}/guest.sock", "--export", "name=vm,max-iops=50"]);
    let mut guest = Client::start(&socket(&server), Options::default());
    let begin = Instant::now();
    assert!(guest.works());
    for head in 0..30 {
        guest.submit(0, head * 3, READ, 8, Data::In(4096));
    }
    for _ in 0..30 {
        let (head, _) = guest.rings[0].next_used();
        assert_eq!(guest.status(0, head), OK);
    }
    // 32 requests at 50 a second, of which a slice's worth may go at once.
    assert!(begin.elapsed() > Duration::from_millis(300), "{:?}", begin.elapsed());
    let show = String::from_utf8(server.ctl(&["show", "--format", "json"]).stdout).unwrap();
    assert!(show.contains("\"reads\": 31") && show.contains("\"writes\": 1"), "{show}");
    // It waits for its turn, and goes: no other is held up.
    for head in 0..30 {
        guest.submit(0, head * 3, READ, 8, Data::In(4096));
    }
    drop(guest);
    let mut next = Client::start(&socket(&server), Options::default());
    assert!(next.works());
}

#[test]
fn the_second_guest_waits_until_the_first_has_gone() {
    let server = Running::start(&["--target", "mem:1M", "--vhost-user", "{}/guest.sock"]);
    let mut first = Client::start(&socket(&server), Options::default());
    let path = socket(&server);
    let second = std::thread::spawn(move || Client::start(&path, Options::default()).works());
    for _ in 0..100 {
        assert!(first.works());
    }
    assert!(!second.is_finished());
    drop(first);
    assert!(second.join().unwrap());
}
