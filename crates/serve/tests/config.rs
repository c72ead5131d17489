//! The configuration file, and what becomes of it when it is read again.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

use hoistway_engine::{FileSpec, Files};
use hoistway_serve::{ControlRequest, send_request};
use rustix::process::{Signal, kill_process};

use crate::control::{refused, shown};
use crate::running::{Running, hoistway};
use crate::wire::Client;

const BEFORE: &str = r#"
target = "mem:4M"
scheduler = "mq-deadline"
set = ["mq-deadline.fifo_batch=4"]
max-in-flight = 16

[[export]]
name = "vm1"
size = "1M"
weight = 200

[[export]]
name = "vm2"
offset = "1M"
size = "1M"
read-only = true
"#;

const AFTER: &str = r#"
target = "mem:4M"
scheduler = "bfq"
set = ["bfq.low_latency=0", "bfq.slice_idle=0"]
nr-requests = 32
max-in-flight = 16

[[export]]
name = "vm3"
offset = "2M"
size = "1M"

[[export]]
name = "vm1"
size = "1M"
weight = 300
max-iops = 700
ioprio = "rt/1"
"#;

fn write(server: &Path, text: &str) {
    fs::write(server.join("serve.toml"), text).unwrap();
}

fn start(text: &str) -> Running {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), text);
    Running::start_in(folder, &["--config", "{}/serve.toml"])
}

/// Has it read again, and returns what it says of that.
fn reload(server: &mut Running, text: &str) -> String {
    let before = server.log().len();
    write(server.folder(), text);
    kill_process(server.id(), Signal::HUP).unwrap();
    server.wait_until("it has read its configuration again", |server| {
        server.log()[before..].contains("configuration reload")
    });
    server.log()[before..].to_owned()
}

#[test]
fn a_config_file_equals_the_command_line_which_overrides_it() {
    let server = start(BEFORE);
    let state = shown(&server);
    assert!(state["disks"][0]["schedulers"].as_str().unwrap().contains("[mq-deadline]"));
    assert!(state["disks"][0]["tunables"].as_array().unwrap().contains(&serde_json::json!(["fifo_batch", "4"])));
    let (vm1, vm2) = (&state["exports"][0], &state["exports"][1]);
    assert_eq!((&vm1["name"], &vm1["weight"], &vm1["read_only"]), (&"vm1".into(), &200.into(), &false.into()));
    assert_eq!((&vm2["bytes"], &vm2["read_only"]), (&(1 << 20).into(), &true.into()));

    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), BEFORE);
    let line = ["--config", "{}/serve.toml", "--scheduler", "kyber", "--set", "kyber.read_lat_nsec=1000000"];
    let output =
        hoistway().arg("serve").args(line.map(|it| it.replace("{}", folder.path().to_str().unwrap()))).output();
    assert!(refused(&output.unwrap()).contains("nowhere to listen"));
    fs::write(folder.path().join("serve.toml"), BEFORE.replace("\nset =", "\n# set =")).unwrap();
    let more = [&line[..], &["--export", "name=vm9,offset=3M"]].concat();
    let state = shown(&Running::start_in(folder, &more));
    assert!(state["disks"][0]["schedulers"].as_str().unwrap().contains("[kyber]"));
    assert!(
        state["disks"][0]["tunables"].as_array().unwrap().contains(&serde_json::json!(["read_lat_nsec", "1000000"]))
    );
    assert_eq!(state["exports"].as_array().unwrap().len(), 3);
}

#[test]
fn a_reload_applies_changeable_settings_and_clients_stay_connected() {
    let mut server = start(BEFORE);
    let defaults = shown(&Running::start(&["--target", "mem:4M", "--scheduler", "bfq"]));
    let (mut stays, mut leaves) = (Client::at(&server, "vm1").unwrap(), Client::at(&server, "vm2").unwrap());
    assert!(stays.is_served() && leaves.is_served() && Client::at(&server, "vm3").is_none());

    let said = reload(&mut server, AFTER);
    for change in [
        "scheduler=bfq",
        "low_latency=0",
        "\"vm3\" added",
        "\"vm1\" 1048576 bytes weight=300 ioprio=rt/1",
        "\"vm2\" removed",
    ] {
        assert!(said.contains(change), "{change}: {said}");
    }
    let state = shown(&server);
    let exports = state["exports"].as_array().unwrap();
    assert_eq!((&exports[0]["name"], &exports[1]["name"], exports.len()), (&"vm3".into(), &"vm1".into(), 2));
    assert_eq!(exports[1]["limits"], "rbps=max wbps=max riops=700 wiops=700");
    assert_eq!(state["disks"][0]["nr_requests"], "32");
    assert!(leaves.is_sent_away(), "its export has ended");
    assert!(stays.is_served() && Client::at(&server, "vm3").unwrap().is_served());
    assert!(Client::at(&server, "vm2").is_none());

    // What the file no longer names is as it would be without it.
    let plain = AFTER.replace("\nset =", "\n# set =").replace("nr-requests", "# nr-requests");
    reload(&mut server, &plain);
    let state = shown(&server);
    assert_eq!(
        (&state["disks"][0]["tunables"], &state["disks"][0]["nr_requests"]),
        (&defaults["disks"][0]["tunables"], &defaults["disks"][0]["nr_requests"])
    );
    assert!(reload(&mut server, &plain).contains("nothing changed"));
    // And back, with the export that was there before.
    reload(&mut server, BEFORE);
    assert!(Client::at(&server, "vm2").unwrap().is_served() && stays.is_served());
    assert!(server.end().ends_with("Some(0)"));
}

#[test]
fn an_export_that_changes_during_a_handshake_is_not_opened() {
    let mut server = start(BEFORE);
    let changes = [
        ("removed", BEFORE.replace("\"vm1\"", "\"vm5\"")),
        ("smaller", BEFORE.replace("size = \"1M\"\nweight", "size = \"512K\"\nweight")),
        ("for others", BEFORE.replace("weight = 200", "clients = \"user:4711\"")),
    ];
    for (what, after) in changes {
        let mut begins = server.connect();
        begins.write_all(b"\0\0\0\x03").unwrap();
        begins.read_exact(&mut [0; 18]).unwrap();
        assert!(reload(&mut server, &after).contains("reloaded"), "{what}");
        begins.write_all(b"IHAVEOPT\0\0\0\x07\0\0\0\x09\0\0\0\x03vm1\0\0").unwrap();
        let mut replies = Vec::new();
        let _ = begins.read_to_end(&mut replies);
        assert!(replies.is_empty(), "{what}: {replies:?}");
        reload(&mut server, BEFORE);
        assert!(Client::at(&server, "vm1").unwrap().is_served(), "{what}");
    }
    assert!(server.end().contains("its export changed during the handshake; closed"));
}

#[test]
fn a_reload_reports_a_new_export_order() {
    let mut server = start(BEFORE);
    let at = BEFORE.find("[[export]]\nname = \"vm2\"").unwrap();
    let first = BEFORE.find("[[export]]").unwrap();
    let turned = format!("{}{}\n{}", &BEFORE[..first], &BEFORE[at..], &BEFORE[first..at]);
    let said = reload(&mut server, &turned);
    assert!(said.ends_with("reloaded: exports in the order \"vm2\", \"vm1\"\n"), "{said}");
    assert_eq!(shown(&server)["exports"][0]["name"], "vm2");
    assert!(reload(&mut server, &turned).contains("nothing changed"));
}

#[test]
fn a_reload_by_a_signal_is_not_interleaved_with_changes_through_the_control_socket() {
    // A reload sets the scheduler and then its tunables, which another scheduler in between would not have.
    let mut server = start(BEFORE);
    let path = server.folder().join("control.sock");
    let set = |value: &str| ControlRequest::Set { key: "scheduler".to_owned(), value: value.to_owned(), disk: None };
    let said: Vec<String> = std::thread::scope(|scope| {
        let reloads = scope.spawn(|| (0..30).map(|_| reload(&mut server, BEFORE)).collect());
        while !reloads.is_finished() {
            for scheduler in ["none", "bfq"] {
                send_request(&path, &set(scheduler), Duration::from_secs(60)).unwrap();
            }
        }
        reloads.join().unwrap()
    });
    assert!(said.iter().all(|said| !said.contains("refused")), "{said:?}");
}

#[test]
fn a_reload_with_any_invalid_setting_changes_nothing() {
    let mut server = start(BEFORE);
    let before = shown(&server);
    let lighter = BEFORE.replace("200", "100");
    for (text, said) in [
        (lighter.replace("max-in-flight = 16", "max-in-flight = 17"), "max-in-flight cannot change"),
        (lighter.replace("max-in-flight = 16", ""), "max-in-flight cannot change"),
        (lighter.replace("mem:4M", "mem:8M"), "target cannot change"),
        (lighter.replace("read-only = true", ""), "export \"vm2\": path, offset, description"),
        (lighter.replace("offset = \"1M\"", "offset = \"2M\""), "export \"vm2\": path, offset, description"),
        (lighter.replace("name = \"vm2\"", "name = \"vm3\"\npath = \"/x\""), "exclude each other"),
        (
            format!("{lighter}[[export]]\nname = \"vm3\"\noffset = \"4M\"\n"),
            "serve.toml:17: export \"vm3\" would begin at byte 4194304, but the target has 4194304\n",
        ),
        (lighter.replace("fifo_batch=4", "fifo_batch=no"), "mq-deadline.fifo_batch=no: invalid value"),
        (lighter.replace("\"mq-deadline\"", "\"bfq\""), "the scheduler is bfq"),
        (lighter.replace("\"mq-deadline\"", "\"noop\""), "scheduler=noop: invalid value"),
        (lighter.replace("weight", "wait"), "serve.toml:10: export: unknown setting \"wait=100\""),
        ("scheduler = ".into(), "serve.toml:1: "),
    ] {
        let log = reload(&mut server, &text);
        assert!(log.contains("reload refused") && log.contains(said), "{said}: {log}");
        assert_eq!(shown(&server), before, "{said}");
    }
    let complaint = refused(&server.ctl(&["reload"]));
    assert!(complaint.contains("serve.toml:1: "), "for systemd, a refused reload fails: {complaint}");
    // What the scheduler's files held when it was new is still known.
    assert_eq!(server.ctl(&["set", "scheduler=mq-deadline"]).status.code(), Some(0));
    reload(&mut server, &BEFORE.replace("\nset =", "\n# set ="));
    assert!(
        shown(&server)["disks"][0]["tunables"].as_array().unwrap().contains(&serde_json::json!(["fifo_batch", "16"]))
    );
    fs::remove_file(server.folder().join("serve.toml")).unwrap();
    let length = server.log().len();
    kill_process(server.id(), Signal::HUP).unwrap();
    server.wait_until("it complains", |server| server.log()[length..].contains("cannot be read: No such file"));
    assert!(Client::at(&server, "vm1").unwrap().is_served());
}

#[test]
fn a_pipe_in_place_of_the_configuration_keeps_no_server_from_its_end() {
    let mut server = start(BEFORE);
    let config = server.folder().join("serve.toml");
    fs::remove_file(&config).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &config, rustix::fs::Mode::RWXU).unwrap();
    kill_process(server.id(), Signal::HUP).unwrap();
    server.wait_until("it complains", |server| server.log().contains("not a regular file"));
    assert!(server.end().ends_with("Some(0)"));
}

#[test]
fn exports_come_and_go_under_bfq_while_a_neighbour_is_served() {
    let neighbour = "target = \"mem:4M\"\nscheduler = \"bfq\"\n[[export]]\nname = \"stays\"\nsize = \"1M\"\n";
    let mut server = start(neighbour);
    let mut stays = Client::at(&server, "stays").unwrap();
    for round in 0..8 {
        let more = format!("[[export]]\nname = \"guest {round}\"\noffset = \"1M\"\nweight = {}\n", 100 + round);
        assert!(reload(&mut server, &format!("{neighbour}{more}")).contains("added"));
        let mut guest = Client::at(&server, &format!("guest {round}")).unwrap();
        assert!(guest.is_served() && stays.is_served());
        assert!(reload(&mut server, neighbour).contains("removed"));
        assert!(guest.is_sent_away() && stays.is_served());
    }
    assert!(server.end().ends_with("Some(0)"));
}

#[test]
fn files_are_opened_and_closed_by_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap().to_owned();
    for name in ["a", "b"] {
        fs::File::create(folder.path().join(name)).unwrap().set_len(1 << 20).unwrap();
    }
    let text = format!("[[export]]\nname = \"a\"\npath = \"{place}/a\"\nsize = \"512K\"\nread-only = true\n");
    write(folder.path(), &text);
    let mut server = Running::start_in(folder, &["--config", "{}/serve.toml"]);
    let more = text.replace("\"a\"", "\"b\"").replace("/a\"", "/b\"");
    assert!(reload(&mut server, &format!("{text}{more}")).contains("\"b\" added"));
    assert!(Client::at(&server, "b").unwrap().is_served());
    let missing = text.replace("\"a\"", "\"c\"").replace("/a\"", "/c\"");
    let refusal = reload(&mut server, &format!("{text}{more}{missing}"));
    assert!(refusal.contains("serve.toml:11: export \"c\": ") && refusal.contains("/c: No such file"), "{refusal}");
    assert!(Client::at(&server, "b").unwrap().is_served());
    assert!(reload(&mut server, &text).contains("\"b\" removed"));
    let b = [FileSpec::new(server.folder().join("b"))];
    server.wait_until("the file is released", |_| Files::open(&b).is_ok());
    let other = "offset = \"512K\"\n";
    let half = text.replace("\"a\"", "\"a2\"").replace("read-only = true\n", other);
    assert!(reload(&mut server, &format!("{text}{half}")).contains("was opened read-only"));
    let half = half + "read-only = true\n";
    assert!(reload(&mut server, &format!("{text}{half}")).contains("\"a2\" added"));
    assert!(Client::at(&server, "a2").unwrap().is_served());
}

#[test]
fn config_file_errors_are_reported_with_their_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("serve.toml");
    for (text, said) in [
        ("\nworkers = 0\n", "serve.toml:2: workers: invalid value '0'"),
        (
            "\n\nshceduler = \"bfq\"\n",
            "serve.toml:3: unknown option `shceduler` (did you mean \"scheduler\"? expected one of",
        ),
        ("colour_of_the_disk = 1\n", "serve.toml:1: unknown option `colour_of_the_disk` (expected one of target,"),
        ("config = \"x\"\n", "serve.toml:1: unknown option `config`"),
        ("workers = true\n", "serve.toml:1: workers: expected a string or a number"),
        ("workers = [1]\n", "serve.toml:1: workers: expected a string or a number"),
        ("socket = [\"/x\",\n true]\n", "serve.toml:2: socket: expected a string"),
        ("read-only = \"yes\"\n", "serve.toml:1: read-only: expected true or false"),
        ("metrics = \"9809\"\n", "serve.toml:1: metrics: invalid value '9809'"),
        ("tls = \"perhaps\"\n", "serve.toml:1: tls: invalid value 'perhaps'"),
        ("export = 1\n", "serve.toml:1: export: expected a section [[export]]"),
        ("[export]\nname = \"a\"\n", "serve.toml:1: export: expected a section [[export]]"),
        ("[[export]]\n\nweight = 1001\n", "serve.toml:3: export: weight \"1001\" is not a number from 1 to 1000"),
        ("[[export]]\nweight = 1.5\n", "serve.toml:2: export: weight: expected a string or a number"),
        ("[[export]]\nread-only = 1\n", "serve.toml:2: export: read-only: expected true or false"),
        ("[[export]]\nname = \"a\"\n[[export]]\nname = \"a\"\n", "serve.toml:3: duplicate export \"a\""),
        ("workers = 1\nworkers = 2\n", "serve.toml:2: duplicate key"),
        ("scheduler bfq\n", "serve.toml:1: "),
        ("\nscheduler = \"elevator\"\n", "serve.toml:2: scheduler: \"elevator\" is unknown"),
        ("\n\nnr-requests = 10000\n", "serve.toml:3: nr_requests=10000: invalid value"),
        ("\nset = \"bfq.slice_idle=1\"\n", "serve.toml:2: bfq.slice_idle: the scheduler is none"),
        ("\nuser = \"nobody of that name\"\n", "serve.toml:2: --user nobody of that name: there is no such user"),
    ] {
        fs::write(&file, text).unwrap();
        let mut command = hoistway();
        command.args(["serve", "--target", "mem:1M", "--socket", "/nonexistent/s", "--config"]).arg(&file);
        let complaint = refused(&command.output().unwrap());
        assert!(complaint.contains(said), "{text}: {complaint}");
    }
    fs::write(&file, [0xff, 0xfe]).unwrap();
    let complaint = refused(&hoistway().args(["serve", "--config"]).arg(&file).output().unwrap());
    assert!(complaint.contains("serve.toml: is not UTF-8 text"), "{complaint}");
    let complaint = refused(&hoistway().args(["serve", "--config", "/nonexistent.toml"]).output().unwrap());
    assert!(complaint.contains("--config /nonexistent.toml"), "{complaint}");
}

#[test]
fn the_example_of_the_documentation_works() {
    let page = include_str!("../../../docs/serve-operation.md");
    let (_, rest) = page.split_once("```toml\n").expect("there is an example");
    let (example, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    fs::File::create(folder.path().join("disks.img")).unwrap().set_len(48 << 20).unwrap();
    for path in ["/srv/", "/run/hoistway/"] {
        assert!(example.contains(path), "{path}");
    }
    let example = example.replace("/srv/", &format!("{place}/")).replace("/run/hoistway/", &format!("{place}/"));
    let example = example.replace("20G", "16M").replace("40G", "32M").replace("127.0.0.1:9809", "127.0.0.1:0");
    // The control socket is where the other tests have it.
    write(folder.path(), &example);
    let server = Running::start_in(folder, &["--config", "{}/serve.toml"]);
    let state = shown(&server);
    assert_eq!(state["exports"].as_array().unwrap().len(), 3);
    assert!(state["disks"][0]["schedulers"].as_str().unwrap().contains("[bfq]"));
    assert!(server.log().contains("metrics at http://127.0.0.1:"));
    assert!(Client::at(&server, "").unwrap().is_served());
}
