//! A front end and a driver in one, without a guest around them.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;

use vhost::vhost_user::message::{
    VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight, VhostUserProtocolFeatures, VhostUserVirtioFeatures,
};
use vhost::vhost_user::{Frontend, VhostUserFrontend as _};
use vhost::{VhostBackend as _, VringConfigData};

use super::memory::{Memory, REGIONS};
use super::ring::{NEXT, Ring, WRITE};

pub(crate) const READ: u32 = 0;
pub(crate) const WRITE_OUT: u32 = 1;
pub(crate) const FLUSH: u32 = 4;
pub(crate) const GET_ID: u32 = 8;
pub(crate) const DISCARD: u32 = 11;
pub(crate) const WRITE_ZEROES: u32 = 13;

pub(crate) const OK: u8 = 0;
pub(crate) const IO_ERROR: u8 = 1;
pub(crate) const UNSUPPORTED: u8 = 2;
/// What a status is before the server writes it.
pub(crate) const UNTOUCHED: u8 = 0xff;

pub(crate) const CONFIG_WCE: u64 = 1 << 11;
pub(crate) const EVENT_IDX: u64 = 1 << 29;
pub(crate) const INDIRECT_DESC: u64 = 1 << 28;
const VERSION_1: u64 = 1 << 32;
const PROTOCOL: u64 = VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();

/// Rings come first, 64 KiB each; behind them each head has its place.
const RINGS_AT: u64 = REGIONS[1].0;
pub(crate) const DATA_AT: u64 = RINGS_AT + (4 << 20);
/// Bytes of a head's place: header and status at its beginning, data behind.
const PLACE_BYTES: u64 = 64 << 10;
const STATUS_AT: u64 = 64;
const DATA_IN_PLACE: u64 = 4096;

/// How a client begins.
#[derive(Clone, Copy)]
pub(crate) struct Options {
    pub(crate) queues: u16,
    pub(crate) size: u16,
    /// Features that are not taken though they are offered.
    pub(crate) without: u64,
    /// Whether the record of what is in flight is kept.
    pub(crate) has_record: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { queues: 1, size: 128, without: 0, has_record: true }
    }
}

pub(crate) struct Client {
    pub(crate) frontend: Frontend,
    /// The socket of it, for messages that it would not send.
    pub(crate) raw: UnixStream,
    pub(crate) memory: Rc<Memory>,
    pub(crate) rings: Vec<Ring>,
    pub(crate) offered: u64,
    record: Option<(VhostUserInflight, File)>,
    options: Options,
}

impl Client {
    /// Connects and starts all rings.
    pub(crate) fn start(path: &Path, options: Options) -> Client {
        let mut client = Client::connect(path, options);
        client.start_rings();
        client
    }

    /// Connects, and shares memory.
    pub(crate) fn connect(path: &Path, options: Options) -> Client {
        let memory = Rc::new(Memory::new());
        let ring = |index| Ring::new(&memory, RINGS_AT + (u64::from(index) << 16), options.size);
        let rings = (0..options.queues).map(ring).collect();
        let (frontend, raw, offered) = hello(path, options, &memory);
        Client { frontend, raw, memory, rings, offered, record: None, options }
    }

    /// Connects anew, with all that a front end keeps.
    pub(crate) fn reconnect(&mut self, path: &Path) {
        (self.frontend, self.raw, self.offered) = hello(path, self.options, &self.memory);
        self.start_rings();
    }

    pub(crate) fn features(&self) -> u64 {
        self.offered & !self.options.without
    }

    pub(crate) fn start_rings(&mut self) {
        let keeps_record =
            self.frontend.get_protocol_features().unwrap().contains(VhostUserProtocolFeatures::INFLIGHT_SHMFD);
        if self.options.has_record && keeps_record {
            let Options { queues, size, .. } = self.options;
            if self.record.is_none() {
                self.record = Some(self.frontend.get_inflight_fd(&VhostUserInflight::new(0, 0, queues, size)).unwrap());
            }
            let (inflight, file) = self.record.as_ref().unwrap();
            self.frontend.set_inflight_fd(inflight, file.as_raw_fd()).unwrap();
        }
        self.frontend.set_features(self.features()).unwrap();
        for index in 0..self.rings.len() {
            self.start_ring(index);
        }
    }

    pub(crate) fn start_ring(&mut self, index: usize) {
        let has_event_index = self.features() & EVENT_IDX != 0;
        let ring = &mut self.rings[index];
        ring.has_event_index = has_event_index;
        let user = |address| self.memory.user(address);
        let config = VringConfigData {
            queue_max_size: ring.size,
            queue_size: ring.size,
            flags: 0,
            desc_table_addr: user(ring.descriptors),
            used_ring_addr: user(ring.used),
            avail_ring_addr: user(ring.available),
            log_addr: None,
        };
        let frontend = &mut self.frontend;
        frontend.set_vring_num(index, ring.size).unwrap();
        // As front ends do that were not sent where the ring stood.
        frontend.set_vring_base(index, self.memory.load(ring.used + 2)).unwrap();
        frontend.set_vring_addr(index, &config).unwrap();
        frontend.set_vring_err(index, &ring.error).unwrap();
        frontend.set_vring_kick(index, &ring.kick).unwrap();
        frontend.set_vring_call(index, &ring.call).unwrap();
        frontend.set_vring_enable(index, true).unwrap();
    }

    pub(crate) fn config(&mut self, offset: u32, bytes: u32) -> Vec<u8> {
        let zeroes = vec![0; bytes as usize];
        self.frontend.get_config(offset, bytes, VhostUserConfigFlags::WRITABLE, &zeroes).unwrap().1
    }

    pub(crate) fn capacity(&mut self) -> u64 {
        u64::from_le_bytes(self.config(0, 8).try_into().unwrap())
    }

    pub(crate) fn set_write_back(&mut self, is_write_back: bool) {
        self.frontend.set_config(32, VhostUserConfigFlags::WRITABLE, &[u8::from(is_write_back)]).unwrap();
    }

    /// Where the data of a head lies.
    pub(crate) fn data_at(&self, ring: usize, head: u16) -> u64 {
        self.place(ring, head) + DATA_IN_PLACE
    }

    fn place(&self, ring: usize, head: u16) -> u64 {
        // Three descriptors each.
        DATA_AT + (ring as u64 * u64::from(self.options.size / 3) + u64::from(head / 3)) * PLACE_BYTES
    }

    pub(crate) fn status(&self, ring: usize, head: u16) -> u8 {
        self.memory.load(self.place(ring, head) + STATUS_AT)
    }

    /// Makes a request available, whose data (up to 60 KiB) is in the guest's memory or will be, and kicks. Heads are
    /// multiples of 3.
    pub(crate) fn submit(&mut self, ring: usize, head: u16, kind: u32, sector: u64, data: Data<'_>) {
        let before = self.rings[ring].available_index;
        self.prepare(ring, head, kind, sector, data);
        self.rings[ring].offer_all(&[head]);
        self.rings[ring].kick_since(before);
    }

    /// The same without being made available.
    pub(crate) fn prepare(&mut self, ring: usize, head: u16, kind: u32, sector: u64, data: Data<'_>) {
        let (place, data_at) = (self.place(ring, head), self.data_at(ring, head));
        let mut header = kind.to_le_bytes().to_vec();
        header.extend([0; 4]);
        header.extend(sector.to_le_bytes());
        self.memory.write(place, &header);
        self.memory.store(place + STATUS_AT, UNTOUCHED);
        let (bytes, flags) = match data {
            Data::Out(data) => {
                self.memory.write(data_at, data);
                (data.len() as u32, NEXT)
            }
            Data::In(bytes) => (bytes, NEXT | WRITE),
        };
        let ring = &self.rings[ring];
        ring.describe(head, (place, 16, NEXT, if bytes > 0 { head + 1 } else { head + 2 }));
        ring.describe(head + 1, (data_at, bytes, flags, head + 2));
        ring.describe(head + 2, (place + STATUS_AT, 1, WRITE, 0));
    }

    /// A request from beginning to end: its status, the length that came back, and its data.
    pub(crate) fn request_on(&mut self, ring: usize, kind: u32, sector: u64, data: Data<'_>) -> (u8, u32, Vec<u8>) {
        let bytes = if let Data::In(bytes) = data { bytes } else { 0 };
        self.submit(ring, 0, kind, sector, data);
        let (head, len) = self.rings[ring].next_used();
        assert_eq!(head, 0, "another request came back");
        (self.status(ring, 0), len, self.memory.read(self.data_at(ring, 0), bytes as usize))
    }

    pub(crate) fn request(&mut self, kind: u32, sector: u64, data: Data<'_>) -> (u8, u32, Vec<u8>) {
        self.request_on(0, kind, sector, data)
    }

    /// Whether it reads and writes as it should.
    pub(crate) fn works(&mut self) -> bool {
        let data: Vec<u8> = (0..4096_u32).map(|at| (at * 7 / 3) as u8).collect();
        self.request(WRITE_OUT, 8, Data::Out(&data)).0 == OK
            && self.request(READ, 8, Data::In(4096)) == (OK, 4097, data)
    }
}

/// The data of a request.
#[derive(Clone, Copy)]
pub(crate) enum Data<'a> {
    Out(&'a [u8]),
    In(u32),
}

fn hello(path: &Path, options: Options, memory: &Memory) -> (Frontend, UnixStream, u64) {
    let stream = UnixStream::connect(path).unwrap();
    let raw = stream.try_clone().unwrap();
    let mut frontend = Frontend::from_stream(stream, u64::from(options.queues));
    frontend.set_owner().unwrap();
    let offered = frontend.get_features().unwrap();
    frontend.set_features(offered & (PROTOCOL | VERSION_1)).unwrap();
    let protocol = frontend.get_protocol_features().unwrap();
    let wanted = VhostUserProtocolFeatures::MQ
        | VhostUserProtocolFeatures::CONFIG
        | VhostUserProtocolFeatures::REPLY_ACK
        | VhostUserProtocolFeatures::RESET_DEVICE
        | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS;
    let record = if options.has_record { VhostUserProtocolFeatures::INFLIGHT_SHMFD } else { wanted };
    frontend.set_protocol_features(protocol & (wanted | record)).unwrap();
    frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
    frontend.set_mem_table(&memory.regions()).unwrap();
    (frontend, raw, offered)
}

/// One range of a discard or write-zeroes.
pub(crate) fn range(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
    let mut bytes = sector.to_le_bytes().to_vec();
    bytes.extend(sectors.to_le_bytes());
    bytes.extend(flags.to_le_bytes());
    bytes
}

impl Client {
    /// Stops a ring, and starts it with nothing in it.
    pub(crate) fn restart(&mut self, index: usize) -> u32 {
        let base = self.frontend.get_vring_base(index).unwrap();
        let ring = &mut self.rings[index];
        ring.available_index = self.memory.load(ring.used + 2);
        self.memory.store(ring.available + 2, ring.available_index);
        ring.used_index = ring.available_index;
        self.start_ring(index);
        base
    }
}
