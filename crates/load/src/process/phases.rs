//! Start and end of the processes of a load: phases (`stonewall`), `wait_for_previous` and `exitall`.

use super::{Ends, Process, Schedule};

/// Tracks which processes of a load have started and exited.
#[derive(Debug)]
pub struct Phases {
    schedules: Vec<Schedule>,
    states: Vec<State>,
    /// The next phase: all earlier ones have begun.
    phase: u32,
    /// Processes of the phases that have begun, without those that have exited.
    running: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waits,
    Started,
    Exited,
}

impl Phases {
    /// A load with these processes, none of which has started.
    #[must_use]
    pub fn new(processes: &[Process]) -> Phases {
        let schedules: Vec<Schedule> = processes.iter().map(|process| process.schedule.clone()).collect();
        Phases { states: vec![State::Waits; schedules.len()], schedules, phase: 0, running: 0 }
    }

    /// Whether any process of a phase that has begun is still running. If not, after [`Phases::start`], the load is done.
    #[inline]
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running > 0
    }

    /// Whether a process has started, exited or not.
    #[must_use]
    pub fn has_started(&self, number: u32) -> bool {
        self.states[number as usize] != State::Waits
    }

    /// Starts all processes that may start now, and returns their numbers: at the beginning, and after each exit. Each begins after its
    /// `start_delay`.
    pub fn start(&mut self) -> Vec<u32> {
        let mut started = Vec::new();
        self.start_ready(&mut started);
        while self.running == 0 && self.has_later_phase() {
            let unfinished = self.schedules.iter().zip(&self.states).filter(|(own, _)| own.phase == self.phase);
            self.running += unfinished.filter(|&(_, &state)| state != State::Exited).count() as u32;
            self.phase += 1;
            self.start_ready(&mut started);
        }
        started
    }

    fn has_later_phase(&self) -> bool {
        let mut processes = self.schedules.iter().zip(&self.states);
        processes.any(|(own, &state)| own.phase >= self.phase && state != State::Exited)
    }

    fn start_ready(&mut self, started: &mut Vec<u32>) {
        for number in 0..self.schedules.len() {
            let own = &self.schedules[number];
            let mut others = self.schedules.iter().zip(&self.states);
            let waits = |job| others.any(|(other, &state)| other.job == job && state != State::Exited);
            if self.states[number] == State::Waits && own.phase < self.phase && !own.wait_for.is_some_and(waits) {
                self.states[number] = State::Started;
                started.push(number as u32);
            }
        }
    }

    /// A process has exited. Returns the numbers of the processes that end with it; some may have exited already, or not have started yet.
    pub fn exited(&mut self, number: u32) -> Vec<u32> {
        let own = &self.schedules[number as usize];
        let previous = std::mem::replace(&mut self.states[number as usize], State::Exited);
        if previous != State::Exited && own.phase < self.phase {
            self.running -= 1;
        }
        let ends_with_it = |other: &Schedule| match own.ends {
            None => false,
            Some(Ends::Group) => other.group == own.group,
            Some(Ends::Phase) => other.phase == own.phase,
            Some(Ends::All) => true,
        };
        (0..).zip(&self.schedules).filter(|(_, other)| ends_with_it(other)).map(|(other, _)| other).collect()
    }
}
