//! `hoistway explain`: explains a scheduler or one of its tunables.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use hoistway_blk::ground::{Kernel, StoreError};
use hoistway_experiment::KernelOption;
use hoistway_experiment::facts::{self, Facts, Grammar};
use hoistway_experiment::texts::{FileText, NoteText, SchedulerText, Texts, TunableText};
use hoistway_render::text::{wrap_hanging, wrapped};
use serde_json::{Value, json};

use hoistway_render::text::aligned;
use hoistway_terminal::Ending;
use hoistway_terminal::output::Output;

/// Explain a scheduler, one of its tunables, or another file of the queue.
///
/// Examples:
///   hoistway explain bfq
///   hoistway explain bfq.slice_idle
///   hoistway explain slice_idle
///   hoistway explain mq-deadline.fifo_batch --kernel 5.10
///   hoistway explain queue.nr_requests
///   hoistway explain io.cost
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// What to explain: SCHEDULER, SCHEDULER.TUNABLE, TUNABLE (in every scheduler that has it), queue.FILE, io.cost or
    /// io.latency.
    #[arg(value_name = "NAME")]
    name: String,
    /// The kernel to describe: any release since 4.4 (6.18, 6.12.107), or the output of uname -r. [default: the newest kernel
    /// that has it]
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelOption>,
    /// The output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How an explanation is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// What a name refers to.
enum Subject<'a> {
    Scheduler(&'a SchedulerText),
    Tunable(&'a SchedulerText, &'a TunableText),
    Queue(&'a [FileText]),
    File(&'a FileText),
    Note(&'a NoteText),
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(None)?;
    let texts = Texts::read();
    let subjects = match find(&texts, &arguments.name) {
        Some(subject) => vec![subject],
        None => tunables(&texts, &arguments.name),
    };
    let kernel = arguments.kernel.as_ref();
    let text = match (arguments.format, &subjects[..]) {
        (_, []) => bail!(unknown_name_error(&texts, &arguments.name)),
        (Format::Json, [subject]) => serde_json::to_string_pretty(&document(subject, kernel))? + "\n",
        (Format::Json, several) => {
            let documents: Vec<Value> = several.iter().map(|subject| document(subject, kernel)).collect();
            serde_json::to_string_pretty(&documents)? + "\n"
        }
        (Format::Text, subjects) => {
            let width = output.text_width();
            subjects.iter().map(|subject| text(subject, kernel, width)).collect::<Vec<_>>().join("\n")
        }
    };
    output.write(&text)?;
    Ok(Ending::Done)
}

// --- names ---

fn find<'a>(texts: &'a Texts, name: &str) -> Option<Subject<'a>> {
    let note = texts.notes.iter().find(|note| note.name == name || note.aliases.iter().any(|alias| alias == name));
    if let Some(note) = note {
        return Some(Subject::Note(note));
    }
    let (owner, member) = name.split_once('.').map_or((name, None), |(owner, member)| (owner, Some(member)));
    if owner == "queue" {
        return match member {
            None => Some(Subject::Queue(&texts.files)),
            Some(member) => texts.files.iter().find(|file| file.name == member).map(Subject::File),
        };
    }
    let scheduler = texts.schedulers.iter().find(|scheduler| scheduler.name == owner)?;
    match member {
        None => Some(Subject::Scheduler(scheduler)),
        Some(member) => scheduler.tunable(member).map(|tunable| Subject::Tunable(scheduler, tunable)),
    }
}

/// A name without its owner means the tunable of every scheduler that has it, and the file of `queue/`.
fn tunables<'a>(texts: &'a Texts, name: &str) -> Vec<Subject<'a>> {
    let files = texts.files.iter().filter(|file| file.name == name).map(Subject::File);
    let tunables = texts.schedulers.iter();
    tunables.filter_map(|scheduler| Some(Subject::Tunable(scheduler, scheduler.tunable(name)?))).chain(files).collect()
}

/// Everything that can be explained.
fn names(texts: &Texts) -> Vec<String> {
    let mut names = Vec::new();
    for scheduler in &texts.schedulers {
        names.push(scheduler.name.clone());
        names.extend(scheduler.tunables.iter().map(|tunable| format!("{}.{}", scheduler.name, tunable.name)));
    }
    names.push("queue".to_owned());
    names.extend(texts.files.iter().map(|file| format!("queue.{}", file.name)));
    for note in &texts.notes {
        names.push(note.name.clone());
        names.extend(note.aliases.iter().cloned());
    }
    names
}

/// Maximum number of suggestions.
const SUGGESTIONS_MAX: usize = 4;

/// The error for an unknown name.
fn unknown_name_error(texts: &Texts, name: &str) -> String {
    let requested = name.to_lowercase();
    let member = |name: &str| name.split_once('.').map_or(name.to_owned(), |(_, member)| member.to_owned());
    let mut candidates: Vec<(usize, String)> = Vec::new();
    for known in names(texts) {
        // The right tunable without its scheduler, or with another one, counts as a misspelling.
        let member_distance =
            strsim::osa_distance(&member(&known), &member(&requested)) + usize::from(requested.contains('.'));
        let substring_distance = if requested.len() >= 3 && known.contains(&requested) { 1 } else { usize::MAX };
        let distance = strsim::osa_distance(&known, &requested).min(member_distance).min(substring_distance);
        // A distance as long as the name itself means that no letter is in common.
        if distance <= (requested.chars().count() / 4).max(2) && distance < known.chars().count() {
            candidates.push((distance, known));
        }
    }
    let best = candidates.iter().map(|(distance, _)| *distance).min();
    candidates.retain(|(distance, _)| Some(*distance) == best);
    let candidates: Vec<String> = candidates.into_iter().map(|(_, known)| known).take(SUGGESTIONS_MAX).collect();
    if candidates.is_empty() {
        let schedulers: Vec<&str> = texts.schedulers.iter().map(|scheduler| scheduler.name.as_str()).collect();
        let files: Vec<&str> = texts.files.iter().map(|file| file.name.as_str()).collect();
        return format!(
            "\"{name}\": unknown name (expected {}, SCHEDULER.TUNABLE, or queue.FILE with one of {})",
            schedulers.join(", "),
            files.join(", ")
        );
    }
    format!("\"{name}\": unknown name; did you mean {}?", candidates.join(", "))
}

// --- facts ---

/// The kernel to describe, and whether it is the requested one.
fn kernel_for(
    requested: Option<&KernelOption>,
    newest: Option<Kernel>,
    has: impl Fn(Kernel) -> bool,
) -> (KernelOption, bool) {
    match requested {
        Some(option) if has(option.kernel) => (option.clone(), true),
        _ => (newest.unwrap_or(Kernel::DEFAULT).into(), requested.is_none() && newest.is_some()),
    }
}

/// [`kernel_for`] a scheduler.
fn kernel_of(scheduler: &SchedulerText, requested: Option<&KernelOption>) -> (KernelOption, bool) {
    kernel_for(requested, scheduler.kernels().next_back(), |kernel| scheduler.exists_in(kernel))
}

/// [`kernel_for`] a tunable.
fn kernel_of_tunable(
    scheduler: &SchedulerText,
    tunable: &str,
    requested: Option<&KernelOption>,
) -> (KernelOption, bool) {
    let has = |kernel| scheduler.exists_in(kernel) && has_tunable(scheduler, tunable, kernel);
    kernel_for(requested, kernels_with(scheduler, tunable).last().copied(), has)
}

fn has_tunable(scheduler: &SchedulerText, tunable: &str, kernel: Kernel) -> bool {
    facts::tunables(&scheduler.name, kernel).iter().any(|known| known.name == tunable)
}

fn kernels_with(scheduler: &SchedulerText, tunable: &str) -> Vec<Kernel> {
    scheduler.kernels().filter(|&kernel| has_tunable(scheduler, tunable, kernel)).collect()
}

fn join_kernels(kernels: &[Kernel]) -> String {
    kernels.iter().map(Kernel::to_string).collect::<Vec<_>>().join(", ")
}

fn compare_command(scheduler: &SchedulerText, tunable: &str, kernel: &KernelOption, value: i128) -> String {
    let kernel_option = if kernel.kernel == Kernel::DEFAULT { String::new() } else { format!(" --kernel {kernel}") };
    format!("hoistway compare my-load.fio{kernel_option} --set {}.{tunable}={value}", scheduler.name)
}

fn sysfs_command(tunable: &str, value: i128) -> String {
    format!("echo {value} > /sys/block/DEV/queue/iosched/{tunable}")
}

fn example_text(written: &str, outcome: &Result<i128, StoreError>) -> String {
    match outcome {
        Ok(value) => format!("{written} -> {value}"),
        Err(error) => format!("{written} -> {}", errno(*error)),
    }
}

fn errno(error: StoreError) -> &'static str {
    match error {
        StoreError::Unknown => "ENOENT",
        StoreError::Invalid => "EINVAL",
        StoreError::Range => "ERANGE",
    }
}

/// Differences between other kernels and `kernel`, one line each.
fn differences(scheduler: &SchedulerText, name: &str, kernel: Kernel, facts: &Facts) -> Vec<String> {
    let mut lines: Vec<(String, Vec<Kernel>)> = Vec::new();
    let mut note = |line: String, kernel| match lines.iter_mut().find(|(known, _)| *known == line) {
        Some((_, kernels)) => kernels.push(kernel),
        None => lines.push((line, vec![kernel])),
    };
    for other in scheduler.kernels().filter(|&other| other != kernel) {
        let Some(other_facts) = Facts::of(&scheduler.name, name, other) else {
            note("it does not exist.".to_owned(), other);
            continue;
        };
        if other_facts.defaults != facts.defaults {
            note(format!("the default is {}.", other_facts.default_text()), other);
        }
        if other_facts.range_text() != facts.range_text() {
            note(format!("the range is {}.", other_facts.range_text()), other);
        }
        if other_facts.grammar != facts.grammar {
            note(format!("writes are read differently. {}", other_facts.grammar.text()), other);
        }
        if other_facts.ticks_hz != facts.ticks_hz {
            let how = if other_facts.ticks_hz.is_some() { "in timer ticks" } else { "exactly" };
            note(format!("the value is kept {how}."), other);
        }
    }
    lines.into_iter().map(|(line, kernels)| format!("{}: {line}", join_kernels(&kernels))).collect()
}

// --- for people ---

fn text(subject: &Subject<'_>, kernel: Option<&KernelOption>, width: usize) -> String {
    match subject {
        Subject::Scheduler(scheduler) => scheduler_text(scheduler, kernel, width),
        Subject::Tunable(scheduler, tunable) => tunable_text(scheduler, tunable, kernel, width),
        Subject::Queue(files) => {
            let rows: Vec<[String; 2]> =
                files.iter().map(|file| [format!("queue.{}", file.name), file.line.clone()]).collect();
            "Files of /sys/block/DEV/queue that do not belong to a scheduler\n\n".to_owned() + &aligned(&rows)
        }
        Subject::File(file) => file_text(file, width),
        Subject::Note(note) => {
            format!("{}: {}\n\n{}", note.name, note.title, wrapped(&note.text, width, 0))
        }
    }
}

/// A heading, and paragraphs below it.
fn section(heading: &str, body: &str, width: usize) -> String {
    format!("\n{heading}\n{}", wrapped(body, width, 2))
}

fn bullets(lines: &[String], width: usize) -> String {
    lines.iter().map(|line| wrap_hanging(&format!("- {line}"), width, 2, 4)).collect()
}

/// One labelled paragraph per row, indented to the longest label.
fn labelled(rows: &[(&str, &str)], width: usize) -> String {
    let margin = rows.iter().map(|(label, _)| label.len()).max().unwrap_or(0) + 3;
    rows.iter()
        .map(|(label, body)| {
            let lines = wrapped(body, width, margin);
            format!("{:margin$}{}", format!("{label}:"), lines.trim_start())
        })
        .collect()
}

fn scheduler_text(scheduler: &SchedulerText, requested: Option<&KernelOption>, width: usize) -> String {
    let (kernel, kernel_has_it) = kernel_of(scheduler, requested);
    let mut text = format!("{}: {}\n", scheduler.name, scheduler.title);
    text += &which_kernel(requested, &kernel, kernel_has_it);
    text.push('\n');
    text += &labelled(
        &[
            ("Promises", &scheduler.promises),
            ("Costs", &scheduler.costs),
            ("Block layer", &format!("{}, Linux {}", scheduler.front, scheduler.linux)),
            ("Honours", &format!("I/O priority: {}; cgroup weights: {}", scheduler.ioprio, scheduler.weights)),
            ("Default for", &scheduler.default_for),
        ],
        width,
    );
    text += &section("What it does", &scheduler.what, width);
    text += &section("When to use it", &scheduler.when, width);
    let tunables = facts::tunables(&scheduler.name, kernel.kernel);
    if tunables.is_empty() {
        text += "\nTunables\n  none\n";
    } else {
        text += &format!("\nTunables in Linux {kernel} (`hoistway explain {}.NAME` describes each)\n", scheduler.name);
        let mut rows = Vec::new();
        for tunable in tunables {
            let Some(facts) = Facts::of(&scheduler.name, tunable.name, kernel.kernel) else { continue };
            let line = scheduler.tunable(tunable.name).map_or("", |text| &text.line);
            rows.push((facts, line));
        }
        let cells: Vec<[String; 4]> = rows
            .iter()
            .map(|(facts, _)| {
                let default =
                    facts.defaults.iter().map(|(_, value)| value.to_string()).collect::<Vec<_>>().join(" or ");
                [facts.tunable.name.to_owned(), default, facts.range_text(), facts.tunable.unit.to_string()]
            })
            .collect();
        let heading = [["name", "default", "range", "unit"].map(str::to_owned)];
        let columns = aligned(&[&heading[..], &cells].concat());
        let mut lines = columns.lines();
        text += &format!("  {}\n", lines.next().unwrap_or_default());
        for (line, (_, what)) in lines.zip(&rows) {
            text += &format!("  {line}\n{}", wrapped(what, width, 6));
        }
    }
    if !scheduler.versions.is_empty() {
        text += &format!("\nReleases\n{}", bullets(&scheduler.versions, width));
    }
    let how = format!("hoistway compare my-load.fio --schedulers {}", scheduler.name);
    text += &format!("\nTry it\n{}", wrapped(&format!("here: {how}"), width, 2));
    text + &wrapped(
        &on_a_kernel(scheduler, &format!("echo {} > /sys/block/DEV/queue/scheduler", scheduler.name)),
        width,
        2,
    )
}

/// How to do something on a kernel, if one has the scheduler.
fn on_a_kernel(scheduler: &SchedulerText, command: &str) -> String {
    match scheduler.outside_linux() {
        Some(published) => format!("on a kernel: no release has {} ({published})", scheduler.name),
        None => format!("on a kernel: {command}"),
    }
}

/// A line about the kernel, if it is not the requested one or if its release was rounded to a known one.
fn which_kernel(requested: Option<&KernelOption>, shown: &KernelOption, kernel_has_it: bool) -> String {
    let line = match requested {
        Some(requested) if !kernel_has_it => {
            Some(format!("Linux {requested} does not have it; shown as in Linux {shown}."))
        }
        Some(requested) => requested.notice(),
        None => None,
    };
    line.map_or_else(String::new, |line| line + "\n")
}

fn tunable_text(
    scheduler: &SchedulerText,
    tunable: &TunableText,
    requested: Option<&KernelOption>,
    width: usize,
) -> String {
    let kernels = kernels_with(scheduler, &tunable.name);
    let (kernel, kernel_has_it) = kernel_of_tunable(scheduler, &tunable.name, requested);
    let Some(facts) = Facts::of(&scheduler.name, &tunable.name, kernel.kernel) else { return String::new() };
    let default = facts.defaults[0].1;
    let mut text = format!("{}.{}: {}\n", scheduler.name, tunable.name, tunable.line);
    text += &which_kernel(requested, &kernel, kernel_has_it);
    text += "\n";
    let note = match (facts.tunable.default_note, facts.defaults.len()) {
        (Some(note), 1) => format!("; {note}"),
        _ => String::new(),
    };
    text += &labelled(
        &[
            ("Unit", &facts.tunable.unit.to_string()),
            ("Default", &format!("{}{note}", facts.default_text())),
            ("Range", &facts.range_text()),
            (
                "Kernels",
                &scheduler
                    .outside_linux()
                    .map_or_else(|| join_kernels(&kernels), |published| format!("none ({published})")),
            ),
        ],
        width,
    );
    text += &section("What it does", &tunable.what, width);
    text += "\n";
    text += &labelled(&[("Higher", &tunable.higher), ("Lower", &tunable.lower), ("When", &tunable.when)], width);
    let clamped = if facts.grammar == Grammar::InRange { "" } else { " Out-of-range values are silently clamped." };
    let mut rules = format!("{}{clamped}", facts.grammar.text());
    if let Some(hz) = facts.ticks_hz {
        let ms = f64::from(1000) / f64::from(hz);
        rules += &format!(" It is kept in timer ticks, rounded up: {ms} ms each at {hz} Hz.");
    }
    let examples: Vec<String> = facts.examples.iter().map(|(text, outcome)| example_text(text, outcome)).collect();
    let parser = scheduler.outside_linux().map_or_else(|| format!("Linux {kernel}"), |_| scheduler.name.clone());
    text += &section(&format!("How {parser} parses writes, and shows the value"), &rules, width);
    text += &wrapped(&examples.join(", "), width, 2);
    let command = compare_command(scheduler, &tunable.name, &kernel, default);
    text += &format!(
        "\nSet it\n{}{}",
        wrapped(&format!("here: {command}"), width, 2),
        wrapped(&on_a_kernel(scheduler, &sysfs_command(&tunable.name, default)), width, 2)
    );
    let mut differences = differences(scheduler, &tunable.name, kernel.kernel, &facts);
    differences.extend(tunable.versions.iter().cloned());
    if !differences.is_empty() {
        text += &format!("\nOther kernels\n{}", bullets(&differences, width));
    }
    text
}

fn file_text(file: &FileText, width: usize) -> String {
    let sysfs_path = format!("/sys/block/DEV/queue/{}", file.name);
    let mut text = format!("queue.{}: {}\n", file.name, file.line);
    text += &section("What it does", &file.what, width);
    text += "\n";
    text += &labelled(
        &[
            ("Default", &file.default),
            ("Values", &file.range),
            ("Higher", &file.higher),
            ("Lower", &file.lower),
            ("When", &file.when),
            ("Here", &file.here),
            ("On a kernel", &sysfs_path),
        ],
        width,
    );
    text
}

// --- for programs ---

fn document(subject: &Subject<'_>, requested: Option<&KernelOption>) -> Value {
    let mut document = json!({"format": "hoistway-explanation/1"});
    let fields = match subject {
        Subject::Scheduler(scheduler) => {
            let kernels: Vec<Kernel> = scheduler.kernels().collect();
            let (kernel, kernel_has_it) = kernel_of(scheduler, requested);
            let tunables: Vec<Value> = facts::tunables(&scheduler.name, kernel.kernel)
                .iter()
                .filter_map(|tunable| scheduler.tunable(tunable.name))
                .filter_map(|text| tunable_document(scheduler, text, &kernel))
                .collect();
            json!({
                "kind": "scheduler",
                "name": scheduler.name,
                "title": scheduler.title,
                "kernel": kernel.to_string(),
                "kernel_has_it": kernel_has_it,
                "kernels": kernels.iter().map(Kernel::to_string).collect::<Vec<_>>(),
                "linux": scheduler.linux,
                "front": scheduler.front,
                "promises": scheduler.promises,
                "costs": scheduler.costs,
                "ioprio": scheduler.ioprio,
                "cgroup_weights": scheduler.weights,
                "default_for": scheduler.default_for,
                "what": unwrap_paragraphs(&scheduler.what),
                "when": unwrap_paragraphs(&scheduler.when),
                "versions": scheduler.versions,
                "tunables": tunables,
            })
        }
        Subject::Tunable(scheduler, tunable) => {
            let (kernel, kernel_has_it) = kernel_of_tunable(scheduler, &tunable.name, requested);
            let mut fields = json!({"kind": "tunable", "kernel": kernel.to_string(), "kernel_has_it": kernel_has_it});
            extend(&mut fields, tunable_document(scheduler, tunable, &kernel).unwrap_or_default());
            fields
        }
        Subject::Queue(files) => {
            let names: Vec<String> = files.iter().map(|file| format!("queue.{}", file.name)).collect();
            json!({"kind": "queue", "name": "queue", "files": names})
        }
        Subject::File(file) => json!({
            "kind": "file",
            "name": format!("queue.{}", file.name),
            "line": file.line,
            "what": file.what,
            "default": file.default,
            "range": file.range,
            "higher": file.higher,
            "lower": file.lower,
            "when": file.when,
            "set_here": file.here,
            "set_there": format!("/sys/block/DEV/queue/{}", file.name),
        }),
        Subject::Note(note) => {
            json!({"kind": "note", "name": note.name, "title": note.title, "what": unwrap_paragraphs(&note.text)})
        }
    };
    extend(&mut document, fields);
    document
}

fn extend(object: &mut Value, additions: Value) {
    if let (Value::Object(object), Value::Object(additions)) = (object, additions) {
        object.extend(additions);
    }
}

/// Unwraps paragraphs: removes the line breaks of the source file within them.
fn unwrap_paragraphs(text: &str) -> String {
    text.split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// A number, or its digits as text if it is too large for JSON readers.
fn number(value: i128) -> Value {
    i64::try_from(value)
        .map(Value::from)
        .or_else(|_| u64::try_from(value).map(Value::from))
        .unwrap_or_else(|_| Value::from(value.to_string()))
}

fn tunable_document(scheduler: &SchedulerText, tunable: &TunableText, kernel: &KernelOption) -> Option<Value> {
    let facts = Facts::of(&scheduler.name, &tunable.name, kernel.kernel)?;
    let default = facts.defaults[0].1;
    let defaults: Vec<Value> =
        facts.defaults.iter().map(|(device, value)| json!({"device": device, "value": number(*value)})).collect();
    let examples = facts.examples.iter().map(|(text, outcome)| match outcome {
        Ok(value) => json!({"written": text, "shown": number(*value)}),
        Err(error) => json!({"written": text, "error": errno(*error)}),
    });
    let mut versions = differences(scheduler, &tunable.name, kernel.kernel, &facts);
    versions.extend(tunable.versions.iter().cloned());
    Some(json!({
        "name": format!("{}.{}", scheduler.name, tunable.name),
        "line": tunable.line,
        "unit": facts.tunable.unit.to_string(),
        "defaults": defaults,
        "default_note": facts.tunable.default_note,
        "min": number(facts.tunable.min),
        "max": number(facts.tunable.max),
        "kernels": kernels_with(scheduler, &tunable.name).iter().map(Kernel::to_string).collect::<Vec<_>>(),
        "what": tunable.what,
        "higher": tunable.higher,
        "lower": tunable.lower,
        "when": tunable.when,
        "grammar": facts.grammar.text(),
        "ticks_hz": facts.ticks_hz,
        "examples": examples.collect::<Vec<_>>(),
        "set_here": compare_command(scheduler, &tunable.name, kernel, default),
        "set_there": sysfs_command(&tunable.name, default),
        "versions": versions,
    }))
}
