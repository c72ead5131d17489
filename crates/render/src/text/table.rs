//! The comparison table.

use hoistway_answer::ResultsDocument;
use hoistway_answer::analysis::{Analysis, JobAnalysis, Variant};
use hoistway_answer::document::{Decision, Run, Verdict};
use serde_json::Value;

use crate::text::advice::advice;
use crate::text::columns::Column;
use crate::text::failures;
use crate::text::grid::{Grid, SHORT_BASELINE_NAME, Spacing, baseline};
use crate::text::layout::Layout;
use crate::text::recording::recording_lines;
use crate::text::words::{device_name, list};
use crate::text::wrap::wrap_hanging;
use hoistway_measure::units;

/// The style of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Colour the best figure of each column green and the worst red.
    pub colour: bool,
    /// Width of the terminal: a wider table drops less important columns. `None` for no limit.
    pub width: Option<u16>,
    /// Also show columns that most readers do not need: medians, p99.9.
    pub wide: bool,
    /// Use only ASCII in the text added here; names and notices stay unchanged.
    pub ascii: bool,
}

/// Tables are made to fit into this width, if possible, when no width is given.
pub(crate) const DEFAULT_WIDTH: usize = 100;

/// Minimum width of prose, however narrow the terminal.
const WIDTH_MIN: usize = 40;

/// The comparison as text: a line about the setup, a table for each job of the job file, the notices, and the
/// conclusion.
///
/// A job's processes (clones) are combined: IOPS and bandwidth are *sums* over them, latencies are total latencies
/// (fio's `lat`) from the merged histograms. Repeats of a run are averaged, except for the largest latency.
pub fn table(analysis: &Analysis<'_>, style: &Style) -> String {
    let document = analysis.document;
    let mut text = match style.width {
        None => setup_line(document) + "\n",
        Some(width) => wrap_hanging(&setup_line(document), usize::from(width).max(WIDTH_MIN), 0, 2),
    };
    let prose_width = style.width.map_or(DEFAULT_WIDTH, usize::from).clamp(WIDTH_MIN, DEFAULT_WIDTH);
    for line in recording_lines(document) {
        let indent = line.len() - line.trim_start().len();
        text += &wrap_hanging(line.trim_start(), prose_width, indent, indent + 4);
    }
    for job in analysis.jobs.iter().filter(|job| !job.operations.is_empty()) {
        text += &format!("\n{}\n", title(job));
        text += &job_table(analysis, job, style);
    }
    text.push('\n');
    for line in remarks(analysis, style.ascii) {
        text += &wrap_hanging(&line, prose_width, 0, 2);
    }
    if !document.conclusion.is_empty() {
        text.push('\n');
    }
    for sentence in &document.conclusion {
        text += &wrap_hanging(sentence, prose_width, 0, 2);
    }
    let is_change = |verdict: &Verdict| verdict.decision == Decision::Change;
    if document.advice.is_empty() && document.verdicts.iter().any(is_change) {
        text += &wrap_hanging(
            "Use --advice DEVICE, such as --advice sda, to print the commands for this change.",
            prose_width,
            0,
            2,
        );
    }
    text + &advice(analysis, prose_width)
}

/// A job with its number of processes.
pub(crate) fn title(job: &JobAnalysis<'_>) -> String {
    let processes = if job.processes == 1 { "1 process".to_owned() } else { format!("{} processes", job.processes) };
    format!("{}, {processes}", job.name)
}

/// The setup of the figures.
pub(crate) fn setup_line(document: &ResultsDocument) -> String {
    let plural = |count, name| if count == 1 { format!("1 {name}") } else { format!("{count} {name}s") };
    let properties = |device: &Value, kernel: &str, cpus, hw_queues| {
        // File names are taken as separate drives, which may not be intended.
        let each = if device.is_array() { " (one for each file name)" } else { "" };
        let (cpus, hw_queues) = (plural(cpus, "CPU"), plural(hw_queues, "hardware queue"));
        [format!("{}{each}", device_name(device)), format!("Linux {kernel}"), cpus, hw_queues]
    };
    let mut setups: Vec<[String; 4]> = document
        .setups
        .iter()
        .map(|setup| properties(&setup.device, &setup.kernel, setup.cpus, setup.hw_queues))
        .collect();
    if setups.is_empty() {
        setups.push(properties(&document.device, &document.kernel, document.cpus, document.hw_queues));
    }
    format!(
        "{} on {}, seed {}, {} {}",
        document.job_file,
        common_setup_text(&setups),
        document.seed,
        simulated_time(document),
        if document.is_real { "for real" } else { "simulated" },
    )
}

/// The common properties of setups once, and the differing ones in brackets.
fn common_setup_text(setups: &[[String; 4]]) -> String {
    let is_shared = |index: usize| setups.iter().all(|properties| properties[index] == setups[0][index]);
    let shared: Vec<&str> = (0..4).filter(|&index| is_shared(index)).map(|index| &*setups[0][index]).collect();
    let own = |properties: &[String; 4]| {
        (0..4).filter(|&index| !is_shared(index)).map(|index| properties[index].clone()).collect::<Vec<_>>().join(", ")
    };
    let mut varied: Vec<String> = setups.iter().map(own).filter(|own| !own.is_empty()).collect();
    varied.dedup();
    match (&shared[..], &varied[..]) {
        (_, []) => shared.join(", "),
        ([], _) => varied.join("; "),
        _ => format!("{} ({})", shared.join(", "), varied.join("; ")),
    }
}

/// Virtual time of a run: the same for all of them, or the range.
fn simulated_time(document: &ResultsDocument) -> String {
    let times = || document.runs.iter().map(|run| run.simulated_seconds);
    let (shortest, longest) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let (shortest, longest) = (units::seconds(shortest.min(longest)), units::seconds(longest));
    if shortest == longest { longest } else { format!("{shortest} to {longest}") }
}

/// Whether a run has I/Os, but none of them was measured.
fn ended_in_its_ramp(run: &Run) -> bool {
    run.simulated_ios > 0 && run.jobs.iter().all(|job| job.failed_processes() == 0)
}

/// The remarks below the tables, one line each.
pub(crate) fn remarks(analysis: &Analysis<'_>, ascii: bool) -> Vec<String> {
    let document = analysis.document;
    let mut lines: Vec<String> = failures::remark(analysis).into_iter().collect();
    if analysis.jobs.iter().any(|job| !job.operations.is_empty()) {
        lines.push(
            "IOPS and bandwidth: sum over the job's processes. Latency: total (fio's lat), all their I/Os.".to_owned(),
        );
    } else if document.runs.iter().any(ended_in_its_ramp) {
        lines.push(
            "No I/O was measured: every run ended before its ramp was over. --ramp 0 measures it whole.".to_owned(),
        );
    } else {
        lines.push("There was no I/O.".to_owned());
    }
    if document.runs.iter().flat_map(|run| &run.jobs).any(|job| job.done_seconds.is_some()) {
        lines.push(
            "Done in: from the first recorded I/O of a process to its last completion, the longest of the job; - if the end of the run \
             cut it off."
                .to_owned(),
        );
    }
    let repeats = analysis.repeats();
    if repeats > 1 {
        let sign = if ascii { "+-" } else { "±" };
        lines.push(format!(
            "Means of {repeats} repeats (max: the largest); {sign} is half the 95 % confidence interval. Differences are \
             paired: same seed, same offered load. In brackets: within the noise."
        ));
    }
    if let Some(job) = analysis.jobs.iter().find(|job| job.baselines().len() > 1) {
        let names: Vec<String> =
            job.baselines().into_iter().map(|index| analysis.variants[index].label.clone()).collect();
        let header_name = baseline(analysis, job);
        lines.push(format!(
            "vs {header_name}: each row is compared with the row of its own kernel, device and host: {}.",
            list(&names)
        ));
    }
    lines.extend(analysis.variants.iter().filter_map(Variant::tunables));
    if document.partial {
        lines.push("Incomplete: some runs are missing.".to_owned());
    }
    lines.extend(document.notices.iter().cloned());
    lines
}

/// The table of one job, as narrow as necessary.
fn job_table(analysis: &Analysis<'_>, job: &JobAnalysis<'_>, style: &Style) -> String {
    let table = JobTable { analysis, job, style };
    let limit = style.width.map_or(DEFAULT_WIDTH, usize::from);
    let columns = if style.wide { &Column::ALL[..] } else { &Column::MAIN };
    let has_done = job.operations.iter().flat_map(|operation| &operation.rows).any(|row| row.done_seconds.is_some());
    let columns = if has_done { &Column::with_done(columns) } else { columns };
    for spacing in [Spacing::Wide, Spacing::Close] {
        let layout = table.layout(columns, spacing);
        // Without a given width, no column is dropped.
        if layout.width() <= limit || (spacing == Spacing::Close && style.width.is_none()) {
            return table.text(&Narrowed { spacing, layout, left_out: Vec::new() });
        }
    }
    let (dispensable, last) = Column::OPTIONAL_COLUMNS.split_at(Column::BEFORE_STACKING);
    let narrow = table.without_dispensable_columns(columns, dispensable, Spacing::Narrow, limit);
    if narrow.layout.width() <= limit {
        return table.text(&narrow);
    }
    let stacked = table.without_dispensable_columns(columns, dispensable, Spacing::Stacked, limit);
    if stacked.layout.width() <= limit {
        return table.text(&stacked);
    }
    table.text(&table.without_dispensable_columns(columns, &[dispensable, last].concat(), Spacing::Stacked, limit))
}

/// The inputs of a job's table.
struct JobTable<'a> {
    analysis: &'a Analysis<'a>,
    job: &'a JobAnalysis<'a>,
    style: &'a Style,
}

/// A table without the columns that did not fit.
struct Narrowed {
    spacing: Spacing,
    layout: Layout,
    left_out: Vec<Column>,
}

impl JobTable<'_> {
    fn layout(&self, columns: &[Column], spacing: Spacing) -> Layout {
        let ascii = self.style.ascii;
        Layout::new(&Grid::new(self.analysis, self.job, columns, spacing, ascii), spacing, ascii)
    }

    /// The table without as many dispensable columns as necessary.
    fn without_dispensable_columns(
        &self,
        all: &[Column],
        dispensable: &[Column],
        spacing: Spacing,
        limit: usize,
    ) -> Narrowed {
        let mut columns = all.to_vec();
        let mut narrowed = Narrowed { spacing, layout: self.layout(&columns, spacing), left_out: Vec::new() };
        for dispensable in dispensable {
            if narrowed.layout.width() <= limit {
                break;
            }
            if let Some(index) = columns.iter().position(|column| column == dispensable) {
                narrowed.left_out.push(columns.remove(index));
                narrowed.layout = self.layout(&columns, spacing);
            }
        }
        narrowed
    }

    fn text(&self, table: &Narrowed) -> String {
        let baseline = baseline(self.analysis, self.job);
        let header_name = table.spacing.baseline(baseline);
        let mut notes = Vec::new();
        if header_name == SHORT_BASELINE_NAME && header_name != baseline {
            notes.push(format!("({header_name}: {baseline})"));
        }
        if !table.left_out.is_empty() {
            let names: Vec<String> = table.left_out.iter().map(|column| column.name(header_name)).collect();
            notes.push(format!("(no room for: {})", names.join(", ")));
        }
        let width = self.style.width.map_or(DEFAULT_WIDTH, usize::from).max(WIDTH_MIN);
        let notes: String = notes.iter().map(|note| wrap_hanging(note, width, 0, 2)).collect();
        table.layout.text(self.style.colour) + &notes
    }
}
