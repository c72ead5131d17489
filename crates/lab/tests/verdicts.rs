//! What a verdict may never do, over all bundled loads, on several devices and kernels, and whatever is done to the documents that
//! changes nothing.

use std::sync::OnceLock;

use hoistway_lab::{Alone, Comparison, Guests, Load, scenarios};
use hoistway_legacy::all_schedulers;
use hoistway_results::document::{Decision, LatencySummary, Outcome, Run, Verdict};
use hoistway_results::verdict::verdicts;
use hoistway_results::{Comparison as Results, Figure, ResultsDocument};

/// Devices and kernels. Without a device it is the one that the load is typical of.
const PLACES: [(Option<&str>, &str); 4] =
    [(None, "7.2"), (Some("hgst-he10-8tb"), "5.10"), (Some("intel-s3520-1600gb"), "4.19"), (Some("nvme"), "4.4")];

fn compared(load: &str, device: Option<&str>, kernel: &str) -> ResultsDocument {
    let page = scenarios::named(load).unwrap().page;
    let in_guests = !page.guest_schedulers.is_empty();
    Comparison {
        load: Load::Scenario(load.to_owned()),
        devices: device.into_iter().map(Into::into).collect(),
        kernels: vec![kernel.to_owned()],
        // Those that the kernel lacks take part, to be left out.
        schedulers: if in_guests { vec!["none".to_owned(), "bfq".to_owned()] } else { vec!["all".to_owned()] },
        guests: Guests { schedulers: page.guest_schedulers.into_iter().take(2).collect(), ..Guests::default() },
        runtime_ns: Some(100_000_000),
        ramp_ns: Some(0),
        repeats: 3,
        ..Comparison::default()
    }
    .run(&Alone)
    .unwrap_or_else(|error| panic!("{load} on {device:?}, Linux {kernel}: {error}"))
}

/// Every load at every place, with words for it.
fn documents() -> &'static [(String, ResultsDocument)] {
    static DOCUMENTS: OnceLock<Vec<(String, ResultsDocument)>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let of = |name: &'static str| {
            // Guests have only schedulers of the multi-queue block layer here.
            let is_new = move |kernel: &str| name != "guests" || kernel != "4.4";
            let places = PLACES.into_iter().filter(move |(_, kernel)| is_new(kernel));
            places.map(move |(device, kernel)| {
                (format!("{name} on {device:?}, Linux {kernel}"), compared(name, device, kernel))
            })
        };
        scenarios::names().flat_map(of).collect()
    })
}

fn verdict(document: &ResultsDocument) -> Verdict {
    let mut verdicts = verdicts(document);
    assert_eq!(verdicts.len(), 1);
    verdicts.remove(0)
}

/// Who is better than whom is recommended at everything: each figure of each operation of each job, in every run, by more than the
/// smallest effect.
fn better_at_everything(document: &ResultsDocument) -> Vec<String> {
    let comparison = Results::of(document);
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

/// What a verdict says, but for figures, which are sums in another order.
fn outcomes(verdict: &Verdict) -> (Decision, &str, Vec<(&str, Outcome, usize)>) {
    let mut candidates: Vec<_> =
        verdict.candidates.iter().map(|one| (one.scheduler.as_str(), one.outcome, one.losses.len())).collect();
    candidates.sort_by_key(|(scheduler, ..)| *scheduler);
    (verdict.decision, &verdict.recommended, candidates)
}

/// The document with its runs in another order.
fn permuted(document: &ResultsDocument, by: usize) -> ResultsDocument {
    let mut permuted = document.clone();
    if document.default_scheduler.is_none() {
        // Without a default, others are compared with the first.
        permuted.baseline = Some(verdict(document).reference);
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

/// The document of a world whose time goes slower: a power of two, so that nothing is rounded but halves of nanoseconds.
fn slower(document: &ResultsDocument, by: u64) -> ResultsDocument {
    let mut slower = document.clone();
    let latency = |summary: &mut LatencySummary| {
        summary.mean *= by as f64;
        for figure in [&mut summary.p50, &mut summary.p99, &mut summary.p99_9, &mut summary.max] {
            *figure *= by;
        }
    };
    for job in slower.runs.iter_mut().flat_map(|run| &mut run.jobs) {
        for direction in &mut job.directions {
            direction.iops /= by as f64;
            direction.bytes_per_second /= by as f64;
            latency(&mut direction.lat_ns);
        }
        if let Some(sync) = &mut job.sync {
            sync.syncs_per_second /= by as f64;
            latency(&mut sync.lat_ns);
        }
    }
    slower
}

#[test]
fn nobody_is_recommended_who_is_worse_than_another_at_everything_however_the_document_is_turned() {
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
fn the_order_of_runs_and_the_unit_of_time_change_no_verdict_and_more_of_the_same_takes_none_back() {
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
        if was.decision == Decision::Change {
            assert_eq!(verdict(&doubled(document)).decision, Decision::Change, "{of}, doubled");
        }
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
        let is_new = ["7.2", "5.10"].contains(&document.kernel.as_str());
        assert_eq!(
            lacking > 0,
            is_new && document.guests.is_none(),
            "{of}: {lacking} runs of schedulers that it lacks"
        );
    }
}

#[test]
fn that_there_was_no_choice_is_said_only_where_hardly_a_request_waited() {
    let waited = |document: &ResultsDocument| {
        let runs = document.runs.iter().filter(|run| run.scheduler != "none" && run.ran_as.is_none());
        let (choices, ios) = runs.fold((0, 0), |(choices, ios), run| {
            (choices + run.disks.iter().filter_map(|disk| disk.choices).sum::<u64>(), ios + run.simulated_ios)
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
