//! Sockets from systemd, and notifications to it.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use hoistway_serve::Listener;
use listenfd::ListenFd;
use rustix::time::{ClockId, clock_gettime};

/// Longest time that a service manager whose socket is full may block a notification.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Sockets passed by a `.socket` unit.
pub(super) fn sockets() -> Result<Vec<Listener>> {
    if let Some(count) = std::env::var_os("LISTEN_FDS")
        && count.to_str().is_none_or(|count| count.parse::<u16>().is_err())
    {
        bail!("LISTEN_FDS={}: expected a number of descriptors, as systemd says it", count.display());
    }
    let mut handed = ListenFd::from_env();
    let mut listeners = Vec::new();
    for at in 0..handed.len() {
        let listener = if let Ok(Some(unix)) = handed.take_unix_listener(at) {
            Listener::of_unix(unix)
        } else if let Ok(Some(tcp)) = handed.take_tcp_listener(at) {
            Listener::of_tcp(tcp)
        } else {
            bail!("LISTEN_FDS: descriptor {} is no stream socket (expected ListenStream= in the .socket unit)", at + 3);
        };
        listeners.push(listener.with_context(|| format!("LISTEN_FDS: descriptor {}", at + 3))?);
    }
    Ok(listeners)
}

/// State changes that a service manager is notified of.
pub(super) enum News {
    Ready,
    Reloading,
    Stopping,
}

/// Notifies the service manager, if there is one. Errors are ignored, since there may be none.
pub(super) fn notify(news: &News) {
    let Some(place) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let text = match news {
        News::Ready => "READY=1\n".to_owned(),
        News::Reloading => {
            let now = clock_gettime(ClockId::Monotonic);
            format!("RELOADING=1\nMONOTONIC_USEC={}\n", now.tv_sec * 1_000_000 + now.tv_nsec / 1000)
        }
        News::Stopping => "STOPPING=1\n".to_owned(),
    };
    let _ = send(place.as_encoded_bytes(), text.as_bytes());
}

fn send(place: &[u8], text: &[u8]) -> io::Result<()> {
    let address = match place {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(String::from_utf8_lossy(path).as_ref())?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    socket.send_to_addr(text, &address).map(|_| ())
}
