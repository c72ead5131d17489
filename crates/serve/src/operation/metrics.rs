//! Metrics for Prometheus: the text, and a minimal HTTP server.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::export::latency::Latencies;
use crate::ground::stop::Stop;
use crate::operation::control::{ExportState, StateReport};
use crate::operation::request_threads;
use crate::server::ServerError;
use crate::server::server_state::ServerState;
use crate::stream::timed_stream::TimedStream;

/// Longest request, in bytes.
const REQUEST_BYTES_MAX: u64 = 8 << 10;
/// Timeout for receiving a request, and for sending the reply.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The content type of Prometheus' text format.
const CONTENT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A listener for metrics requests.
#[derive(Debug)]
pub struct Metrics {
    listener: TcpListener,
}

impl Metrics {
    /// Listens at this address.
    ///
    /// # Errors
    /// If it is in use, or the system refuses.
    pub fn listen(address: SocketAddr) -> Result<Metrics, ServerError> {
        let listen = || -> io::Result<TcpListener> {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|why| ServerError::Listen { place: address.to_string(), why })?;
        Ok(Metrics { listener })
    }

    /// The address it listens on; with port 0 the system has chosen the port.
    #[must_use]
    pub fn place(&self) -> String {
        self.listener.local_addr().map_or_else(|_| "?".into(), |address| address.to_string())
    }

    /// Serves requests until `stop` is set.
    pub fn serve(&self, server: &ServerState, stop: &Stop) {
        let accept = |listener: &TcpListener| listener.accept().map(|(stream, _)| stream);
        request_threads::serve(&self.listener, server, stop, accept, |stream| {
            // A peer that is too slow or gone gets no reply.
            let _ = serve_request(server, stream, stop);
        });
    }
}

fn serve_request(server: &ServerState, stream: &TcpStream, stop: &Stop) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let request_stream = TimedStream::new(stream, TIMEOUT, Some(stop));
    let mut reader = BufReader::new(request_stream.take(REQUEST_BYTES_MAX));
    let mut first = String::new();
    reader.read_line(&mut first)?;
    // Read the request completely: closing with unread data would reset the connection and lose the reply.
    let (mut line, mut is_for_this_machine) = (String::new(), true);
    while reader.read_line(&mut line)? > 0 && line.trim_end() != "" {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("host")
        {
            is_for_this_machine &= is_this_machine(value.trim());
        }
        line.clear();
    }
    let mut words = first.split_ascii_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        _ if !is_for_this_machine => ("403 Forbidden", "expected Host: localhost, 127.0.0.1 or [::1]\n".to_owned()),
        (Some("GET" | "HEAD"), Some(path)) if path.split('?').next() == Some("/metrics") => {
            ("200 OK", text(&server.report()))
        }
        (Some("GET" | "HEAD"), Some(_)) => ("404 Not Found", "expected /metrics\n".to_owned()),
        (Some(_), Some(_)) => ("405 Method Not Allowed", "expected GET\n".to_owned()),
        _ => ("400 Bad Request", "expected GET /metrics\n".to_owned()),
    };
    let length = body.len();
    let mut out = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {CONTENT}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if !first.starts_with("HEAD ") {
        out += &body;
    }
    TimedStream::new(stream, TIMEOUT, Some(stop)).write_all(out.as_bytes())
}

/// Whether the host of a request, with or without a port, is this machine. A browser that a page of another machine has sent here, by a name
/// that this machine's address was given, names that host.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A metric of an export: name, help, type, and its values with their labels.
type Figure = (&'static str, &'static str, &'static str, fn(&ExportState) -> Vec<(&'static str, u64)>);

const FIGURES: [Figure; 9] = [
    ("requests_total", "Requests completed without an error.", "counter", |export| {
        vec![
            (",operation=\"read\"", export.reads),
            (",operation=\"write\"", export.writes),
            (",operation=\"other\"", export.others),
        ]
    }),
    ("bytes_total", "Bytes of requests completed without an error.", "counter", |export| {
        vec![(",operation=\"read\"", export.read_bytes), (",operation=\"write\"", export.written_bytes)]
    }),
    ("errors_total", "Requests completed with an error.", "counter", |export| vec![("", export.errors)]),
    ("in_flight", "In-flight requests.", "gauge", |export| vec![("", export.in_flight)]),
    ("held_back", "In-flight requests that the limits of the export hold back.", "gauge", |export| {
        vec![("", export.held_back)]
    }),
    ("connections", "Connected clients.", "gauge", |export| vec![("", export.connections)]),
    ("size_bytes", "Size of the export.", "gauge", |export| vec![("", export.bytes)]),
    ("weight", "Weight of the export under bfq.", "gauge", |export| vec![("", u64::from(export.weight))]),
    ("read_only", "Whether the export is read-only.", "gauge", |export| vec![("", u64::from(export.read_only))]),
];

/// The state of a server in the format of Prometheus.
#[must_use]
pub fn text(state: &StateReport) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_text(state, &mut out);
    out
}

fn write_text(state: &StateReport, out: &mut String) -> std::fmt::Result {
    let head = |out: &mut String, name: &str, help: &str, kind: &str| {
        writeln!(out, "# HELP hoistway_{name} {help}\n# TYPE hoistway_{name} {kind}")
    };
    head(out, "scheduler_info", "Active I/O scheduler.", "gauge")?;
    for disk in &state.disks {
        let name = escaped(&disk.name);
        writeln!(out, "hoistway_scheduler_info{{disk=\"{name}\",scheduler=\"{}\"}} 1", disk.scheduler())?;
    }
    head(out, "nr_requests", "Requests of each hardware queue that the scheduler can choose from.", "gauge")?;
    for disk in &state.disks {
        writeln!(out, "hoistway_nr_requests{{disk=\"{}\"}} {}", escaped(&disk.name), disk.nr_requests)?;
    }
    head(out, "at_target", "Commands at the target.", "gauge")?;
    for disk in &state.disks {
        writeln!(out, "hoistway_at_target{{disk=\"{}\"}} {}", escaped(&disk.name), disk.at_target)?;
    }
    for (name, help, kind, values) in FIGURES {
        head(out, &format!("export_{name}"), help, kind)?;
        for export in &state.exports {
            for (labels, value) in values(export) {
                writeln!(out, "hoistway_export_{name}{{export=\"{}\"{labels}}} {value}", escaped(&export.name))?;
            }
        }
    }
    head(out, "export_latency_seconds", "Time from receiving a request to its reply being ready.", "histogram")?;
    for export in &state.exports {
        let kinds =
            [("read", &export.read_latency), ("write", &export.write_latency), ("other", &export.other_latency)];
        for (operation, latencies) in kinds {
            let labels = format!("export=\"{}\",operation=\"{operation}\"", escaped(&export.name));
            write_histogram(out, &labels, latencies)?;
        }
    }
    Ok(())
}

fn write_histogram(out: &mut String, labels: &str, latencies: &Latencies) -> std::fmt::Result {
    let name = "hoistway_export_latency_seconds";
    for bound in Latencies::bounds() {
        writeln!(out, "{name}_bucket{{{labels},le=\"{}\"}} {}", bound as f64 / 1e9, latencies.below(bound))?;
    }
    writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", latencies.count())?;
    writeln!(out, "{name}_sum{{{labels}}} {}", latencies.sum_ns as f64 / 1e9)?;
    writeln!(out, "{name}_count{{{labels}}} {}", latencies.count())
}

/// A text as the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::is_this_machine;

    #[test]
    fn only_a_name_of_this_machine_is_answered() {
        for host in ["localhost", "LOCALHOST:9809", "127.0.0.1", "127.0.0.1:9809", "127.1.2.3:1", "[::1]", "[::1]:9809"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "",
            "attacker.example",
            "attacker.example:9809",
            "localhost.attacker.example",
            "10.0.0.1:9809",
            "[fe80::1]",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
