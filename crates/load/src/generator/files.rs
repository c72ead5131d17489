//! Several files: which file is next, and when all are done (tried with fio 3.33).
//!
//! A file that is done is skipped until all are done; then all begin again if the job continues. As in fio, a file is
//! found to be done only when its turn comes, so it may still get a flush.

use super::Cursor;
use super::ranks::Ranks;
use crate::stream::{Purpose, Stream};
use crate::{FileService, Pattern, Popularity};

/// The files of a process.
#[derive(Debug)]
pub(super) struct Files {
    /// All files except the current one.
    others: Vec<Cursor>,
    /// Index of each file in `others`; meaningless for the current file.
    other_indexes: Vec<u32>,
    states: Vec<FileState>,
    current: usize,
    rule: FileChoice,
    /// I/Os left before another file is chosen.
    ios_left: u32,
    open: usize,
    open_max: usize,
    done: usize,
    passes_left: u64,
    stream: Stream,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FileState {
    Closed,
    Open,
    Done,
}

#[derive(Clone, Debug)]
enum FileChoice {
    RoundRobin {
        ios: u32,
    },
    Sequential,
    Random {
        ios: u32,
    },
    /// Ranks out of [`SLOTS`] for each file, counted from `first`.
    Skewed {
        ranks: Ranks,
        first: u64,
    },
}

/// Ranks per file: reproduces fio's shares.
const SLOTS: u64 = 1024;

/// Whether each file starts over by itself instead of when all are done.
pub(super) fn cycles_each_file(job: &Pattern) -> bool {
    (job.volume.time_based && job.random_offsets().is_some()) || job.service.never_ends()
}

impl Files {
    /// For a process that starts in the first file and has these other files.
    pub(super) fn new(job: &Pattern, others: Vec<Cursor>, seed: u64, process: u64) -> Files {
        let count = others.len() + 1;
        let mut stream = Stream::new(seed, process, Purpose::File);
        let rule = match job.service {
            FileService::RoundRobin { ios } => FileChoice::RoundRobin { ios },
            FileService::Sequential => FileChoice::Sequential,
            FileService::Random { ios } => FileChoice::Random { ios },
            FileService::Skewed(popularity) => FileChoice::Skewed {
                ranks: Ranks::new(popularity, count as u64 * SLOTS),
                // The middle of a normal distribution is the file in the middle.
                first: match popularity {
                    Popularity::Normal { .. } => 0,
                    Popularity::Zipf { .. } | Popularity::Pareto { .. } => stream.below(count as u64),
                },
            },
        };
        let open_max = if job.open_files == 0 { count } else { job.open_files.min(count as u64) as usize };
        Files {
            other_indexes: (0..count as u32).map(|file| file.saturating_sub(1)).collect(),
            states: vec![FileState::Closed; count],
            current: 0,
            rule,
            ios_left: 0,
            open: 0,
            open_max: if job.service.never_ends() { count } else { open_max },
            done: 0,
            passes_left: if job.volume.time_based || job.volume.io_size.is_some() {
                u64::MAX
            } else {
                job.volume.loops
            },
            others,
            stream,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.states.len()
    }

    /// Chooses the file of the next I/O.
    pub(super) fn pick(&mut self, cursor: &mut Cursor) {
        let is_open = self.states[self.current] == FileState::Open;
        if self.ios_left > 0 && is_open {
            self.ios_left -= 1;
            return;
        }
        let next = match &self.rule {
            FileChoice::Sequential if is_open => self.current,
            FileChoice::RoundRobin { .. } | FileChoice::Sequential => {
                // No file is open yet, so the first file comes first.
                let is_fresh = self.open == 0 && self.done == 0 && self.states[self.current] == FileState::Closed;
                self.usable_from(self.current + usize::from(!is_fresh))
            }
            FileChoice::Random { .. } => {
                let from = self.stream.below(self.states.len() as u64) as usize;
                self.usable_at_random(from)
            }
            FileChoice::Skewed { ranks, first } => {
                let rank = ranks.draw(&mut self.stream) / SLOTS;
                ((rank + first) % self.states.len() as u64) as usize
            }
        };
        self.ios_left = match self.rule {
            FileChoice::RoundRobin { ios } | FileChoice::Random { ios } => ios - 1,
            _ => 0,
        };
        self.switch_to(next, cursor);
    }

    /// The current file turned out to be done: switches to another. Returns false if the job is done, that is, after a pass over all
    /// files if no other pass follows.
    pub(super) fn pick_after_the_end(&mut self, cursor: &mut Cursor, has_next_pass: impl FnOnce() -> bool) -> bool {
        if self.states[self.current] == FileState::Open {
            self.states[self.current] = FileState::Done;
            self.open -= 1;
            self.done += 1;
        }
        self.ios_left = 0;
        if self.done == self.states.len() {
            self.passes_left = self.passes_left.saturating_sub(1);
            if self.passes_left == 0 || !has_next_pass() {
                return false;
            }
            self.done = 0;
            self.states.fill(FileState::Closed);
            self.others.iter_mut().for_each(Cursor::restart);
            cursor.restart();
            // The turn continues from the last file.
            let next = match self.rule {
                FileChoice::Random { .. } => self.stream.below(self.states.len() as u64) as usize,
                _ => (self.current + 1) % self.states.len(),
            };
            if let FileChoice::RoundRobin { ios } | FileChoice::Random { ios } = self.rule {
                self.ios_left = ios - 1;
            }
            self.switch_to(next, cursor);
            return true;
        }
        self.pick(cursor);
        true
    }

    fn switch_to(&mut self, next: usize, cursor: &mut Cursor) {
        if self.states[next] == FileState::Closed {
            self.states[next] = FileState::Open;
            self.open += 1;
        }
        if next != self.current {
            let index = self.other_indexes[next];
            std::mem::swap(cursor, &mut self.others[index as usize]);
            self.other_indexes[self.current] = index;
            self.current = next;
        }
    }

    fn is_usable(&self, file: usize) -> bool {
        match self.states[file] {
            FileState::Closed => self.open < self.open_max,
            FileState::Open => true,
            FileState::Done => false,
        }
    }

    /// The first usable file from there on, wrapping around: one exists unless all are done.
    fn usable_from(&self, from: usize) -> usize {
        let count = self.states.len();
        (from..from + count).map(|file| file % count).find(|&file| self.is_usable(file)).unwrap_or(self.current)
    }

    /// Returns `drawn`, or draws again if that file is not usable.
    fn usable_at_random(&mut self, drawn: usize) -> usize {
        const DRAWS: u32 = 32;
        let mut file = drawn;
        for _ in 0..DRAWS {
            if self.is_usable(file) {
                return file;
            }
            file = self.stream.below(self.states.len() as u64) as usize;
        }
        self.usable_from(file)
    }
}
