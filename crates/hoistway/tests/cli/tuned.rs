//! HTML reports of searches.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::browser::{Theme, visited};
use crate::support::{hoistway, refused, succeeded};
use crate::vary::with_load;

const CONDITION: &str = "min readers:read:mean subject to writers:write:iops >= 0.6*default";

/// Runs a search; returns the folder, the page and the document.
fn searched(objective: &str, options: &[&str]) -> (TempDir, String, Value) {
    let folder = with_load();
    let arguments = ["tune", "load.fio", "--objective", objective, "--report", "page.html", "--format", "json"];
    let tunables = ["--over", "none,mq-deadline", "--vary", "queue.nr_requests=8,16,48", "--budget", "60"];
    let text = succeeded(hoistway().current_dir(&folder).args(arguments).args(tunables).args(options));
    fs::write(folder.path().join("tuned.json"), &text).unwrap();
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    (folder, page, serde_json::from_str(&text).unwrap())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// The name of a setting of a document.
fn name(setting: &Value) -> String {
    let mut name = setting["scheduler"].as_str().unwrap().to_owned();
    for (tunable, text) in ["tunables", "queue_files"].iter().flat_map(|side| setting[side].as_object()).flatten() {
        name += &format!(" {tunable}={}", text.as_str().unwrap());
    }
    name
}

#[test]
fn the_search_page_matches_the_terminal_in_both_themes_and_on_a_phone() {
    let (_folder, page, document) = searched(CONDITION, &[]);
    let visit = "return { text: document.body.innerText, canvases: document.querySelectorAll('canvas').length, \
                 heads: [...document.querySelectorAll('h2')].map((one) => one.textContent), \
                 wide: document.documentElement.scrollWidth, theme: document.documentElement.dataset.theme, \
                 finalists: [...document.querySelectorAll('#finalists tbody tr')].map((row) => row.cells[0].textContent) }";
    for (prefers, width) in [(Theme::Light, 1200), (Theme::Dark, 360)] {
        let Some(seen) = visited(&page, width, prefers, visit) else { return };
        assert_eq!((&seen.complaints, &seen.answer["canvases"]), (&json!([]), &json!(1)));
        assert_eq!(seen.answer["theme"], format!("{prefers:?}").to_lowercase());
        let text = seen.answer["text"].as_str().unwrap();
        for sentence in list(&document["conclusion"]) {
            assert!(text.contains(sentence.as_str().unwrap()), "{sentence} is not in {text}");
        }
        let last = list(&document["rounds"]).last().unwrap();
        let finalists: Vec<String> = list(&last["settings"]).iter().map(|one| name(&one["setting"])).collect();
        assert_eq!(seen.answer["finalists"], json!(finalists));
        let heads = ["The Pareto front", "Finalists", "What mattered, and how much", "How sure this is", "Losses"];
        assert_eq!(list(&seen.answer["heads"])[..5], heads.map(Value::from));
        assert!(seen.answer["wide"].as_u64().unwrap() <= u64::from(width), "wider than a screen of {width}");
    }
}

#[test]
fn every_point_is_a_setting_with_its_figures_and_a_click_says_which() {
    let (_folder, page, document) = searched(CONDITION, &[]);
    let first = list(&document["rounds"][0]["settings"]);
    let best = name(&document["found"]["best"]["setting"]);
    let visit = format!(
        "const place = document.getElementById('front-chart'), chart = place.chart, shown = document.getElementById('point'); \
         const before = shown.textContent; shown.textContent = ''; \
         const others = place.points.filter((one) => one.setting !== {best:?}); \
         const point = others.find((one) => !one.on_front) ?? others[0]; \
         const at = {{ clientX: 0, clientY: 0, bubbles: true }}; \
         const box = chart.over.getBoundingClientRect(); \
         at.clientX = box.left + chart.valToPos(point.x, 'x'); at.clientY = box.top + chart.valToPos(point.y, 'y'); \
         for (const kind of ['mousemove', 'mousedown', 'mouseup', 'click']) chart.over.dispatchEvent(new MouseEvent(kind, at)); \
         const clicked = shown.textContent; \
         const near = place.points.filter((one) => one.words === clicked); \
         const stroke = chart.series[3].stroke(); document.getElementById('theme').click(); \
         return {{ before, clicked, near: near.map((one) => [one.x - point.x, one.y - point.y]), \
                   points: place.points.map((one) => [one.setting, one.x, one.y, one.on_front, one.is_best, one.is_default]), \
                   kinds: place.chart.series.slice(1).map((one) => one.label), strokes: [stroke, place.chart.series[3].stroke()], \
                   drawn: place.chart.data.slice(1).map((column) => column.filter((value) => value != null).length) }}"
    );
    let Some(seen) = visited(&page, 1200, Theme::Light, &visit) else { return };
    assert_eq!(seen.complaints, json!([]));
    let points = list(&seen.answer["points"]);
    assert_eq!(points.len(), first.len());
    let front: Vec<String> = list(&document["front"]).iter().map(|one| name(&one["setting"])).collect();
    let reference = name(&document["found"]["reference"]["setting"]);
    for standing in first {
        let setting = name(&standing["setting"]);
        let point = points.iter().find(|point| point[0] == *setting).unwrap();
        assert_eq!(point[1], standing["figures"]["writers:write:iops"]["mean"], "{setting}");
        assert_eq!(point[2], standing["figures"]["readers:read:mean"]["mean"], "{setting}");
        let marks = [front.contains(&setting), setting == best, setting == reference];
        assert_eq!([&point[3], &point[4], &point[5]], [&json!(marks[0]), &json!(marks[1]), &json!(marks[2])]);
    }
    let holding = first.iter().filter(|one| one["holds"] == true).count();
    assert_eq!(seen.answer["drawn"], json!([holding, first.len() - holding, front.len(), 1, 1]));
    assert!(seen.answer["before"].as_str().unwrap().starts_with(&format!("{best}: mean read latency of readers ")));
    // Settings at the same place, or nearly so.
    assert_eq!(list(&seen.answer["near"]).len(), 1, "{}", seen.answer["clicked"]);
    assert_eq!(seen.answer["strokes"], json!(["#0b62c4", "#6fb1ff"]));
}

#[test]
fn with_one_figure_settings_stand_in_their_order() {
    let (_, page, document) = searched("min readers:read:mean", &[]);
    let visit = "const place = document.getElementById('front-chart'); \
                 return [place.points.map((one) => [one.setting, one.x]), document.getElementById('across').parentElement.hidden]";
    let settings = list(&document["rounds"][0]["settings"]);
    let Some(seen) = visited(&page, 900, Theme::Light, visit) else { return };
    let expected: Vec<Value> =
        settings.iter().zip(1..).map(|(one, place)| json!([name(&one["setting"]), place])).collect();
    assert_eq!((seen.answer, seen.complaints), (json!([expected, true]), json!([])));
}

#[test]
fn a_stored_search_makes_the_same_page() {
    let (folder, page, _) = searched(CONDITION, &[]);
    let stored = succeeded(hoistway().current_dir(&folder).args(["report", "tuned.json"]));
    assert!(stored == page, "the page of the stored document is another one");
}

#[test]
fn a_search_that_was_cut_or_edited_is_refused_with_the_field() {
    let (folder, _, document) = searched(CONDITION, &[]);
    let broken = |path: &str, new: Value, words: &[&str]| {
        let mut edited = document.clone();
        *edited.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = new;
        fs::write(folder.path().join("changed.json"), edited.to_string()).unwrap();
        refused(folder.path(), &["report", "changed.json", "-o", "new.html"], &[&["changed.json"], words].concat());
    };
    broken("/format", json!("hoistway-tune/9"), &["unknown format of a search", "hoistway-tune/9"]);
    broken("/format", json!("x".repeat(70)), &[&format!("\"{}\": this version", "x".repeat(60))]);
    broken("/cpus", json!("many"), &["cpus"]);
    let figure = "/rounds/0/settings/0/figures/readers:read:mean/mean";
    broken(figure, json!(1.0), &["rounds[0].settings[0].figures", "is not what `runs` say", "edited"]);
    broken("/runs/0/figures/readers:read:mean", json!(1.0), &["rounds[0].settings[", "].figures"]);
    broken("/found/best/seeds", json!(99), &["found.best"]);
    broken("/found/holds", json!(false), &["found.holds"]);
    broken("/front/0/seeds", json!(99), &["front[0]"]);
    let text = document.to_string();
    fs::write(folder.path().join("half.json"), &text[..text.len() / 2]).unwrap();
    refused(folder.path(), &["report", "half.json", "-o", "new.html"], &["half.json", "EOF"]);
    refused(folder.path(), &["diff", "tuned.json", "tuned.json"], &["unknown result format \"hoistway-tune/1\""]);
    let tune = ["tune", "load.fio", "--objective", CONDITION];
    let refuse = |options: &[&str], words: &[&str]| refused(folder.path(), &[&tune[..], options].concat(), words);
    refuse(&["--report", "x.html", "-o", "x.html"], &["--report x.html", "is also the output file"]);
    assert!(!Path::new("x.html").exists());
}

#[test]
fn names_of_jobs_that_a_terminal_obeys_or_a_browser_reads_are_only_shown() {
    let folder = with_load();
    let evil = "a</script>\u{1b}[31m";
    let load = format!("[{evil}]\nfilename=/dev/sda\ndirect=1\nrw=randread\nruntime=50ms\ntime_based\n");
    fs::write(folder.path().join("evil.fio"), load).unwrap();
    let objective = format!("min \"{evil}\":read:mean");
    let arguments = ["tune", "evil.fio", "--over", "none", "--report", "page.html", "--objective", &objective];
    succeeded(hoistway().current_dir(&folder).args(arguments));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(!page.contains('\u{1b}') && page.contains("a&lt;"), "{page}");
    let visit = "return document.getElementById('front-chart').points.length";
    let Some(seen) = visited(&page, 900, Theme::Light, visit) else { return };
    assert_eq!((seen.answer, seen.complaints), (json!(1), json!([])));
}
