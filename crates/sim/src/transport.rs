//! The transport between a disk's block layer and its device, such as NVMe over TCP: on each CPU a worker that sends commands.
//!
//! Used by: `simulation`, `driver`.
//! Tests: below.
//!
//! ```text
//! first hardware queue of a CPU    at once, in order          \
//!                                                              worker: request_ns and kib_ns each, on its CPU -> device
//! second one, if there are two     a batch, or the doorbell   /
//! ```
//!
//! The worker sends one command at a time, and one of the first queue before any of the second. It takes turns with the processes of its
//! CPU: each command waits for the end of the turn that a process has when the one before it is sent, if that does not take too long.
//! Interrupts delay it.

use std::collections::VecDeque;

use hoistway_blk::ground::{CpuId, HctxId, Instant, Nanos};
use hoistway_blk::request::{CpuMap, QueueClass};
use hoistway_device::{Command, Device, Schedule, TransportParameters};

use crate::cpu::Work;

/// How long the turn of a process may put off a worker. Assumed: about a slice.
const WAIT_MAX: Nanos = Nanos::from_millis(2);

/// How long a worker waits if the device refuses a command.
const RETRY: Nanos = Nanos::from_micros(50);

/// The workers of a disk.
pub(crate) struct TransportWorkers {
    pub(crate) device: Box<dyn Device>,
    parameters: TransportParameters,
    /// The CPU of each hardware queue's worker, and whether it is the second queue of that CPU.
    queues: Vec<(CpuId, bool)>,
    /// One on each CPU.
    workers: Vec<Worker>,
}

/// What wakes the worker of a CPU, as the number of an alarm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// It has a command to send, or has sent one.
    Work(CpuId),
    /// The first command of a batch has waited long enough.
    Doorbell(CpuId),
}

/// What a worker does after a call.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing: it is busy, or has nothing to send.
    Nothing,
    /// It is called.
    Called,
    /// It begins with a command, which takes this CPU time.
    Begins(Nanos),
}

#[derive(Default)]
struct Worker {
    first: VecDeque<Command>,
    second: VecDeque<Command>,
    /// How many commands of the second queue may be sent: those of complete batches.
    complete: usize,
    /// When the open batch is sent although it is not complete.
    rings_at: Option<Instant>,
    /// Whether a call is scheduled.
    is_called: bool,
    /// Since when a process has put it off.
    waits_since: Option<Instant>,
    sending: Option<(Command, Work)>,
}

impl Call {
    pub(crate) fn from_alarm(alarm: u32) -> Call {
        let cpu = CpuId(alarm >> 1);
        if alarm & 1 == 0 { Call::Work(cpu) } else { Call::Doorbell(cpu) }
    }

    pub(crate) fn alarm(self) -> u32 {
        match self {
            Call::Work(cpu) => cpu.0 << 1,
            Call::Doorbell(cpu) => cpu.0 << 1 | 1,
        }
    }

    pub(crate) fn cpu(self) -> CpuId {
        match self {
            Call::Work(cpu) | Call::Doorbell(cpu) => cpu,
        }
    }
}

impl Worker {
    /// The next command: one of the first queue before any of the second, whose batches are sent whole.
    fn take_next(&mut self) -> Option<Command> {
        if let Some(command) = self.first.pop_front() {
            return Some(command);
        }
        self.complete = self.complete.checked_sub(1)?;
        self.second.pop_front()
    }

    fn complete_batch(&mut self) {
        (self.complete, self.rings_at) = (self.second.len(), None);
    }
}

impl TransportWorkers {
    pub(crate) fn new(device: Box<dyn Device>, parameters: &TransportParameters) -> Self {
        TransportWorkers { device, parameters: parameters.clone(), queues: Vec::new(), workers: Vec::new() }
    }

    /// Assigns the hardware queues to the workers of their CPUs.
    pub(crate) fn attach(&mut self, map: &CpuMap) {
        let is_second = |hctx: HctxId| map.classes().get(hctx.index()) == Some(&QueueClass::Low);
        let cpu = |hctx| map.served(hctx).first().copied().unwrap_or_default();
        self.queues = (0..map.hctxs()).map(HctxId).map(|hctx| (cpu(hctx), is_second(hctx))).collect();
        let tags = self.device.shape().queue_depth as usize;
        let worker = || Worker {
            first: VecDeque::with_capacity(tags),
            second: VecDeque::with_capacity(tags),
            ..Worker::default()
        };
        self.workers = std::iter::repeat_with(worker).take(map.cpus()).collect();
    }

    /// The block layer gives a command to the worker of its hardware queue.
    pub(crate) fn queue(&mut self, now: Instant, command: Command, schedule: &mut Schedule) {
        let (cpu, is_second) = self.queues[usize::from(command.queue)];
        let worker = &mut self.workers[cpu.index()];
        if is_second {
            worker.second.push_back(command);
            let open = worker.second.len() - worker.complete;
            if open < usize::from(self.parameters.batch) {
                if open == 1 {
                    let at = now + self.parameters.doorbell();
                    worker.rings_at = Some(at);
                    schedule.alarms.push((at, Call::Doorbell(cpu).alarm()));
                }
                return;
            }
            worker.complete_batch();
        } else {
            worker.first.push_back(command);
        }
        if !std::mem::replace(&mut worker.is_called, true) {
            schedule.alarms.push((now, Call::Work(cpu).alarm()));
        }
    }

    /// The work that a worker has begun, if any.
    pub(crate) fn work(&mut self, cpu: CpuId) -> Option<&mut Work> {
        self.workers[cpu.index()].sending.as_mut().map(|(_, work)| work)
    }

    /// Whether a worker that has not begun can wait for the end of a process's turn.
    pub(crate) fn may_wait(&mut self, now: Instant, cpu: CpuId) -> bool {
        let since = *self.workers[cpu.index()].waits_since.get_or_insert(now);
        now.since(since) < WAIT_MAX
    }

    /// A worker has sent its command. If the device refuses it, returns how long the worker waits before it tries again.
    pub(crate) fn send(&mut self, now: Instant, cpu: CpuId, schedule: &mut Schedule) -> Result<(), Nanos> {
        let worker = &mut self.workers[cpu.index()];
        let Some((command, work)) = worker.sending.take() else { return Ok(()) };
        self.device.submit(now, command, schedule).map_err(|_| {
            worker.sending = Some((command, work));
            RETRY
        })
    }

    /// What a worker does after a call: its next command, if it is not busy.
    pub(crate) fn turn(&mut self, now: Instant, call: Call) -> Turn {
        let worker = &mut self.workers[call.cpu().index()];
        if let Call::Doorbell(_) = call {
            if worker.rings_at != Some(now) {
                return Turn::Nothing;
            }
            worker.complete_batch();
            return if std::mem::replace(&mut worker.is_called, true) { Turn::Nothing } else { Turn::Called };
        }
        worker.waits_since = None;
        let Some(command) = worker.take_next() else {
            worker.is_called = false;
            return Turn::Nothing;
        };
        worker.sending = Some((command, Work::default()));
        Turn::Begins(self.parameters.time_of(command.sectors))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hoistway_blk::bio::Op;
    use hoistway_blk::ground::Sector;
    use hoistway_device::Preset;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    /// Two CPUs whose workers do nothing else, 1 us a request, batches of 4 or 20 us.
    const CPUS: u16 = 2;
    const REQUEST_NS: u64 = 1000;
    const DOORBELL_NS: u64 = 20_000;

    fn command(tag: u32, queue: u16) -> Command {
        Command { tag, queue, op: Op::Read, sector: Sector(0), sectors: 8, fua: false }
    }

    /// Gives commands to the workers: time in ns and hardware queue; the tag is the index. Returns when each was sent, in this order.
    fn sent(commands: &[(u64, u16)]) -> Vec<(u64, u32)> {
        let parameters = TransportParameters { request_ns: REQUEST_NS, kib_ns: 0, batch: 4, doorbell_us: 20.0 };
        let mut workers = TransportWorkers::new(Preset::builtin("null").unwrap().build(1), &parameters);
        workers.attach(&CpuMap::of_transport(CPUS, 4).unwrap());
        let (mut sent, mut calls) = (Vec::new(), BTreeMap::new());
        let mut next = (0..).zip(commands).peekable();
        let mut schedule = Schedule::default();
        let mut number = 0..;
        loop {
            let called = calls.first_key_value().map(|(&(at, _), _)| at);
            let arrives = next.peek().map(|(_, (at, _))| *at);
            if let Some(at) = arrives.filter(|at| called.is_none_or(|called| *at <= called)) {
                let (tag, (_, queue)) = next.next().unwrap();
                workers.queue(Instant(at), command(tag, *queue), &mut schedule);
                let alarms = schedule.alarms.drain(..);
                calls.extend(alarms.map(|(at, alarm)| ((at.0, number.next()), Call::from_alarm(alarm))));
                continue;
            }
            let Some(((at, _), call)) = calls.pop_first() else { return sent };
            if call == Call::Work(call.cpu()) {
                workers.send(Instant(at), call.cpu(), &mut schedule).unwrap();
                sent.extend(schedule.completions.drain(..).map(|completion| (at, completion.tag)));
            }
            let next = match workers.turn(Instant(at), call) {
                Turn::Nothing => continue,
                Turn::Called => at,
                Turn::Begins(time) => at + time.0,
            };
            calls.insert((next, number.next()), Call::Work(call.cpu()));
        }
    }

    #[test]
    fn a_command_of_the_first_queue_waits_for_no_more_than_the_one_that_is_being_sent() {
        let second: Vec<(u64, u16)> = vec![(0, 2); 8];
        let commands: Vec<(u64, u16)> = second.into_iter().chain([(1500, 0)]).collect();
        let order: Vec<u32> = sent(&commands).iter().map(|&(_, tag)| tag).collect();
        assert_eq!(order, [0, 1, 8, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_command_of_the_second_queue_waits_for_its_batch_or_the_doorbell() {
        assert_eq!(sent(&[(0, 0)]), [(REQUEST_NS, 0)], "the first queue at once");
        assert_eq!(sent(&[(0, 2)]), [(DOORBELL_NS + REQUEST_NS, 0)]);
        let batch = sent(&[(0, 2), (100, 2), (200, 2), (300, 2), (400, 2)]);
        let times: Vec<u64> = batch.iter().map(|&(at, _)| at).collect();
        assert_eq!(times, [1300, 2300, 3300, 4300, 400 + DOORBELL_NS + REQUEST_NS], "the fifth opens another");
        assert_eq!(sent(&[(0, 2), (0, 3)]).len(), 2, "each CPU has its own");
        let open = sent(&[(0, 2), (500, 0)]);
        assert_eq!(open, [(1500, 1), (DOORBELL_NS + REQUEST_NS, 0)], "the first queue passes an open batch");
    }

    #[test]
    fn workers_lose_no_command_and_keep_the_order_of_each_queue() {
        for seed in 0..200 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut at = 0;
            let commands: Vec<(u64, u16)> = (0..64)
                .map(|_| {
                    at += random.next_u64() % (1 << (seed % 14));
                    (at, (random.next_u64() % 4) as u16)
                })
                .collect();
            let sent = sent(&commands);
            let queue = |tag: u32| commands[tag as usize].1;
            for hctx in 0..4 {
                let of_queue: Vec<u32> = sent.iter().map(|&(_, tag)| tag).filter(|&tag| queue(tag) == hctx).collect();
                let submitted: Vec<u32> = (0..64).filter(|&tag| queue(tag) == hctx).collect();
                assert_eq!(of_queue, submitted, "seed {seed}, hardware queue {hctx}");
            }
            for &(at, tag) in sent.iter().filter(|&&(_, tag)| queue(tag) >= CPUS) {
                // Its sending began while none of the first queue of its CPU waited.
                let began = at - REQUEST_NS;
                let waits = |other: u32| {
                    let (came, of_other) = commands[other as usize];
                    of_other + CPUS == queue(tag) && came < began
                };
                let overtaken = sent.iter().find(|&&(other_at, other)| other_at > at && waits(other));
                assert_eq!(overtaken, None, "seed {seed}: {tag} at {at}");
            }
        }
    }
}
