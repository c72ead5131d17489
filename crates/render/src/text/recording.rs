//! Text about a recorded load: its contents, the accuracy of its replay, and what the recommendation depends on.

use crate::text::columns::value;
use hoistway_answer::analysis::{Analysis, Row};
use hoistway_answer::document::{AlternativeProgram, PartsCheck, RecordedStream, RecordingSummary, SelfCheck, Verdict};
use hoistway_answer::{Figure, ResultsDocument};
use hoistway_measure::{Operation, size_in_words};

use hoistway_measure::units;

/// Maximum number of streams shown.
const STREAMS_MAX: usize = 8;
/// A replay whose mean latency is off by more than this fraction is doubtful (RP25).
pub(crate) const OFF_MAX: f64 = 0.2;
/// A device model that is off by a smaller factor on the recorded requests is not at fault.
const DEVICE_FITS: f64 = 1.2;
/// A shorter recording, or one with fewer I/Os of the judged job, is a small sample (RP24).
const SECONDS_MIN: f64 = 10.0;
const IOS_MIN: u64 = 1000;

/// The lines above the table; empty if the load is not a recording.
pub fn recording_lines(document: &ResultsDocument) -> Vec<String> {
    let Some(recording) = document.recording.as_deref() else { return Vec::new() };
    let mut lines = vec![recording_line(document, recording)];
    let shown = recording.streams.iter().take(STREAMS_MAX);
    let width = shown.clone().map(|stream| label(stream).chars().count()).max().unwrap_or(0);
    lines.extend(shown.map(|stream| format!("  {:<width$}  {}", label(stream), stream_text(stream))));
    let remaining = recording.streams.len().saturating_sub(STREAMS_MAX);
    if remaining > 0 {
        lines.push(format!("  and {remaining} more streams"));
    }
    lines.extend(self_check(recording));
    lines.extend(ranges(document, recording));
    lines
}

fn recording_line(document: &ResultsDocument, recording: &RecordingSummary) -> String {
    let under = match (&recording.recorded_under, recording.is_guess) {
        (Some(name), false) => format!(", recorded under {name}"),
        (Some(name), true) => format!(", recorded under {name}?"),
        (None, _) => String::new(),
    };
    let mut replay = match &*recording.mode {
        "timed" => ", replayed at the recorded times".to_owned(),
        "fast" => ", replayed without pauses".to_owned(),
        _ => String::new(),
    };
    if recording.speed != 1.0 {
        replay += &format!(", {} times as fast", recording.speed);
    }
    if recording.copies > 1 {
        replay += &format!(", {} copies", recording.copies);
    }
    format!(
        "{}: {}, device {}, {:.2} s, {} I/Os{under}{replay}",
        document.job_file,
        recording.format,
        recording.device,
        recording.seconds,
        thousands(recording.ios)
    )
}

/// A count with commas.
fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn label(stream: &RecordedStream) -> String {
    match stream.pid {
        _ if stream.tasks > 1 => format!("{} x {}", stream.name, stream.tasks),
        Some(pid) => format!("{} ({pid})", stream.name),
        None => stream.name.clone(),
    }
}

fn stream_text(stream: &RecordedStream) -> String {
    let mut parts = vec![format!("{} I/Os", thousands(stream.ios))];
    let size = size_in_words(stream.mean_bytes);
    match (stream.reads, stream.writes) {
        (0, 0) => {}
        (_, 0) => parts.push(format!("reads of {size}")),
        (0, _) => parts.push(format!("writes of {size}")),
        (reads, writes) => {
            let share = 100.0 * reads as f64 / (reads + writes) as f64;
            parts.push(format!("{share:.0} % reads, {size}"));
        }
    }
    if stream.discards > 0 {
        parts.push(format!("{} discards", thousands(stream.discards)));
    }
    if stream.durable > 0 {
        parts.push(format!("{} flushes or FUA", thousands(stream.durable)));
    }
    parts.push(stream.arrival.clone());
    if let Some(ns) = stream.think_ns.filter(|_| stream.arrival != "open") {
        parts.push(format!("thinks {} (median)", units::latency(ns as f64, true)));
    }
    if let Some(depth) = stream.hidden_depth {
        parts.push(format!("wants more than the {depth} outstanding that the old queue let it have"));
    }
    if !stream.waits_for.is_empty() {
        parts.push(format!("waits for {}", stream.waits_for.join(" and ")));
    }
    parts.join(", ")
}

/// The remark in brackets after figures, if any.
fn ranges(document: &ResultsDocument, recording: &RecordingSummary) -> Option<String> {
    let figures = [Figure::Iops, Figure::Mean, Figure::P99];
    let has_one = |row: &Row<'_>| figures.iter().any(|figure| row.range(*figure).is_some());
    let analysis = Analysis::of(document);
    let mut rows = analysis.jobs.iter().flat_map(|job| &job.operations).flat_map(|operation| &operation.rows);
    let count = recording.alternatives.len();
    let readings = if count == 1 { "the other reading".to_owned() } else { format!("the {count} other readings") };
    let what = if recording.hides_depth() {
        "where it was in nine of ten programs whose depth the recorded queue hid, around its values"
    } else {
        "its values"
    };
    rows.any(has_one).then(|| format!("in brackets after a figure: {what} over {readings} of the recording"))
}

/// The accuracy of the replay under the recording's own scheduler, in a line.
fn self_check(recording: &RecordingSummary) -> Option<String> {
    let under = recording.recorded_under.as_deref()?;
    let checks = &recording.self_check;
    if checks.is_empty() {
        return None;
    }
    let rows: Vec<String> = checks.iter().take(STREAMS_MAX).map(row).collect();
    Some(format!("replayed under {under}, mean latency: {}", rows.join("; ")))
}

fn row(check: &SelfCheck) -> String {
    format!(
        "{} {}s {}, recorded {} ({:+.0} %)",
        check.job,
        if check.operation == Operation::Trim { "discard" } else { check.operation.name() },
        units::latency(check.replayed_ns, true),
        units::latency(check.recorded_ns, true),
        check.off() * 100.0
    )
}

fn row_with_rates(check: &SelfCheck) -> String {
    let [replayed, recorded] = [check.replayed_iops, check.recorded_iops].map(|iops| value(Figure::Iops, iops, false));
    format!("{}, {replayed} a second, recorded {recorded}", row(check))
}

/// Sentences of the conclusion about a recording: where the model does not fit, what the recommendation depends on, and doubts, which
/// are clauses.
pub(crate) fn sentences(document: &ResultsDocument, verdicts: &[Verdict]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let Some(recording) = document.recording.as_deref() else { return Default::default() };
    let mut before = Vec::new();
    let all: u64 = recording.self_check.iter().map(|check| check.ios).sum();
    let off: Vec<String> = recording
        .self_check
        .iter()
        .filter(|check| check.off().abs() > OFF_MAX && check.ios * 20 > all)
        .map(row)
        .collect();
    let mismatches: Vec<String> = recording.mismatches().take(STREAMS_MAX).map(row_with_rates).collect();
    if !mismatches.is_empty() {
        let under = recording.recorded_under.as_deref().unwrap_or("the recorded scheduler");
        let what = mismatches.join("; ");
        before.push(format!(
            "No verdict: under {under}, the replay is not what was recorded: {what}. {}",
            at_fault(recording)
        ));
    } else if !off.is_empty() {
        before.push(format!("The replay does not match the recording: {}. {}", off.join("; "), at_fault(recording)));
    }
    if recording.is_too_lossy {
        return Default::default();
    }
    let recommended = hoistway_answer::verdict::recommended(verdicts);
    let parts_sentences_of = |parts| parts_sentences(recording, parts, recommended);
    let (sentence, doubts) =
        verdicts.first().and_then(|verdict| verdict.parts.as_ref()).map(parts_sentences_of).unwrap_or_default();
    let mut after: Vec<String> = sentence.into_iter().collect();
    if let Some(recommended) = recommended {
        let dependency_sentences: Vec<String> = recording
            .alternatives
            .iter()
            .filter_map(|alternative| dependency_sentence(alternative, recommended))
            .collect();
        if !dependency_sentences.is_empty() {
            after.extend(dependency_sentences);
        } else if !recording.alternatives.is_empty() {
            let count = recording.alternatives.len();
            let readings = if count == 1 { "reading" } else { "readings" };
            after.push(format!("The recommendation is the same in {count} other {readings} of the recording."));
        }
    }
    (before, after, doubts)
}

/// What is at fault if a replay is not what was recorded, and what to do.
fn at_fault(recording: &RecordingSummary) -> String {
    const SETTINGS: &str =
        "the recording was made under another scheduler (--recorded-under) or with another queue (--nr-requests)";
    match recording.device_off_factor {
        Some(factor) if factor < DEVICE_FITS => format!(
            "The device model is not at fault: it serves the recorded requests, as many at a time as then, within {:.0} %. Either the program \
             behind the recording is inferred wrongly (--as timed keeps the recorded times), or {SETTINGS}.",
            (factor - 1.0) * 100.0
        ),
        Some(factor) if recording.is_device_seen => format!(
            "The device model is at fault, though it is that of the recording: with the recorded requests, as many at a time as then, it is off \
             by a factor of {factor:.1}. One calibrated on the device (`hoistway calibrate device`) may be nearer.",
        ),
        Some(factor) => format!(
            "The device model is at fault: with the recorded requests, as many at a time as then, it is off by a factor of {factor:.1}. One made \
             of the recording (no --device) or calibrated on the device (`hoistway calibrate device`) may be nearer.",
        ),
        None => {
            format!("Either the device model does not fit (choose one with --device, or calibrate one), or {SETTINGS}.")
        }
    }
}

/// Whether chance may explain the recommended change, since the recording is one sample. `final_recommendation` is the verdict's final recommendation.
fn parts_sentences(
    recording: &RecordingSummary,
    parts: &PartsCheck,
    final_recommendation: Option<&str>,
) -> (Option<String>, Vec<String>) {
    let PartsCheck { recommended, reference, change, .. } = parts;
    // A factor above 1 is an improvement, so a latency changes by its inverse.
    let is_rate = parts.figure.figure.higher_is_better();
    let percent = |factor: f64| format!("{:+.0} %", (if is_rate { factor } else { factor.recip() } - 1.0) * 100.0);
    let interval = match (change.low, change.high) {
        (Some(low), Some(high)) => {
            let (from, to) = if is_rate { (low, high) } else { (high, low) };
            format!("{} ({} to {})", percent(change.factor), percent(from), percent(to))
        }
        _ => percent(change.factor),
    };
    let figure = &parts.figure;
    let change_text = format!(
        "from {reference} to {recommended} {figure} changes by {interval} over {} parts of the recording",
        parts.parts
    );
    let mut doubts = Vec::new();
    let mut sentence = None;
    if parts.is_beyond_chance {
        sentence = Some(format!("Part by part, {change_text}."));
    } else if final_recommendation == Some(reference) {
        sentence = Some(format!(
            "{recommended} is not recommended: {change_text}, and another recording of the same load may show no difference."
        ));
    } else {
        doubts.push(format!("{change_text}: another recording of the same load may show no difference"));
    }
    let ios = recording.ios_of(&figure.job, figure.operation);
    if recording.seconds < SECONDS_MIN || ios < IOS_MIN {
        doubts.push(format!(
            "the recording has {:.1} s and {} I/Os of {}; one of at least {SECONDS_MIN:.0} s and {} I/Os tells more",
            recording.seconds,
            thousands(ios),
            parts.figure.job,
            thousands(IOS_MIN)
        ));
    }
    (sentence, doubts)
}

fn dependency_sentence(alternative: &AlternativeProgram, recommended: &str) -> Option<String> {
    let other = alternative.recommended.as_deref()?;
    (other != recommended).then(|| {
        format!(
            "The recommendation depends on what the recording does not show: {other} instead of {recommended} if {}. To settle it: {}.",
            alternative.condition, alternative.settled_by
        )
    })
}

#[cfg(test)]
mod tests {
    use hoistway_answer::FigureName;
    use hoistway_answer::document::Change;
    use hoistway_measure::Operation;

    use super::*;

    #[test]
    fn a_change_over_the_parts_is_uncertain_if_chance_explains_it_or_the_recording_is_short() {
        let of = |figure: Figure, is_beyond_chance: bool| PartsCheck {
            figure: FigureName { job: "db".to_owned(), operation: Operation::Read, figure },
            reference: "none".to_owned(),
            recommended: "bfq".to_owned(),
            parts: 10,
            change: Change { factor: 1.25, low: Some(1.0), high: Some(2.0) },
            is_beyond_chance,
        };
        let recording = |seconds: f64, reads: u64| RecordingSummary {
            seconds,
            streams: vec![RecordedStream { name: "db".to_owned(), reads, ..RecordedStream::default() }],
            ..RecordingSummary::default()
        };
        let long = recording(60.0, 5000);
        let sentence = "Part by part, from none to bfq db:read:mean changes by -20 % (-50 % to +0 %) over 10 parts of the recording.";
        assert_eq!(
            parts_sentences(&long, &of(Figure::Mean, true), Some("bfq")),
            (Some(sentence.to_owned()), Vec::new())
        );
        let doubts = [
            "from none to bfq db:read:iops changes by +25 % (+0 % to +100 %) over 10 parts of the recording: another recording of the \
             same load may show no difference",
            "the recording has 60.0 s and 999 I/Os of db; one of at least 10 s and 1,000 I/Os tells more",
        ];
        assert_eq!(
            parts_sentences(&recording(60.0, 999), &of(Figure::Iops, false), Some("bfq")),
            (None, doubts.map(str::to_owned).to_vec())
        );
        let withdrawn = parts_sentences(&long, &of(Figure::Mean, false), Some("none"));
        assert!(withdrawn.0.is_some_and(|sentence| sentence.starts_with("bfq is not recommended: from none to bfq ")));
        assert_eq!(withdrawn.1, Vec::<String>::new());
        assert_eq!(parts_sentences(&recording(9.9, 5000), &of(Figure::Mean, true), Some("bfq")).1.len(), 1);
    }

    #[test]
    fn a_model_made_of_the_recording_is_not_advised_where_it_was_used() {
        let said = |factor: Option<f64>, is_device_seen: bool| {
            at_fault(&RecordingSummary { device_off_factor: factor, is_device_seen, ..RecordingSummary::default() })
        };
        assert!(said(Some(2.0), false).contains("(no --device)"));
        let seen = said(Some(2.0), true);
        assert!(seen.contains("off by a factor of 2.0") && !seen.contains("--device"), "{seen}");
        assert!([true, false].map(|seen| said(Some(1.01), seen)).iter().all(|text| text.contains("not at fault")));
        assert!([None, Some(1.01), Some(2.0)].map(|factor| said(factor, true)).iter().all(|text| !text.contains("  ")));
    }
}
