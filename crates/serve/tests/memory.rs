//! What clients may take of the server's memory, beside one that needs little.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::hostile::request;
use crate::running::Running;
use crate::wire::Client;

const MIB: usize = 1 << 20;

/// A server with 64 MiB for the data of all clients.
fn server(more: &[&str]) -> Running {
    Running::start(&[&["--target", "null:1G", "--memory", "64M"], more].concat())
}

/// Memory of the server's own that takes up space, in MiB.
fn resident(server: &Running) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id().as_raw_nonzero())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<usize>().unwrap() >> 10
}

fn is_served_soon(calm: &mut Client) {
    for _ in 0..20 {
        let begin = Instant::now();
        assert!(calm.is_served());
        assert!(begin.elapsed() < Duration::from_secs(5), "a small read took {:?}", begin.elapsed());
    }
}

#[test]
fn stalled_long_writes_occupy_only_the_memory_of_data_received() {
    let server = server(&[]);
    let mut calm = Client::at(&server, "").unwrap();
    let before = resident(&server);
    let mut stalled: Vec<_> = (0..100).map(|_| Client::at(&server, "").unwrap()).collect();
    for client in &mut stalled {
        client.0.write_all(&request(0, 1, 1, 0, 32 << 20)).unwrap();
        client.0.write_all(&[7; 1000]).unwrap();
    }
    is_served_soon(&mut calm);
    assert!(resident(&server) < before + 40, "{} MiB, {before} before", resident(&server));
    // Those that go on are not held up by those that do not, in the end.
    for client in &mut stalled[..3] {
        client.0.set_nonblocking(true).unwrap();
        let mut sent = 1000;
        while let Ok(count @ 1..) = client.0.write(&vec![7; (4 * MIB).min((32 << 20) - sent)]) {
            sent += count;
        }
    }
    is_served_soon(&mut calm);
    assert!(resident(&server) < before + 64 + 40, "{} MiB, {before} before", resident(&server));
}

#[test]
fn clients_that_never_read_share_the_memory_and_leave_some() {
    let server = server(&[]);
    let mut calm = Client::at(&server, "").unwrap();
    let before = resident(&server);
    let mut deaf: Vec<_> = (0..200).map(|_| Client::at(&server, "").unwrap()).collect();
    for client in &mut deaf {
        client.0.set_nonblocking(true).unwrap();
        let _ = client.0.write(&request(0, 0, 1, 0, MIB as u32).repeat(64));
    }
    is_served_soon(&mut calm);
    // Each connection has buffers of its own for what is not data of requests.
    let mib_max = before + 64 + 200 / 4;
    assert!(resident(&server) < mib_max, "{} MiB, {before} before", resident(&server));
    drop(deaf);
    is_served_soon(&mut calm);
}

#[test]
fn long_requests_of_many_clients_do_not_wait_for_each_other() {
    let server = server(&["--workers", "2"]);
    std::thread::scope(|scope| {
        for at in 0..8_u64 {
            let server = &server;
            scope.spawn(move || {
                let mut client = Client::at(server, "").unwrap();
                let data = vec![at as u8; 32 << 20];
                for round in 0..3 {
                    client.0.write_all(&request(0, 1, round, 0, 32 << 20)).unwrap();
                    client.0.write_all(&data).unwrap();
                    let mut reply = [1; 16];
                    client.0.read_exact(&mut reply).unwrap();
                    assert_eq!(reply[4..8], [0; 4]);
                    client.0.write_all(&request(0, 0, round, 0, 32 << 20)).unwrap();
                    client.0.read_exact(&mut reply).unwrap();
                    assert_eq!(reply[4..8], [0; 4]);
                    std::io::copy(&mut (&client.0).take(32 << 20), &mut std::io::sink()).unwrap();
                }
            });
        }
    });
    assert!(server.end().ends_with("Some(0)"));
}

#[test]
fn too_little_memory_is_refused() {
    for wrong in ["1M", "none", "63M"] {
        let output =
            crate::running::hoistway().args(["serve", "--target", "mem:1M", "--memory", wrong]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--memory") && said.contains(wrong), "{said}");
    }
}
