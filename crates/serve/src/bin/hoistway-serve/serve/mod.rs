//! The command `serve`: options, targets and sockets become a running block server.
//!
//! Used by: the program `hoistway-serve`.
//! Tests: `crates/serve/tests/` (which run the program).

mod config;
mod descriptors;
mod log;
mod memory;
mod reload;
mod scheduler;
mod signals;
mod systemd;
mod target;
mod user;

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ArgMatches;
use hoistway_blk::ground::Nanos;
use hoistway_engine::Config;
use hoistway_serve::{
    Control, FrontEnd, GuestListener, Level, Listener, Metrics, Server, ServerLimits, SocketAccess, Stop, TlsFiles,
    TlsTexts, UblkDevice,
};
use hoistway_serve_options::{LogFormat, LogLevel, ServeOptions, TlsUse};
use nix::unistd::User;
use rustls::ServerConfig;

use self::config::Configuration;
use self::log::say;
use self::reload::{Reloader, ServerOperator};
use self::systemd::{PassedSockets, ServiceState};
use self::target::Volumes;

/// Exit status if in-flight requests did not end within the grace period.
const EXIT_NOT_DRAINED: u8 = 1;

/// Runs the server with these options, which came from these matches, until it is stopped.
pub(crate) fn run(options: ServeOptions, matches: &ArgMatches) -> Result<ExitCode> {
    log::begin()?;
    let ended = serve_until_stopped(options, matches);
    log::end();
    ended
}

/// Warns if others can read the key.
fn warn_of_readable_key(key: &Path) {
    let mode = std::fs::metadata(key).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o007 != 0 {
        log::log(
            Level::Warning,
            &format!("--tls-key {}: every user can access it (mode {:o}, expected 600)", key.display(), mode & 0o777),
        );
    }
}

fn tls_files(options: &ServeOptions) -> Result<Option<TlsFiles>> {
    match (&options.tls_cert, &options.tls_key) {
        (Some(certificate), Some(key)) => {
            let authority = options.tls_ca.clone();
            Ok(Some(TlsFiles { certificate: certificate.clone(), key: key.clone(), authority }))
        }
        (None, None) if options.tls_ca.is_none() && options.tls.is_none() => Ok(None),
        _ => bail!("TLS needs both --tls-cert FILE and --tls-key FILE"),
    }
}

/// Checks that there is at least one listener, and that sockets from systemd belong to existing exports.
fn check_listeners(configuration: &Configuration, passed_sockets: &PassedSockets) -> Result<()> {
    let Configuration { options, exports, .. } = configuration;
    let has_guests = exports.iter().any(|export| export.vhost_user.is_some()) || !passed_sockets.guests.is_empty();
    let has_listeners = !options.socket.is_empty() || !options.tcp.is_empty() || !passed_sockets.clients.is_empty();
    let has_any = has_listeners || has_guests || exports.iter().any(|export| export.ublk.is_some());
    // With `--check` there are no sockets from systemd.
    if !has_any && !options.check {
        bail!("nowhere to listen (expected --socket PATH, --tcp HOST:PORT, --vhost-user PATH or --ublk)");
    }
    for (name, _) in &passed_sockets.guests {
        if !exports.iter().any(|export| export.name == *name) {
            bail!("LISTEN_FDNAMES: vhost-user={name}: there is no export {name:?}");
        }
    }
    if options.control.is_some() && passed_sockets.control.is_some() {
        bail!("--control and a socket of systemd with the name control exclude each other");
    }
    Ok(())
}

/// A configuration that is consistent in itself, with what it needs from the system except disks and listeners.
struct Checked {
    /// The command line after `serve`.
    line: Vec<OsString>,
    configuration: Configuration,
    passed_sockets: PassedSockets,
    tls: Option<TlsTexts>,
    tls_config: Option<Arc<ServerConfig>>,
    user: Option<User>,
    socket_access: SocketAccess,
    control_access: SocketAccess,
}

/// A server whose disks and listeners are open, and that serves nobody yet.
struct Opened {
    server: Server,
    front_ends: Vec<Box<dyn FrontEnd>>,
    guests: Vec<GuestListener>,
    control: Option<Control>,
    metrics: Option<Metrics>,
    devices: Vec<UblkDevice>,
    reloader: Reloader,
}

fn serve_until_stopped(options: ServeOptions, matches: &ArgMatches) -> Result<ExitCode> {
    let checked = check(options, matches)?;
    if checked.configuration.options.check {
        start_server(&checked.configuration, true)?.0.stop();
        writeln!(std::io::stdout(), "the configuration is correct").context("standard output")?;
        return Ok(ExitCode::SUCCESS);
    }
    let user = checked.user.clone();
    let opened = open(checked)?;
    // Only now: files, sockets and devices may need privileges, and what clients send must not meet any.
    drop_privileges(user.as_ref())?;
    serve(opened)
}

/// Reads the configuration, certificates and names of users, and checks them.
fn check(options: ServeOptions, matches: &ArgMatches) -> Result<Checked> {
    // The arguments after the names of the program and the command.
    let line: Vec<_> = std::env::args_os().skip(2).collect();
    let configuration = Configuration::with_file(&line, options, matches)?;
    let options = &configuration.options;
    let passed_sockets = systemd::sockets()?;
    check_listeners(&configuration, &passed_sockets)?;
    if let Some(address) = options.metrics.filter(|address| !address.ip().is_loopback()) {
        bail!(
            "--metrics {address}: other machines could read it (expected a loopback address, 127.0.0.1:PORT or [::1]:PORT)"
        );
    }
    log::set_json(options.log_format == LogFormat::Json);
    log::set_level(match options.log_level {
        LogLevel::Error => Level::Error,
        LogLevel::Warning => Level::Warning,
        LogLevel::Info => Level::Info,
    });
    let tls = tls_files(options)?;
    let tls = tls.as_ref().map(|files| files.read().context("TLS")).transpose()?;
    let tls_config = tls.as_ref().map(|texts| texts.config().context("TLS")).transpose()?;
    let located = |option, error| configuration.with_config_location(option, error);
    let user = options.user.as_deref().map(user::find).transpose().map_err(|error| located("user", error))?;
    let socket_access = user::access("--socket-owner", options.socket_owner.as_deref(), options.socket_mode);
    let socket_access = socket_access.map_err(|error| located("socket-owner", error))?;
    let control_access = user::access("--control-owner", options.control_owner.as_deref(), Some(options.control_mode));
    let control_access = control_access.map_err(|error| located("control-owner", error))?;
    if let Some(key) = &options.tls_key {
        warn_of_readable_key(key);
    }
    Ok(Checked { line, configuration, passed_sockets, tls, tls_config, user, socket_access, control_access })
}

/// The configuration of the block layer of each disk.
fn engine_config(options: &ServeOptions) -> Config {
    Config {
        workers: usize::from(options.workers),
        scheduler: options.scheduler.clone().unwrap_or_else(|| scheduler::FAST.to_owned()),
        queue_depth: options.queue_depth,
        contention_options: options.techniques,
        busy_poll_time: Nanos::from_micros(options.spin),
        turn_bytes: target::turn_bytes(options),
        ..Config::default()
    }
}

/// Opens the disks, or copies of them in memory to check the configuration, and starts their block layers.
fn start_server(configuration: &Configuration, is_check: bool) -> Result<(Server, Volumes)> {
    let Configuration { options, exports, .. } = configuration;
    let opened =
        if is_check { target::memory_copy_of_target(options, exports)? } else { target::open(options, exports)? };
    let (placed, volumes, config) = (opened.place(exports), opened.volumes, engine_config(options));
    let workers = usize::from(options.workers) * opened.disks.len();
    let limits = ServerLimits {
        connections: descriptors::connections(options.max_connections as usize, workers),
        connections_per_peer: options.max_connections_per_peer.map_or(usize::MAX, |max| max as usize),
        in_flight: options.max_in_flight,
        memory_bytes: options.memory.unwrap_or_else(memory::default_bytes),
        ..ServerLimits::default()
    };
    let located = |error: anyhow::Error| configuration.with_setting_location(error);
    let server = Server::start(&config, opened.disks, &placed, limits, Box::new(log::log));
    let server = server.map_err(|error| located(error.into()))?;
    if options.scheduler.is_none() && !is_check {
        scheduler::choose(server.state());
    }
    let wanted = reload::desired_state(configuration, placed)?;
    let set = server.state().set_all(wanted.scheduler.as_deref(), &wanted.settings);
    set.map_err(|error| located(error.into()))?;
    Ok((server, volumes))
}

/// Opens disks, listeners and devices.
fn open(checked: Checked) -> Result<Opened> {
    let Checked { line, configuration, passed_sockets, tls, tls_config, socket_access, control_access, .. } = checked;
    let (server, volumes) = start_server(&configuration, false)?;
    let Configuration { options, exports, .. } = &configuration;
    if let Some(config) = tls_config {
        server.state().set_tls(config);
    }
    let front_ends = open_front_ends(options, passed_sockets.clients, tls.is_some(), socket_access)?;
    server.state().set_guest_access(socket_access);
    let mut guests = Vec::new();
    for export in exports {
        if let Some(path) = &export.vhost_user {
            guests.push(GuestListener::new(path, socket_access, &export.name)?);
        }
    }
    for (name, listener) in passed_sockets.guests {
        guests.push(GuestListener::of(listener, &name).with_context(|| format!("LISTEN_FDNAMES: vhost-user={name}"))?);
    }
    let control = match passed_sockets.control {
        Some(listener) => Some(Control::of(listener).context("LISTEN_FDNAMES: control")?),
        None => options.control.as_deref().map(|path| Control::listen(path, control_access)).transpose()?,
    };
    let metrics = options.metrics.map(Metrics::listen).transpose()?;
    let mut devices = Vec::new();
    for export in exports {
        let added = server.state().add_device(&export.name);
        devices.extend(added.map_err(|error| configuration.with_setting_location(error.into()))?);
    }
    let reloader = Reloader::new(line, configuration, volumes, tls);
    Ok(Opened { server, front_ends, guests, control, metrics, devices, reloader })
}

/// Opens the listeners for NBD clients, in addition to those of systemd.
fn open_front_ends(
    options: &ServeOptions,
    passed: Vec<Listener>,
    has_tls: bool,
    access: SocketAccess,
) -> Result<Vec<Box<dyn FrontEnd>>> {
    let requires_tls = options.tls != Some(TlsUse::Allowed);
    let unix = options.socket.iter().map(|path| Listener::unix(path, access));
    let tcp = options.tcp.iter().map(|address| Listener::tcp(address));
    let mut front_ends: Vec<Box<dyn FrontEnd>> = Vec::new();
    for listener in unix.chain(tcp).chain(passed.into_iter().map(Ok)) {
        let listener = listener?;
        if !has_tls && listener.is_reachable() {
            let address = listener.place();
            log::log(
                Level::Warning,
                &format!("{address}: TCP without TLS, anyone who can reach it can use all exports (see --tls-cert)"),
            );
        }
        front_ends.push(Box::new(if requires_tls { listener.requiring_tls() } else { listener }));
    }
    Ok(front_ends)
}

/// Becomes the user of `--user`, if there is one, in all threads and irrevocably.
fn drop_privileges(user: Option<&User>) -> Result<()> {
    user.map_or(Ok(()), user::become_user)
}

/// Accepts clients until the server is stopped, then drains them.
fn serve(opened: Opened) -> Result<ExitCode> {
    let Opened { server, front_ends, guests, control, metrics, devices, reloader } = opened;
    let (reloader, control, metrics) = (&reloader, control.as_ref(), metrics.as_ref());
    server.state().set_start_disk(reloader.start_disk());
    guests.into_iter().try_for_each(|listener| server.state().serve_guests(listener)).context("guests")?;
    for device in devices {
        let served = server.state().serve_device(device);
        served.map_err(|error| reloader.started.with_setting_location(error.into()))?;
    }
    let stop = Stop::new()?;
    let hang_ups = signals::watch(stop.clone(), reloader.can_reload())?;
    for export in &server.state().exports().descriptions {
        let bytes = export.size_bytes;
        let size = if bytes % (1 << 20) == 0 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") };
        let how = if export.read_only { ", read-only" } else { "" };
        say(&format!("export {:?}: {size}{how}", export.name));
    }
    if cfg!(panic = "abort") {
        say(
            "in this build a panic aborts the server; build it with --profile server to confine a panic to its connection",
        );
    }
    if let Some(metrics) = metrics {
        say(&format!("metrics at http://{}/metrics", metrics.place()));
    }
    let addresses = front_ends.iter().map(|front_end| front_end.place()).chain(server.state().guest_places());
    let addresses: Vec<_> = addresses.chain(server.state().device_places()).collect();
    say(&format!("serving under {} at {}", server.state().report().scheduler(), addresses.join(", ")));
    let busy_clients = std::thread::scope(|scope| {
        let (state, stop) = (server.state(), &stop);
        if let Some(control) = control {
            scope.spawn(move || control.serve(state, stop, &ServerOperator { reloader, server: state }));
        }
        if let Some(metrics) = metrics {
            scope.spawn(move || metrics.serve(state, stop));
        }
        scope.spawn(move || hang_ups.into_iter().for_each(|()| drop(reloader.reload(state))));
        systemd::notify(&ServiceState::Ready);
        server.accept(&front_ends, stop);
        stop.wait_stopped();
        state.stop_all_guests();
        // The system refuses new connections once the listeners are closed.
        drop(front_ends);
        systemd::notify(&ServiceState::Stopping);
        say("shutting down: refusing new connections, draining in-flight requests");
        server.drain(Duration::from_secs(reloader.started.options.grace))
    });
    if busy_clients > 0 {
        let grace = reloader.started.options.grace;
        let clients = if busy_clients == 1 { "client" } else { "clients" };
        say(&format!("grace period of {grace} s expired with {busy_clients} {clients} still busy; exiting"));
        server.abandon();
        return Ok(ExitCode::from(EXIT_NOT_DRAINED));
    }
    server.state().remove_all_devices();
    server.stop();
    say("stopped");
    Ok(ExitCode::SUCCESS)
}
