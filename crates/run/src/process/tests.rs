//! What a process submits, told by hand what has ended.

use hoistway_engine::{Config, Engine as Target, Memory};
use hoistway_load::{Engine, Issue, Load, Pattern};

use super::*;

/// A writer of four blocks at a depth of four, with an fsync between the first two and the others.
struct Writer {
    process: RealProcess,
    requests: Vec<Request>,
    now: Instant,
}

impl Writer {
    fn new(engine: Engine) -> Writer {
        let mut load = Load::new();
        let file = load.file("disk");
        let pattern = Pattern { sync_every: [2, 0], ..Pattern::write(4096) };
        let mut process = Process::new("writer", file, pattern);
        process.issue = Issue { engine, ..Issue::asynchronous(4) };
        load.add(process);
        let target = Target::start(&Config::default(), Memory::new(1 << 20)).unwrap();
        let process = &load.processes[0];
        let generator = process.generator(0, 1, |_| 4 * 4096).unwrap();
        let board = Arc::new(Board::new(&load));
        let process = RealProcess::new(process, 0, generator, &Settings::default(), board, &target.buffers());
        Writer { process, requests: Vec::new(), now: Instant(1) }
    }

    /// What it submits until it waits, when these have ended: writes by their block, fsyncs as `s`.
    fn submits(&mut self, ended: &[usize]) -> String {
        let end = |&place: &usize| {
            let request = &mut self.requests[place];
            let buffer = std::mem::replace(&mut request.buffer, Buffer::EMPTY);
            Completion { token: request.token, result: Ok(()), buffer }
        };
        let mut ended: Vec<Completion> = ended.iter().map(end).collect();
        let first = self.requests.len();
        loop {
            let mut requests = Vec::new();
            let turn = self.process.turn(self.now, &mut ended, &mut requests);
            self.requests.append(&mut requests);
            if !matches!(turn, Turn::By(at) if at <= self.now) {
                break;
            }
        }
        let name = |request: &Request| match request.operation {
            Operation::Flush => "s".to_owned(),
            _ => (request.offset / 4096).to_string(),
        };
        self.requests[first..].iter().map(name).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn libaio_sleeps_in_an_fsync_beside_writes_in_flight() {
    let mut writer = Writer::new(Engine::Libaio);
    assert_eq!(writer.submits(&[]), "0 1 s");
    assert_eq!(writer.submits(&[0]), "", "nothing before the fsync has ended");
    assert_eq!(writer.submits(&[2]), "2 3", "one write is still under way");
}

#[test]
fn io_uring_goes_on_beside_an_fsync() {
    let mut writer = Writer::new(Engine::IoUring);
    assert_eq!(writer.submits(&[]), "0 1 s 2");
    assert_eq!(writer.submits(&[0]), "3");
    assert_eq!(writer.submits(&[1, 2, 3, 4]), "");
}

#[test]
fn an_fsync_of_posixaio_waits_for_what_was_submitted_before() {
    let mut writer = Writer::new(Engine::Posixaio);
    assert_eq!(writer.submits(&[]), "0 1");
    assert_eq!(writer.submits(&[0]), "");
    assert_eq!(writer.submits(&[1]), "s");
    assert_eq!(writer.submits(&[2]), "2 3");
}
