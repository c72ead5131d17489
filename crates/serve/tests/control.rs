//! `hoistway ctl` and a running server.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hoistway_engine::{FileSpec, Files};
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

use crate::running::{Running, hoistway, is_installed, succeeded};
use crate::wire::Client;

pub(crate) fn shown(server: &Running) -> serde_json::Value {
    let mut state: serde_json::Value =
        serde_json::from_slice(&server.ctl(&["show", "--format", "json"]).stdout).unwrap();
    assert!(state["at_ns"].take().as_u64().unwrap() > 0);
    state
}

pub(crate) fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn it_shows_and_changes_scheduler_tunables_and_exports() {
    let server = Running::start(&["--target", "mem:8M", "--export", "name=vm1,weight=300,ioprio=rt/2,max-iops=500"]);
    let state = shown(&server);
    assert_eq!(state["disks"][0]["schedulers"], "[none] mq-deadline kyber bfq");
    let export = &state["exports"][0];
    assert_eq!((&export["weight"], &export["ioprio"]), (&300.into(), &"rt/2".into()));
    assert_eq!(export["limits"], "rbps=max wbps=max riops=500 wiops=500");

    assert!(
        server.ctl(&["set", "scheduler=mq-deadline", "mq-deadline.fifo_batch=3", "nr_requests=64"]).status.success()
    );
    assert!(server.ctl(&["export", "vm1", "weight=7", "ioprio=idle", "max-iops=max", "wbps=1M"]).status.success());
    let state = shown(&server);
    assert!(state["disks"][0]["schedulers"].as_str().unwrap().contains("[mq-deadline]"));
    assert_eq!(state["disks"][0]["nr_requests"], "64");
    assert!(state["disks"][0]["tunables"].as_array().unwrap().contains(&serde_json::json!(["fifo_batch", "3"])));
    let export = &state["exports"][0];
    assert_eq!((&export["weight"], &export["ioprio"]), (&7.into(), &"idle".into()));
    assert_eq!(export["limits"], "rbps=max wbps=1048576 riops=max wiops=max");
    let table = String::from_utf8(server.ctl(&["show"]).stdout).unwrap();
    assert!(table.contains("mq-deadline.fifo_batch = 3") && table.contains("weight=7 ioprio=idle"), "{table}");
}

#[test]
fn invalid_control_requests_are_reported_and_change_nothing() {
    let server = Running::start(&["--target", "mem:8M", "--export", "name=vm1"]);
    let before = shown(&server);
    for (arguments, said) in [
        (&["set", "scheduler=elevator"][..], "(expected one of none, mq-deadline, kyber, bfq)"),
        (&["set", "scheduler=none\nkyber"], "contains control characters"),
        (&["reload"], "there is no --config to reload"),
        (&["set", "nonsense=1"], "no such setting"),
        (&["set", "bfq.slice_idle=1"], "the scheduler is none"),
        (&["set", "scheduler"], "expected KEY=VALUE"),
        (&["export", "vm2", "weight=1"], "expected one of \"vm1\""),
        (&["export", "vm1", "weight=2", "weight=1001"], "from 1 to 1000"),
        (&["export", "vm1", "size=1M"], "unknown setting"),
    ] {
        let complaint = refused(&server.ctl(arguments));
        assert!(complaint.contains(said), "{arguments:?}: {complaint}");
    }
    assert_eq!(shown(&server), before);
    assert!(server.ctl(&["set", "scheduler=mq-deadline"]).status.success());
    let complaint = refused(&server.ctl(&["set", "mq-deadline.fifo_batch=many"]));
    assert!(complaint.contains("(expected ") && complaint.contains(" to 2147483647, "), "{complaint}");
    let mut raw = UnixStream::connect(server.folder().join("control.sock")).unwrap();
    raw.write_all(b"{\"do\":\"set\",\"key\":\"\xff\"}\n").unwrap();
    let mut reply = String::new();
    BufReader::new(raw).read_line(&mut reply).unwrap();
    assert!(reply.contains("invalid request"), "{reply}");
    let nobody = hoistway().args(["ctl", "--control", "/nonexistent", "show"]).output().unwrap();
    assert!(refused(&nobody).contains("/nonexistent: cannot connect to the server"));
}

#[test]
fn a_server_that_hangs_up_or_says_nonsense_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("control.sock");
    let listener = UnixListener::bind(&place).unwrap();
    let pretender = std::thread::spawn(move || {
        let connection = || listener.accept().unwrap().0;
        drop(connection());
        let mut talker = connection();
        // All of the question: what is left unread would take the answer back.
        BufReader::new(&talker).read_line(&mut String::new()).unwrap();
        talker.write_all(b"{\"nonsense\"").unwrap();
        drop(talker);
        drop(connection());
    });
    let asked = |command: &[&str]| {
        let (first, rest) = command.split_first().unwrap();
        refused(&hoistway().arg(first).arg("--control").arg(&place).args(rest).output().unwrap())
    };
    assert!(asked(&["ctl", "show"]).contains("control.sock: the server closed the connection without a reply"));
    assert!(asked(&["ctl", "show"]).contains("control.sock: invalid reply from the server"));
    assert!(asked(&["top"]).contains("control.sock: the server closed the connection without a reply"));
    pretender.join().unwrap();
}

#[test]
fn a_slow_talking_client_delays_neither_others_nor_shutdown() {
    let server = Running::start(&["--target", "mem:8M", "--metrics", "127.0.0.1:0"]);
    let log = server.log();
    let metrics = log.split_once("metrics at http://").unwrap().1.split_once("/metrics").unwrap().0;
    let mut slow = TcpStream::connect(metrics).unwrap();
    let mut slow_too = UnixStream::connect(server.folder().join("control.sock")).unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&is_over);
    let drips = std::thread::spawn(move || {
        while !until.load(Relaxed) {
            // Until it is sent away.
            let _ = (slow.write_all(b"G"), slow_too.write_all(b" "));
            std::thread::sleep(Duration::from_millis(200));
        }
    });
    let before = Instant::now();
    assert!(server.ctl(&["show"]).status.success());
    assert!(before.elapsed() < Duration::from_secs(30), "{:?}", before.elapsed());
    let mut another = TcpStream::connect(metrics).unwrap();
    another.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    assert!(server.end().ends_with("Some(0)"));
    is_over.store(true, Relaxed);
    drips.join().unwrap();
}

#[test]
fn metrics_are_served_despite_many_silent_connections() {
    let server = Running::start(&["--target", "mem:8M", "--metrics", "127.0.0.1:0"]);
    let log = server.log();
    let metrics = log.split_once("metrics at http://").unwrap().1.split_once("/metrics").unwrap().0;
    let control = server.folder().join("control.sock");
    // One after the other they would have five seconds each, and Prometheus waits for ten.
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(metrics).unwrap()).collect();
    let silent_too: Vec<_> = (0..40).map(|_| UnixStream::connect(&control).unwrap()).collect();
    let mut scraper = TcpStream::connect(metrics).unwrap();
    scraper.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    scraper.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    BufReader::new(scraper).read_line(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.1 200 OK\r\n");
    assert!(server.ctl(&["show"]).status.success());
    drop((silent, silent_too));
    assert!(server.end().ends_with("Some(0)"));
}

#[test]
fn running_out_of_descriptors_is_logged_and_service_resumes_later() {
    let mut server = Running::start(&["--target", "mem:8M"]);
    let limit = |new| prlimit(Some(server.id()), Resource::Nofile, new).unwrap();
    let before = limit(Rlimit { current: Some(0), maximum: getrlimit(Resource::Nofile).maximum });
    let control = server.folder().join("control.sock");
    let asking = std::thread::spawn(move || {
        let mut asks = UnixStream::connect(control).unwrap();
        asks.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        asks.write_all(b"{\"do\":\"show\"}\n").unwrap();
        BufReader::new(asks).read_line(&mut String::new()).unwrap()
    });
    // Not again and again as fast as it can, but with a pause behind each line.
    server.wait_until("it says so", |server| server.log().contains("cannot accept a connection: Too many open files"));
    prlimit(Some(server.id()), Resource::Nofile, before).unwrap();
    assert!(asking.join().unwrap() > 0 && server.ctl(&["show"]).status.success());
}

#[test]
fn only_the_owner_may_open_the_socket_and_it_goes_with_the_server() {
    let server = Running::start(&["--target", "mem:8M"]);
    let control = server.folder().join("control.sock");
    assert_eq!(control.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let kept = server.folder().to_owned();
    server.end();
    assert!(!kept.join("control.sock").exists() && !kept.join("nbd.sock").exists());
}

#[test]
fn a_limit_holds_for_reads_of_holes_as_well() {
    let mut server = Running::start(&["--target", "mem:8M", "--export", "name=vm1,riops=2"]);
    let mut client = Client::in_chunks(&server, "vm1").unwrap();
    // 64 KiB of a memory that has not been written to: it is a hole, and could be reported without a look at the target.
    client.0.write_all(&b"\x25\x60\x95\x13\0\0\0\0abcdefgh\0\0\0\0\0\0\0\0\0\x01\0\0".repeat(20)).unwrap();
    let mut counts = [0, 0];
    server.wait_until("all have come", |server| {
        counts = ["reads", "held_back"].map(|count| shown(server)["exports"][0][count].as_u64().unwrap());
        counts[0] + counts[1] == 20
    });
    assert!(counts[1] > 0, "it was not limited");
}

#[test]
fn a_limit_holds_and_can_be_lifted_under_load() {
    if !is_installed("fio") {
        return;
    }
    let server = Running::start(&[
        "--target",
        "mem:8M",
        "--export",
        "name=vm1,shared,riops=50",
        "--export",
        "name=vm2,shared,size=1M",
    ]);
    let uri = format!("--uri={}", server.uri("vm1"));
    std::thread::scope(|scope| {
        // 400 reads at 50 a second would take eight.
        let arguments = ["--name=x", "--ioengine=nbd", "--rw=randread", "--bs=4k", "--iodepth=16", "--io_size=1600k"];
        let arguments = [&arguments[..], &["--size=8m", "--output-format=json", &uri]].concat();
        let job = scope.spawn(move || succeeded("fio", &arguments));
        let reads = || shown(&server)["exports"][0]["reads"].as_u64().unwrap();
        while reads() < 20 {
            assert!(!job.is_finished(), "it was not limited");
        }
        assert!(reads() < 200, "a limit of 50 a second lets so many pass only in seconds");
        assert!(server.ctl(&["export", "vm1", "riops=max"]).status.success());
        // Before the document fio may have something to say.
        let said = job.join().unwrap();
        let document = &said[said.find('{').unwrap()..];
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        assert_eq!(document["jobs"][0]["read"]["total_ios"], 400);
        assert_eq!(document["jobs"][0]["error"], 0);
    });
}

#[test]
fn exports_and_sockets_for_guests_come_and_go_while_others_are_served() {
    let server = Running::start(&["--target", "mem:4M", "--scheduler", "bfq", "--export", "name=vm1,size=1M"]);
    let mut stays = Client::at(&server, "vm1").unwrap();
    let guest = server.folder().join("vm2.sock");
    let add = |text: &str| server.ctl(&["add", text]);
    assert!(add(&format!("name=vm2,offset=1M,size=1M,weight=300,vhost-user={}", guest.display())).status.success());
    assert!(guest.exists() && UnixStream::connect(&guest).is_ok());
    let mut vm2 = Client::at(&server, "vm2").unwrap();
    assert!(vm2.is_served());
    assert_eq!(shown(&server)["exports"][1]["weight"], 300);
    for (text, why) in [
        ("name=vm2,offset=2M", "two exports have the name"),
        ("name=vm3,offset=512K", "overlaps export"),
        ("name=vm3,offset=4M", "would begin at byte 4194304"),
        ("name=vm3,path=/x,offset=2M", "exclude each other"),
        ("name=vm3,offset=2M,size=1M,vhost-user=/nonexistent/s", "cannot listen on /nonexistent/s"),
        ("colour=red", "unknown setting"),
    ] {
        assert!(refused(&add(text)).contains(why), "{text}");
    }
    assert!(refused(&server.ctl(&["remove", "vm3"])).contains("expected one of \"vm1\", \"vm2\""));
    assert!(server.ctl(&["remove", "vm2"]).status.success());
    assert!(vm2.is_sent_away() && stays.is_served() && !guest.exists());
    assert_eq!(shown(&server)["exports"].as_array().unwrap().len(), 1);
    assert!(add(&format!("name=vm2,offset=1M,size=1M,vhost-user={}", guest.display())).status.success());
    assert!(Client::at(&server, "vm2").unwrap().is_served());
    assert!(server.end().ends_with("Some(0)") && !guest.exists());
}

#[test]
fn files_are_opened_and_released_with_their_exports_while_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        fs::File::create(folder.path().join(name)).unwrap().set_len(1_000_001).unwrap();
    }
    let mut server = Running::start_in(folder, &["--export", "name=vm1,path={}/a", "--workers", "2"]);
    let mut stays = Client::at(&server, "vm1").unwrap();
    let b = server.folder().join("b");
    let free = |file: &std::path::Path| Files::open(&[FileSpec::new(file)]).is_ok();
    for _ in 0..3 {
        assert!(server.ctl(&["add", &format!("name=vm2,path={},size=500000", b.display())]).status.success());
        assert!(server.ctl(&["add", &format!("name=vm3,path={},offset=500000", b.display())]).status.success());
        let mut clients = ["vm2", "vm3"].map(|name| Client::at(&server, name).unwrap());
        assert!(clients.iter_mut().all(Client::is_served) && stays.is_served());
        assert!(server.ctl(&["remove", "vm2"]).status.success());
        assert!(clients[0].is_sent_away() && clients[1].is_served() && !free(&b));
        assert!(server.ctl(&["remove", "vm3"]).status.success());
        assert!(clients[1].is_sent_away() && stays.is_served());
        server.wait_until("the file is released", |_| free(&b));
    }
    let held = Files::open(&[FileSpec::new(&b)]).unwrap();
    for (text, why) in [
        (format!("name=vm2,path={}", b.display()), "is in use by another program"),
        ("name=vm2,path=/nonexistent/disk".to_owned(), "/nonexistent/disk: No such file"),
        ("name=vm2".to_owned(), "path= of each --export"),
    ] {
        assert!(refused(&server.ctl(&["add", &text])).contains(why), "{text}");
    }
    drop(held);
    // What was opened for an export that is refused is released.
    let beyond = format!("name=vm2,path={},offset=2M", b.display());
    assert!(refused(&server.ctl(&["add", &beyond])).contains("would begin at byte"));
    assert!(free(&b) && stays.is_served());
    // The file of the start is released like any other.
    assert!(server.ctl(&["remove", "vm1"]).status.success());
    assert!(stays.is_sent_away());
    server.wait_until("the first file is released", |server| free(&server.folder().join("a")));
}

/// Administrators make a file or disk longer, and then the export.
#[test]
fn an_export_grows_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("a")).unwrap();
    file.set_len(1 << 20).unwrap();
    for arguments in [&["--target", "file:{}/a", "--export", "name=vm1"][..], &["--export", "name=vm1,path={}/a"][..]] {
        let place = folder.path().to_str().unwrap();
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.replace("{}", place)).collect();
        let server = Running::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let mut stays = Client::at(&server, "vm1").unwrap();
        let before = file.metadata().unwrap().len();
        let after = before + 1_000_001;
        let resize = || server.ctl(&["resize", "vm1", &after.to_string()]);
        assert!(refused(&resize()).contains(&format!("but the target has {before}")));
        file.set_len(after).unwrap();
        assert!(resize().status.success());
        assert_eq!(shown(&server)["exports"][0]["bytes"], after);
        assert!(stays.is_served() && Client::at(&server, "vm1").unwrap().is_served());
        if is_installed("nbdinfo") {
            assert_eq!(succeeded("nbdinfo", &["--size", &server.uri("vm1")]).trim(), after.to_string());
            succeeded("nbdcopy", &["--", &server.uri("vm1"), "null:"]);
        }
        assert!(server.end().ends_with("Some(0)"));
    }
}

#[test]
fn an_export_grows_beside_its_clients_and_shrinks_without_them() {
    let exports = ["--export", "name=a,size=1M,max-iops=900", "--export", "name=b,offset=3M"];
    let server = Running::start(&[&["--target", "mem:4M"][..], &exports].concat());
    let bytes = || shown(&server)["exports"][0]["bytes"].as_u64().unwrap();
    let mut before = Client::at(&server, "a").unwrap();
    assert!(server.ctl(&["resize", "a", "2M"]).status.success());
    assert!(before.is_served());
    assert_eq!(
        (bytes(), &shown(&server)["exports"][0]["limits"]),
        (2 << 20, &"rbps=max wbps=max riops=900 wiops=900".into())
    );
    // Of the size that it was when each of them came.
    let last = crate::hostile::request(0, 0, 1, (2 << 20) - 512, 512);
    let mut after = Client::at(&server, "a").unwrap();
    let mut reply = [1; 16];
    for (client, error) in [(&mut before, 22), (&mut after, 0)] {
        client.0.write_all(&last).unwrap();
        client.0.read_exact(&mut reply).unwrap();
        assert_eq!(reply[7], error);
    }
    for (size, why) in [
        ("4M", "overlaps export"),
        ("5M", "would end at byte 5242880"),
        ("0", "size is 0"),
        ("x", "size: \"x\" is not a number"),
    ] {
        assert!(refused(&server.ctl(&["resize", "a", size])).contains(why), "{size}");
    }
    assert!(server.ctl(&["resize", "a", "512K"]).status.success());
    assert!(before.is_sent_away());
    assert_eq!(bytes(), 512 << 10);
    assert!(Client::at(&server, "a").unwrap().is_served() && Client::at(&server, "b").unwrap().is_served());
}

#[test]
fn added_exports_open_files_below_the_folders_of_the_control_socket_only() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["disks/first", "disks/in/second", "outside"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, [7; 4096]).unwrap();
    }
    std::os::unix::fs::symlink("../outside", folder.path().join("disks/link")).unwrap();
    let arguments = ["--export", "name=first,path={}/disks/first", "--control-folder", "{}/disks"];
    let server = Running::start_in(folder, &arguments);
    let add = |export: &str| server.ctl(&["add", &export.replace("{}", server.folder().to_str().unwrap())]);
    assert_eq!(add("name=second,path={}/disks/in/second,vhost-user={}/disks/socket").status.code(), Some(0));
    for (export, path) in [
        ("name=a,path={}/outside", "/outside: is in none of the folders of --control-folder"),
        ("name=a,path={}/disks/link", "/disks/link: is in none"),
        ("name=a,path={}/disks/in/../../outside", "outside: is in none"),
        ("name=a,path={}/disks/in/second,vhost-user={}/socket", "vhost-user="),
        ("name=a,path={}/disks/none", "No such file"),
    ] {
        let said = refused(&add(export));
        assert!(said.contains(path), "{export}: {said}");
        assert_eq!(said.matches("No such file").count(), usize::from(path == "No such file"), "said once: {said}");
    }
}
