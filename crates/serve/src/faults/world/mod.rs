//! Clients of all kinds at one server, with checks of what each of them sees.

mod seen;

use std::sync::Arc;

use hoistway_blk::ground::{Instant, Nanos};
use hoistway_engine::faults::{Disk, ManualClock, Random};
use hoistway_nbd::Replies;

use super::book::ContentModel;
use super::client::{Client, ClientRequest};
use super::life::{Offered, SERVER_LIMITS, ServerRun};
use super::wire::TlsSides;

const BLOCKS: u64 = 320;
/// Maximum length of a request, in blocks.
const LONGEST: u64 = 12;
/// Limit of the limited export: reads per second, and writes per second.
const LIMIT: u64 = 30;
/// Requests that it may do at once after being idle.
const BURST: u64 = 10;

const UNDISTURBED: usize = 0;
const NOT_READING: usize = 4;
const NOISY: usize = 5;

fn exports() -> Vec<Offered> {
    let limited = format!(",riops={LIMIT},wiops={LIMIT}");
    let export = |name, first, blocks, settings: &str| Offered { name, first, blocks, settings: settings.into() };
    vec![
        export("calm", 0, 64, ",weight=300"),
        export("one", 64, 64, ""),
        export("two", 128, 64, ",ioprio=be/7"),
        export("limited", 192, 64, &limited),
        export("deaf", 256, 32, ",read-only"),
        export("noisy", 288, 32, ""),
    ]
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    /// Its blocks never fail; it must not notice what others do.
    Undisturbed,
    /// Does everything that a client may do, and disconnects in every possible way.
    Busy,
    /// Sends requests and never reads.
    NotReading,
    /// Sends nothing.
    Silent,
    /// Sends garbage.
    Noisy,
}

/// A slot for a client that connects.
struct Slot {
    role: Role,
    export: usize,
    client: Option<Client>,
    /// When it connected, or sent its disconnect request.
    since: Instant,
    /// Whether the server may close the connection: it drains, has no room, or the disk failed.
    may_be_closed: bool,
}

/// The whole simulated world.
pub struct World {
    random: Random,
    clock: ManualClock,
    disk: Disk,
    life: ServerRun,
    tls: TlsSides,
    exports: Vec<Offered>,
    /// Whether the third export is offered.
    offers_third_export: bool,
    /// When the disk was removed, if it is; and when it was last put back.
    removed_at: Option<u64>,
    reinserted_at: u64,
    content_models: Vec<ContentModel>,
    slots: Vec<Slot>,
    /// Number of actions so far: orders events.
    stamp: u64,
    /// When the limited export was last checked, and its reads until then.
    limited_since: (Instant, u64),
    /// Clients that never read, since the last start.
    non_reading_clients: u64,
    /// Replies so far, and a digest of them.
    completed: u64,
    /// Replies over TLS.
    tls_replies: u64,
    digest: u64,
    /// Steps before the last start.
    steps: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (disk, clock, exports) = (Disk::new(BLOCKS), ManualClock::default(), exports());
        let tls = TlsSides::new();
        let life = ServerRun::begin(&disk, &exports, &clock, &tls.server, &mut random);
        let slot = |&(role, export): &(Role, usize)| Slot {
            role,
            export,
            client: None,
            since: Instant::ZERO,
            may_be_closed: false,
        };
        use Role::{Busy, Noisy, NotReading, Silent, Undisturbed};
        let roles = [
            (Undisturbed, UNDISTURBED),
            (Busy, 1),
            (Busy, 1),
            (Busy, 1),
            (Busy, 2),
            (Busy, 2),
            (Busy, 3),
            (Busy, 3),
            (NotReading, NOT_READING),
            (Noisy, NOISY),
            (Silent, NOISY),
        ];
        World {
            random,
            limited_since: (life.now(), 0),
            clock,
            disk,
            life,
            tls,
            content_models: exports.iter().map(|export| ContentModel::new(export.blocks)).collect(),
            exports,
            offers_third_export: true,
            removed_at: None,
            reinserted_at: 0,
            slots: roles.iter().map(slot).collect(),
            stamp: 0,
            non_reading_clients: 0,
            completed: 0,
            tls_replies: 0,
            digest: 0,
            steps: 0,
        }
    }

    // --- what happens ---

    /// Performs this many random actions.
    pub fn make_progress(&mut self, steps: u64) {
        for _ in 0..steps {
            if self.random.one_in(3) {
                let slot = self.random.below(self.slots.len() as u64) as usize;
                self.act(slot);
            }
            if self.random.one_in(400) {
                self.change_at_random();
            }
            let period = if self.removed_at.is_some() { 500 } else { 5000 };
            if self.random.one_in(period) {
                self.toggle_disk();
            }
            if self.random.one_in(4000) {
                self.quiesce();
            }
            self.life.step(&mut self.random);
        }
    }

    /// Removes the disk, or puts it back.
    fn toggle_disk(&mut self) {
        self.stamp += 1;
        if self.removed_at.is_some() {
            self.put_back();
        } else {
            self.removed_at = Some(self.stamp);
            self.disk.remove_disk();
        }
    }

    fn put_back(&mut self) {
        if self.removed_at.take().is_some() {
            self.reinserted_at = self.stamp;
            self.disk.reinsert_disk();
        }
    }

    /// Makes a random administrative change.
    fn change_at_random(&mut self) {
        if self.random.one_in(2) {
            return self.life.change_queue(&mut self.random);
        }
        let weight = 1 + self.random.below(1000);
        self.exports[1].settings = format!(",weight={weight},ioprio=be/{}", self.random.below(8));
        if self.random.one_in(3) {
            self.exports[1].settings += &format!(",max-iops={}", 500 + self.random.below(5000));
        }
        if self.random.one_in(4) {
            self.offers_third_export = !self.offers_third_export;
            self.slots.iter_mut().filter(|slot| slot.export == 2).for_each(|slot| slot.may_be_closed = true);
        }
        let mut offered = self.exports.clone();
        if !self.offers_third_export {
            offered.remove(2);
        }
        self.life.offer(&offered);
    }

    fn act(&mut self, index: usize) {
        self.stamp += 1;
        self.exchange(index);
        let Slot { role, export, client, .. } = &mut self.slots[index];
        let Some(client) = client else {
            if self.random.one_in(5) && (*export != 2 || self.offers_third_export) {
                self.connect(index);
            }
            return;
        };
        match role {
            Role::Silent => {}
            Role::Noisy => {
                let noise: Vec<u8> = (0..1 + self.random.below(60)).map(|_| self.random.below(256) as u8).collect();
                if client.is_ready() && self.random.one_in(2) {
                    client.queue_bytes(&hoistway_nbd::wire::REQUEST_MAGIC.to_be_bytes());
                }
                if client.is_ready() || self.random.one_in(20) {
                    client.queue_bytes(&noise);
                }
                if self.random.one_in(100) {
                    self.slots[index].client = None;
                }
            }
            Role::NotReading => {
                if client.is_ready() && client.in_flight.len() < 400 {
                    client.send_request(ClientRequest::Read { place: (0, LONGEST), unfragmented: true }, self.stamp);
                }
                if self.random.one_in(300) {
                    self.slots[index].client = None;
                }
            }
            Role::Busy if self.random.one_in(200) => self.depart(index),
            Role::Undisturbed | Role::Busy => self.submit(index),
        }
    }

    fn connect(&mut self, index: usize) {
        let forms = [Replies::Simple, Replies::Chunks, Replies::ExtendedChunks];
        let slot = &mut self.slots[index];
        slot.may_be_closed = self.life.server.inboxes.connections() >= SERVER_LIMITS.connections;
        slot.since = self.life.now();
        let far = self.life.connect(&mut self.random);
        let replies = forms[self.random.below(3) as usize];
        let wants_tls = matches!(slot.role, Role::Undisturbed | Role::Busy) && self.random.one_in(6);
        let tls = wants_tls.then(|| Arc::clone(&self.tls.client));
        slot.client = Some(Client::new(far, self.exports[slot.export].name, replies, tls));
        if slot.role == Role::NotReading {
            self.non_reading_clients += 1;
        }
    }

    /// Disconnects a client in a random way.
    fn depart(&mut self, index: usize) {
        let now = self.life.now();
        let slot = &mut self.slots[index];
        let Some(client) = &mut slot.client else { return };
        match self.random.below(4) {
            0 => self.forget_in_flight_outcomes(index),
            1 => {
                client.far.break_connection();
                self.forget_in_flight_outcomes(index);
            }
            2 if client.is_ready() => {
                client.leave();
                slot.since = now;
            }
            3 if client.is_ready() && client.has_sent_all() => {
                client.is_disconnecting = true;
                client.far.finish();
                slot.since = now;
            }
            _ => {}
        }
    }

    /// A client has disconnected: the outcome of its requests in flight is unknown.
    fn forget_in_flight_outcomes(&mut self, index: usize) {
        let Slot { export, ref mut client, .. } = self.slots[index];
        let Some(client) = client.take() else { return };
        for request in client.abandoned() {
            if let Some((fill, _)) = request.change()
                && self.is_within(export, request)
            {
                self.content_models[export].leave_outcome_unknown(request.place(), fill);
            }
        }
    }

    fn is_within(&self, export: usize, request: ClientRequest) -> bool {
        request.place().0 + request.place().1 <= self.content_models[export].len()
    }

    fn submit(&mut self, index: usize) {
        let Slot { role, export, client, .. } = &self.slots[index];
        let is_calm = *role == Role::Undisturbed;
        if !client.as_ref().is_some_and(|client| client.is_ready() && client.in_flight.len() < 6) {
            return;
        }
        let (random, blocks) = (&mut self.random, self.content_models[*export].len());
        let (mut first, count) = (random.below(blocks), 1 + random.below(LONGEST));
        if first + count > blocks && random.one_in(3) {
            first = blocks - count;
        }
        let place = (first, count);
        let others = self.slots.iter().filter(|slot| slot.export == *export).filter_map(|slot| slot.client.as_ref());
        let mut in_flight = others.flat_map(|client| client.in_flight.values()).map(|request| request.request.place());
        if in_flight.any(|(other, len)| first < other + len && other < first + count) {
            return;
        }
        let (fua, fill) = (random.one_in(4), 1 + random.below(255) as u8);
        let request = match random.below(if is_calm { 8 } else { 14 }) {
            0..=3 => ClientRequest::Read { place, unfragmented: random.one_in(2) },
            // A durable write needs a flush of the device, which may fail.
            4..=7 => ClientRequest::Write { place, fill, fua: fua && !is_calm },
            8 => ClientRequest::Write { place, fill, fua: true },
            9 => ClientRequest::Trim { place, fua },
            10 => ClientRequest::Zeroes { place, fua, fast: random.one_in(3) },
            11 => ClientRequest::Cache { place },
            12 => ClientRequest::Status { place, one: random.one_in(3) },
            _ => ClientRequest::Flush,
        };
        if let Some(client) = &mut self.slots[index].client {
            client.send_request(request, self.stamp);
        }
    }

    // --- how a life ends ---

    /// Stops the server, and starts the next one over the same disk.
    pub fn restart(&mut self) {
        self.drain();
        self.check_disk_content();
        self.restart_server();
    }

    /// Cuts the power, and starts the next server over what is left.
    pub fn cut_the_power(&mut self) {
        (0..self.slots.len()).for_each(|index| self.forget_in_flight_outcomes(index));
        let left = self.disk.after_power_cut(&mut self.random);
        self.put_back();
        // The old server keeps a disk that is not read any more.
        self.drain();
        self.disk = left;
        self.content_models.iter_mut().for_each(|book| book.power_cut(self.stamp));
        self.check_disk_content();
        self.restart_server();
    }

    fn drain(&mut self) {
        self.life.server.drain();
        self.slots.iter_mut().for_each(|slot| slot.may_be_closed = true);
        for round in 0.. {
            if self.life.server.inboxes.connections() == 0 {
                break;
            }
            assert!(round < 400_000, "{} are still connected", self.life.server.inboxes.connections());
            let index = self.random.below(self.slots.len() as u64) as usize;
            self.stamp += 1;
            self.exchange(index);
            self.life.step(&mut self.random);
            self.clock.advance(Nanos::from_micros(50));
        }
        (0..self.slots.len()).for_each(|index| self.exchange_rest(index));
        self.life.settle(&mut self.random);
        self.stamp += 1;
        self.content_models.iter_mut().for_each(|book| book.resolve_unknown_outcomes(self.stamp));
    }

    /// Reads what the server sent before it closed the connection.
    fn exchange_rest(&mut self, index: usize) {
        while self.slots[index].client.is_some() && self.slots[index].role == Role::Busy {
            self.exchange(index);
        }
        self.forget_in_flight_outcomes(index);
    }

    fn restart_server(&mut self) {
        self.offers_third_export = true;
        self.put_back();
        let life = ServerRun::begin(&self.disk, &self.exports, &self.clock, &self.tls.server, &mut self.random);
        let before = std::mem::replace(&mut self.life, life);
        self.steps += before.steps;
        before.end(&mut self.random);
        (self.limited_since, self.non_reading_clients) = ((self.life.now(), 0), 0);
    }

    /// Ends everything. Returns the number of completed requests, the number of those over TLS, a digest of the replies, and the steps
    /// of workers.
    pub fn end(mut self) -> (u64, u64, u64, u64) {
        self.quiesce();
        self.drain();
        self.check_disk_content();
        let steps = self.steps + self.life.steps;
        self.life.end(&mut self.random);
        (self.completed, self.tls_replies, self.digest, steps)
    }
}
