//! Shares of the exports of a fast target, under the scheduler none: a deficit round robin by weight.
//!
//! If several exports are busy, their requests wait for room in a small window in front of the block layer. The exports fill it in turn,
//! each until it has used its deficit of the round; a new round begins when no waiting export has any deficit left.
//! An export that is busy alone does not wait, and neither does a request of an export that has nothing in flight.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hoistway_blk::ground::{Instant, Nanos};
use rustc_hash::FxHashMap;

use crate::event_loop::{ConnectionId, Inboxes};

/// The fixed cost of a request in addition to its data, in bytes.
const REQUEST_COST: u64 = 8 << 10;
/// Exports that are busy at the same time wait for each other while requests of this cost are in flight. Assumed to be
/// large enough for most of a fast target's throughput, and small enough that requests wait here, where weights apply, and not in the target.
const WINDOW: u64 = 256 << 10;
/// The cost that a round allows for each unit of weight: a read of 4 KiB needs a round of weight 75.
const COST_PER_WEIGHT: i64 = 164;
/// An export is busy until this time after its last request.
const BUSY: Nanos = Nanos::from_millis(1);

/// The cost of a request with this many bytes of data.
pub fn cost(bytes: usize) -> u64 {
    REQUEST_COST + bytes as u64
}

/// The shares of all exports.
pub struct Shares {
    state: Mutex<State>,
    /// Whether they are the default of this server.
    is_wanted: AtomicBool,
    /// Whether there are several exports.
    has_several: AtomicBool,
    inboxes: Inboxes,
}

/// An export in [`Shares`]; exports without clients are reused.
pub type ShareId = usize;

#[derive(Default)]
struct State {
    members: Vec<Share>,
    /// Busy exports, in the order of their turns.
    busy: Vec<ShareId>,
    /// Whose turn it is.
    turn: usize,
    /// The cost of all requests in flight.
    in_flight: u64,
    /// The numbers of requests that may go and have not been fetched, by connection, and their cost.
    released: FxHashMap<ConnectionId, (Vec<u16>, u64)>,
}

#[derive(Default)]
struct Share {
    name: String,
    clients: u32,
    weight: u16,
    /// What is left of this round.
    deficit: i64,
    in_flight: u64,
    is_busy: bool,
    /// When it last had a request.
    last_request_at: Instant,
    waiting: VecDeque<Waiting>,
}

/// A request that waits.
#[derive(Clone, Copy)]
struct Waiting {
    connection: ConnectionId,
    number: u16,
    cost: u64,
}

impl Shares {
    /// The shares of a server with these inboxes; they are off.
    pub fn new(inboxes: Inboxes) -> Shares {
        let (is_wanted, has_several) = (AtomicBool::new(false), AtomicBool::new(false));
        Shares { state: Mutex::default(), is_wanted, has_several, inboxes }
    }

    /// Whether exports are served by weight.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_wanted.load(Relaxed) && self.has_several.load(Relaxed)
    }

    /// Sets whether they are the default of this server. If not, waiting requests go with the next turn of their connection.
    pub fn want(&self, is_wanted: bool) {
        if self.is_wanted.swap(is_wanted, Relaxed) != is_wanted {
            self.inboxes.notify_all();
        }
    }

    /// Sets the number of exports.
    pub fn set_exports(&self, exports: usize) {
        if self.has_several.swap(exports > 1, Relaxed) != (exports > 1) {
            self.inboxes.notify_all();
        }
    }

    /// Adds a client of the export with this name.
    pub fn join(&self, name: &str) -> ShareId {
        let mut state = self.lock();
        let known = state.members.iter().position(|share| share.clients > 0 && share.name == name);
        let free = || state.members.iter().position(|share| share.clients == 0 && !share.is_busy);
        let member = known.or_else(free).unwrap_or(state.members.len());
        if member == state.members.len() {
            state.members.push(Share::default());
        }
        let share = &mut state.members[member];
        if share.clients == 0 {
            *share = Share { name: name.to_owned(), weight: 1, ..Share::default() };
        }
        share.clients += 1;
        member
    }

    /// Removes a client with requests of this cost in flight; its waiting requests are forgotten.
    pub fn leave(&self, member: ShareId, connection: ConnectionId, in_flight: u64) {
        let mut turn = self.locked();
        let (_, not_fetched) = turn.state.released.remove(&connection).unwrap_or_default();
        turn.ended(member, in_flight + not_fetched);
        let state = &mut *turn.state;
        let share = &mut state.members[member];
        share.waiting.retain(|waiting| waiting.connection != connection);
        share.clients -= 1;
        if share.clients == 0 {
            share.is_busy = false;
            state.busy.retain(|&busy| busy != member);
        }
        turn.release(connection);
    }

    /// Takes the lock, for a turn of a connection.
    pub fn locked(&self) -> LockedShares<'_> {
        LockedShares { state: self.lock(), inboxes: &self.inboxes, is_on: self.is_on() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of a connection.
pub struct LockedShares<'a> {
    state: MutexGuard<'a, State>,
    inboxes: &'a Inboxes,
    is_on: bool,
}

impl LockedShares<'_> {
    /// Requests of this cost have ended.
    pub fn ended(&mut self, member: ShareId, cost: u64) {
        self.state.in_flight -= cost;
        self.state.members[member].in_flight -= cost;
    }

    /// Marks an export as busy: it asks for service at this time.
    pub fn mark_busy(&mut self, now: Instant, member: ShareId, weight: u16) {
        let state = &mut *self.state;
        let share = &mut state.members[member];
        (share.weight, share.last_request_at) = (weight, now);
        if !std::mem::replace(&mut share.is_busy, true) {
            share.deficit = 0;
            state.busy.push(member);
        }
        let members = &mut state.members;
        state.busy.retain(|&busy| {
            let share = &mut members[busy];
            share.is_busy = share.in_flight > 0 || !share.waiting.is_empty() || now < share.last_request_at + BUSY;
            share.is_busy
        });
    }

    /// Whether a request of this cost may go now. If not, [`release`](Self::release) returns its number later.
    pub fn admit(&mut self, member: ShareId, connection: ConnectionId, number: u16, cost: u64) -> bool {
        let state = &mut *self.state;
        let is_alone = state.busy.len() < 2;
        let has_room =
            state.in_flight < WINDOW && state.busy.iter().all(|&busy| state.members[busy].waiting.is_empty());
        let share = &mut state.members[member];
        let is_first = share.in_flight == 0 && share.waiting.is_empty();
        if !self.is_on || is_alone && share.waiting.is_empty() || is_first || has_room {
            if !is_alone {
                // What went without waiting counts, but at most one round of it.
                share.deficit = (share.deficit - cost as i64).max(-share.quantum());
            }
            share.in_flight += cost;
            state.in_flight += cost;
            return true;
        }
        share.waiting.push_back(Waiting { connection, number, cost });
        false
    }

    /// Lets waiting requests go while there is room, notifies their connections, and returns the numbers of this connection's own.
    pub fn release(&mut self, own: ConnectionId) -> Vec<u16> {
        let state = &mut *self.state;
        let mut others: Vec<ConnectionId> = Vec::new();
        while let Some(Waiting { connection, number, cost }) = state.next(!self.is_on) {
            let (numbers, costs) = state.released.entry(connection).or_default();
            numbers.push(number);
            *costs += cost;
            if connection != own && !others.contains(&connection) {
                others.push(connection);
            }
        }
        others.into_iter().for_each(|connection| self.inboxes.notify(connection));
        state.released.remove(&own).unwrap_or_default().0
    }
}

impl State {
    /// Takes the next request that may go.
    fn next(&mut self, ignores_window: bool) -> Option<Waiting> {
        let State { members, busy, turn, in_flight, .. } = self;
        let waiting = busy.iter().filter(|&&member| !members[member].waiting.is_empty()).count();
        let is_alone = busy.len() < 2;
        if waiting == 0 || *in_flight >= WINDOW && !is_alone && !ignores_window {
            return None;
        }
        loop {
            for _ in 0..busy.len() {
                *turn %= busy.len();
                let share = &mut members[busy[*turn]];
                if let Some(first) = share.waiting.front().copied()
                    && first.cost as i64 <= share.deficit
                {
                    share.waiting.pop_front();
                    share.deficit -= first.cost as i64;
                    share.in_flight += first.cost;
                    *in_flight += first.cost;
                    return Some(first);
                }
                *turn += 1;
            }
            // A new round, or as many as it takes until one of them may go.
            let needed = |share: &Share| {
                let first = share.waiting.front()?;
                Some((first.cost as i64 - share.deficit + share.quantum() - 1) / share.quantum())
            };
            let rounds = busy.iter().filter_map(|&member| needed(&members[member])).min()?;
            for &member in busy.iter() {
                let share = &mut members[member];
                if !share.waiting.is_empty() {
                    share.deficit += rounds * share.quantum();
                }
            }
        }
    }
}

impl Share {
    /// The cost that a round allows.
    fn quantum(&self) -> i64 {
        i64::from(self.weight) * COST_PER_WEIGHT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that keeps this many requests of this many bytes in flight.
    struct Client {
        member: ShareId,
        id: ConnectionId,
        weight: u16,
        bytes: usize,
        depth: usize,
        /// Numbers of its requests that wait.
        waiting: Vec<u16>,
        /// Requests that have gone and not ended.
        at_target: usize,
        served_bytes: u64,
        next: u16,
    }

    impl Client {
        fn new(shares: &Shares, number: u64, weight: u16, bytes: usize, depth: usize) -> Client {
            let (member, id) = (shares.join(&number.to_string()), ConnectionId { worker: 0, number });
            Client { member, id, weight, bytes, depth, waiting: Vec::new(), at_target: 0, served_bytes: 0, next: 0 }
        }

        /// `ended` of its requests have ended; it asks for as many as it lacks.
        fn turn(&mut self, shares: &Shares, now: Instant, ended: usize) {
            let mut turn = shares.locked();
            turn.ended(self.member, ended as u64 * cost(self.bytes));
            self.at_target -= ended;
            self.served_bytes += (ended * self.bytes) as u64;
            let lacking = self.depth - self.waiting.len() - self.at_target;
            if lacking > 0 {
                turn.mark_busy(now, self.member, self.weight);
            }
            for _ in 0..lacking {
                self.next = self.next.wrapping_add(1);
                if turn.admit(self.member, self.id, self.next, cost(self.bytes)) {
                    self.at_target += 1;
                } else {
                    self.waiting.push(self.next);
                }
            }
            for number in turn.release(self.id) {
                let at = self.waiting.iter().position(|&waiting| waiting == number).expect("a request that waits");
                assert_eq!(at, 0, "requests of a connection go in order");
                self.waiting.remove(at);
                self.at_target += 1;
            }
        }
    }

    /// Serves clients for some turns with a target that completes in each what it has, up to this many requests.
    fn serve(clients: &[(u16, usize, usize)], most: usize) -> Vec<u64> {
        let shares = Shares::new(Inboxes::new(1).unwrap());
        shares.want(true);
        shares.set_exports(2);
        let new = |(number, &(weight, bytes, depth))| Client::new(&shares, number as u64, weight, bytes, depth);
        let mut clients: Vec<Client> = clients.iter().enumerate().map(new).collect();
        let mut now = Instant::ZERO;
        for _ in 0..4000 {
            now += Nanos::from_micros(10);
            // In the order of their number at the target, as if they were mixed there.
            let all: usize = clients.iter().map(|client| client.at_target).sum();
            for client in &mut clients {
                let ended = if all <= most { client.at_target } else { (client.at_target * most).div_ceil(all) };
                client.turn(&shares, now, ended);
            }
        }
        let state = shares.lock();
        for client in &clients {
            let waiting = state.members[client.member].waiting.len();
            assert!(waiting <= client.waiting.len(), "the others have been released and not fetched");
            assert!(client.served_bytes > 0, "nothing starves");
        }
        clients.iter().map(|client| client.served_bytes).collect()
    }

    #[test]
    fn busy_exports_are_served_by_weight_whatever_the_target_takes() {
        for most in [1000, 8, 3] {
            for (bytes, depth) in [(4096, 64), (128 << 10, 32), (4096, 128)] {
                let served = serve(&[(100, bytes, depth), (400, bytes, depth)], most);
                let ratio = served[1] as f64 / served[0] as f64;
                assert!((3.0..5.0).contains(&ratio), "{most} {bytes} {depth}: {ratio}");
                let served = serve(&[(100, bytes, depth), (100, bytes, depth * 3)], most);
                let ratio = served[1] as f64 / served[0] as f64;
                assert!((0.8..1.25).contains(&ratio), "{most} {bytes} {depth}: {ratio} with equal weights");
            }
        }
    }

    #[test]
    fn a_lone_client_never_waits_and_a_modest_one_costs_it_little() {
        let alone = serve(&[(1, 4096, 128)], 32)[0];
        let unlimited = 4000 * 32 * 4096;
        assert!(alone > unlimited / 100 * 99, "{alone} of {unlimited}");
        let served = serve(&[(1, 4096, 128), (1000, 4096, 1)], 16);
        assert!(served[1] > 3900 * 4096, "one request of it in each turn: {served:?}");
        assert!(served[0] > 3900 * 15 * 4096, "what it leaves goes to the other one: {served:?}");
    }

    #[test]
    fn a_client_that_leaves_takes_its_requests_along() {
        let shares = Shares::new(Inboxes::new(1).unwrap());
        shares.want(true);
        shares.set_exports(2);
        let mut clients = [1, 2].map(|number| Client::new(&shares, number, 100, 4096, 64));
        clients.iter_mut().for_each(|client| client.turn(&shares, Instant::ZERO, 0));
        let [first, mut second] = clients;
        assert!(!second.waiting.is_empty());
        shares.leave(first.member, first.id, first.at_target as u64 * cost(4096));
        second.turn(&shares, Instant::ZERO + BUSY, 0);
        second.turn(&shares, Instant::ZERO + BUSY, 1);
        assert!(second.waiting.is_empty(), "it is alone now");
        shares.leave(second.member, second.id, second.at_target as u64 * cost(4096));
        assert_eq!(shares.lock().in_flight, 0);
        // A new export takes the place of an old one.
        assert!(shares.join("new") < 2);
    }

    #[test]
    fn waiting_requests_go_when_shares_are_turned_off() {
        let shares = Shares::new(Inboxes::new(1).unwrap());
        shares.want(true);
        shares.set_exports(2);
        let mut clients = [1, 2].map(|number| Client::new(&shares, number, 100, 4096, 64));
        clients.iter_mut().for_each(|client| client.turn(&shares, Instant::ZERO, 0));
        assert!(!clients[1].waiting.is_empty());
        shares.want(false);
        clients[1].turn(&shares, Instant::ZERO, 0);
        assert!(clients[1].waiting.is_empty() && clients[1].at_target == 64);
    }
}
