//! `hoistway serve`: a block server.

mod target;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use hoistway_blk::{Kernel, Nanos};
use hoistway_engine::Config;
use hoistway_lab::facts;
use hoistway_serve::{Bounds, Control, ExportSpec, FrontEnd, GuestListener, Listener, Placed, Server, Stop};

use crate::Ending;

/// Serves disks to clients of NBD and to virtual machines, under one scheduler that is fair between them.
///
/// SIGTERM or SIGINT: what is under way is answered, then it ends; a second one ends it at once.
///
/// Examples:
///   hoistway serve --target mem:512M --scheduler none --socket /tmp/disk.sock
///   hoistway serve --target file:disk.img --scheduler mq-deadline --tcp 127.0.0.1:10809 --read-only
///   hoistway serve --target mem:512M --vhost-user /tmp/vm.sock
///   hoistway serve --target mem:2G --scheduler bfq --set bfq.low_latency=0 --socket /tmp/disk.sock \
///     --export name=vm1,size=1G,weight=400 --export name=vm2,offset=1G,max-iops=5000
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// What is served: memory, a file, a block device, nothing at all (null:), or a simulated device in real time with
    /// its data in memory (see `hoistway devices`). Without it each --export has a path= of its own.
    #[arg(long, value_name = "mem:SIZE|file:PATH|blk:PATH|null:|null:SIZE|sim:PRESET")]
    target: Option<String>,
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
    /// Listens on TCP, without encryption or passwords: only for networks that you trust. May be given several times.
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
    /// How long a thread without work looks for more before it sleeps, in us: that saves the time of being woken, and costs the CPU.
    #[arg(long, value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    spin: u64,
    /// Nobody may write, to any export.
    #[arg(long)]
    read_only: bool,
    /// Clients at a time; more are turned away.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_connections: u32,
    /// Requests of a client at a time; what it sends beyond waits in its socket.
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_in_flight: u32,
    /// A socket, for its owner only, on which `hoistway ctl` shows and changes the running server.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let mut specs = arguments.export.iter().map(|text| read_export(text)).collect::<Result<Vec<_>>>()?;
    if specs.is_empty() {
        specs.push(ExportSpec::default());
    }
    if let Some(path) = &arguments.vhost_user
        && let Some(other) = specs[0].vhost_user.replace(path.clone())
    {
        bail!("--vhost-user {}: the first export has vhost-user={} already", path.display(), other.display());
    }
    let guests: Vec<_> = specs.iter().map(|spec| spec.vhost_user.clone()).collect();
    if arguments.socket.is_empty() && arguments.tcp.is_empty() && guests.iter().all(Option::is_none) {
        bail!("nowhere to listen (expected --socket PATH, --tcp HOST:PORT or --vhost-user PATH)");
    }
    let is_all_read_only = arguments.read_only;
    specs.iter_mut().for_each(|spec| spec.read_only |= is_all_read_only);
    let (backend, volumes) = target::open(arguments.target.as_deref(), &specs, is_all_read_only)?;
    let exports = specs.into_iter().zip(volumes).map(|(spec, volume)| Placed { spec, volume }).collect();
    let config = Config {
        workers: usize::from(arguments.workers),
        scheduler: arguments.scheduler.clone(),
        nr_requests: arguments.nr_requests,
        queue_depth: arguments.queue_depth,
        spin: Nanos::from_micros(arguments.spin),
        ..Config::default()
    };
    let bounds = Bounds {
        connections: arguments.max_connections as usize,
        in_flight: arguments.max_in_flight,
        ..Bounds::default()
    };
    let server = Server::start(&config, backend, exports, bounds, Box::new(say), tunable_names)?;
    for setting in &arguments.set {
        let (key, value) = setting.split_once('=').filter(|(key, _)| key.contains('.')).with_context(|| {
            format!("--set {setting}: expected SCHEDULER.TUNABLE=VALUE, as {}.NAME=VALUE", arguments.scheduler)
        })?;
        server.site().set(key, value).map_err(|why| anyhow!("--set {why}"))?;
    }
    let unix = arguments.socket.iter().map(|path| Listener::unix(path));
    let listeners = unix.chain(arguments.tcp.iter().map(|address| Listener::tcp(address)));
    let mut front_ends: Vec<Box<dyn FrontEnd>> = Vec::new();
    for listener in listeners {
        front_ends.push(Box::new(listener?));
    }
    for (export, path) in guests.iter().enumerate() {
        if let Some(path) = path {
            front_ends.push(Box::new(GuestListener::new(path, export)?));
        }
    }
    let control = arguments.control.as_deref().map(Control::listen).transpose()?;
    serve(server, &front_ends, control)
}

fn read_export(text: &str) -> Result<ExportSpec> {
    ExportSpec::parse(text).with_context(|| format!("--export {text}"))
}

/// From the first client to the last.
fn serve(server: Server, front_ends: &[Box<dyn FrontEnd>], control: Option<Control>) -> Result<Ending> {
    let stop = Stop::new()?;
    end_on_signals(stop.clone())?;
    for export in &server.site().exports {
        let size_mib = export.size_bytes as f64 / f64::from(1 << 20);
        let how = if export.read_only { ", read-only" } else { "" };
        say(&format!("export {:?}: {size_mib} MiB{how}", export.name));
    }
    if cfg!(panic = "abort") {
        say("this build ends whole if there is a bug in it; one made with --profile server ends only the connection");
    }
    let places: Vec<_> = front_ends.iter().map(|front_end| front_end.place()).collect();
    say(&format!("serving under {} at {}", server.site().state().scheduler(), places.join(", ")));
    std::thread::scope(|scope| {
        if let Some(control) = &control {
            let (site, stop) = (server.site(), &stop);
            scope.spawn(move || control.serve(site, stop));
        }
        server.accept(front_ends, &stop);
        say("no more clients are taken; what is under way is answered");
        server.drain();
    });
    server.stop();
    say("ended");
    Ok(Ending::Done)
}

/// The first signal ends it well, the second at once.
fn end_on_signals(stop: Stop) -> Result<()> {
    static SIGNALLED: AtomicBool = AtomicBool::new(false);
    ctrlc::set_handler(move || {
        if SIGNALLED.swap(true, Relaxed) {
            say("ended at once");
            std::process::exit(130);
        }
        stop.stop();
    })?;
    Ok(())
}

fn say(what: &str) {
    // Not `eprintln!`: that panics if nobody reads standard error any more.
    let _ = writeln!(std::io::stderr(), "hoistway: {what}");
}

fn tunable_names(scheduler: &str) -> Vec<&'static str> {
    facts::tunables(scheduler, Kernel::DEFAULT).iter().map(|tunable| tunable.name).collect()
}
