//! `--report` and `hoistway report`: HTML reports.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::tempdir;

use crate::browser::{Theme, visited};
use crate::support::{hoistway, printed, refused, repeatable, succeeded};

/// Readers and writers that slow each other down, and commits.
const LOAD: &str = "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\nbs=4k\nruntime=300ms\ntime_based\n\
                    [readers]\nrw=randread\niodepth=2\nnumjobs=2\n[writers]\nrw=randwrite\niodepth=40\nfsync=64\n";

/// Runs a comparison with these options; returns the page and the document.
fn reported(folder: &Path, load: &str, options: &[&str]) -> (String, Value) {
    fs::write(folder.join("load.fio"), load).unwrap();
    let arguments = ["compare", "load.fio", "--format", "json", "--report", "page.html"];
    let mut command = hoistway();
    command.current_dir(folder).args(arguments).args(options);
    if !options.contains(&"--repeat") {
        command.args(["--repeat", "1"]);
    }
    let results = succeeded(&mut command);
    fs::write(folder.join("results.json"), &results).unwrap();
    (fs::read_to_string(folder.join("page.html")).unwrap(), serde_json::from_str(&results).unwrap())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// Formats a latency in ns as in tables.
fn ns_of(cell: &str) -> f64 {
    let mut words = cell.split(' ');
    let number: f64 = words.next().unwrap().parse().unwrap();
    number
        * [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)]
            .iter()
            .find(|(unit, _)| Some(*unit) == words.clone().next())
            .unwrap()
            .1
}

#[test]
fn what_was_left_out_is_shaded_before_the_measured_time() {
    let folder = tempdir().unwrap();
    let late = LOAD.replace("[writers]\n", "[writers]\nstartdelay=150ms\n");
    let (page, document) = reported(folder.path(), &late, &["--schedulers", "none", "--device", "sata-ssd"]);
    let from = document["window"]["from_seconds"].as_f64().unwrap();
    assert!(from >= 0.15, "{}", document["window"]);
    // The first pixel of the plot is of a time that was left out, the last one is not.
    let visit = "const chart = [...document.querySelectorAll('#charts .chart')].find((one) => one.dataset.kind === 'iops').chart; \
                 const { left, top, width, height } = chart.bbox; \
                 const at = (x) => [...chart.ctx.getImageData(x, top + height - 5, 1, 1).data]; \
                 return { text: document.getElementById('charts').innerText, first: chart.data[0][0], begin: chart.scales.x.min, \
                 shaded: at(left + 3), measured: at(left + width - 3) }";
    let Some(seen) = visited(&page, 1200, Theme::Light, visit) else { return };
    assert_eq!(seen.complaints, json!([]));
    let answer = seen.answer;
    assert!(answer["text"].as_str().unwrap().contains("is shaded"), "{answer}");
    assert!(answer["first"].as_f64().unwrap() > from && answer["begin"] == json!(0), "{answer}");
    assert_ne!(answer["shaded"], answer["measured"], "{answer}");
}

#[test]
fn the_page_of_a_recording_draws_the_recorded_series_beside_the_runs() {
    let folder = tempdir().unwrap();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/block/data/sqlite-commits.blktrace.0.gz");
    let options = ["--device", "sata-ssd", "--schedulers", "none", "--repeat", "1", "--report", "page.html"];
    succeeded(hoistway().current_dir(folder.path()).args(["compare", recording]).args(options));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    let visit = "const charts = [...document.querySelectorAll('#charts .chart')].filter((one) => one.chart); \
                 const recorded = charts.map((one) => one.chart.series.findIndex((line) => line.label === 'recorded')); \
                 return { legend: document.getElementById('variants').innerText, kinds: charts.map((one) => one.dataset.kind), recorded, \
                 points: charts.map((one, at) => recorded[at] < 0 ? 0 : one.chart.data[recorded[at]].filter((y) => y != null).length) }";
    let Some(seen) = visited(&page, 1200, Theme::Light, visit) else { return };
    assert_eq!(seen.complaints, json!([]));
    assert!(seen.answer["legend"].as_str().unwrap().contains("recorded"), "{}", seen.answer);
    let [kinds, recorded, points] = ["kinds", "recorded", "points"].map(|key| list(&seen.answer[key]).to_vec());
    assert!(kinds.contains(&json!("iops")), "{kinds:?}");
    for ((kind, line), points) in kinds.iter().zip(recorded).zip(points) {
        // A chart of latencies by percentile has no recorded line; in one over time it follows the lines of the only
        // variant.
        let expected = if kind == "latency" { -1 } else { 2 };
        assert_eq!(line, expected, "{kind}");
        assert_eq!(points.as_u64() > Some(9), kind != "latency", "{points} points of {kind}");
    }
}

#[test]
fn the_page_shows_everything_without_a_complaint_and_fetches_nothing() {
    let folder = tempdir().unwrap();
    let (page, document) = reported(folder.path(), LOAD, &["--repeat", "3"]);
    let visit = "return { text: document.body.innerText, canvases: document.querySelectorAll('canvas').length, \
                 drawn: [...document.querySelectorAll('#charts .chart')].filter((one) => one.chart).length, \
                 open: document.querySelectorAll('details.charts[open]').length, \
                 theme: document.documentElement.dataset.theme, wide: document.documentElement.scrollWidth, \
                 back: getComputedStyle(document.body).backgroundColor }";
    for (prefers, width, back) in [(Theme::Light, 1200, "rgb(255, 255, 255)"), (Theme::Dark, 360, "rgb(20, 23, 27)")] {
        let Some(seen) = visited(&page, width, prefers, visit) else { return };
        assert_eq!(seen.complaints, json!([]));
        let text = seen.answer["text"].as_str().unwrap();
        for sentence in list(&document["conclusion"]) {
            assert!(text.contains(sentence.as_str().unwrap()), "{sentence} is not in {text}");
        }
        assert_eq!(seen.answer["back"], back);
        assert_eq!(seen.answer["theme"], format!("{prefers:?}").to_lowercase());
        // Reads of the readers have three charts, commits of the writers are closed or have one.
        assert_eq!(seen.answer["open"], 2);
        assert_eq!(seen.answer["drawn"], 6);
        assert_eq!(seen.answer["canvases"], 6 + 2);
        assert!(seen.answer["wide"].as_u64().unwrap() <= u64::from(width), "wider than a screen of {width}");
    }
}

#[test]
fn the_theme_can_be_switched_and_charts_follow() {
    let folder = tempdir().unwrap();
    let (page, _) = reported(folder.path(), LOAD, &[]);
    let visit = "const colour = () => document.querySelector('.chart').chart.series[1].stroke(); \
                 const before = colour(); document.getElementById('theme').click(); \
                 return [before, colour(), document.documentElement.dataset.theme]";
    let Some(seen) = visited(&page, 900, Theme::Light, visit) else { return };
    assert_eq!((&seen.answer, &seen.complaints), (&json!(["#0b62c4", "#6fb1ff", "dark"]), &json!([])));
}

#[test]
fn numbers_in_the_page_are_those_of_the_document() {
    let folder = tempdir().unwrap();
    let (page, document) = reported(folder.path(), LOAD, &["--repeat", "2"]);
    let visit = "document.querySelectorAll('details.charts').forEach((part) => { part.open = true; drawCharts(part, \
                 JSON.parse(document.getElementById('data').textContent)); }); \
                 const rows = [...document.querySelectorAll('#comparison table')].flatMap((table) => \
                 [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent))); \
                 const charts = [...document.querySelectorAll('.chart')].map((one) => \
                 [one.closest('details').querySelector('summary').textContent, one.dataset.kind, one.chart.data]); \
                 return { rows, charts }";
    let Some(seen) = visited(&page, 1200, Theme::Light, visit) else { return };
    assert_eq!(seen.complaints, json!([]));
    let rows = list(&document["statistics"]["rows"]);
    assert_eq!(list(&seen.answer["rows"]).len(), rows.len());
    for (shown, row) in list(&seen.answer["rows"]).iter().zip(rows) {
        assert_eq!((&shown[0], &shown[1]), (&row["scheduler"], &row["operation"]));
        for (column, figure) in [(5, "lat_mean_ns"), (7, "lat_p50_ns"), (8, "lat_p99_ns"), (10, "lat_max_ns")] {
            let (shown, known) =
                (ns_of(shown[column].as_str().unwrap()), row["figures"][figure]["mean"].as_f64().unwrap());
            assert!((shown / known - 1.0).abs() <= 0.005, "{figure} of {row}: {shown}");
        }
    }
    // Charts: p99 of each scheduler is the table's, and the I/Os over time are those of the first run.
    let of = |title: &str, kind: &str| {
        list(&seen.answer["charts"]).iter().find(|chart| chart[0] == title && chart[1] == kind).unwrap()[2].clone()
    };
    let schedulers: Vec<&str> =
        list(&document["runs"])[..4].iter().map(|run| run["scheduler"].as_str().unwrap()).collect();
    let (latency, iops) = (of("readers: read", "latency"), of("readers: read", "iops"));
    let p99 = list(&latency[0]).iter().position(|nines| (nines.as_f64().unwrap() - 2.0).abs() < 1e-6).unwrap();
    for (number, scheduler) in schedulers.iter().enumerate() {
        let row = rows.iter().find(|row| row["scheduler"] == **scheduler && row["operation"] == "read").unwrap();
        assert_eq!(latency[number + 1][p99].as_f64(), row["figures"]["lat_p99_ns"]["mean"].as_f64());
        let series = &document["runs"][number]["jobs"][0]["operations"][0]["series"];
        let seconds = series["interval_seconds"].as_f64().unwrap();
        let drawn: f64 = list(&iops[number + 1]).iter().filter_map(Value::as_f64).map(|rate| rate * seconds).sum();
        let known: u64 = list(&series["ios"]).iter().map(|ios| ios.as_u64().unwrap()).sum();
        assert_eq!(drawn.round() as u64, known, "{scheduler}");
    }
}

#[test]
fn a_click_on_a_request_says_why_it_waited() {
    let folder = tempdir().unwrap();
    let (page, document) = reported(folder.path(), LOAD, &[]);
    let excerpt = &document["runs"][1]["excerpt"];
    // The request that waited longest, and those completed meanwhile, computed here independently.
    let requests = list(&excerpt["requests"]);
    let waited = |request: &Value| Some(request["chosen_ns"].as_u64()? - request["inserted_ns"].as_u64()?);
    let begin = excerpt["begin_ns"].as_u64().unwrap();
    let is_inside = |request: &Value| request["inserted_ns"].as_u64().is_some_and(|ns| ns >= begin);
    let candidates = (0..requests.len()).filter(|&number| is_inside(&requests[number]));
    let number = candidates.max_by_key(|&number| waited(&requests[number])).unwrap();
    let request = &requests[number];
    let meanwhile: Vec<&Value> = list(&excerpt["answers"])
        .iter()
        .take_while(|answer| answer["request"] != number)
        .filter(|answer| answer["at_ns"].as_u64() >= request["inserted_ns"].as_u64())
        .collect();
    let given = meanwhile.iter().filter(|answer| answer["gave"] == true).count();
    assert!(given > 3, "nothing has to wait in this load: {request}");
    let why = excerpt["reasons"][request["reason"].as_u64().unwrap() as usize]["why"].as_str().unwrap();
    let visit = format!(
        "const canvas = document.getElementById('requests'), timeline = canvas.timeline; \
         const name = document.getElementById('excerpt').selectedOptions[0].textContent; \
         document.querySelector('[data-zoom=all]').click(); \
         const bar = timeline.bars.find((one) => one.number === {number}); const [from, to] = timeline.range(); \
         const box = canvas.getBoundingClientRect(); \
         const x = box.left + ((bar.begin + bar.end) / 2 - from) / (to - from) * box.width; \
         const y = box.top + 20 + (bar.lane + 0.5) * timeline.laneHeight; \
         canvas.dispatchEvent(new MouseEvent('click', {{ clientX: x, clientY: y, bubbles: true }})); \
         return [name, timeline.selected, document.getElementById('why').innerText, \
                 document.querySelector('#longest button').dataset.request]"
    );
    let Some(seen) = visited(&page, 1200, Theme::Light, &visit) else { return };
    assert_eq!(seen.complaints, json!([]));
    assert_eq!((&seen.answer[0], &seen.answer[1]), (&json!("mq-deadline"), &json!(number)));
    let text = seen.answer[2].as_str().unwrap();
    assert!(text.contains(&format!("was chosen because: {why}.")), "{why}: {text}");
    assert!(text.contains(&format!("dispatched {given} other requests")), "{given}: {text}");
    assert_eq!(waited(&requests[seen.answer[3].as_str().unwrap().parse::<usize>().unwrap()]), waited(request));
}

#[test]
fn zooming_stays_within_the_excerpt() {
    let folder = tempdir().unwrap();
    let (page, _) = reported(folder.path(), LOAD, &["--schedulers", "bfq"]);
    let visit = "const timeline = document.getElementById('requests').timeline; const seen = []; \
                 for (const how of ['in', 'right', 'right', 'right', 'right', 'left', 'out', 'out', 'all', 'left']) { \
                 document.querySelector(`[data-zoom=${how}]`).click(); await null; await null; seen.push([...timeline.range()]); } \
                 return [timeline.whole, seen]";
    let Some(seen) = visited(&page, 900, Theme::Light, visit) else { return };
    assert_eq!(seen.complaints, json!([]));
    let end = seen.answer[0][1].as_f64().unwrap();
    let ranges: Vec<(f64, f64)> =
        list(&seen.answer[1]).iter().map(|one| (one[0].as_f64().unwrap(), one[1].as_f64().unwrap())).collect();
    assert_eq!(ranges[0], (end / 4.0, end * 3.0 / 4.0));
    assert!(ranges.iter().all(|(from, to)| *from >= 0.0 && *to <= end && from < to), "{ranges:?}");
    assert_eq!(ranges.last(), Some(&(0.0, end)));
}

#[test]
fn names_that_look_like_html_are_shown_and_do_nothing() {
    let folder = tempdir().unwrap();
    let evil = "</script><script>window.hacked = 1</script><img src=x onerror=hacked=2>";
    let load = format!("[{evil}]\nfilename=/dev/sda\ndirect=1\nrw=randread\nruntime=50ms\ntime_based\n");
    let (page, document) = reported(folder.path(), &load, &["--schedulers", "none,mq-deadline"]);
    assert_eq!(document["runs"][0]["jobs"][0]["name"], evil);
    let visit = "return [window.hacked ?? null, document.images.length, document.querySelector('#comparison h3').textContent, \
                 document.querySelector('#repeat details pre').textContent]";
    let Some(seen) = visited(&page, 900, Theme::Light, visit) else { return };
    assert_eq!(seen.complaints, json!([]));
    assert_eq!(seen.answer, json!([null, 0, format!("{evil}, 1 process"), load]));
}

#[test]
fn seven_schedulers_are_below_three_megabytes_and_a_second_page_is_the_same() {
    let folder = tempdir().unwrap();
    let (page, _) = reported(folder.path(), LOAD, &["--schedulers", "all"]);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(!page.contains("src=") && !page.contains("<link") && !page.contains("@import"));
    let again = succeeded(hoistway().current_dir(folder.path()).args(["report", "results.json"]));
    assert!(again == page, "the page of the stored document is another one");
}

#[test]
fn an_excerpt_matches_the_trace_and_changes_no_figure() {
    let folder = tempdir().unwrap();
    let (_, document) =
        reported(folder.path(), LOAD, &["--trace", "events.jsonl", "--schedulers", "none,mq-deadline,bfq"]);
    let plain = printed(&[
        "compare",
        folder.path().join("load.fio").to_str().unwrap(),
        "--format",
        "json",
        "--from-start",
        "--schedulers",
        "none,mq-deadline,bfq",
    ]);
    let mut without = repeatable(&document.to_string());
    for run in without["runs"].as_array_mut().unwrap() {
        run.as_object_mut().unwrap().remove("excerpt");
    }
    assert_eq!(without["runs"], repeatable(&plain)["runs"]);

    let trace = fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let events: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (run, of) in list(&document["runs"]).iter().enumerate() {
        let excerpt = &of["excerpt"];
        let (begin, end) = (excerpt["begin_ns"].as_u64().unwrap(), excerpt["end_ns"].as_u64().unwrap());
        let of_run: Vec<(u64, String, &Value)> = events
            .iter()
            .filter(|event| event["run"] == run)
            .map(|event| (event["time_ns"].as_u64().unwrap(), text(&event["event"]), event))
            .collect();
        let happened: BTreeSet<(u64, &str, u64)> =
            of_run.iter().filter_map(|(at, name, event)| Some((*at, &**name, event["sector"].as_u64()?))).collect();
        let requests = list(&excerpt["requests"]);
        assert!(requests.len() > 100 && requests.len() <= 2000, "{}", requests.len());
        let made = of_run.iter().filter(|(at, name, _)| name == "block_getrq" && (begin..end).contains(at)).count();
        let shown_text = requests.iter().filter(|one| (begin..end).contains(&one["made_ns"].as_u64().unwrap())).count();
        assert_eq!(shown_text, made, "requests that were made meanwhile");
        // After a front merge a request begins at another sector.
        for request in requests.iter().filter(|request| request["issued_ns"].is_u64() && request["sectors"] == 8) {
            for (field, name) in
                [("made_ns", "block_getrq"), ("inserted_ns", "block_rq_insert"), ("issued_ns", "block_rq_issue")]
            {
                let Some(ns) = request[field].as_u64() else { continue };
                assert!(happened.contains(&(ns, name, request["sector"].as_u64().unwrap())), "{name}: {request}");
            }
        }
        let until = excerpt["answers_end_ns"].as_u64().unwrap();
        let is_within = |at: u64| at >= begin && at < until;
        let asked: Vec<_> = of_run.iter().filter(|(at, name, _)| name == "dispatch" && is_within(*at)).collect();
        let answers = list(&excerpt["answers"]);
        let answers: Vec<_> = answers.iter().filter(|answer| is_within(answer["at_ns"].as_u64().unwrap())).collect();
        assert_eq!(answers.len(), asked.len());
        for (answer, (at, _, event)) in answers.iter().zip(asked) {
            let reason = &excerpt["reasons"][answer["reason"].as_u64().unwrap() as usize];
            assert_eq!((&reason["reason"], &reason["why"]), (&event["reason"], &event["why"]));
            assert_eq!((&answer["gave"], &answer["at_ns"]), (&json!(!event["rq"].is_null()), &json!(at)));
        }
    }
}

#[test]
fn a_report_without_an_excerpt_says_how_to_get_one() {
    let folder = tempdir().unwrap();
    let (_, mut document) = reported(folder.path(), LOAD, &["--schedulers", "none,kyber"]);
    let page_of = |document: &Value| {
        fs::write(folder.path().join("old.json"), document.to_string()).unwrap();
        succeeded(hoistway().current_dir(folder.path()).args(["report", "old.json"]))
    };
    let shown_text = "holds no excerpt of single requests. <code>hoistway compare JOB --report page.html</code>";
    assert!(!page_of(&document).contains(shown_text));
    for run in document["runs"].as_array_mut().unwrap() {
        run.as_object_mut().unwrap().remove("excerpt");
        // The document as revision 2 had it.
        for job in run["jobs"].as_array_mut().unwrap() {
            job["operations"].as_array_mut().unwrap().iter_mut().for_each(|one| {
                one.as_object_mut().unwrap().remove("distribution");
            });
        }
    }
    let page = page_of(&document);
    assert!(page.contains(shown_text) && !page.contains("id=\"requests\""));
    let Some(seen) = visited(&page, 900, Theme::Light, "return document.querySelector('.chart').chart.data[0].length")
    else {
        return;
    };
    assert_eq!((seen.answer, seen.complaints), (json!(4), json!([])));
}

#[test]
fn a_document_that_is_not_whole_or_was_edited_is_refused_with_the_field() {
    let folder = tempdir().unwrap();
    let (_, document) = reported(folder.path(), LOAD, &["--schedulers", "none"]);
    let broken = |name: &str, change: &dyn Fn(&mut Value), words: &[&str]| {
        let mut edited = document.clone();
        change(&mut edited);
        fs::write(folder.path().join(name), edited.to_string()).unwrap();
        refused(folder.path(), &["report", name, "-o", "new.html"], words);
    };
    let read = |one: &mut Value, path: &str, new: Value| *one.pointer_mut(path).unwrap() = new;
    broken("1.json", &|one| read(one, "/format", json!("hoistway-results/9")), &["unknown result format", "1.json"]);
    broken(
        "2.json",
        &|one| read(one, "/runs/0/jobs/0/operations/0/iops", json!("many")),
        &["runs[0].jobs[0].operations[0].iops"],
    );
    broken(
        "3.json",
        &|one| read(one, "/runs/0/jobs/0/operations/0/iops", json!(1.0)),
        &["statistics.rows[0].figures.iops.mean", "edited"],
    );
    broken(
        "4.json",
        &|one| read(one, "/runs/0/jobs/0/operations/0/distribution/lat_ns", json!([1])),
        &["runs[0].jobs[0].operations[0].distribution"],
    );
    broken("5.json", &|one| one["runs"][0]["setup"] = json!(3), &["runs[0].setup"]);
    broken("6.json", &|one| read(one, "/runs/0/excerpt/devices", json!([])), &["runs[0].excerpt.requests[0]"]);
    broken(
        "7.json",
        &|one| {
            one.as_object_mut().unwrap().remove("kernel");
        },
        &["missing field `kernel`"],
    );
    let text = document.to_string();
    fs::write(folder.path().join("half.json"), &text[..text.len() / 2]).unwrap();
    refused(folder.path(), &["report", "half.json", "-o", "new.html"], &["half.json", "EOF"]);
    fs::write(folder.path().join("no.json"), "[1, 2]").unwrap();
    refused(folder.path(), &["report", "no.json", "-o", "new.html"], &["no.json", "not a result document"]);
    refused(folder.path(), &["report", "gone.json", "-o", "new.html"], &["gone.json", "cannot be read"]);
    refused(folder.path(), &["report", "results.json", "-o", "results.json"], &["is read by this command"]);
    refused(
        folder.path(),
        &["compare", "load.fio", "--report", "x.html", "-o", "x.html"],
        &["--report x.html", "is also the output file"],
    );
}
