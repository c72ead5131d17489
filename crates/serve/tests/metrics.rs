//! What Prometheus is sent, read as it reads it, beside what a client did.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::control::refused;
use crate::running::{Running, hoistway};
use crate::wire::Client;

fn place(server: &Running) -> String {
    let log = server.log();
    let (_, rest) = log.split_once("metrics at http://").unwrap();
    rest.split_once("/metrics").unwrap().0.to_owned()
}

/// What is answered to a request: the head and the body.
fn answered(server: &Running, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(place(server)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn scraped(server: &Running) -> String {
    let (head, body) = answered(server, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    body
}

/// The value of a sample, by its name with its labels.
fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(sample) && line[sample.len()..].starts_with(' '));
    let line = line.unwrap_or_else(|| panic!("no {sample} in {text}"));
    line[sample.len() + 1..].parse().unwrap()
}

#[test]
fn metrics_match_what_a_client_did() {
    let exports = ["--export", "name=vm\"1,size=1M,weight=300", "--export", "name=vm2,offset=1M,riops=2"];
    let arguments = ["--target", "mem:4M", "--scheduler", "kyber", "--metrics", "127.0.0.1:0"];
    let mut server = Running::start(&[&arguments[..], &exports].concat());
    let mut client = Client::at(&server, "vm\"1").unwrap();
    for _ in 0..7 {
        assert!(client.is_served());
    }
    // A read behind the end.
    client.0.write_all(b"\x25\x60\x95\x13\0\0\0\0abcdefgh\0\0\0\0\xff\0\0\0\0\0\x02\0").unwrap();
    client.0.read_exact(&mut [0; 16]).unwrap();
    let mut limited = Client::at(&server, "vm2").unwrap();
    for _ in 0..5 {
        limited.ask().unwrap();
    }
    server.wait_until("it holds some back", |server| {
        value(&scraped(server), "hoistway_export_held_back{export=\"vm2\"}") >= 3.0
    });
    let text = scraped(&server);
    let of = |sample: &str| value(&text, sample);
    assert_eq!(of("hoistway_scheduler_info{disk=\"mem\",scheduler=\"kyber\"}"), 1.0);
    let vm1 = "export=\"vm\\\"1\"";
    assert_eq!(of(&format!("hoistway_export_requests_total{{{vm1},operation=\"read\"}}")), 7.0);
    assert_eq!(of(&format!("hoistway_export_bytes_total{{{vm1},operation=\"read\"}}")), 7.0 * 512.0);
    assert_eq!(of(&format!("hoistway_export_requests_total{{{vm1},operation=\"write\"}}")), 0.0);
    assert_eq!(of(&format!("hoistway_export_errors_total{{{vm1}}}")), 1.0);
    assert_eq!(of(&format!("hoistway_export_connections{{{vm1}}}")), 1.0);
    assert_eq!(of(&format!("hoistway_export_weight{{{vm1}}}")), 300.0);
    assert_eq!(of(&format!("hoistway_export_in_flight{{{vm1}}}")), 0.0);
    assert!(of("hoistway_export_in_flight{export=\"vm2\"}") >= of("hoistway_export_held_back{export=\"vm2\"}"));
    let latency = |suffix: &str| of(&format!("hoistway_export_latency_seconds_{suffix}"));
    assert_eq!(latency(&format!("count{{{vm1},operation=\"read\"}}")), 7.0);
    assert_eq!(latency(&format!("bucket{{{vm1},operation=\"read\",le=\"+Inf\"}}")), 7.0);
    assert!(latency(&format!("sum{{{vm1},operation=\"read\"}}")) > 0.0);

    // A client that leaves takes what was in flight along.
    drop(limited);
    drop(client);
    server.wait_until("nothing is in flight", |server| {
        let text = scraped(server);
        ["in_flight", "held_back", "connections"]
            .iter()
            .all(|name| value(&text, &format!("hoistway_export_{name}{{export=\"vm2\"}}")) == 0.0)
    });
}

#[test]
fn each_line_has_the_form_that_prometheus_reads() {
    let server = Running::start(&["--target", "mem:1M", "--metrics", "[::1]:0"]);
    assert!(Client::at(&server, "").unwrap().is_served());
    let text = scraped(&server);
    let (mut typed, mut last_bucket) = (String::new(), 0.0);
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<_> = comment.split(' ').collect();
            match words[0] {
                "HELP" => assert!(words.len() > 3, "{line}"),
                "TYPE" => {
                    assert!(["counter", "gauge", "histogram"].contains(&words[2]), "{line}");
                    typed = words[1].to_owned();
                }
                _ => panic!("{line}"),
            }
            continue;
        }
        // Samples follow the type of their family, and buckets only grow.
        let (name, number) = line.rsplit_once(' ').unwrap();
        let number: f64 = number.parse().unwrap();
        assert!(name.starts_with(&typed), "{line} under {typed}");
        if name.contains("_bucket{") {
            let begins_anew = name.contains("le=\"0.000001024\"");
            assert!(begins_anew || number >= last_bucket, "{line}");
            last_bucket = number;
        }
    }
    assert!(text.ends_with('\n') && text.matches("# TYPE").count() == 13, "{text}");
}

#[test]
fn prometheus_own_reader_reads_it() {
    let python = std::env::var("PROMETHEUS_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_reader = std::process::Command::new(&python).args(["-c", "import prometheus_client"]).output();
    let has_reader = has_reader.is_ok_and(|output| output.status.success());
    assert!(has_reader || std::env::var("CI").is_err(), "the Python package prometheus-client is not installed");
    if !has_reader {
        eprintln!("skipped: the Python package prometheus-client is not installed");
        return;
    }
    let server = Running::start(&["--target", "mem:1M", "--metrics", "127.0.0.1:0", "--export", "name=a\\b\"c"]);
    let mut client = Client::at(&server, "").unwrap();
    (0..3).for_each(|_| assert!(client.is_served()));
    let file = server.folder().join("metrics");
    std::fs::write(&file, scraped(&server)).unwrap();
    let script = "import sys\nfrom prometheus_client.parser import text_string_to_metric_families as read\n\
                  found = {(s.name, s.labels.get('export'), s.labels.get('operation')): s.value \
                  for f in read(open(sys.argv[1]).read()) for s in f.samples if s.labels.get('le') in (None, '+Inf')}\n\
                  for name in ('requests_total', 'latency_seconds_count', 'latency_seconds_bucket'):\n    \
                  assert found['hoistway_export_' + name, 'a\\\\b\"c', 'read'] == 3, found\n";
    let output = std::process::Command::new(python).args(["-c", script]).arg(file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn other_http_requests_are_refused_and_metrics_stay_available() {
    let server = Running::start(&["--target", "mem:1M", "--metrics", "127.0.0.1:0"]);
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", "404"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("\r\n\r\n", "400"),
        ("GET\r\n\r\n", "400"),
    ] {
        let (head, _) = answered(&server, request);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {head}");
    }
    let (head, body) = answered(&server, "HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty());
    drop(TcpStream::connect(place(&server)).unwrap());
    scraped(&server);
}

#[test]
fn metrics_listen_only_on_an_address_of_this_machine() {
    for (address, said) in [
        ("0.0.0.0:9809", "--metrics 0.0.0.0:9809: other machines could read it"),
        ("localhost:9809", "invalid value 'localhost:9809'"),
    ] {
        let arguments = ["serve", "--target", "mem:1M", "--socket", "/nonexistent/s", "--metrics", address];
        let output = hoistway().args(arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(complaint.contains(said), "{complaint}");
    }
    let server = Running::start(&["--target", "mem:1M", "--metrics", "127.0.0.1:0"]);
    let taken = place(&server);
    let socket = server.folder().join("other").display().to_string();
    let output = hoistway().args(["serve", "--target", "mem:1M", "--socket", &socket, "--metrics", &taken]).output();
    assert!(refused(&output.unwrap()).contains(&format!("cannot listen on {taken}")));
    assert!(!std::path::Path::new(&socket).exists());
}

#[test]
fn the_dashboard_asks_for_figures_that_there_are() {
    let server = Running::start(&["--target", "mem:1M", "--metrics", "127.0.0.1:0"]);
    let text = scraped(&server);
    let dashboard: serde_json::Value = serde_json::from_str(include_str!("../../../docs/grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let asked = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let asked = asked.map(|target| target["expr"].as_str().unwrap().to_owned());
    let mut names = 0;
    for expression in asked {
        for (at, _) in expression.match_indices("hoistway_") {
            let name = expression[at..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
            assert!(text.contains(&format!("\n{name}{{")) || text.contains(&format!("\n{name} ")), "{name}");
            names += 1;
        }
    }
    assert!(names >= 10 && panels.len() == 8);
}
