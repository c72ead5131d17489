//! `flow`: balances the I/Os of processes by weight.
//!
//! Tried with fio 3.33: all I/Os of the processes of a balance count, whatever their size, and no process may be more
//! than one I/O ahead of its share. A process counts even before its start delay is over. Once it has ended, neither it
//! nor its I/Os count. With `flow_sleep=0` fio polls until it may continue; here the balance releases it.

use hoistway_blk::ground::Instant;

use super::Process;
use super::completions::Completions;

/// Dependencies between the processes of a load: balances, and completions of recorded streams that other streams wait for.
#[derive(Default)]
pub struct Flows {
    balances: Vec<Balance>,
    /// The balance and share of each process.
    members: Vec<Option<BalanceMember>>,
    /// The completions of each stream of a recorded program.
    completions: Vec<Option<Completions>>,
    /// Released processes that [`Flows::pop_released`] has not returned yet.
    released: Vec<u32>,
}

struct Balance {
    id: u32,
    weight: u64,
    ios: u64,
    /// Processes that wait to be released.
    held: Vec<u32>,
}

struct BalanceMember {
    balance: usize,
    weight: u64,
    ios: u64,
}

impl Flows {
    /// The balances of these processes.
    #[must_use]
    pub fn new(processes: &[Process]) -> Flows {
        let mut flows = Flows::default();
        for process in processes {
            let member = process.pace.flow.map(|flow| {
                let existing = flows.balances.iter().position(|balance| balance.id == flow.id);
                let balance = existing.unwrap_or(flows.balances.len());
                if existing.is_none() {
                    flows.balances.push(Balance { id: flow.id, weight: 0, ios: 0, held: Vec::new() });
                }
                let weight = u64::from(flow.weight);
                flows.balances[balance].weight += weight;
                BalanceMember { balance, weight, ios: 0 }
            });
            flows.members.push(member);
            let is_stream = process.plan.replay.as_ref().is_some_and(|replay| replay.waits_on.is_some());
            flows.completions.push(is_stream.then(Completions::default));
        }
        flows
    }

    /// Whether a process may issue its next I/O.
    pub(super) fn allows_next_io(&self, process: u32) -> bool {
        let Some(member) = &self.members[process as usize] else { return true };
        let balance = &self.balances[member.balance];
        // Equivalent to "done <= 1 + share" for the next I/O, without the division.
        u128::from(member.ios) * u128::from(balance.weight) <= u128::from(balance.ios + 1) * u128::from(member.weight)
    }

    /// Registers a process that may not continue, to be released later.
    pub(super) fn hold(&mut self, process: u32) {
        let Some(member) = &self.members[process as usize] else { return };
        let held = &mut self.balances[member.balance].held;
        if !held.contains(&process) {
            held.push(process);
        }
    }

    /// A process has issued an I/O.
    pub(super) fn issued(&mut self, process: u32) {
        let Some(member) = &mut self.members[process as usize] else { return };
        member.ios += 1;
        let balance = member.balance;
        self.balances[balance].ios += 1;
        self.release(balance);
    }

    /// I/Os of a stream have completed.
    pub(super) fn complete(&mut self, process: u32, now: Instant, ios: u32) {
        if let Some(completions) = &mut self.completions[process as usize] {
            completions.add(now, ios, &mut self.released);
        }
    }

    /// The time of completion number `count` of a stream. If it has not been reached, `waiter` is released when it is.
    pub(super) fn completed(&mut self, process: u32, count: u64, waiter: u32) -> Option<Instant> {
        let Some(completions) = &mut self.completions[process as usize] else { return Some(Instant::ZERO) };
        let reached = completions.reached(count);
        // The stream's own completions wake it anyway.
        if reached.is_none() && process != waiter {
            completions.wait(count, waiter);
        }
        reached
    }

    /// A process has ended and no longer counts.
    pub fn leave(&mut self, process: u32) {
        if let Some(completions) = &mut self.completions[process as usize] {
            completions.end(&mut self.released);
        }
        let Some(member) = self.members[process as usize].take() else { return };
        let balance = &mut self.balances[member.balance];
        balance.weight -= member.weight;
        balance.ios -= member.ios;
        balance.held.retain(|&held| held != process);
        self.release(member.balance);
    }

    fn release(&mut self, balance: usize) {
        let mut held = std::mem::take(&mut self.balances[balance].held);
        held.retain(|&process| {
            let is_held = !self.allows_next_io(process);
            if !is_held {
                self.released.push(process);
            }
            is_held
        });
        self.balances[balance].held = held;
    }

    /// Whether [`Flows::pop_released`] would return a process.
    #[inline]
    #[must_use]
    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// A released process: its [`RunningProcess::next`](super::RunningProcess::next) is due.
    pub fn pop_released(&mut self) -> Option<u32> {
        self.released.pop()
    }
}

#[cfg(test)]
mod tests;
