//! Many clients, too many, and the end.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};

use crate::control::{refused, shown};
use crate::running::{Running, hoistway};
use crate::wire::Client;

#[test]
fn an_unread_log_delays_no_client_and_no_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nbd.sock");
    let mut command = hoistway();
    let control = folder.path().join("control.sock");
    command.args(["serve", "--target", "mem:1M", "--socket"]).arg(&socket).arg("--control").arg(&control);
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while UnixStream::connect(&socket).is_err() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    // Each change is a line; a pipe holds 64 KiB, and some thousand lines more wait for it.
    let settings = ["\"weight=1\""; 100].join(",");
    for _ in 0..4300 {
        let mut stream = UnixStream::connect(&control).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
            .write_all(format!("{{\"do\":\"export\",\"name\":\"\",\"settings\":[{settings}]}}\n").as_bytes())
            .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert_eq!(reply, "\"done\"\n");
    }
    let stream = UnixStream::connect(&socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    assert!(Client::on(stream, "").unwrap().is_served());
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline + Duration::from_secs(60), "it does not end");
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
    assert!(Client::at(&server, "").is_none(), "it is refused with an error");
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
        is_in = Client::at(&server, "").is_some();
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
fn a_client_that_opens_all_descriptors_shuts_out_neither_clients_nor_control() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    // 128 descriptors at most, of which 72 are kept: 56 connections.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""]).arg(hoistway().get_program());
    command.args(["serve", "--target", "mem:1M", "--socket", &path("nbd.sock"), "--control", &path("control.sock")]);
    let mut server = Running::launch(folder, command);
    assert!(server.log().contains("at most 56 connections instead of 1024: the limit of open files is 128"));
    let mut calm = Client::at(&server, "").unwrap();
    let eaten: Vec<_> = (0..300).map(|_| server.connect()).collect();
    let clients = |server: &Running| shown(server)["clients"].as_array().unwrap().len();
    server.wait_until("all places are taken", |server| clients(server) == 56);
    for _ in 0..20 {
        assert!(calm.is_served());
        assert!(server.ctl(&["show"]).status.success());
    }
    assert!(!server.log().contains("cannot accept a connection"), "{}", server.log());
    drop(eaten);
    server.wait_until("their places are free", |server| clients(server) == 1);
    assert!(Client::at(&server, "").unwrap().is_served() && calm.is_served());
}

#[test]
fn a_signal_stops_the_server_after_in_flight_replies_and_a_second_at_once() {
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

#[test]
fn clients_of_one_user_are_limited_listed_and_disconnected() {
    let mut server = Running::start(&["--target", "mem:1M", "--max-connections-per-peer", "2"]);
    let (mut one, mut two) = (Client::at(&server, "").unwrap(), Client::at(&server, "").unwrap());
    assert!(one.is_served() && two.is_served());
    // Any number of them is refused, each with an error as long as there is room for that.
    for _ in 0..40 {
        assert!(Client::at(&server, "").is_none());
    }
    assert!(
        server
            .log()
            .contains("refused, 2 clients of the same address or user are connected (see --max-connections-per-peer)")
    );
    let state = shown(&server);
    let clients = state["clients"].as_array().unwrap();
    let user = rustix::process::geteuid().as_raw();
    assert_eq!((clients.len(), &clients[0]["peer"]), (2, &format!("unix, user {user}").into()));
    assert_eq!(
        (&clients[0]["export"], &clients[0]["reads"], &clients[0]["read_bytes"]),
        (&"".into(), &1.into(), &512.into())
    );
    let table = String::from_utf8(server.ctl(&["show"]).stdout).unwrap();
    assert!(table.contains(&format!("  client 1  unix, user {user}  connected ")), "{table}");

    assert!(refused(&server.ctl(&["disconnect", "99"])).contains("there is no client 99"));
    assert!(server.ctl(&["disconnect", "1"]).status.success());
    assert!(one.is_sent_away() && two.is_served());
    server.wait_until("its place is free", |server| Client::at(server, "").is_some());
}

#[test]
fn an_export_is_for_the_clients_that_it_names() {
    let user = rustix::process::geteuid().as_raw();
    let (mine, others) = (
        format!("name=mine,size=512K,clients=user:{user}"),
        format!("name=others,offset=512K,clients=user:{}", user + 1),
    );
    let server = Running::start(&["--target", "mem:1M", "--export", &others, "--export", &mine]);
    assert!(Client::at(&server, "others").is_none());
    assert!(Client::at(&server, "mine").unwrap().is_served());
    // The first of those that it may use.
    assert!(Client::at(&server, "").unwrap().is_served());
    let state = shown(&server);
    assert_eq!(state["exports"][1]["clients"], format!("user:{user}"));
    assert_eq!(state["exports"][0]["reads"], 0);
}

#[test]
fn lines_about_clients_are_limited_and_others_are_not() {
    let server = Running::start(&["--target", "mem:1M", "--log-format", "json"]);
    for _ in 0..150 {
        assert!(Client::at(&server, "").unwrap().is_served());
    }
    assert!(server.ctl(&["export", "", "weight=7"]).status.success());
    let ended = server.end();
    let log = ended.strip_suffix("Some(0)").unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["time_ms"].as_u64().unwrap() > 1_600_000_000_000));
    let messages = |level: &str| -> Vec<&str> {
        lines.iter().filter(|line| line["level"] == level).map(|line| line["message"].as_str().unwrap()).collect()
    };
    let about_clients = messages("info").iter().filter(|message| message.starts_with("client ")).count();
    // Three lines each, and perhaps a second period of ten seconds.
    assert!((200..450).contains(&about_clients), "{about_clients}");
    assert!(messages("info").iter().any(|message| message.starts_with("control: export \"\" weight=7")), "{log}");
    assert!(
        messages("warning")
            .iter()
            .any(|message| message.starts_with("left out ") && message.contains(" lines about clients")),
        "{log}"
    );
}
