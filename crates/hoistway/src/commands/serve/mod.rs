//! `hoistway serve`: a block server.

mod config;
mod log;
mod reload;
mod signals;
mod systemd;
mod target;
mod user;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use hoistway_blk::{ContentionOptions, Kernel, Nanos};
use hoistway_engine::Config;
use hoistway_experiment::facts;
use hoistway_serve::{Bounds, Control, FrontEnd, GuestListener, Listener, Metrics, Server, Stop, TlsFiles};

use self::config::Asked;
use self::log::say;
use self::reload::Reloader;
use self::systemd::News;
use hoistway_terminal::Ending;

/// Serves disks to clients of NBD and to virtual machines, under one scheduler that is fair between them.
///
/// SIGTERM or SIGINT: what is under way is answered, then it ends; a second one ends it at once. SIGHUP: --config is read again.
///
/// Examples:
///   hoistway serve --target mem:512M --scheduler none --socket /tmp/disk.sock
///   hoistway serve --target file:disk.img --scheduler mq-deadline --tcp 127.0.0.1:10809 --read-only
///   hoistway serve --target mem:512M --vhost-user /tmp/vm.sock
///   hoistway serve --target mem:2G --scheduler bfq --set bfq.low_latency=0 --socket /tmp/disk.sock \
///     --export name=vm1,size=1G,weight=400 --export name=vm2,offset=1G,max-iops=5000
///   hoistway serve --target sim:hgst-he10-8tb --data slow-disk.img --scheduler bfq --tcp 127.0.0.1:10809
///   hoistway serve --config /etc/hoistway/serve.toml --user nobody --metrics 127.0.0.1:9809
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// What is served: memory, a file, a block device, nothing at all (null:), or a simulated device in real time
    /// (see `hoistway devices`), its data in memory. Without it each --export has a path= of its own.
    #[arg(long, value_name = "mem:SIZE|file:PATH|blk:PATH|null:|null:SIZE|sim:PRESET")]
    target: Option<String>,
    /// Keeps the data of a simulated device in this sparse file instead of in memory. It is made if it is missing, and stays; it
    /// is never synced, so it survives the server, but not the machine.
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Serves a part of the target, or a file of its own, under a name: name=, path=, offset=, size=, description=, read-only;
    /// a virtual machine whose disk it is, over vhost-user: vhost-user=PATH;
    /// its share under bfq: weight= (1 to 1000, 100 is usual); the priority of its I/O: ioprio= (rt/0 to rt/7, be/0 to be/7, idle);
    /// its limits a second, reads and writes each: max-iops=, max-bps= (or riops=, wiops=, rbps=, wbps=). May be given several
    /// times; the first one answers to the empty name, too. [default: all of the target, under the empty name]
    #[arg(long, value_name = "KEY=VALUE,...")]
    export: Vec<String>,
    /// Listens on a socket of this machine. May be given several times.
    #[arg(long, value_name = "PATH")]
    socket: Vec<PathBuf>,
    /// Listens for a virtual machine whose disk is the first export, over vhost-user: the same as vhost-user=PATH there.
    #[arg(long, value_name = "PATH")]
    vhost_user: Option<PathBuf>,
    /// Listens on TCP; without --tls-cert only for networks that you trust. May be given several times.
    #[arg(long, value_name = "HOST:PORT")]
    tcp: Vec<String>,
    /// The scheduler between the clients and the target: none, mq-deadline, kyber or bfq.
    #[arg(long, value_name = "NAME", default_value = "none")]
    scheduler: String,
    /// Sets a tunable of the scheduler. May be given several times.
    #[arg(long, value_name = "SCHED.TUNABLE=VALUE")]
    set: Vec<String>,
    /// The number of requests of each hardware queue that the scheduler has to choose from.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10240))]
    nr_requests: Option<u32>,
    /// Commands that the target has at once. A scheduler chooses only among what is beyond it.
    /// [default: what the target takes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10240))]
    queue_depth: Option<u32>,
    /// Threads, each with a hardware queue of its own if the target has as many.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// How long a thread without work looks on before it sleeps, in us at most, and only as long as that pays: it saves the time
    /// of being woken, and costs the CPU.
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    spin: u64,
    /// What is done so that threads wait less for the lock of mq-deadline or bfq: all, none, or some of single-dispatcher,
    /// try-merge, batch-dispatch, and insertion-buckets or pending-lists. Linux does none of it.
    #[arg(long, value_name = "LIST", default_value = "single-dispatcher,try-merge,batch-dispatch")]
    techniques: ContentionOptions,
    /// Memory for the data of requests to files and disks that the rings of all workers know beforehand, so that a request
    /// need not look it up; 0 is none. It is locked: see `ulimit -l`.
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = crate::commands::run::target::fixed_bytes)]
    fixed_buffers: usize,
    /// Nobody may write, to any export.
    #[arg(long)]
    read_only: bool,
    /// Clients at a time; more are turned away.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_connections: u32,
    /// Requests of a client at a time; what it sends beyond waits in its socket.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_in_flight: u32,
    /// Reads options from a TOML file, too: the same names, and an `[[export]]` for each export. What is given here replaces what is
    /// there, or is added if it may be given several times. SIGHUP reads it again: exports, their weights, priorities and limits,
    /// the scheduler, its tunables and nr-requests change while clients stay; if anything else has changed nothing does.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Certificate for TLS with those between it and its authority behind it, as PEM. Clients over TCP then have to use TLS.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate, as PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Clients that use TLS have to show a certificate that one of these authorities has signed.
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// Whether clients over TCP have to use TLS, or may. Those of this machine always may. [default: required, with --tls-cert]
    #[arg(long, value_name = "WHEN", value_enum)]
    tls: Option<TlsUse>,
    /// Answers Prometheus at /metrics, over HTTP, on this address of this machine: 127.0.0.1:PORT or `[::1]:PORT`.
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<SocketAddr>,
    /// Becomes this user when everything is open. Files that are read again by SIGHUP have to be readable to him.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// How long what is under way may take to end after SIGTERM, in seconds; then it ends all the same, with status 1.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    grace: u64,
    /// A socket, for its owner only, on which `hoistway ctl` shows and changes the running server.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

/// Who uses TLS.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum TlsUse {
    /// Whoever comes over TCP.
    Required,
    /// Who wants to.
    Allowed,
}

impl Arguments {
    fn tls_files(&self) -> Result<Option<TlsFiles>> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                let authority = self.tls_ca.clone();
                Ok(Some(TlsFiles { certificate: certificate.clone(), key: key.clone(), authority }))
            }
            (None, None) if self.tls_ca.is_none() && self.tls.is_none() => Ok(None),
            _ => bail!("TLS needs both --tls-cert FILE and --tls-key FILE"),
        }
    }
}

pub(crate) fn run() -> Result<Ending> {
    log::begin()?;
    let ending = from_start_to_end();
    log::end();
    ending
}

fn from_start_to_end() -> Result<Ending> {
    // Behind the name of the program and of the command.
    let line: Vec<_> = std::env::args_os().skip(2).collect();
    let asked = Asked::read(&line)?;
    let Asked { arguments, exports, .. } = &asked;
    let handed = systemd::sockets()?;
    let has_guests = exports.iter().any(|export| export.vhost_user.is_some());
    if arguments.socket.is_empty() && arguments.tcp.is_empty() && handed.is_empty() && !has_guests {
        bail!("nowhere to listen (expected --socket PATH, --tcp HOST:PORT or --vhost-user PATH)");
    }
    if let Some(address) = arguments.metrics.filter(|address| !address.ip().is_loopback()) {
        bail!(
            "--metrics {address}: anybody could read it (expected an address of this machine, 127.0.0.1:PORT or [::1]:PORT)"
        );
    }
    let tls = arguments.tls_files()?;
    let tls = tls.as_ref().map(|files| files.read().context("TLS")).transpose()?;
    let tls_config = tls.as_ref().map(|texts| texts.config().context("TLS")).transpose()?;
    let user = arguments.user.as_deref().map(user::find).transpose().map_err(|error| asked.blame("user", error))?;

    let (backend, volumes) = target::open(arguments, exports)?;
    let wanted = reload::wanted(&asked, &volumes)?;
    let config = Config {
        workers: usize::from(arguments.workers),
        scheduler: arguments.scheduler.clone(),
        queue_depth: arguments.queue_depth,
        techniques: arguments.techniques,
        spin: Nanos::from_micros(arguments.spin),
        ..Config::default()
    };
    let bounds = Bounds {
        connections: arguments.max_connections as usize,
        in_flight: arguments.max_in_flight,
        ..Bounds::default()
    };
    let server = Server::start(&config, backend, &wanted.exports, bounds, Box::new(say), tunable_names)
        .map_err(|error| asked.blame_setting(error.into()))?;
    let set = server.site().set_all(&wanted.scheduler, &wanted.settings);
    set.map_err(|error| asked.blame_setting(error.into()))?;
    if let Some(config) = tls_config {
        server.site().set_tls(config);
    }
    let requires_tls = arguments.tls != Some(TlsUse::Allowed);
    let unix = arguments.socket.iter().map(|path| Listener::unix(path));
    let tcp = arguments.tcp.iter().map(|address| Listener::tcp(address));
    let mut front_ends: Vec<Box<dyn FrontEnd>> = Vec::new();
    for listener in unix.chain(tcp).chain(handed.into_iter().map(Ok)) {
        let listener = listener?;
        front_ends.push(Box::new(if requires_tls { listener.requiring_tls() } else { listener }));
    }
    for export in exports {
        if let Some(path) = &export.vhost_user {
            front_ends.push(Box::new(GuestListener::new(path, &export.name)?));
        }
    }
    let control = arguments.control.as_deref().map(Control::listen).transpose()?;
    let metrics = arguments.metrics.map(Metrics::listen).transpose()?;
    // Everything is open.
    if let Some(user) = &user {
        user::become_user(user)?;
    }
    serve(server, front_ends, control.as_ref(), metrics.as_ref(), &Reloader::new(line, asked, volumes, tls))
}

/// From the first client to the last.
fn serve(
    server: Server,
    front_ends: Vec<Box<dyn FrontEnd>>,
    control: Option<&Control>,
    metrics: Option<&Metrics>,
    reloader: &Reloader,
) -> Result<Ending> {
    let stop = Stop::new()?;
    let hang_ups = signals::watch(stop.clone(), reloader.can_reload())?;
    for export in &server.site().offer().exports {
        let bytes = export.size_bytes;
        let size = if bytes % (1 << 20) == 0 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") };
        let how = if export.read_only { ", read-only" } else { "" };
        say(&format!("export {:?}: {size}{how}", export.name));
    }
    if cfg!(panic = "abort") {
        say("this build ends whole if there is a bug in it; one made with --profile server ends only the connection");
    }
    if let Some(metrics) = metrics {
        say(&format!("metrics at http://{}/metrics", metrics.place()));
    }
    let places: Vec<_> = front_ends.iter().map(|front_end| front_end.place()).collect();
    say(&format!("serving under {} at {}", server.site().state().scheduler(), places.join(", ")));
    let left = std::thread::scope(|scope| {
        let (site, stop) = (server.site(), &stop);
        if let Some(control) = control {
            scope.spawn(move || control.serve(site, stop));
        }
        if let Some(metrics) = metrics {
            scope.spawn(move || metrics.serve(site, stop));
        }
        scope.spawn(move || hang_ups.into_iter().for_each(|()| reloader.reload(site)));
        systemd::tell(&News::Ready);
        server.accept(&front_ends, stop);
        // Who comes now is refused, and not left to wait.
        drop(front_ends);
        systemd::tell(&News::Stopping);
        say("no more clients are taken; what is under way is answered");
        server.drain(Duration::from_secs(reloader.started.arguments.grace))
    });
    if left > 0 {
        let grace = reloader.started.arguments.grace;
        say(&format!("ended though {left} clients had something under way after {grace} s"));
        // What they wait for may never end, and to stop the workers would be to wait for it.
        std::mem::forget(server);
        return Ok(Ending::JobFailed);
    }
    server.stop();
    say("ended");
    Ok(Ending::Done)
}

fn tunable_names(scheduler: &str) -> Vec<&'static str> {
    facts::tunables(scheduler, Kernel::DEFAULT).iter().map(|tunable| tunable.name).collect()
}
