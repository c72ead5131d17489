//! Front ends, good ones and others.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_setfl};
use vhost::VhostBackend as _;
use vhost::vhost_user::VhostUserFrontend as _;
use vhost::vhost_user::message::VhostUserInflight;
use vmm_sys_util::sock_ctrl_msg::ScmSocket as _;

use super::client::*;
use super::ring::TIMEOUT;
use super::{serve, socket};
use crate::running::Running;

fn message(request: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = request.to_ne_bytes().to_vec();
    bytes.extend(flags.to_ne_bytes());
    bytes.extend((body.len() as u32).to_ne_bytes());
    bytes.extend(body);
    bytes
}

fn connect(server: &Running) -> UnixStream {
    let stream = UnixStream::connect(socket(server)).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// What a socket has to say until its other end closes it.
fn until_closed(mut stream: UnixStream) -> Vec<u8> {
    let mut said = Vec::new();
    // Reset, if the other end had not read everything.
    let _ = stream.read_to_end(&mut said);
    said
}

#[test]
fn nonsense_ends_its_connection_and_the_next_one_is_served() {
    let server = serve(&["--target", "mem:1M"]);
    let u64_pair = |first: u64, second: u64| [first.to_ne_bytes(), second.to_ne_bytes()].concat();
    let u32_pair = |first: u32, second: u32| [first.to_ne_bytes(), second.to_ne_bytes()].concat();
    let one = |value: u64| value.to_ne_bytes().to_vec();
    let all_features = one(u64::MAX);
    let wrong: [(&str, Vec<u8>); 16] = [
        ("a request that there is not", message(99, 1, &[])),
        ("request 0", message(0, 1, &[])),
        ("another version", message(1, 2, &[])),
        ("an answer", message(1, 5, &[])),
        ("longer than it may be", message(1, 1, &[0; 5000])),
        ("a body that is too long", message(1, 1, &[0; 8])),
        ("a body that is too short", message(2, 1, &[0; 4])),
        ("features that were not offered", message(2, 1, &all_features)),
        ("protocol features that were not offered", message(16, 1, &all_features)),
        ("queue 255", message(8, 1, &u32_pair(255, 128))),
        ("a queue of 100 entries", message(8, 1, &u32_pair(0, 100))),
        ("a queue of none", message(8, 1, &u32_pair(0, 0))),
        ("a queue of 65536 entries", message(8, 1, &u32_pair(0, 65536))),
        (
            "a table of memory without a descriptor",
            message(5, 1, &[&u32_pair(1, 0)[..], &u64_pair(0, 4096), &u64_pair(0, 0)].concat()),
        ),
        ("a kick without a descriptor", message(12, 1, &one(0x100))),
        ("a base of queue 64", message(10, 1, &u32_pair(64, 0))),
    ];
    for (what, bytes) in wrong {
        let mut stream = connect(&server);
        stream.write_all(&bytes).unwrap();
        until_closed(stream);
        assert!(Client::start(&socket(&server), Options::default()).works(), "after {what}");
    }
    // Half a message, and nothing at all: both are waited for, and both may go.
    for some in [&message(1, 1, &[])[..5], &[]] {
        let mut stream = connect(&server);
        stream.write_all(some).unwrap();
        drop(stream);
    }
    assert!(Client::start(&socket(&server), Options::default()).works());
    assert!(server.log().contains("invalid queue size 100 (expected a power of two up to 1024)"), "{}", server.log());
}

#[test]
fn invalid_memory_is_refused_and_removed_memory_is_drained_first() {
    let server = serve(&["--target", "mem:1M"]);
    let mut guest = Client::start(&socket(&server), Options::default());
    let regions = guest.memory.regions();
    assert!(guest.works());
    // Taken away and given back, under a ring that is running.
    guest.frontend.remove_mem_region(&regions[0]).unwrap();
    assert!(guest.works());
    guest.frontend.add_mem_region(&regions[0]).unwrap();
    assert!(guest.works());
    for wrong in [
        // There already; longer than its file; a length of none.
        regions[0],
        vhost::VhostUserMemoryRegionInfo { guest_phys_addr: 1 << 40, mmap_offset: 1 << 30, ..regions[0] },
        vhost::VhostUserMemoryRegionInfo { guest_phys_addr: 1 << 40, memory_size: 0, ..regions[0] },
        vhost::VhostUserMemoryRegionInfo { guest_phys_addr: u64::MAX - 4096, ..regions[0] },
    ] {
        let mut guest = Client::start(&socket_after(&mut guest, &server), Options::default());
        assert!(guest.frontend.add_mem_region(&wrong).is_err());
    }
    let mut last = Client::start(&socket(&server), Options::default());
    assert!(last.works());
    // Without the memory that its rings lie in a guest has no rings; a table of memory brings them back.
    last.frontend.remove_mem_region(&regions_of(&last)[1]).unwrap();
    last.rings[0].kick.write(1).unwrap();
    last.frontend.set_mem_table(&regions_of(&last)).unwrap();
    assert!(last.works());
}

fn regions_of(guest: &Client) -> Vec<vhost::VhostUserMemoryRegionInfo> {
    guest.memory.regions()
}

/// Where to connect, once this guest has gone.
fn socket_after(guest: &mut Client, server: &Running) -> std::path::PathBuf {
    let (near, _) = UnixStream::pair().unwrap();
    guest.raw = near.try_clone().unwrap();
    guest.frontend = vhost::vhost_user::Frontend::from_stream(near, 1);
    socket(server)
}

#[test]
fn unusable_descriptors_are_refused_and_delay_no_client() {
    let server = serve(&["--target", "mem:1M"]);
    // A file cannot be waited for.
    let stream = connect(&server);
    let file = File::open("/proc/self/exe").unwrap();
    stream.send_with_fd(&message(12, 1, &0_u64.to_ne_bytes())[..], file.as_raw_fd()).unwrap();
    until_closed(stream);
    // A full pipe takes no interrupt: the driver is on its own, and the server is not.
    let mut guest = Client::start(&socket(&server), Options::default());
    let (_other, full) = std::io::pipe().unwrap();
    fcntl_setfl(&full, OFlags::NONBLOCK).unwrap();
    while (&full).write(&[0; 4096]).is_ok() {}
    fcntl_setfl(&full, OFlags::empty()).unwrap();
    guest.raw.send_with_fd(&message(13, 1, &0_u64.to_ne_bytes())[..], full.as_raw_fd()).unwrap();
    for _ in 0..10 {
        guest.submit(0, 0, READ, 0, Data::In(512));
        let begin = Instant::now();
        while guest.rings[0].take_used().is_none() {
            assert!(begin.elapsed() < TIMEOUT);
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_front_end_that_passes_its_own_socket_as_an_eventfd_is_disconnected() {
    let mut server = serve(&["--target", "mem:1M"]);
    for event_fd in [12, 13, 14] {
        let stream = connect(&server);
        stream.send_with_fd(&message(event_fd, 1, &0_u64.to_ne_bytes())[..], stream.as_raw_fd()).unwrap();
        drop(stream);
        let mut next = connect(&server);
        next.write_all(&message(1, 1, &[])).unwrap();
        next.read_exact(&mut [0; 20]).unwrap();
    }
    server.wait_until("it says so", |server| server.log().contains("a socket (expected an eventfd)"));
    assert!(Client::start(&socket(&server), Options::default()).works());
}

#[test]
fn a_read_only_disk_stays_read_only_whatever_the_driver_negotiates() {
    let server = serve(&["--target", "mem:1M", "--read-only"]);
    for without in [0, 1 << 5] {
        let mut guest = Client::start(&socket(&server), Options { without, ..Options::default() });
        assert!(guest.offered & 1 << 5 != 0 && guest.offered & (1 << 13 | 1 << 14) == 0);
        let mut status = |kind, data: Data<'_>| guest.request(kind, 0, data).0;
        assert_eq!([READ, GET_ID].map(|kind| status(kind, Data::In(512))), [OK, OK]);
        assert_eq!(status(FLUSH, Data::In(0)), OK);
        assert_eq!(status(WRITE_OUT, Data::Out(&[0; 512])), IO_ERROR);
        for kind in [DISCARD, WRITE_ZEROES] {
            assert_eq!(status(kind, Data::Out(&range(0, 1, 0))), IO_ERROR);
        }
    }
}

#[test]
fn a_cache_is_switched_off_and_on_and_nothing_else_of_the_configuration_is_written() {
    let server = serve(&["--target", "mem:1M"]);
    let mut guest = Client::start(&socket(&server), Options::default());
    assert_eq!(guest.config(32, 1), [1]);
    for is_write_back in [false, true, false] {
        guest.set_write_back(is_write_back);
        assert_eq!(guest.config(32, 1), [u8::from(is_write_back)]);
        assert!(guest.works());
        assert_eq!(guest.request(FLUSH, 0, Data::In(0)).0, OK);
        assert_eq!(guest.request(WRITE_ZEROES, 0, Data::Out(&range(8, 8, 0))), (OK, 1, vec![]));
    }
    let flags = vhost::vhost_user::message::VhostUserConfigFlags::WRITABLE;
    for (offset, bytes) in [(32, &[2_u8][..]), (31, &[1]), (0, &[0; 8]), (32, &[1, 1])] {
        assert!(guest.frontend.set_config(offset, flags, bytes).is_err(), "{bytes:?} at {offset}");
    }
    assert!(guest.config(32, 1) == [0] && guest.works());
    // What a driver has chosen does not survive it, but for one that is only being connected again.
    guest.reconnect_after(&server);
    assert_eq!(guest.config(32, 1), [0]);
    let mut next = Client::start(&socket_after(&mut guest, &server), Options::default());
    assert_eq!(next.config(32, 1), [1]);
    next.frontend.reset_device().unwrap();
    next.start_rings();
    assert!(next.config(32, 1) == [1] && next.works());
}

impl Client {
    fn reconnect_after(&mut self, server: &Running) {
        let path = socket_after(self, server);
        self.reconnect(&path);
    }
}

#[test]
fn drivers_come_and_go_with_other_features_and_queue_one_works_without_queue_zero() {
    let server = serve(&["--target", "mem:1M"]);
    let mut guest = Client::connect(&socket(&server), Options { queues: 4, without: EVENT_IDX, ..Options::default() });
    guest.start_rings();
    for round in 0..10 {
        for ring in [1, 3, 0, 2] {
            assert_eq!(guest.request_on(ring, READ, 0, Data::In(512)).0, OK, "ring {ring} in round {round}");
        }
        // The index of used ones is where it continues: everything had ended.
        let expected: u16 = guest.memory.load(guest.rings[2].used + 2);
        assert_eq!(guest.restart(2), u32::from(expected));
    }
}

#[test]
fn requests_present_when_a_ring_is_enabled_need_no_kick() {
    let server = serve(&["--target", "mem:1M"]);
    let mut guest = Client::connect(&socket(&server), Options::default());
    guest.prepare(0, 0, READ, 0, Data::In(512));
    guest.rings[0].offer_all(&[0]);
    guest.start_rings();
    assert_eq!(guest.rings[0].next_used(), (0, 513));
}

#[test]
fn an_inflight_record_too_small_for_a_ring_is_not_used() {
    let server = serve(&["--target", "mem:1M"]);
    let mut guest = Client::start(&socket(&server), Options { has_record: true, ..Options::default() });
    let (small, file) = guest.frontend.get_inflight_fd(&VhostUserInflight::new(0, 0, 1, 8)).unwrap();
    guest.frontend.set_inflight_fd(&small, file.as_raw_fd()).unwrap();
    for head in (0..126).step_by(3) {
        guest.submit(0, head, READ, 0, Data::In(512));
        assert_eq!(guest.rings[0].next_used(), (head, 513));
    }
    let mut kept = vec![1; small.mmap_size as usize - 64];
    file.read_exact_at(&mut kept[16..], 16).unwrap();
    assert!(kept[16..].iter().all(|&byte| byte == 0), "{kept:?}");
    assert_eq!(guest.config(32, 1), [1]);
}

#[test]
fn a_hundred_guests_leave_nothing_behind() {
    let server = serve(&["--target", "mem:1M"]);
    let count =
        |what: &str| std::fs::read_dir(format!("/proc/{}/{what}", server.id().as_raw_nonzero())).unwrap().count();
    let maps = || {
        std::fs::read_to_string(format!("/proc/{}/maps", server.id().as_raw_nonzero()))
            .unwrap()
            .matches("guest")
            .count()
    };
    // With one guest each time: then all threads of the server's own have begun.
    let counts = || (count("task"), count("fd"), maps());
    let mut first = Client::start(&socket(&server), Options::default());
    assert!(first.works());
    let before = counts();
    drop(first);
    for _ in 0..100 {
        assert!(Client::start(&socket(&server), Options::default()).works());
    }
    let mut last = Client::start(&socket(&server), Options::default());
    assert!(last.works());
    let begin = Instant::now();
    // The one before may still be leaving: its thread, descriptors and mappings go with it.
    while counts() != before {
        assert!(begin.elapsed() < TIMEOUT, "threads, descriptors, mappings: {before:?}, then {:?}", counts());
        std::thread::yield_now();
    }
}
