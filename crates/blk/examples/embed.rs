//! The block layer over a file: two threads write blocks of 4 KiB, and one of them changes the scheduler meanwhile.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::{fs::File, os::unix::fs::FileExt, thread};

use hoistway_blk::prelude::*;

const BLOCKS: u64 = 2000;

/// A thread's driver: what it is given is done when it answers.
struct Disk<'a>(&'a File);

impl Driver for Disk<'_> {
    fn queue_rq(&mut self, _: Now, rq: Rq, _last: bool) -> Answer {
        rq.bios.iter().for_each(|bio| self.0.write_all_at(&[bio.owner as u8; 4096], bio.sector.0 * 512).unwrap());
        Answer::Done(rq, Status::Ok)
    }
}

fn main() {
    let path = std::env::temp_dir().join(format!("hoistway-embed-{}", std::process::id()));
    let (file, start) = (File::create_new(&path).unwrap(), std::time::Instant::now());
    std::fs::remove_file(path).unwrap();
    let config = QueueConfig { cpus: 2, hw_queues: 2, queue_depth: 4, ..QueueConfig::new(Kernel::DEFAULT) };
    let queue = &Queue::<Threads>::new(&config, "mq-deadline").unwrap();
    let (left, woken) = (AtomicU64::new(BLOCKS), [const { AtomicBool::new(false) }; 2]);
    let work = |cpu: CpuId| {
        let (mut caller, mut agenda, mut disk) = (Caller::new(), Agenda::new(2), Disk(&file));
        let mut submitter = Submitter::new(queue, Waiter(cpu.0));
        let mut blocks = (u64::from(cpu.0)..BLOCKS).step_by(2);
        while left.load(SeqCst) > 0 {
            let mut probe = NoProbe;
            let now = Hz::DEFAULT.now(Instant(start.elapsed().as_nanos() as u64));
            let mut cx = caller.cx::<(Disk<'_>, NoProbe)>(now, cpu, &mut disk, &mut probe, &NoMeter);
            if cpu == CpuId(0) && queue.is_drained() {
                queue.switch_scheduler("bfq", cx.effects).unwrap();
                queue.unfreeze(&mut cx);
            } else if submitter.is_parked() {
                woken[cpu.index()].swap(false, SeqCst).then(|| submitter.make_progress(queue, &mut cx));
            } else if let Some(owner) = blocks.next() {
                submitter.submit(queue, &mut cx, Bio { owner, ..Bio::new(Op::Write, Sector(owner * 8), 8) });
                if owner == BLOCKS / 2 {
                    queue.freeze(&mut cx);
                }
            }
            agenda.carry_out(queue, &mut cx, |_, action| match action {
                Action::End { .. } => assert!(left.fetch_sub(1, SeqCst) > 0, "each bio ends once"),
                Action::Wake(Waiter(thread)) => woken[thread as usize].store(true, SeqCst),
                Action::TimedOut { cpu, id } => unreachable!("{cpu:?} has kept {id:?}"),
                Action::RunOther { .. } => unreachable!("no other queue shares its tags"),
                Action::Arbitrate(_) | Action::MoveSubmitter { .. } => unreachable!("no policy asks for it"),
            });
        }
    };
    thread::scope(|threads| [0, 1].map(|cpu| threads.spawn(move || work(CpuId(cpu)))).map(drop));
}
