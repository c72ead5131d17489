//! Exports of a running server.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use hoistway_engine::{Context, Errno, Group, OpenVolume, Volume};
use hoistway_nbd::Export;

use crate::export::access::Access;
use crate::export::clients::Client;
use crate::export::counts::Counts;
use crate::export::disk::Disk;
use crate::export::export_throttle::ExportThrottle;
use crate::export::failures::Failures;
use crate::export::spec::{ExportSpec, Placed, Settings};

/// The layout of an export on its volume.
#[derive(Clone, Debug)]
pub(crate) struct ExportLayout {
    /// The export as clients see it.
    pub(crate) description: Export,
    /// Its bytes on the volume.
    pub(crate) range: std::ops::Range<u64>,
    /// Bytes of a block of the target.
    pub(crate) block_bytes: u32,
}

/// An export of a running server.
pub struct LiveExport {
    /// The specification when it was added; settings, limits and clients may have changed since.
    spec: ExportSpec,
    /// The export as clients see it, except for its size.
    description: Export,
    /// The name that clients ask for.
    pub name: String,
    /// Its disk.
    pub disk: Arc<Disk>,
    /// The number of the disk among those of the server.
    disk_number: usize,
    /// Which of the disk's volumes it is on.
    pub volume: usize,
    /// Keeps its own file open, if it has one.
    file: Option<Arc<OpenVolume>>,
    /// Its first byte on the volume.
    pub first_byte: u64,
    /// Its size in bytes; changes while the server runs.
    size_bytes: AtomicU64,
    /// Bytes of a block of the target.
    pub block_bytes: u32,
    /// The group of all its connections.
    pub group: Group,
    /// Changes while the server runs.
    settings: Mutex<Settings>,
    /// Which clients may use it; changes while the server runs.
    access: Mutex<Access>,
    /// Its limits.
    pub throttle: ExportThrottle,
    /// Whether it has been withdrawn: its connections are closed.
    is_withdrawn: AtomicBool,
    /// Its statistics.
    pub counts: Counts,
    /// Failed requests that are to be logged.
    pub(crate) failures: Failures,
}

impl LiveExport {
    /// A new export on these bytes of a volume with blocks of this size.
    #[must_use]
    pub(crate) fn new(placed: &Placed, disk: Arc<Disk>, layout: ExportLayout, group: Group) -> LiveExport {
        let ExportLayout { description, range, block_bytes } = layout;
        LiveExport {
            name: description.name.clone(),
            disk,
            disk_number: placed.disk,
            volume: placed.volume,
            file: placed.file.clone(),
            first_byte: range.start,
            size_bytes: AtomicU64::new(description.size_bytes),
            description,
            block_bytes,
            group,
            settings: Mutex::new(placed.spec.settings),
            access: Mutex::new(placed.spec.access.clone()),
            spec: placed.spec.clone(),
            throttle: ExportThrottle::new(),
            is_withdrawn: AtomicBool::new(false),
            counts: Counts::default(),
            failures: Failures::default(),
        }
    }

    /// The export as clients see it now.
    #[must_use]
    pub fn description(&self) -> Export {
        Export { size_bytes: self.size_bytes(), ..self.description.clone() }
    }

    /// Its current size in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Relaxed)
    }

    /// Changes its size. Connected clients see it when they reconnect.
    pub(crate) fn resize(&self, bytes: u64) {
        self.size_bytes.store(bytes, Relaxed);
    }

    /// Its own file, if it has one: open as long as this exists.
    pub(crate) fn file(&self) -> Option<Arc<OpenVolume>> {
        self.file.clone()
    }

    /// The specification of its current state.
    pub(crate) fn placed(&self) -> Placed {
        let spec = ExportSpec {
            size: Some(self.size_bytes()),
            settings: self.settings(),
            limits: self.throttle.limits(),
            access: self.access(),
            ..self.spec.clone()
        };
        Placed { spec, disk: self.disk_number, volume: self.volume, file: self.file.clone() }
    }

    /// Whether it is the same part of the same volume, except for its size, and agrees in everything that cannot change.
    pub(crate) fn is_compatible_with(&self, placed: &Placed, layout: &ExportLayout) -> bool {
        let description = Export { size_bytes: self.description.size_bytes, ..layout.description.clone() };
        (&self.description, self.disk_number, self.volume) == (&description, placed.disk, placed.volume)
            && self.first_byte == layout.range.start
            && (&self.spec.vhost_user, self.spec.ublk) == (&placed.spec.vhost_user, placed.spec.ublk)
    }

    /// Whether it has been withdrawn.
    #[inline]
    #[must_use]
    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Relaxed)
    }

    /// Withdraws it. Its connections end when they are notified.
    pub fn withdraw(&self) {
        self.is_withdrawn.store(true, Relaxed);
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> Settings {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes its settings.
    pub fn set(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Which clients may use it.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes which clients may use it. Connected clients stay.
    pub fn set_access(&self, access: Access) {
        *self.access.lock().unwrap_or_else(PoisonError::into_inner) = access;
    }

    /// The I/O context of its clients.
    #[must_use]
    pub fn context(&self) -> Context {
        Context { ioprio: self.settings().ioprio, group: self.group }
    }

    /// Its part of its volume.
    ///
    /// # Errors
    /// If the volume is smaller.
    pub fn part(&self) -> Result<Volume<'_>, Errno> {
        let volume = self.disk.engine.volumes().into_iter().nth(self.volume).ok_or(Errno::NOSPC)?;
        let part = volume.part(self.first_byte..self.first_byte + self.size_bytes())?;
        Ok(if self.description.read_only { part.read_only() } else { part })
    }
}

/// The current exports; the empty name also selects the first.
#[derive(Default)]
pub struct Exports {
    /// The exports.
    pub live: Vec<Arc<LiveExport>>,
    /// The same as clients see them, in the same order.
    pub descriptions: Vec<Export>,
}

impl Exports {
    /// These exports, in this order.
    #[must_use]
    pub fn of(live: Vec<Arc<LiveExport>>) -> Exports {
        let descriptions = live.iter().map(|export| export.description()).collect();
        Exports { live, descriptions }
    }

    /// Those that a client may use.
    #[must_use]
    pub fn allowed(self: Arc<Self>, client: &Client) -> Arc<Exports> {
        let allows = |export: &&Arc<LiveExport>| export.access().allows(client);
        if self.live.iter().all(|export| allows(&export)) {
            return self;
        }
        Arc::new(Exports::of(self.live.iter().filter(allows).cloned().collect()))
    }

    /// Whether they have this export with this size, for this client.
    #[must_use]
    pub fn have(&self, export: &Arc<LiveExport>, size_bytes: u64, client: &Client) -> bool {
        let is_current = self.live.iter().any(|other| Arc::ptr_eq(other, export));
        is_current && export.size_bytes() == size_bytes && export.access().allows(client)
    }

    /// The export with exactly this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Arc<LiveExport>> {
        self.live.iter().find(|export| export.name == name)
    }
}
