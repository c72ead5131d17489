//! Figures for Prometheus: its text, and an answer to whoever asks for it over HTTP.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::askers;
use crate::control::{ExportState, State};
use crate::latency::Latencies;
use crate::patient::Patient;
use crate::served::Site;
use crate::server::ServerError;
use crate::stop::Stop;

/// Longest request, in bytes.
const REQUEST_BYTES_MAX: u64 = 8 << 10;
/// How long somebody may take to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// What the answer is, as Prometheus names it.
const CONTENT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A place where figures are asked for.
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

    /// Where it really listens, which with port 0 nobody knows before.
    #[must_use]
    pub fn place(&self) -> String {
        self.listener.local_addr().map_or_else(|_| "?".into(), |address| address.to_string())
    }

    /// Answers until somebody stops that.
    pub fn serve(&self, site: &Site, stop: &Stop) {
        let accept = |listener: &TcpListener| listener.accept().map(|(stream, _)| stream);
        askers::serve(&self.listener, site, stop, accept, |stream| {
            // Who is too slow, or has gone, is not answered.
            let _ = answer(site, stream, stop);
        });
    }
}

fn answer(site: &Site, stream: &TcpStream, stop: &Stop) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let asks = Patient::new(stream, PATIENCE, Some(stop));
    let mut reader = BufReader::new(asks.take(REQUEST_BYTES_MAX));
    let mut first = String::new();
    reader.read_line(&mut first)?;
    // All of it is read: to close what has not been would take the answer back.
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 && line.trim_end() != "" {
        line.clear();
    }
    let mut words = first.split_ascii_whitespace();
    let (status, body) = match (words.next(), words.next()) {
        (Some("GET" | "HEAD"), Some(place)) if place.split('?').next() == Some("/metrics") => {
            ("200 OK", text(&site.state()))
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
    Patient::new(stream, PATIENCE, Some(stop)).write_all(out.as_bytes())
}

/// What is told of an export: name, what it is, its type, and how it is found.
type Figure = (&'static str, &'static str, &'static str, fn(&ExportState) -> Vec<(&'static str, u64)>);

const FIGURES: [Figure; 9] = [
    ("requests_total", "Requests answered without an error.", "counter", |it| {
        vec![
            (",operation=\"read\"", it.reads),
            (",operation=\"write\"", it.writes),
            (",operation=\"other\"", it.others),
        ]
    }),
    ("bytes_total", "Bytes of requests answered without an error.", "counter", |it| {
        vec![(",operation=\"read\"", it.read_bytes), (",operation=\"write\"", it.written_bytes)]
    }),
    ("errors_total", "Requests answered with an error.", "counter", |it| vec![("", it.errors)]),
    ("in_flight", "Requests that have come and not ended.", "gauge", |it| vec![("", it.in_flight)]),
    ("held_back", "Those of them that wait under the limits of the export.", "gauge", |it| vec![("", it.held_back)]),
    ("connections", "Clients at present.", "gauge", |it| vec![("", it.connections)]),
    ("size_bytes", "The length of the export.", "gauge", |it| vec![("", it.bytes)]),
    ("weight", "Its weight, which bfq goes by.", "gauge", |it| vec![("", u64::from(it.weight))]),
    ("read_only", "Whether nobody may write.", "gauge", |it| vec![("", u64::from(it.read_only))]),
];

/// How a server stands, as Prometheus reads it.
#[must_use]
pub fn text(state: &State) -> String {
    let mut out = String::new();
    // Into a string nothing fails to be written.
    let _ = write_text(state, &mut out);
    out
}

fn write_text(state: &State, out: &mut String) -> std::fmt::Result {
    let head = |out: &mut String, name: &str, help: &str, kind: &str| {
        writeln!(out, "# HELP hoistway_{name} {help}\n# TYPE hoistway_{name} {kind}")
    };
    head(out, "scheduler_info", "The scheduler between clients and target.", "gauge")?;
    writeln!(out, "hoistway_scheduler_info{{scheduler=\"{}\"}} 1", state.scheduler())?;
    head(out, "nr_requests", "Requests that the scheduler chooses from, of each hardware queue.", "gauge")?;
    writeln!(out, "hoistway_nr_requests {}", state.nr_requests)?;
    head(out, "at_target", "Commands that are at the target.", "gauge")?;
    writeln!(out, "hoistway_at_target {}", state.at_target)?;
    for (name, help, kind, values) in FIGURES {
        head(out, &format!("export_{name}"), help, kind)?;
        for export in &state.exports {
            for (labels, value) in values(export) {
                writeln!(out, "hoistway_export_{name}{{export=\"{}\"{labels}}} {value}", escaped(&export.name))?;
            }
        }
    }
    head(out, "export_latency_seconds", "From when a request had come to when its answer could go.", "histogram")?;
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

/// As the value of a label is written.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
