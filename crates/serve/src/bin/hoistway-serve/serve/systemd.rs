//! Sockets from systemd, and notifications to it.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use hoistway_serve::Listener;
use listenfd::ListenFd;
use rustix::time::{ClockId, clock_gettime};

/// Maximum time that a notification may block if the service manager's socket is full.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Sockets passed by `.socket` units; FileDescriptorName= says what each is for.
#[derive(Default)]
pub(super) struct PassedSockets {
    /// For NBD clients: any other name.
    pub(super) clients: Vec<Listener>,
    /// For the guest of an export: `vhost-user=EXPORT`.
    pub(super) guests: Vec<(String, UnixListener)>,
    /// For `hoistway ctl`: `control`.
    pub(super) control: Option<UnixListener>,
}

/// Sockets passed by `.socket` units.
pub(super) fn sockets() -> Result<PassedSockets> {
    if let Some(count) = std::env::var_os("LISTEN_FDS")
        && count.to_str().is_none_or(|count| count.parse::<u16>().is_err())
    {
        bail!("LISTEN_FDS={}: expected a number of descriptors, as systemd sets it", count.display());
    }
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let names: Vec<&str> = names.split(':').collect();
    let mut inherited = ListenFd::from_env();
    let mut passed = PassedSockets::default();
    for index in 0..inherited.len() {
        let name = names.get(index).copied().unwrap_or_default();
        let unix = inherited.take_unix_listener(index).ok().flatten();
        match (name.strip_prefix("vhost-user="), unix) {
            (Some(export), Some(unix)) => passed.guests.push((export.to_owned(), unix)),
            (None, Some(unix)) if name == "control" && passed.control.is_none() => passed.control = Some(unix),
            (None, Some(_)) if name == "control" => {
                bail!("LISTEN_FDNAMES: two sockets are named control (expected one)")
            }
            (None, Some(unix)) => passed.clients.push(Listener::of_unix(unix).with_context(|| descriptor(index))?),
            (guest, None) => match inherited.take_tcp_listener(index) {
                Ok(Some(tcp)) if guest.is_none() && name != "control" => {
                    passed.clients.push(Listener::of_tcp(tcp).with_context(|| descriptor(index))?);
                }
                Ok(Some(_)) => {
                    bail!("{} ({name}): is not a Unix socket (expected ListenStream=/PATH)", descriptor(index))
                }
                _ => bail!("{} is not a stream socket (expected ListenStream= in the .socket unit)", descriptor(index)),
            },
        }
    }
    Ok(passed)
}

/// The name of a descriptor in errors.
fn descriptor(index: usize) -> String {
    format!("LISTEN_FDS: descriptor {}", index + 3)
}

/// State changes that a service manager is notified of.
pub(super) enum ServiceState {
    Ready,
    Reloading,
    Stopping,
}

/// Notifies the service manager, if there is one. Errors are ignored, since there may be none.
pub(super) fn notify(state: &ServiceState) {
    let Some(socket_name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let text = match state {
        ServiceState::Ready => "READY=1\n".to_owned(),
        ServiceState::Reloading => {
            let now = clock_gettime(ClockId::Monotonic);
            format!("RELOADING=1\nMONOTONIC_USEC={}\n", now.tv_sec * 1_000_000 + now.tv_nsec / 1000)
        }
        ServiceState::Stopping => "STOPPING=1\n".to_owned(),
    };
    let _ = send(socket_name.as_encoded_bytes(), text.as_bytes());
}

fn send(socket_name: &[u8], text: &[u8]) -> io::Result<()> {
    let address = match socket_name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(String::from_utf8_lossy(path).as_ref())?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    socket.send_to_addr(text, &address).map(|_| ())
}
