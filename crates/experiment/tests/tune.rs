//! Searches: their results, their reproducibility, and the errors of invalid ones.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hoistway_answer::tuning::{Budget, Setting, TuneRun, Tuning};
use hoistway_answer::{Analysis as Results, FigureName, Objective};
use hoistway_experiment::tune::{
    Evaluate, Evaluator, Figures, Search, SearchObserver, SearchState, TuneError, tune, tune_by,
};
use hoistway_experiment::{Alone, Comparison, Error, Field, Load, Unobserved, Vary};

const JOB: &str = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nruntime=30ms\ntime_based\n\
    [readers]\nrw=randread\nbs=8k\niodepth=4\nnumjobs=4\n[writers]\nrw=randwrite\nbs=64k\niodepth=40\n";

fn vary(of: &str, name: &str, texts: &[&str]) -> Vary {
    let texts = texts.iter().map(|&text| text.to_owned()).collect();
    Vary { of: of.to_owned(), name: name.to_owned(), texts }
}

fn search(objective: &str, over: &[&str], vary: Vec<Vary>, budget: u64) -> Search {
    let comparison = Comparison {
        load: Load::text(JOB),
        devices: vec!["intel-s3520-1600gb".into()],
        schedulers: over.iter().map(|&name| name.to_owned()).collect(),
        ..Comparison::default()
    };
    Search { comparison, vary, objective: objective.parse().unwrap(), budget: Budget::Runs(budget) }
}

fn found(search: &Search) -> Tuning {
    tune(search, &Alone, Vec::new(), &Unobserved).unwrap_or_else(|error| panic!("{error}"))
}

fn best(tuning: &Tuning) -> String {
    tuning.found.as_ref().unwrap().best.setting.to_string()
}

const TRADE: &str = "min readers:read:mean subject to writers:write:iops >= 0.6*default";

fn trade(budget: u64) -> Search {
    let tunables =
        vec![vary("mq-deadline", "fifo_batch", &["1", "32"]), vary("queue", "nr_requests", &["4", "8", "16", "48"])];
    search(TRADE, &["none", "mq-deadline"], tunables, budget)
}

// --- results ---

#[test]
fn a_search_finds_the_best_of_an_exhaustive_comparison() {
    let search = trade(300);
    let document =
        Comparison { vary: search.vary.clone(), repeats: 8, ..search.comparison.clone() }.run(&Alone).unwrap();
    let results = Results::of(&document);
    let mean = |name: &str, label: &str| {
        let (_, operation) = results.find(&name.parse().unwrap()).unwrap();
        let variant = results.variants.iter().position(|variant| variant.label == label).unwrap();
        operation.row(variant).unwrap().estimate(name.parse::<FigureName>().unwrap().figure).mean
    };
    let least = 0.6 * mean("writers:write:iops", "mq-deadline");
    let labels = results.variants.iter().map(|variant| variant.label.as_str());
    let good = labels.filter(|label| mean("writers:write:iops", label) >= least);
    let reads = |label: &&str| mean("readers:read:mean", label);
    let exhaustive = good.min_by(|a, b| reads(a).total_cmp(&reads(b))).unwrap();
    let tuning = found(&search);
    let outcome = tuning.found.as_ref().unwrap();
    // Several settings are within the noise, so in so few runs any of them may be the best.
    assert!(reads(&best(&tuning).as_str()) <= 1.05 * reads(&exhaustive), "{exhaustive}: {}", best(&tuning));
    assert!(outcome.holds && outcome.gain.unwrap().is_better() && outcome.best.setting.text("nr_requests").is_some());
    assert_eq!(outcome.reference.setting, Setting::untouched("mq-deadline"));
    let first = &tuning.effects.iter().find(|effect| effect.scheduler.as_deref() == Some("mq-deadline")).unwrap();
    assert_eq!(first.tunable, "nr_requests", "{:?}", tuning.effects);
    assert!(tuning.front.len() > 1, "less latency costs writes: {:?}", tuning.front);
    assert_eq!(tuning.settings_possible, 4 + 15);
}

#[test]
fn a_search_names_the_schedulers_that_no_kernel_has_and_where_they_come_from() {
    let document = found(&search("min readers:read:mean", &["none", "k2", "adios"], Vec::new(), 25));
    let outside: Vec<(&str, &str)> =
        document.outside_linux.iter().map(|(name, source)| (name.as_str(), source.as_str())).collect();
    assert_eq!(outside, [("adios", "CachyOS"), ("k2", "RTSS 2019")]);
}

#[test]
fn unsatisfiable_conditions_yield_the_closest_setting() {
    let tunables = vec![vary("queue", "nr_requests", &["4", "48"])];
    let objective = "min readers:read:mean subject to writers:write:iops >= 5*none and readers:read:mean <= 1s";
    let tuning = found(&search(objective, &["mq-deadline"], tunables, 60));
    let outcome = tuning.found.as_ref().unwrap();
    assert!(!outcome.holds);
    assert!(outcome.best.margins[0].unwrap().factor < 1.0 && outcome.best.margins[1].unwrap().factor > 1.0);
    let four = Setting::untouched("mq-deadline").with("nr_requests", "4");
    assert_ne!(outcome.best.setting, four, "it has the fewest writes");
    assert!(tuning.rounds.iter().all(|round| round.settings.iter().all(|one| one.setting.scheduler == "mq-deadline")));
}

// --- reproducibility ---

#[test]
fn it_finds_the_same_with_any_number_of_threads() {
    let with = |threads| {
        let pool = rayon_core::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| found(&trade(120)))
    };
    let one = with(1);
    assert_eq!(one, with(2));
    let text = serde_json::to_string(&one).unwrap();
    assert_eq!(serde_json::to_string(&serde_json::from_str::<Tuning>(&text).unwrap()).unwrap(), text);
    let other = Search { comparison: Comparison { seed: 2, ..trade(120).comparison }, ..trade(120) };
    assert_ne!(one.runs[0].seed, found(&other).runs[0].seed);
}

/// Counts the runs that are actually carried out.
struct Counted<'a> {
    evaluator: Evaluator<'a>,
    runs: AtomicUsize,
}

impl Evaluate for Counted<'_> {
    fn figures(&self, setting: &Setting, seed: u64, runtime_ns: Option<u64>) -> Result<Figures, Error> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        self.evaluator.figures(setting, seed, runtime_ns)
    }
}

/// Ends a search after this many runs, and keeps them.
#[derive(Default)]
struct Impatient {
    after: usize,
    options: AtomicUsize,
    kept: Mutex<Vec<TuneRun>>,
}

impl SearchObserver for Impatient {
    fn goes_on(&self) -> bool {
        self.options.fetch_add(1, Ordering::Relaxed) < self.after
    }

    fn ran(&self, runs: &[TuneRun], planned: u64) {
        assert!(planned >= runs.len() as u64);
        *self.kept.lock().unwrap() = runs.to_vec();
    }
}

#[test]
fn an_ended_search_resumes_without_repeating_runs_and_finds_the_same() {
    let search = trade(120);
    let comparison = search.comparison.clone();
    let counted = Counted { evaluator: Evaluator::new(&comparison, &Alone).unwrap(), runs: AtomicUsize::new(0) };
    let whole = tune_by(&search, &Alone, &counted, Vec::new(), &Unobserved).unwrap();
    let all = counted.runs.swap(0, Ordering::Relaxed);
    assert_eq!(all, whole.runs.len());
    let impatient = Impatient { after: all / 2, ..Impatient::default() };
    let ended = tune_by(&search, &Alone, &counted, Vec::new(), &impatient).unwrap_err();
    assert!(matches!(ended, TuneError::Ended));
    let kept = impatient.kept.into_inner().unwrap();
    assert!(!kept.is_empty() && kept.len() <= all / 2);
    counted.runs.store(0, Ordering::Relaxed);
    let resumed = tune_by(&search, &Alone, &counted, kept.clone(), &Unobserved).unwrap();
    assert_eq!(resumed, whole);
    assert_eq!(counted.runs.load(Ordering::Relaxed), all - kept.len());
    // A search with a larger budget uses the same runs, too.
    counted.runs.store(0, Ordering::Relaxed);
    let larger = tune_by(&trade(400), &Alone, &counted, whole.runs.clone(), &Unobserved).unwrap();
    assert!(counted.runs.load(Ordering::Relaxed) < larger.runs.len());
}

#[test]
fn the_state_of_another_search_or_a_broken_one_is_refused_with_the_field() {
    let search = trade(120);
    let mut state = SearchState::of(&search, &Alone).unwrap();
    state.runs = found(&search).runs;
    let text = serde_json::to_string(&state).unwrap();
    let resume_from = |search: &Search, text: &str| {
        let mut fresh = SearchState::of(search, &Alone).unwrap();
        fresh.resume_from(text).map(|()| fresh.runs)
    };
    assert_eq!(resume_from(&search, &text).unwrap(), state.runs);
    assert_eq!(resume_from(&trade(500), &text).unwrap(), state.runs, "the budget may be another");
    let refused = |search: &Search, text: &str, words: &str| {
        let error = resume_from(search, text).unwrap_err();
        assert!(error.contains(words), "{error}");
    };
    let other = |change: &dyn Fn(&mut Search)| {
        let mut other = search.clone();
        change(&mut other);
        other
    };
    refused(&other(&|search| search.comparison.seed = 9), &text, "`search.comparison` differs from this search");
    refused(&other(&|search| search.vary.truncate(1)), &text, "`search.vary` differs from this search");
    refused(&other(&|search| search.objective = "min readers:read:p99".parse().unwrap()), &text, "`search.objective`");
    refused(&search, &text.replacen("tune-state/1", "tune-state/2", 1), "`format` differs from this search");
    refused(&search, &text.replacen("iodepth=4", "iodepth=5", 2), "`search.comparison` differs from this search");
    refused(&search, &text[..text.len() / 2], "EOF while parsing");
    refused(&search, &text.replacen("\"seed\":", "\"sead\":", 9), "unknown field `sead`");
    refused(
        &search,
        &text.replace("readers:read:mean\":", "readers:read:p99\":"),
        "readers:read:p99, which the objective",
    );
}

// --- the budget ---

#[test]
fn it_keeps_to_its_budget_of_runs_or_of_time() {
    for budget in [33, 60, 90, 150, 400] {
        let tuning = found(&trade(budget));
        assert!(tuning.runs.len() as u64 <= budget, "{budget}: {}", tuning.runs.len());
        let distinct: BTreeSet<_> =
            tuning.runs.iter().map(|run| (run.setting.clone(), run.seed, run.runtime_ns)).collect();
        assert_eq!(distinct.len(), tuning.runs.len());
    }
    let timed = Search { budget: Budget::VirtualNs(2_000_000_000), ..trade(1) };
    let tuning = found(&timed);
    assert!(tuning.runs.len() as u64 * 30_000_000 <= 2_000_000_000 && tuning.runs.len() > 40, "{}", tuning.runs.len());
    for little in
        [Search { budget: Budget::Runs(3), ..trade(1) }, Search { budget: Budget::VirtualNs(1000), ..trade(1) }]
    {
        let error = tune(&little, &Alone, Vec::new(), &Unobserved).unwrap_err().to_string();
        assert!(
            error.contains("`budget`") && error.contains("too little for 2 schedulers (expected at least "),
            "{error}"
        );
    }
}

/// Figures with a known cause: the distance from the best setting, plus noise that depends on the seed and the setting.
struct Valley;

impl Evaluate for Valley {
    fn figures(&self, setting: &Setting, seed: u64, runtime_ns: Option<u64>) -> Result<Figures, Error> {
        let number =
            |name: &str, usual: f64| setting.text(&Setting::file_of(name)).map_or(usual, |text| text.parse().unwrap());
        let distance = (number("fifo_batch", 16.0).max(1.0) / 64.0).ln().abs()
            + (number("writes_starved", 2.0).max(1.0) / 8.0).ln().abs();
        let of_scheduler = if setting.scheduler == "mq-deadline" { distance } else { 8.0 };
        let luck = setting
            .to_string()
            .bytes()
            .fold(seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
        // Short runs are noisier.
        let noise = if runtime_ns.is_some() { 0.1 } else { 0.02 };
        let value = 1e6 * (0.3 * of_scheduler + noise * (luck >> 11) as f64 / (1_u64 << 53) as f64).exp();
        Ok([("readers:read:p99".parse().unwrap(), value)].into())
    }
}

#[test]
fn among_thousands_the_search_nears_the_best_and_reports_what_mattered() {
    let mut search = search("min readers:read:p99", &["none", "mq-deadline", "kyber"], Vec::new(), 300);
    search.comparison.runtime_ns = Some(60_000_000_000);
    let tuning = tune_by(&search, &Alone, &Valley, Vec::new(), &Unobserved).unwrap();
    assert!(tuning.settings_possible > 10_000, "{}", tuning.settings_possible);
    assert_eq!(tuning.rounds.len(), 3);
    assert!(tuning.rounds[0].settings.len() > 40 && tuning.rounds[0].runtime_ns < tuning.rounds[1].runtime_ns);
    assert_eq!(tuning.rounds[2].runtime_ns, None);
    let seeds: Vec<BTreeSet<u64>> = tuning
        .rounds
        .iter()
        .map(|round| tuning.runs.iter().filter(|run| run.runtime_ns == round.runtime_ns).map(|run| run.seed).collect())
        .collect();
    assert!(seeds[0].is_disjoint(&seeds[1]) && seeds[1].is_disjoint(&seeds[2]), "none keeps a lead that was luck");
    let outcome = tuning.found.as_ref().unwrap();
    assert_eq!(outcome.best.setting.scheduler, "mq-deadline");
    let value = outcome.best.figures[&"readers:read:p99".parse().unwrap()].mean;
    assert!(value < 1.4e6, "{value}: {outcome:?}");
    let of_tunables: Vec<&str> =
        tuning.effects.iter().filter_map(|effect| effect.scheduler.as_ref().map(|_| &*effect.tunable)).collect();
    assert!(of_tunables.contains(&"fifo_batch") && of_tunables.contains(&"writes_starved"), "{:?}", tuning.effects);
    assert_eq!(tuning.effects[0].tunable, "scheduler", "{:?}", tuning.effects);
    assert!(
        of_tunables.iter().filter(|name| !["fifo_batch", "writes_starved"].contains(name)).count() < 2,
        "{of_tunables:?}"
    );
}

// --- other evaluators ---

#[test]
fn another_sampler_can_ask_for_figures_of_any_setting() {
    let search = trade(1);
    let evaluator = Evaluator::new(&search.comparison, &Alone).unwrap();
    assert_eq!(evaluator.schedulers().collect::<Vec<_>>(), ["none", "mq-deadline"]);
    let setting = Setting::untouched("mq-deadline").with("iosched/fifo_batch", "1");
    let run = evaluator.run(&setting, 7, None).unwrap();
    assert_eq!((run.seed, &run.tunables["fifo_batch"]), (7, &1.into()));
    assert_eq!(run.figures(), evaluator.figures(&setting, 7, None).unwrap());
    assert!(run.figures()[&"writers:write:bandwidth".parse().unwrap()] > 0.0);
    let refuse = |setting: Setting, words: &str| {
        let error = evaluator.figures(&setting, 7, None).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refuse(Setting::untouched("kyber"), "is not among the compared schedulers (expected one of none, mq-deadline)");
    refuse(setting.clone().with("iosched/fifo_batch", "x"), "fifo_batch");
    refuse(setting.with("nr_requests", "x"), "whole number");
}

#[test]
fn a_search_can_be_written_down_and_read_again() {
    let search = trade(9);
    let text = serde_json::to_string(&search).unwrap();
    assert!(text.contains(r#""budget":{"runs":9}"#) && text.contains(&format!("\"objective\":\"{TRADE}\"")), "{text}");
    assert_eq!(serde_json::from_str::<Search>(&text).unwrap(), search);
}

// --- refusals ---

#[test]
fn an_impossible_search_is_refused_with_the_available_options() {
    #[track_caller]
    fn refused(search: Search, field: Field, words: &[&str]) {
        match tune(&search, &Alone, Vec::new(), &Unobserved) {
            Err(TuneError::Cannot(error)) => {
                assert!(words.iter().all(|words| error.message.contains(words)), "{error}");
                assert_eq!(error.field, field, "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
    let with = |objective: &str, tunables: Vec<Vary>| search(objective, &["none", "mq-deadline"], tunables, 90);
    let tunable = |of: &str, name: &str, texts: &[&str]| with("min readers:read:p99", vec![vary(of, name, texts)]);
    refused(
        with("min reader:read:p99", vec![]),
        Field::Objective,
        &["no job \"reader\" (did you mean \"readers\"?", "writers"],
    );
    let sync = with("min readers:sync:p99", vec![vary("mq-deadline", "fifo_batch", &["1"])]);
    refused(sync, Field::Objective, &["readers:sync:p99: no such I/O happened", "readers:read", "writers:write"]);
    let unknown = with("min readers:read:p99 subject to writers:write:iops >= 0.9*nonee", vec![]);
    refused(unknown, Field::Objective, &["no scheduler \"nonee\" (did you mean \"none\"?"]);
    refused(tunable("mq-deadline", "fifo_bach", &[]), Field::Vary, &["did you mean \"fifo_batch\"?"]);
    refused(tunable("mq-deadline", "fifo_batch", &["x"]), Field::Vary, &["expected 0 to 2147483647"]);
    refused(tunable("bfq", "slice_idle", &["0"]), Field::Vary, &["bfq is not among the compared schedulers"]);
    refused(tunable("queue", "wbt_lat_usec", &[]), Field::Vary, &["expected some values"]);
    let twice = vec![vary("mq-deadline", "fifo_batch", &["1"]), vary("mq-deadline", "fifo_batch", &["2"])];
    refused(with("min readers:read:p99", twice), Field::Vary, &["fifo_batch=2", "fifo_batch=1 was already given"]);
    let mut several = with("min readers:read:p99", vec![]);
    several.comparison.kernels = vec!["4.19".to_owned(), "6.18".to_owned()];
    refused(several, Field::Kernels, &["expected one device, host and kernel"]);
    let mut endless = with("min readers:read:p99", vec![]);
    endless.comparison.load = Load::text("[readers]\nfilename=/dev/sda\ndirect=1\nrw=randread\nsize=1m\n");
    endless.budget = Budget::VirtualNs(1_000_000_000_000);
    refused(endless, Field::Budget, &["not bounded by time (expected a number of runs"]);
    assert!("min a:read:p99".parse::<Objective>().is_ok());
}

// --- io.cost and io.latency ---

fn etcd(io_cost: &[&str], vary: Vec<Vary>, budget: u64) -> Search {
    let comparison = Comparison {
        load: Load::Scenario("etcd-beside-pods".to_owned()),
        schedulers: vec!["none".to_owned()],
        io_cost: io_cost.iter().map(|&text| text.to_owned()).collect(),
        runtime_ns: Some(1_000_000_000),
        ramp_ns: Some(100_000_000),
        ..Comparison::default()
    };
    Search { comparison, vary, objective: "min etcd:write:mean".parse().unwrap(), budget: Budget::Runs(budget) }
}

#[test]
fn a_search_of_io_cost_finds_a_setting_that_is_at_least_as_good_as_the_default_again_and_again() {
    let search = etcd(&["enable=1"], vec![vary("io.cost", "qos", &[])], 40);
    let document = found(&search);
    assert_eq!(document.settings_possible, 4 * 4 * 3 * 3 * 3 * 3);
    let outcome = document.found.as_ref().unwrap();
    let mean = |result: &hoistway_answer::tuning::SettingResult| result.figures[&search.objective.figure].mean;
    assert!(mean(&outcome.best) <= mean(&outcome.reference), "{outcome:?}");
    assert!(outcome.gain.unwrap().is_better() && outcome.best.setting.cgroup_files().count() > 0, "{outcome:?}");
    assert_eq!(outcome.reference.setting, Setting::untouched("none"));
    let [writes] = &document.cgroup_writes[..] else { panic!("{:?}", document.cgroup_writes) };
    let is_default = |line: &String| line.contains("rpct=95.00 rlat=75000 wpct=95.00 wlat=150000 min=50.00 max=150.00");
    assert!(writes.back.iter().any(is_default) && !writes.now.iter().any(is_default), "{writes:?}");
    assert_eq!(found(&search), document, "the same seed");
    document.check().unwrap();
}

#[test]
fn searched_settings_of_cgroups_run_as_a_comparison_runs_them() {
    let varied = vec![vary("io.cost", "qos.min", &["20"]), vary("io.cost", "qos.max", &["40"])];
    let search = etcd(&["enable=1 min=10 wpct=0"], varied.clone(), 40);
    let setting = Setting::untouched("none").with("io.cost.qos.max", "40").with("io.cost.qos.min", "20");
    let figures = Evaluator::new(&search.comparison, &Alone).unwrap().figures(&setting, 7, None).unwrap();
    let comparison = Comparison { vary: varied, ..search.comparison.clone() };
    let compared = comparison.run(&Alone).unwrap();
    let has_both = |run: &&hoistway_answer::document::Run| {
        let value = |name: &str| run.variant.settings.get(name).and_then(serde_json::Value::as_i64);
        (value("io.cost.qos.min"), value("io.cost.qos.max")) == (Some(20), Some(40))
    };
    let compared = compared.runs.iter().find(has_both).unwrap();
    let again = Evaluator::new(&search.comparison, &Alone).unwrap().figures(&setting, compared.seed, None).unwrap();
    assert_eq!(again[&search.objective.figure], compared.figures()[&search.objective.figure]);
    assert_ne!(figures, again, "another seed");
}

#[test]
fn what_cannot_be_searched_of_cgroups_is_refused() {
    let refusal = |search: &Search| match tune(search, &Alone, Vec::new(), &Unobserved) {
        Err(TuneError::Cannot(error)) => error,
        other => panic!("{other:?}"),
    };
    let rates = vec![vary("io.cost", "qos.min", &["60", "90"]), vary("io.cost", "qos.max", &["70"])];
    for (io_cost, vary, words) in [
        (&[][..], vec![vary("io.cost", "qos", &[])], "io.cost is off in all runs"),
        (&["enable=0"], vec![vary("io.cost", "qos.max", &["50"])], "io.cost is off in all runs"),
        (&["enable=1"], vec![vary("io.cost", "model.rbps", &[])], "expected values"),
        (&["enable=1"], vec![vary("io.cost", "qos.speed", &["5"])], "expected enable, ctrl, rpct"),
        (&["enable=1"], vec![vary("io.cost", "qos", &[]), vary("io.cost", "qos.max", &["50"])], "was already given"),
        (&["enable=1"], rates, "expected min up to max"),
        (&[], vec![vary("io.latency", "kubepods/etcd.target", &[])], "expected values"),
        (&[], vec![vary("io.latency", "nobody.target", &["5"])], "no job is in cgroup"),
    ] {
        let error = refusal(&etcd(io_cost, vary, 40));
        assert!(error.field == Field::Vary && error.message.contains(words), "{error}");
    }
}
