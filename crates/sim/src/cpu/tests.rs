//! Tests of interrupts, workers and turns of CPUs.

use rand_xoshiro::rand_core::SeedableRng;

use super::*;
use crate::fair::Wait;

fn cpus() -> Cpus {
    let text = "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 300\nredirect_ns = 20\nwake_ns = [0, 0]\n\
                worker_ns = [0, 0]\nidle_ns = []\n";
    Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 2, 1)
}

#[test]
fn a_completion_takes_the_time_of_the_cpu_that_does_its_work_and_little_of_the_one_that_passes_it_on() {
    let free_at = |cpus: &Cpus| cpus.cpus.iter().map(|cpu| cpu.free_at.0).collect::<Vec<_>>();
    for place in [CompletionPlace::Interrupt, CompletionPlace::Softirq] {
        let mut cpus = cpus();
        assert_eq!(cpus.complete(Instant(1000), CpuId(0), place), CpuId(0));
        assert_eq!(free_at(&cpus), [1300, 0]);
    }
    let mut cpus = cpus();
    let passed_on = CompletionPlace::Redirected(CpuId(1));
    assert_eq!(cpus.complete(Instant(1000), CpuId(0), passed_on), CpuId(1));
    assert_eq!(free_at(&cpus), [1020, 1300]);
    cpus.complete(Instant(1000), CpuId(0), passed_on);
    assert_eq!(free_at(&cpus), [1040, 1600]);
}

#[test]
fn a_turn_that_is_given_away_keeps_others_waiting() {
    let (mut cpus, cpu, place) = (cpus(), CpuId(0), CompletionPlace::Interrupt);
    assert_eq!(cpus.interrupt_waits(Instant(1000), cpu, place), None);
    cpus.complete(Instant(1000), cpu, place);
    assert_eq!(cpus.interrupt_waits(Instant(1100), cpu, place), Some(Instant(1300)));
    assert!(cpus.any_takes_interrupt(Instant(1300)), "one that comes just then would take it as well");
    assert_eq!(cpus.interrupt_waits(Instant(1300), cpu, place), Some(Instant(1600)));
    cpus.complete(Instant(1300), cpu, place);
    cpus.complete(Instant(1600), cpu, place);
    assert_eq!(cpus.interrupt_waits(Instant(1899), cpu, place), Some(Instant(1900)), "each has its 300 ns");
    assert_eq!(cpus.interrupt_waits(Instant(1100), CpuId(1), place), None, "another CPU has nothing to do");
}

#[test]
fn an_interrupt_has_its_turn_at_once_when_those_before_it_are_over() {
    let (mut cpus, cpu, place) = (cpus(), CpuId(0), CompletionPlace::Interrupt);
    cpus.complete(Instant(1000), cpu, place);
    assert_eq!(cpus.interrupt_waits(Instant(1300), cpu, place), None);
}

#[test]
fn an_interrupt_that_locks_keep_makes_those_of_its_cpu_late_that_wait_for_it() {
    let (mut cpus, cpu, place) = (cpus(), CpuId(0), CompletionPlace::Interrupt);
    cpus.complete(Instant(1000), cpu, place);
    assert_eq!(cpus.interrupt_waits(Instant(1100), cpu, place), Some(Instant(1300)));
    assert!(!cpus.may_delay_interrupts(Instant(1100)));
    cpus.charge_interrupt(Instant(1000), cpu, Nanos(50));
    assert!(cpus.may_delay_interrupts(Instant(1300)));
    assert_eq!(cpus.delayed_start(Instant(1300), cpu), Some(Instant(1350)));
    assert_eq!([(1350, cpu), (1300, CpuId(1))].map(|(at, cpu)| cpus.delayed_start(Instant(at), cpu)), [None; 2]);
    assert_eq!(cpus.interrupt_waits(Instant(1349), cpu, place), Some(Instant(1650)), "behind both");
    assert_eq!(cpus.cpus[0].free_at, Instant(1350));
}

#[test]
fn a_worker_runs_after_interrupts_and_the_current_step_and_uses_cpu_time() {
    let text = "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 300\ndispatch_ns = 40\n\
                wake_ns = [0, 0]\nworker_ns = [5000, 5000]\nidle_ns = []\n";
    let (mut cpus, cpu) = (Cpus::new(&Host::from_toml(text, "x.toml").unwrap(), 2, 1), CpuId(0));
    let random = &mut Xoshiro256PlusPlus::seed_from_u64(1);
    assert_eq!(cpus.worker_runs(Instant(1000), cpu, random), Instant(6040));
    cpus.complete(Instant(1000), cpu, CompletionPlace::Interrupt);
    assert_eq!(cpus.worker_runs(Instant(1000), cpu, random), Instant(6340));
    assert_eq!(cpus.called_worker_ready_by(Instant(1000)), Instant(6340));
    cpus.cpu_mut(cpu).task_until = Instant(9000);
    assert_eq!(cpus.worker_runs(Instant(1000), cpu, random), Instant(6340), "that was its last step");
    cpus.cpu_mut(cpu).in_turn = true;
    assert_eq!(cpus.worker_runs(Instant(1000), cpu, random), Instant(9040));
    cpus.charge_worker_until(Instant(9040), cpu);
    assert_eq!((cpus.cpus[0].free_at, cpus.cpus[1].free_at), (Instant(9040), Instant::ZERO));
}

#[test]
fn a_short_interrupt_does_not_hide_a_longer_one_on_another_cpu() {
    let mut cpus = cpus();
    cpus.complete(Instant(1000), CpuId(0), CompletionPlace::Interrupt);
    assert_eq!(cpus.redirect_to_busy_cpu(Instant(1100), CpuId(1), CpuId(0)), Some(Instant(1300)));
    assert!(cpus.any_takes_interrupt(Instant(1599)), "both turns");
    assert!(!cpus.any_takes_interrupt(Instant(1600)));
}

#[test]
fn redirected_work_queues_among_the_interrupts_of_the_other_cpu() {
    let (mut cpus, to) = (cpus(), CpuId(1));
    assert_eq!(cpus.redirect_to_busy_cpu(Instant(1000), CpuId(0), to), None);
    cpus.complete(Instant(1000), CpuId(0), CompletionPlace::Redirected(to));
    assert_eq!(cpus.redirect_to_busy_cpu(Instant(1100), CpuId(0), to), Some(Instant(1300)));
    assert_eq!(cpus.cpus[0].free_at, Instant(1120), "passing on takes its time at once");
    assert_eq!(cpus.cpus[1].free_at, Instant(1300), "the work does not");
    assert_eq!(cpus.interrupt_waits(Instant(1200), to, CompletionPlace::Interrupt), Some(Instant(1600)), "behind both");
    cpus.complete_redirected(Instant(1300), to);
    assert_eq!(cpus.cpus[1].free_at, Instant(1600));
}

fn wait(entry: u64) -> Wait {
    Wait { since: Instant(1000), entry: Nanos(entry), switch: Nanos::ZERO, in_call: Nanos::ZERO }
}

#[test]
fn an_interrupt_suspends_a_task_that_resumes_where_it_was() {
    let (mut cpus, cpu) = (cpus(), CpuId(0));
    cpus.cpu_mut(cpu).waiting.add_woken(7, 0, SLICE, wait(1000));
    assert_eq!(cpus.choose_next(Instant(1000), cpu), Some(Instant(2000)));
    for at in [1100, 1900] {
        cpus.complete(Instant(at), cpu, CompletionPlace::Interrupt);
    }
    assert!(matches!(cpus.next(Instant(2000), cpu, 0), NextTurn::Later(Instant(2600))), "2 times 300 ns later");
    assert!(matches!(cpus.next(Instant(2600), cpu, 0), NextTurn::Run(7)));
}

#[test]
fn a_task_whose_turn_was_interrupted_runs_next_after_the_others() {
    let (mut cpus, cpu) = (cpus(), CpuId(0));
    for task in [1, 2, 3] {
        cpus.cpu_mut(cpu).waiting.add_woken(task, 0, SLICE, wait(1000));
    }
    let mut at = cpus.choose_next(Instant(1000), cpu);
    let mut order = Vec::new();
    while let Some(now) = at {
        match cpus.next(now, cpu, 0) {
            NextTurn::Later(later) => at = Some(later),
            NextTurn::Run(task) => {
                order.push(task);
                let state = cpus.cpu_mut(cpu);
                state.waiting.charge_running(state.free_at, now, SLICE);
                let lag = state.waiting.put_to_sleep(task);
                state.waiting.add_woken(task, lag, SLICE, Wait { since: state.free_at, ..wait(1000) });
                state.turn_ended = state.free_at;
                at = if order.len() < 6 { cpus.choose_next(now, cpu) } else { None };
                if order == [1] {
                    cpus.complete(now, cpu, CompletionPlace::Interrupt);
                }
            }
            NextTurn::NoTask => at = None,
        }
    }
    assert_eq!(order, [1, 2, 3, 1, 3, 2], "task 2 was interrupted");
}

#[test]
fn interrupts_keep_a_task_waiting_but_not_for_ever() {
    let (mut cpus, cpu) = (cpus(), CpuId(0));
    let mut interrupts = |at| cpus.complete(Instant(at), cpu, CompletionPlace::Interrupt);
    interrupts(1000);
    interrupts(1000);
    cpus.cpu_mut(cpu).waiting.add_woken(7, 0, SLICE, wait(0));
    assert_eq!(cpus.choose_next(Instant(1000), cpu), Some(Instant(1600)));
    cpus.complete(Instant(1500), cpu, CompletionPlace::Interrupt);
    assert!(matches!(cpus.next(Instant(1600), cpu, 0), NextTurn::Later(Instant(1900))));
    let end = 1000 + INTERRUPT_TIME_MAX.0;
    (0..INTERRUPT_TIME_MAX.0 / 300 + 1).for_each(|_| _ = cpus.complete(Instant(1900), cpu, CompletionPlace::Interrupt));
    assert!(matches!(cpus.next(Instant(1900), cpu, 0), NextTurn::Later(at) if at.0 == end));
    assert!(matches!(cpus.next(Instant(end), cpu, 0), NextTurn::Run(7)));
}

#[test]
fn the_cpu_that_is_interrupted_leaves_its_sleep_before_its_processes_run_and_counts_for_its_guess_once() {
    let text = "name = \"x\"\ndescription = \"x\"\nsubmit_ns = 0\ncomplete_ns = 300\nwake_ns = [0, 0]\nworker_ns = [0, 0]\n\
                idle_ns = [[100, 70]]\n";
    let host = Host::from_toml(text, "x.toml").unwrap();
    let waits = |seed| {
        let mut cpus = Cpus::new(&host, 2, seed);
        cpus.complete(Instant(1000), CpuId(0), CompletionPlace::Interrupt);
        let first = cpus.cpus[0].free_at.since(Instant(1300));
        assert_eq!(
            cpus.interrupt_waits(Instant(1300), CpuId(0), CompletionPlace::Interrupt),
            None,
            "at once nevertheless"
        );
        cpus.complete(Instant(1300), CpuId(0), CompletionPlace::Interrupt);
        assert_eq!(cpus.cpus[0].free_at.since(Instant(1600)), first, "it is awake");
        first
    };
    let waits: Vec<Nanos> = (0..50).map(waits).collect();
    assert!(waits.iter().all(|&wait| wait < Nanos(70)) && waits.iter().any(|&wait| wait > Nanos(50)), "{waits:?}");
    // A CPU on which a process polls is awake.
    let mut cpus = Cpus::new(&host, 2, 1);
    cpus.cpu_mut(CpuId(0)).incoming_tasks = 1;
    assert_eq!(cpus.exit_latency(Instant(1000), CpuId(0)), Nanos::ZERO);
}
