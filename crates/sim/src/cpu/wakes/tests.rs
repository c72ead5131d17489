//! Tests of woken tasks and their turns.

use hoistway_blk::bio::CgroupPriority;
use hoistway_blk::ground::{CgroupId, CpuId, Kernel};
use hoistway_blk::queue::CompletionPlace;
use hoistway_device::Preset;
use hoistway_load::{Pattern, Process};

use super::super::{NextTurn, SLICE};
use super::*;
use crate::disk::{QueueSettings, SimulatedDisk};
use crate::driver::Backing;
use crate::host::Host;
use crate::identity::Sleeper;
use crate::submitter::Submitter;
use crate::task::Placement;
use hoistway_measure::Setting;

const CPU: CpuId = CpuId(0);

/// A reader on CPU 0.
fn task(number: u32) -> Task {
    let backing = Backing::Device(Preset::builtin("null").unwrap().build(1));
    let disk = SimulatedDisk::new(
        backing,
        &QueueSettings::new(Kernel::V6_18, 1),
        &Setting::untouched("none"),
        (0, 1),
        &mut None,
    )
    .unwrap();
    let process = Process::new("p", 0, Pattern::read(4096));
    let generator = process.generator(number, 1, |_| 1 << 30).unwrap();
    let submitter = |_| Submitter::new(&disk.queue, Sleeper::Task(number).waiter());
    let placement = Placement {
        number,
        cpu: CPU,
        cgroup: CgroupId::ROOT,
        priority: CgroupPriority::default(),
        polls: false,
        seed: 1,
        runtime: None,
    };
    Task::new(&process, generator, submitter, &placement)
}

/// One CPU: interrupts take 300 ns, wake-ups 1000 ns, submissions 100 ns, and task switches 50 ns.
fn cpus() -> Cpus {
    let text = "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 100\ncomplete_ns = 300\nswitch_ns = 50\nwake_ns = [1000, 1000]\n\
                worker_ns = [5000, 5000]\nidle_ns = []\n";
    Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 1, 1)
}

#[test]
fn a_task_woken_during_a_cpu_wake_up_joins_the_choice_and_later_ones_wait() {
    for (at, joins) in [(1001, true), (2299, true), (2300, false)] {
        let mut cpus = cpus();
        let [mut first, mut second] = [1, 2].map(task);
        assert!(matches!(cpus.wake(Instant(1000), &mut first), Woken::Chooses(Instant(2400))));
        let woken = cpus.wake(Instant(at), &mut second);
        assert_eq!(matches!(woken, Woken::Joins), joins, "woken at {at}");
        assert!(joins || matches!(woken, Woken::Arrives(Instant(2600))), "300 ns later");
    }
}

#[test]
fn a_task_that_arrives_in_the_first_step_of_another_one_submits_after_it() {
    let mut cpus = cpus();
    let [mut first, mut second] = [1, 2].map(task);
    assert!(matches!(cpus.wake(Instant(1000), &mut first), Woken::Chooses(Instant(2400))));
    let setting = cpus.cpus[0].setting;
    cpus.complete(Instant(2310), CPU, CompletionPlace::Interrupt);
    assert!(matches!(cpus.wake(Instant(2310), &mut second), Woken::Arrives(Instant(2610))));
    cpus.record_arrival(&second);
    assert!(cpus.enqueue(Instant(2610), &mut second).next.is_none(), "the first one is in its submission");
    assert!(matches!(cpus.next(Instant(2700), CPU, setting), NextTurn::Run(1)));
    cpus.enter(Instant(2700), &mut first);
    assert_eq!(cpus.yield_cpu(Instant(2700), &mut first), Some(Instant(2700 + second.switch.0 + 100)));
    assert!(second.switch > Nanos::ZERO);
}

#[test]
fn a_task_runs_at_once_on_an_unoccupied_cpu_without_waiting_tasks() {
    let mut task = task(1);
    task.entry = Nanos(100);
    let is_free = |change: fn(&mut Cpus), now| {
        let mut cpus = cpus();
        cpus.cpu_mut(CPU).free_at = Instant(1000);
        change(&mut cpus);
        cpus.is_free(Instant(now), &task)
    };
    assert!(is_free(|_| (), 1100) && is_free(|_| (), 5000));
    assert!(!is_free(|_| (), 1099), "an interrupt has taken a nanosecond of its time");
    assert!(!is_free(|cpus| cpus.cpu_mut(CPU).in_turn = true, 5000), "another one is in the middle of its turn");
    let wait = Wait { since: Instant(0), entry: Nanos(100), switch: Nanos::ZERO, in_call: Nanos::ZERO };
    let others_wait = |cpus: &mut Cpus| cpus.cpu_mut(CPU).waiting.add_woken(7, 0, Nanos(1000), wait);
    let mut with_others = cpus();
    others_wait(&mut with_others);
    assert!(!with_others.is_free(Instant(5000), &task));
    with_others.choose_next(Instant(1000), CPU).expect("it turns to the other one");
    with_others.cpu_mut(CPU).waiting.start_running(Instant(1000), 7);
    assert!(!with_others.is_free(Instant(5000), &task), "it has turned to another one");
}

#[test]
fn a_task_that_used_its_whole_turn_runs_next_after_those_that_did_not() {
    let mut cpus = cpus();
    let mut tasks = [1, 2, 3].map(task);
    tasks.iter_mut().for_each(|task| task.entry = Nanos(100));
    cpus.enter(Instant(1000), &mut tasks[0]);
    for other in [1, 2] {
        assert!(cpus.enqueue(Instant(2000), &mut tasks[other]).next.is_none(), "it waits");
    }
    // The task spends 5 us of CPU time after its last step.
    tasks[0].spin = Nanos(5000);
    let mut at = cpus.yield_cpu(Instant(3000), &mut tasks[0]);
    let mut order = Vec::new();
    while let Some(now) = at {
        let setting = cpus.cpu_mut(CPU).setting;
        match cpus.next(now, CPU, setting) {
            NextTurn::Later(later) => at = Some(later),
            NextTurn::NoTask => panic!("a task waits"),
            NextTurn::Run(number) => {
                order.push(number);
                let task = &mut tasks[number as usize - 1];
                cpus.enter(now, task);
                let end = now + Nanos(1000);
                at = cpus.yield_cpu(end, task);
                if order.len() == 1 {
                    // Both tasks want another turn at once, the first one slightly earlier.
                    for again in [0, 1] {
                        let next = cpus.enqueue(end, &mut tasks[again]).next;
                        at = next.or(at);
                    }
                }
            }
        }
    }
    assert_eq!(order, [2, 3, 2, 1]);
}

#[test]
fn a_sleeping_task_is_owed_two_slices_at_most() {
    let mut cpus = cpus();
    let mut tasks = [1, 2].map(task);
    tasks.iter_mut().for_each(|task| task.entry = Nanos(100));
    cpus.enter(Instant(1000), &mut tasks[0]);
    cpus.enqueue(Instant(2000), &mut tasks[1]);
    tasks[0].spin = Nanos(10 * SLICE.0);
    let at = cpus.yield_cpu(Instant(3000), &mut tasks[0]).expect("the other one waits");
    assert_eq!(tasks[0].lag_ns, 0, "it has had too much");
    let setting = cpus.cpu_mut(CPU).setting;
    assert!(matches!(cpus.next(at, CPU, setting), NextTurn::Run(2)));
    cpus.enter(at, &mut tasks[1]);
    assert!(cpus.yield_cpu(at + Nanos(1000), &mut tasks[1]).is_none(), "none waits");
    assert_eq!(tasks[1].lag_ns, 2 * SLICE.0 as i64);
}

#[test]
fn a_busy_cpu_pays_the_switch_time_only_for_a_task_that_has_slept() {
    for (switch, ends) in [(1, 3150), (0, 3100)] {
        let mut cpus = cpus();
        let [mut first, mut second] = [1, 2].map(task);
        cpus.enter(Instant(1000), &mut first);
        (second.entry, second.switch) = (Nanos(100), Nanos(switch));
        cpus.enqueue(Instant(2000), &mut second);
        assert_eq!(cpus.yield_cpu(Instant(3000), &mut first), Some(Instant(ends)));
    }
}
