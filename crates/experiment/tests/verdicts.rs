//! Properties of verdicts over all bundled loads, devices and kernels, and under transformations of documents that must not
//! change a verdict.
//!
//! Each load runs on some of the devices and kernels, in rotation; with `HOISTWAY_PLACES=all` each runs on all of them.

use std::sync::OnceLock;

use hoistway_answer::document::{Decision, LatencySummary, Outcome, Run, Verdict};
use hoistway_answer::verdict::verdicts;
use hoistway_answer::{Analysis, Figure, ResultsDocument};
use hoistway_blk::ground::Kernel;
use hoistway_device::Preset;
use hoistway_experiment::{Alone, Comparison, Guests, Load, scenarios};
use hoistway_legacy::all_schedulers;

/// Devices fast enough for many I/Os in a short time.
const FAST: [&str; 5] = ["intel-p4800x-375gb", "micron-9100-1600gb", "null", "raid-64-queues", "samsung-980pro-1tb"];

/// The name of the example in these tests.
const EXAMPLE: &str = "the example";

/// The setup of a load. Without a device: the one that is typical for the load.
#[derive(Clone, Copy, Debug)]
struct Place {
    device: Option<&'static str>,
    kernel: Kernel,
}

/// The setups of the load with this number: devices with kernels in rotation, and kernels on its own device.
fn places(load: usize) -> impl Iterator<Item = Place> {
    const TURNS: usize = 12;
    let is_all = std::env::var_os("HOISTWAY_PLACES").is_some_and(|places| places == "all");
    let dealt = Kernel::EXAMPLES.into_iter().cycle().skip(load);
    let devices = Preset::builtin_names().zip(dealt).map(|(device, kernel)| Place { device: Some(device), kernel });
    let all = devices.chain(Kernel::EXAMPLES.map(|kernel| Place { device: None, kernel }));
    let is_its_turn = move |number: usize| is_all || number % TURNS == load % TURNS;
    all.enumerate().filter(move |&(number, _)| is_its_turn(number)).map(|(_, place)| place)
}

fn is_guests(load: &str) -> bool {
    scenarios::named(load).is_some_and(|scenario| !scenario.page.guest_schedulers.is_empty())
}

fn compared(load: &str, Place { device, kernel }: Place) -> ResultsDocument {
    let page = scenarios::named(load).map(|scenario| scenario.page);
    let guest_schedulers = page.as_ref().map(|page| page.guest_schedulers.clone()).unwrap_or_default();
    let runs_on = device.or(page.as_ref().map(|page| page.device.as_str()));
    let runtime_ms = if runs_on.is_some_and(|device| FAST.contains(&device)) { 20 } else { 150 };
    Comparison {
        load: if load == EXAMPLE { Load::Example } else { Load::Scenario(load.to_owned()) },
        devices: device.into_iter().map(Into::into).collect(),
        kernels: vec![kernel.to_string()],
        // Schedulers that the kernel lacks are included, and must not be recommended.
        schedulers: if is_guests(load) { vec!["none".to_owned(), "bfq".to_owned()] } else { vec!["all".to_owned()] },
        guests: Guests { schedulers: guest_schedulers.into_iter().take(2).collect(), ..Guests::default() },
        runtime_ns: Some(runtime_ms * 1_000_000),
        ramp_ns: Some(0),
        repeats: 3,
        ..Comparison::default()
    }
    .run(&Alone)
    .unwrap_or_else(|error| panic!("{load} on {device:?}, Linux {kernel}: {error}"))
}

/// Every load on all its setups, with a description.
fn documents() -> &'static [(String, ResultsDocument)] {
    static DOCUMENTS: OnceLock<Vec<(String, ResultsDocument)>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let of = |(number, load): (usize, &'static str)| {
            // Guests run multi-queue schedulers only.
            let is_new = move |place: &Place| !is_guests(load) || place.kernel != Kernel::V4_4;
            let shown = move |Place { device, kernel }: Place| {
                format!("{load} on {}, Linux {kernel}", device.unwrap_or("its own device"))
            };
            places(number).filter(is_new).map(move |place| (shown(place), compared(load, place)))
        };
        scenarios::names().chain([EXAMPLE]).enumerate().flat_map(of).collect()
    })
}

fn verdict(document: &ResultsDocument) -> Verdict {
    let mut verdicts = verdicts(&Analysis::of(document));
    assert_eq!(verdicts.len(), 1);
    verdicts.remove(0)
}

/// The variants that are better than the recommended one at everything: each figure of each operation of each job, in every run, by
/// more than the smallest effect.
fn better_at_everything(document: &ResultsDocument) -> Vec<String> {
    let comparison = Analysis::of(document);
    let recommended = verdict(document).recommended;
    let of = comparison.variants.iter().position(|variant| variant.label == recommended).unwrap();
    let operations = || comparison.jobs.iter().flat_map(|job| &job.operations);
    let is_better = |one: usize| {
        operations().next().is_some()
            && operations().all(|operation| {
                let (Some(one), Some(other)) = (operation.row(one), operation.row(of)) else { return false };
                Figure::ALL.into_iter().filter(|figure| figure.is_of(operation.operation)).all(|figure| {
                    one.samples().zip(other.samples()).all(|(one, other)| {
                        let ratio = one.figure(figure) / other.figure(figure);
                        if figure.higher_is_better() { ratio > 1.02 } else { ratio < 0.98 }
                    })
                })
            })
    };
    let others = (0..comparison.variants.len()).filter(|one| *one != of);
    let of_kernel = others.filter(|one| comparison.variants[*one].first().ran_as.is_none());
    of_kernel.filter(|one| is_better(*one)).map(|one| comparison.variants[one].label.clone()).collect()
}

/// A verdict without its figures, which may differ by rounding when sums are in another order.
fn outcomes(verdict: &Verdict) -> (Decision, &str, Vec<(&str, Outcome, usize)>) {
    let mut candidates: Vec<_> =
        verdict.candidates.iter().map(|one| (one.scheduler.as_str(), one.outcome, one.losses.len())).collect();
    candidates.sort_by_key(|(scheduler, ..)| *scheduler);
    (verdict.decision, &verdict.recommended, candidates)
}

/// The document with its runs in another order.
fn permuted(document: &ResultsDocument, by: usize) -> ResultsDocument {
    let mut permuted = document.clone();
    let reference = verdict(document).reference;
    let reference = reference.trim_end_matches(" (legacy)");
    if document.guests.is_some() || document.default_scheduler.as_deref() != Some(reference) {
        // Of several guests over the default, or where the default is not compared, the reference is the first, which is named here
        // as `--baseline` names it.
        permuted.baseline = Some(reference.to_owned());
    }
    let count = permuted.runs.len();
    permuted.runs.sort_by_key(|run| run.scheduler.len() * by % 7);
    permuted.runs.rotate_left(by % count);
    permuted
}

/// The document with each run twice, as two repeats.
fn doubled(document: &ResultsDocument) -> ResultsDocument {
    let again = document.runs.iter().map(|run| Run { repeat: run.repeat + 100, ..run.clone() });
    ResultsDocument { runs: document.runs.iter().cloned().chain(again).collect(), ..document.clone() }
}

/// The document with all times scaled by a power of two, so that nothing is rounded except halves of nanoseconds.
fn slower(document: &ResultsDocument, by: u64) -> ResultsDocument {
    let mut slower = document.clone();
    let latency = |summary: &mut LatencySummary| {
        summary.mean *= by as f64;
        for figure in [&mut summary.p50, &mut summary.p99, &mut summary.p99_9, &mut summary.max] {
            *figure *= by;
        }
        if let Some(by_time) = &mut summary.by_time {
            by_time.judged_ns *= by as f64;
            by_time.mean_ns *= by as f64;
        }
    };
    for job in slower.runs.iter_mut().flat_map(|run| &mut run.jobs) {
        for operation in &mut job.operations {
            operation.iops /= by as f64;
            operation.bytes_per_second /= by as f64;
            latency(&mut operation.lat_ns);
        }
    }
    slower
}

#[test]
fn no_transformed_document_recommends_a_scheduler_worse_at_everything() {
    for (of, document) in documents() {
        for (how, document) in [
            ("as it is", document.clone()),
            ("permuted", permuted(document, 5)),
            ("doubled", doubled(document)),
            ("slower", slower(document, 8)),
        ] {
            assert_eq!(better_at_everything(&document), [""; 0], "{of}, {how}: {}", verdict(&document).recommended);
        }
    }
}

#[test]
fn the_order_of_runs_and_the_unit_of_time_change_no_verdict() {
    for (of, document) in documents() {
        let was = verdict(document);
        for by in [1, 3, 4] {
            assert_eq!(outcomes(&verdict(&permuted(document, by))), outcomes(&was), "{of}, permuted by {by}");
        }
        let is = verdict(&slower(document, 4));
        assert_eq!(
            (is.decision, &is.recommended, is.focus),
            (was.decision, &was.recommended, was.focus.clone()),
            "{of}, slower"
        );
    }
}

#[test]
fn only_schedulers_of_the_kernel_are_judged() {
    for (of, document) in documents() {
        let (verdict, kernel) = (verdict(document), document.kernel.parse().unwrap());
        let labels = verdict.candidates.iter().map(|candidate| &candidate.scheduler).chain([&verdict.recommended]);
        for label in labels {
            let host = label.rsplit("-over-").next().unwrap().trim_end_matches(" (legacy)");
            assert!(all_schedulers().find(host).unwrap().exists_in(kernel), "{of}: {label}");
        }
        let lacking = document.runs.iter().filter(|run| run.ran_as.is_some()).count();
        let lacks_old = !all_schedulers().find("cfq").unwrap().exists_in(kernel);
        assert_eq!(
            lacking > 0,
            lacks_old && document.guests.is_none(),
            "{of}: {lacking} runs of schedulers that it lacks"
        );
    }
}

#[test]
fn the_recommended_scheduler_is_better_on_balance_beyond_the_noise() {
    let mut changes = 0;
    for (of, document) in documents() {
        let verdict = verdict(document);
        let recommended = verdict.candidates.iter().find(|candidate| candidate.scheduler == verdict.recommended);
        assert_eq!(verdict.decision == Decision::Change, recommended.is_some(), "{of}");
        let Some(candidate) = recommended else { continue };
        changes += 1;
        let balance = candidate.balance.unwrap();
        assert!(balance.low.unwrap() > 1.0 && balance.factor >= 1.02, "{of}: {balance:?}");
        assert!(matches!(candidate.outcome, Outcome::Better | Outcome::BetterElsewhere), "{of}: {candidate:?}");
    }
    assert!(changes >= 5 && changes < documents().len(), "{changes} of {}", documents().len());
}

#[test]
fn no_choice_is_reported_only_where_hardly_a_request_waited() {
    let waited = |document: &ResultsDocument| {
        let runs = document.runs.iter().filter(|run| run.scheduler != "none" && run.ran_as.is_none());
        let (choices, ios) = runs.fold((0, 0), |(choices, ios), run| {
            let of_disks = run.disks.iter().map(|disk| disk.choices.unwrap() + disk.read_merges + disk.write_merges);
            (choices + of_disks.sum::<u64>(), ios + run.simulated_ios)
        });
        choices * 1000 >= ios
    };
    for (of, document) in documents() {
        assert_eq!(verdict(document).had_a_choice, Some(waited(document)), "{of}");
    }
    assert!(documents().iter().filter(|(_, document)| waited(document)).count() > documents().len() / 2);
    // One process that waits for each of its reads, on an idle drive.
    let job = "[one]\nfilename=/dev/nvme0n1\ndirect=1\nrw=randread\nioengine=sync\ntime_based\nruntime=50ms\n";
    let alone = Comparison { load: Load::text(job), devices: vec!["nvme".into()], repeats: 3, ..Comparison::default() };
    assert_eq!(verdict(&alone.run(&Alone).unwrap()).had_a_choice, Some(false));
}

#[test]
fn who_asks_for_a_rate_is_judged_by_its_waits_and_not_by_that_rate() {
    let job = "[global]\ndirect=1\nioengine=libaio\nfilename=/dev/nvme0n1\ntime_based\nruntime=1s\n\
               [etcd]\nrw=write\nbs=4k\nfdatasync=1\nrate_iops=50\n\
               [pods]\nrw=randrw\nbs=64k\niodepth=32\nnumjobs=4\ncgroup=pods\ncgroup_weight=50\n";
    let asked = Comparison { load: Load::text(job), devices: vec!["nvme".into()], repeats: 3, ..Comparison::default() };
    let figure = verdict(&asked.run(&Alone).unwrap()).focus[0].figure.to_string();
    let is_wait = [":mean", ":p99"].iter().any(|end| figure.ends_with(end));
    assert!(figure.starts_with("etcd:") && is_wait, "{figure}");
}

#[test]
fn weights_of_cgroups_and_guests_that_were_set_are_votes() {
    let decision = |weights: Option<[u32; 2]>, in_guests: bool| {
        let of = |section: &str, weight: Option<u32>| {
            let cgroup =
                weight.filter(|_| !in_guests).map(|weight| format!("cgroup={section}\ncgroup_weight={weight}\n"));
            let file = if in_guests { section } else { "sda" };
            format!("[{section}]\nfilename=/dev/{file}\n{}", cgroup.unwrap_or_default())
        };
        let [gold, bronze] = [0, 1].map(|which| weights.map(|weights| weights[which]));
        let head = "[global]\ndirect=1\nioengine=libaio\niodepth=4\nrw=randread\nbs=4k\ntime_based\nruntime=1s\n";
        let job = format!("{head}{}{}numjobs=4\n", of("gold", gold), of("bronze", bronze));
        let mut asked = Comparison {
            load: Load::text(&job),
            devices: vec!["sata-ssd".into()],
            schedulers: vec!["mq-deadline".into(), "bfq".into()],
            repeats: 3,
            ..Comparison::default()
        };
        if in_guests {
            asked.guests.schedulers = vec!["none".into()];
            let pairs = weights.into_iter().flat_map(|[gold, bronze]| [("/dev/gold", gold), ("/dev/bronze", bronze)]);
            asked.guests.weights = pairs.map(|(file, weight)| (file.to_owned(), weight)).collect();
        }
        let document = asked.run(&Alone).unwrap();
        let verdict = verdict(&document);
        (verdict.recommended, verdict.focus[0].figure.job.clone())
    };
    let expected = |recommended: &str, job: &str| (recommended.to_owned(), job.to_owned());
    assert_eq!(decision(None, false).0, "mq-deadline");
    assert_eq!(decision(Some([800, 100]), false), expected("bfq", "gold"));
    assert_eq!(decision(Some([100, 800]), false).1, "bronze");
    assert_eq!(decision(None, true).0, "none-over-mq-deadline");
    assert_eq!(decision(Some([800, 100]), true), expected("none-over-bfq", "gold"));
}
