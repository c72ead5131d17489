//! Trials of single settings, with the environment that made them and where its files do not exist.

use std::io;
use std::path::Path;
use std::sync::Mutex;

use hoistway_answer::tuning::{Budget, Setting, TuneRun};
use hoistway_experiment::sweep::Inputs;
use hoistway_experiment::tune::{Evaluate as _, Evaluator, Search, SearchObserver, Trials, tune};
use hoistway_experiment::{Alone, CallerEnvironment, Comparison, Load, Unobserved, Vary};

const JOB: &str =
    "[r]\nfilename=/dev/sda\nrw=randread\ndirect=1\nioengine=libaio\niodepth=64\nruntime=20ms\ntime_based\n";

fn search(load: Load) -> Search {
    let vary = |of: &str, name: &str, text: &str| Vary {
        of: of.to_owned(),
        name: name.to_owned(),
        texts: vec![text.to_owned()],
    };
    Search {
        comparison: Comparison {
            load,
            devices: vec!["intel-s3520-1600gb".into()],
            schedulers: vec!["mq-deadline".to_owned(), "none".to_owned()],
            ..Comparison::default()
        },
        vary: vec![vary("mq-deadline", "fifo_batch", "1"), vary("queue", "nr_requests", "64")],
        objective: "min r:read:p99 subject to r:read:iops >= 0.9*kyber".parse().unwrap(),
        budget: Budget::Runs(200),
    }
}

fn text() -> Load {
    Load::Text { name: "job".to_owned(), text: JOB.to_owned() }
}

#[derive(Default)]
struct Reported(Mutex<Vec<TuneRun>>);

impl SearchObserver for Reported {
    fn ran(&self, runs: &[TuneRun], _: u64) {
        *self.0.lock().unwrap() = runs.to_vec();
    }
}

#[test]
fn a_setting_stands_as_it_does_in_a_round_of_the_search() {
    let search = search(text());
    let found = tune(&search, &Alone, Vec::new(), &Unobserved).unwrap();
    let trials = Trials::of(&search, &Alone).unwrap();
    assert_eq!(trials.tunables(), found.tunables);
    assert_eq!(trials.schedulers(), ["mq-deadline", "none"]);
    let evaluator = trials.evaluator().unwrap();
    // With few settings there is one round, which takes the first seeds.
    let [round] = &found.rounds[..] else { panic!("{} rounds", found.rounds.len()) };
    let shown = Reported::default();
    for standing in &round.settings {
        let known = shown.0.lock().unwrap().clone();
        let mut again = trials.standing(&evaluator, &standing.setting, standing.seeds, known, &shown).unwrap();
        again.beside_best = standing.beside_best;
        assert_eq!(again, *standing);
    }
}

#[test]
fn known_figures_are_not_run_again_and_figures_of_conditions_are_run() {
    struct Never;
    impl hoistway_experiment::tune::Evaluate for Never {
        fn figures(
            &self,
            setting: &Setting,
            _: u64,
            _: Option<u64>,
        ) -> Result<hoistway_experiment::tune::Figures, hoistway_experiment::Error> {
            panic!("{setting} runs again")
        }
    }
    let search = search(text());
    let trials = Trials::of(&search, &Alone).unwrap();
    let (setting, shown) = (Setting::untouched("none"), Reported::default());
    let first = trials.standing(&trials.evaluator().unwrap(), &setting, 2, Vec::new(), &shown).unwrap();
    let runs = shown.0.into_inner().unwrap();
    let ran: Vec<&str> = runs.iter().map(|run| &*run.setting.scheduler).collect();
    assert_eq!(ran, ["none", "kyber", "none", "kyber"]);
    assert_eq!(trials.standing(&Never, &setting, 2, runs, &Unobserved).unwrap(), first);
}

#[test]
fn a_run_needs_no_files_where_its_inputs_are() {
    struct Files;
    impl CallerEnvironment for Files {
        fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
            let is_job = path == Path::new("job.fio");
            if is_job { Ok(JOB.replace("64", "${DEPTH}").into_bytes()) } else { Err(io::ErrorKind::NotFound.into()) }
        }

        fn variable(&self, name: &str) -> Option<String> {
            (name == "DEPTH").then(|| "64".to_owned())
        }
    }
    let here = search(Load::File("job.fio".into())).comparison;
    let inputs = serde_json::to_string(&Inputs::of(&here, &Files).unwrap()).unwrap();
    let inputs: Inputs = serde_json::from_str(&inputs).unwrap();
    let figures = |comparison: &Comparison, environment: &dyn CallerEnvironment| {
        let evaluator = Evaluator::new(comparison, environment).unwrap();
        evaluator.figures(&Setting::untouched("none"), 7, None).unwrap()
    };
    assert_eq!(figures(&here, &inputs), figures(&search(text()).comparison, &Alone));
}

#[test]
fn no_seeds_and_io_that_there_is_not_are_refused() {
    let mut search = search(text());
    let refused = |search: &Search, seeds: u32| {
        let trials = Trials::of(search, &Alone).unwrap();
        let evaluator = trials.evaluator().unwrap();
        let refused = trials.standing(&evaluator, &Setting::untouched("none"), seeds, Vec::new(), &Unobserved);
        refused.unwrap_err().to_string()
    };
    assert_eq!(refused(&search, 0), "`repeats` 0: expected 1 to 1000");
    search.objective = "min r:write:p99".parse().unwrap();
    assert_eq!(refused(&search, 1), "`objective` min r:write:p99: r:write:p99: no such I/O happened under none");
}
