//! A worker: one thread, one channel, its clients, and its loop.
//!
//! Used by: `engine`, `client`; crate `serve`.
//! Tests: `crates/engine/tests/model.rs`, `crates/engine/tests/jobs.rs`.
//!
//! ```text
//! mailbox -> members -> queue -> driver -> channel
//!    other workers' mailboxes <- parts that ended, wake-ups
//!                      members <- parts that ended, wake-ups
//!      handlers and residents  <- completions
//! ```
//!
//! The worker of a client keeps the state of its requests outside the queue: slot, buffer, sectors left. Another worker that
//! carries out a part of the request reads the address of its data, and sends a message when the part has completed.

mod changes;
mod disk_counters;
mod driver;
mod in_flight;
mod member;
mod message;
mod queue_calls;
mod ranges;
mod shared;
mod submission;
mod unaligned;

pub use disk_counters::DiskCounters;
pub use driver::IoChannelDriver;
pub use member::{Member, Sink};
pub use message::{Change, Message, Reply};
pub use shared::{Shared, events_of_group, waiter};

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hoistway_blk::ground::{Instant, Nanos, SECTOR_BYTES};
use hoistway_blk::policy::SchedulerEvent;
use hoistway_blk::sysfs::AttributeError;

use crate::backend::{Ended, IoChannel};
use crate::config::Config;
use crate::context::Context;
use crate::request::{Completion, Errno, Request};
use crate::resident::Turn;
use changes::Changes;
use in_flight::{EndedRequest, InFlight};
use queue_calls::QueueCalls;
use ranges::Fences;
use shared::worker_and_client;
use unaligned::Unaligned;

/// A worker: the loop of one engine thread. [`Engine::prepare`](crate::Engine::prepare) makes them.
pub struct Worker {
    shared: Arc<Shared>,
    index: usize,
    calls: QueueCalls,
    members: Vec<Option<Box<Member>>>,
    in_flight: InFlight,
    /// Members with something to submit.
    to_submit: Vec<u32>,
    /// Members with more to submit than their turn allows, in order.
    next_turn: VecDeque<u32>,
    /// Members that wait for a slot, in order.
    slot_waiters: Vec<u32>,
    /// Members with completions.
    to_notify: Vec<u32>,
    /// Residents.
    residents: Vec<u32>,
    changes: Changes,
    /// Unaligned requests: those that do not consist of whole blocks.
    unaligned: Unaligned,
    /// Sectors that may not be written now.
    fences: Fences,
    /// Outgoing messages for each worker.
    outbox: Vec<Vec<Message>>,
    is_stopping: bool,
    has_reported_drained: bool,
    /// Sectors that a client may read or write per turn.
    turn_sectors: u32,
    /// How long it busy-polls before it sleeps.
    busy_poll_time: Nanos,
    /// When it last had work.
    last_busy: Instant,
    // Reused memory.
    inbox: Vec<Message>,
    ended: Vec<Ended>,
    requests: Vec<Request>,
    clients: Vec<u32>,
}

/// The result of a worker's step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepOutcome {
    /// It did some work; there may be more.
    DidWork,
    /// It had no work, and will have some at this time at the latest.
    Idle(Instant),
    /// The engine was stopped, and all requests have completed.
    Stopped,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        index: usize,
        channel: Box<dyn IoChannel>,
        queue_depth: u32,
        config: &Config,
    ) -> Self {
        let driver = IoChannelDriver::new(channel, shared.slots.clone(), shared.queue.hw_queues(), queue_depth);
        Worker {
            index,
            calls: QueueCalls::new(&shared, index, driver),
            members: Vec::new(),
            in_flight: InFlight::new(shared.slots.range_of(index)),
            to_submit: Vec::new(),
            next_turn: VecDeque::new(),
            slot_waiters: Vec::new(),
            to_notify: Vec::new(),
            residents: Vec::new(),
            changes: Changes::default(),
            unaligned: Unaligned::default(),
            fences: Fences::default(),
            outbox: shared.mailboxes.iter().map(|_| Vec::new()).collect(),
            is_stopping: false,
            has_reported_drained: false,
            turn_sectors: config.turn_bytes / SECTOR_BYTES as u32,
            busy_poll_time: config.busy_poll_time,
            last_busy: Instant::ZERO,
            inbox: Vec::new(),
            ended: Vec::new(),
            requests: Vec::new(),
            clients: Vec::new(),
            shared,
        }
    }

    /// Works until the engine is stopped; sleeps when there is no work.
    pub fn run(mut self) {
        loop {
            match self.step() {
                StepOutcome::DidWork => {}
                StepOutcome::Stopped => return,
                StepOutcome::Idle(until) => self.idle(until),
            }
        }
    }

    /// No work: busy-polls for a while, then sleeps.
    fn idle(&mut self, until: Instant) {
        let now = self.shared.clock.now();
        if now.since(self.last_busy) < self.busy_poll_time {
            std::hint::spin_loop();
        } else if until > now && self.shared.mailboxes[self.index].may_sleep() {
            let timeout = (until != Instant::NEVER).then(|| Duration::from_nanos(until.since(now).0));
            self.calls.driver.channel.sleep(timeout);
            self.shared.mailboxes[self.index].clear_wakeup();
        }
    }

    /// Does the work that is due now, and never sleeps. A whole engine can be run on one thread by calling this for one worker
    /// after the other, until all have stopped.
    pub fn step(&mut self) -> StepOutcome {
        let now = self.shared.now();
        self.calls.now = now;
        let mut worked = self.take_messages();
        worked |= self.take_completions();
        worked |= self.resume_deferred_member();
        worked |= self.changes.step(&self.shared, &mut self.calls);
        worked |= self.calls.carry_out_due(&self.shared);
        self.settle();
        worked |= self.run_local_clients();
        self.settle();
        worked |= self.notify_handlers();
        self.send_messages();
        worked |= !self.next_turn.is_empty();
        if worked {
            self.last_busy = now.at;
            return StepOutcome::DidWork;
        }
        if self.is_stopping && self.may_stop() {
            return StepOutcome::Stopped;
        }
        StepOutcome::Idle(self.next_at())
    }

    fn next_at(&self) -> Instant {
        let channel = self.calls.driver.channel.next_at().unwrap_or(Instant::NEVER);
        let turns = self.residents.iter().filter_map(|&client| self.members[client as usize].as_ref());
        let turn = turns.map(|member| member.next_turn_at).min().unwrap_or(Instant::NEVER);
        self.calls.next_at().min(channel).min(turn).min(self.changes.next_check_at(self.calls.now.at))
    }

    // --- messages ---

    fn take_messages(&mut self) -> bool {
        let mut inbox = std::mem::take(&mut self.inbox);
        self.shared.mailboxes[self.index].take(&mut inbox);
        let any = !inbox.is_empty();
        for message in inbox.drain(..) {
            self.take_message(message);
        }
        self.inbox = inbox;
        any
    }

    fn take_message(&mut self, message: Message) {
        match message {
            Message::Submit { client, request: Request { token, buffer, .. } } if self.is_stopping => {
                self.complete(client, Completion { token, result: Err(Errno::SHUTDOWN), buffer });
            }
            Message::Submit { client, request } => {
                if let Some(member) = self.members[client as usize].as_mut() {
                    member.backlog.push_back(request);
                    self.enqueue(client);
                }
            }
            Message::Ended { slot, sectors, status } => {
                let (_, local) = self.shared.slots.worker_and_index(slot);
                self.part_ended(local, sectors, Errno::of(status));
            }
            Message::Wake { client } => self.enqueue(client),
            Message::Attach { client, member } => self.attach(client, member),
            Message::Detach { client } => self.detach(client),
            Message::Cancel { client, token } => self.cancel(client, token),
            Message::Context { client, context } => self.set_context(client, context),
            Message::Fence(fence) => self.fence(fence),
            Message::Fenced { op } => self.fence_ready_on_worker(op),
            Message::Unfence { worker, op } => self.unfence(worker, op),
            Message::Event(event) => self.calls.notify_scheduler(&self.shared, event),
            Message::Change(change) => self.changes.add(change),
            Message::Stop => self.stop(),
        }
    }

    fn send_messages(&mut self) {
        for (worker, batch) in self.outbox.iter_mut().enumerate() {
            if !batch.is_empty() && !self.shared.mailboxes[worker].send(batch) {
                // That worker has stopped and has no requests in flight: these are wake-ups without effect.
                batch.clear();
            }
        }
    }

    // --- members ---

    fn attach(&mut self, client: u32, member: Box<Member>) {
        if self.members.len() <= client as usize {
            self.members.resize_with(client as usize + 1, || None);
        }
        if matches!(member.sink, Sink::Resident(_)) {
            self.residents.push(client);
        }
        self.members[client as usize] = Some(member);
        if self.is_stopping {
            self.detach(client);
        }
    }

    /// A client was dropped: requests that the queue has not seen are discarded, and the others end without a completion.
    fn detach(&mut self, client: u32) {
        let Some(member) = self.members[client as usize].as_mut() else { return };
        member.has_departed = true;
        member.backlog.clear();
        member.done.clear();
        self.residents.retain(|&other| other != client);
        self.abort_partially_submitted(client, Errno::CANCELED);
        self.enqueue(client);
        self.leave_if_done(client);
    }

    fn leave_if_done(&mut self, client: u32) {
        let Some(member) = self.members[client as usize].take_if(|member| member.is_done()) else { return };
        self.calls.notify_scheduler(&self.shared, SchedulerEvent::IoContextExited(member.io_context));
        self.slot_waiters.retain(|&other| other != client);
        self.to_submit.retain(|&other| other != client);
        self.next_turn.retain(|&other| other != client);
        self.to_notify.retain(|&other| other != client);
        self.shared.client_numbers[self.index].lock().unwrap_or_else(PoisonError::into_inner).give_back(client);
    }

    /// Cancels a request of which the queue has not seen all parts: it takes back the others. A request of which the queue has
    /// all parts completes as usual.
    fn cancel(&mut self, client: u32, token: u64) {
        let Some(member) = self.members[client as usize].as_mut() else { return };
        if let Some(index) = member.backlog.iter().position(|request| request.token == token) {
            let Some(request) = member.backlog.remove(index) else { return };
            self.complete(client, Completion { token, result: Err(Errno::CANCELED), buffer: request.buffer });
        } else if self
            .partially_submitted_slot(client)
            .is_some_and(|slot| self.in_flight.token(slot as usize) == Some(token))
        {
            self.abort_partially_submitted(client, Errno::CANCELED);
            self.enqueue(client);
        }
    }

    /// The slot of the request that a member has submitted in part.
    fn partially_submitted_slot(&self, client: u32) -> Option<u32> {
        let member = self.members[client as usize].as_ref()?;
        let rest = member.rest.as_ref().map(|rest| self.shared.slots.worker_and_index(rest.owner as u32).1 as u32);
        member.partially_submitted.or(rest)
    }

    /// Takes back the part of a member's current request that the queue has not seen.
    fn abort_partially_submitted(&mut self, client: u32, errno: Errno) {
        let Some(slot) = self.partially_submitted_slot(client) else { return };
        let Some(member) = self.members[client as usize].as_mut() else { return };
        let rest = member.rest.take();
        let is_parked = member.partially_submitted.take().is_some();
        let partially_submitted = if is_parked { self.calls.cancel(&self.shared, &mut member.submitter) } else { None };
        for bio in partially_submitted.into_iter().chain(rest) {
            self.part_ended(slot as usize, bio.sectors, Err(errno));
        }
    }

    fn set_context(&mut self, client: u32, context: Context) {
        let Some(member) = self.members[client as usize].as_mut() else { return };
        let (before, io_context) = (std::mem::replace(&mut member.context, context), member.io_context);
        if before.ioprio != context.ioprio {
            self.calls.notify_scheduler(&self.shared, SchedulerEvent::Priority { io_context, ioprio: context.ioprio });
        }
        if before.group != context.group {
            self.calls.notify_scheduler(&self.shared, SchedulerEvent::Moved { io_context, cgroup: context.group.0 });
        }
    }

    /// Lists a member that may have something to submit.
    #[inline]
    fn enqueue(&mut self, client: u32) {
        if let Some(member) = self.members.get_mut(client as usize).and_then(Option::as_mut)
            && !member.is_deferred
            && !std::mem::replace(&mut member.is_enqueued, true)
        {
            self.to_submit.push(client);
        }
    }

    // --- rounds ---

    /// Submits what can be submitted, and handles the effects, until there are no more.
    fn settle(&mut self) {
        loop {
            while let Some(client) = self.to_submit.pop() {
                self.submit(client);
            }
            self.calls.carry_out(&self.shared);
            if !self.take_ended() {
                return;
            }
        }
    }

    // --- completions ---

    fn take_completions(&mut self) -> bool {
        let mut ended = std::mem::take(&mut self.ended);
        self.calls.driver.reap(self.calls.now.at, &mut ended);
        let any = !ended.is_empty();
        for Ended { id, status } in ended.drain(..) {
            self.calls.complete(&self.shared, id, status);
        }
        self.ended = ended;
        any
    }

    /// Handles parts that calls into the queue have completed, and submitters that they woke. Returns whether there were
    /// any.
    fn take_ended(&mut self) -> bool {
        let any = !self.calls.ended.is_empty() || !self.calls.woken.is_empty();
        let mut ended = std::mem::take(&mut self.calls.ended);
        for part in ended.drain(..) {
            match self.shared.slots.worker_and_index(part.slot) {
                (worker, local) if worker == self.index => self.part_ended(local, part.sectors, Errno::of(part.status)),
                (worker, _) => {
                    let message = Message::Ended { slot: part.slot, sectors: part.sectors, status: part.status };
                    self.outbox[worker].push(message);
                }
            }
        }
        self.calls.ended = ended;
        while let Some(waiter) = self.calls.woken.pop() {
            match worker_and_client(waiter) {
                (worker, client) if worker == self.index => self.enqueue(client),
                (worker, client) => self.outbox[worker].push(Message::Wake { client }),
            }
        }
        any
    }

    /// A part of a request has completed, and perhaps all of it.
    #[inline]
    fn part_ended(&mut self, local: usize, sectors: u32, result: Result<(), Errno>) {
        let Some(ended) = self.in_flight.part_ended(local, sectors, result) else { return };
        let EndedRequest { client, is_part, completion } = ended;
        if !self.fences.is_empty() {
            self.write_ended(local);
        }
        if is_part {
            self.unaligned_part_ended(client, completion);
        } else if let Some(member) = self.members[client as usize].as_mut() {
            member.in_flight -= 1;
            let is_disconnecting = member.has_departed;
            self.complete(client, completion);
            if is_disconnecting {
                self.leave_if_done(client);
            }
        }
        if !self.slot_waiters.is_empty() {
            self.wake_slot_waiter();
        }
    }

    /// A slot is free again.
    #[cold]
    fn wake_slot_waiter(&mut self) {
        let has_backlog =
            |&client: &u32| self.members[client as usize].as_ref().is_some_and(|member| member.has_requests());
        let first = self.slot_waiters.iter().position(has_backlog);
        // The members before it have nothing to submit any more.
        self.slot_waiters.drain(..first.unwrap_or(self.slot_waiters.len()));
        if first.is_some() {
            let client = self.slot_waiters.remove(0);
            self.enqueue(client);
        }
    }

    #[inline]
    fn complete(&mut self, client: u32, completion: Completion) {
        if let Some(member) = self.members[client as usize].as_mut() {
            member.complete(completion);
            if !std::mem::replace(&mut member.has_completions, true) {
                self.to_notify.push(client);
            }
        }
    }

    fn notify_handlers(&mut self) -> bool {
        let any = !self.to_notify.is_empty();
        while let Some(client) = self.to_notify.pop() {
            if let Some(member) = self.members[client as usize].as_mut() {
                member.has_completions = false;
                member.notify();
            }
        }
        any
    }

    // --- residents ---

    /// Gives a turn to each resident that has completions or whose time has come.
    fn run_local_clients(&mut self) -> bool {
        let mut clients = std::mem::take(&mut self.clients);
        let now = self.calls.now.at;
        clients.extend(self.residents.iter().copied().filter(|&client| {
            let member = self.members[client as usize].as_ref();
            member.is_some_and(|member| member.next_turn_at <= now || !member.done.is_empty())
        }));
        let any = !clients.is_empty();
        for client in clients.drain(..) {
            self.run_local_client(client);
        }
        self.clients = clients;
        any
    }

    fn run_local_client(&mut self, client: u32) {
        let Some(member) = self.members[client as usize].as_mut() else { return };
        let Sink::Resident(resident) = &mut member.sink else { return };
        let turn = resident.turn(self.calls.now.at, &mut member.done, &mut self.requests);
        member.done.clear();
        member.add(&mut self.requests);
        match turn {
            Turn::By(at) => {
                member.next_turn_at = at;
                if !member.backlog.is_empty() {
                    self.enqueue(client);
                }
            }
            Turn::Detached => self.detach(client),
        }
    }

    // --- stopping ---

    fn stop(&mut self) {
        self.is_stopping = true;
        for client in 0..self.members.len() as u32 {
            let Some(member) = self.members[client as usize].as_mut() else { continue };
            // Requests that are partly submitted continue.
            member.is_enqueued = true;
            self.to_submit.push(client);
            let backlog: Vec<Request> = member.backlog.drain(..).collect();
            for Request { token, buffer, .. } in backlog {
                self.complete(client, Completion { token, result: Err(Errno::SHUTDOWN), buffer });
            }
            self.abort_partially_submitted(client, Errno::SHUTDOWN);
            if self.residents.contains(&client) {
                self.detach(client);
            }
        }
    }

    /// Whether the worker may stop: nothing is in flight on any worker.
    fn may_stop(&mut self) -> bool {
        let is_drained = self.in_flight.is_empty()
            && self.calls.driver.count == 0
            && self.changes.is_empty()
            && self.unaligned.is_empty();
        if is_drained && !std::mem::replace(&mut self.has_reported_drained, true) {
            let drained_workers = self.shared.drained_workers.fetch_add(1, AcqRel) + 1;
            if drained_workers == self.shared.mailboxes.len() {
                self.shared.mailboxes.iter().for_each(crate::mailbox::Mailbox::wake);
            }
        }
        let all_drained = self.shared.drained_workers.load(Acquire) == self.shared.mailboxes.len();
        if all_drained {
            self.refuse_remaining();
        }
        all_drained
    }

    /// Refuses requests that arrived after the stop.
    fn refuse_remaining(&mut self) {
        for message in self.shared.mailboxes[self.index].close() {
            match message {
                Message::Submit { client, request: Request { token, buffer, .. } } => {
                    self.complete(client, Completion { token, result: Err(Errno::SHUTDOWN), buffer });
                }
                Message::Change(change) => change.reply.give(Err(AttributeError::Busy)),
                _ => {}
            }
        }
        self.notify_handlers();
    }
}
