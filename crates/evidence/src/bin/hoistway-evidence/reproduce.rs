//! `hoistway reproduce`: compares published tables with simulations.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use hoistway_evidence::reproduction::{Cell, Length, RESEARCH, Reproduced, Reproduction, Sensitivity, TABLES, Table};
use hoistway_render::text::wrapped;

use hoistway_render::text::aligned;
use hoistway_terminal::Ending;
use hoistway_terminal::output::{DocumentFormat as Format, Output};

use super::tables;

/// Reproduce published measurements of I/O schedulers: print each simulated figure, the published one, and the error.
///
/// Figures that a device or a host was calibrated on are marked and not judged; all others are predictions.
///
/// Examples:
///   hoistway reproduce --list
///   hoistway reproduce habr-ssd habr-nvme
///   hoistway reproduce habr-ssd --row kyber
///   hoistway reproduce habr-nvme --sensitivity
///   hoistway reproduce research
///   hoistway reproduce --format json > tables.json
///   hoistway reproduce --tables tables.json --format markdown --cells cells.csv
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Names of tables, or research for tables of schedulers that Linux does not have. [default: all except research]
    names: Vec<String>,
    /// Print only rows whose names contain this text. The whole table is simulated nevertheless.
    #[arg(long, value_name = "TEXT", requires = "names", conflicts_with = "sensitivity")]
    row: Option<String>,
    /// List the tables and run nothing.
    #[arg(long, conflicts_with_all = ["names", "full", "sensitivity", "format"])]
    list: bool,
    /// Simulate as long as the published runs took, instead of until the figures settle.
    #[arg(long)]
    full: bool,
    /// Simulate each table again with each unmeasured parameter of its device and host halved and doubled, and report
    /// what changes.
    #[arg(long)]
    sensitivity: bool,
    /// The output format. Of a long table Markdown shows what is missed; --cells has the rest.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Documents of --format json, shown instead of simulating.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["list", "full", "sensitivity"])]
    tables: Vec<PathBuf>,
    /// Also write all cells, a line each.
    #[arg(long, value_name = "FILE.csv", conflicts_with = "list")]
    cells: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let output = Output::open(None)?;
    let width = output.text_width();
    if arguments.list {
        let rows: Vec<[String; 2]> =
            TABLES.iter().chain(RESEARCH).map(|table| [table.name.to_owned(), table.title.to_owned()]).collect();
        output.write(aligned(&rows))?;
        return Ok(Ending::Done);
    }
    let cells_output = arguments.cells.as_deref().map(|file| Output::open(Some(file))).transpose()?;
    let selected = select_tables(&arguments.names)?;
    let mut reproduced = if arguments.tables.is_empty() {
        let length = if arguments.full { Length::Published } else { Length::Settled };
        tables::simulated(&selected, |table| {
            let mut cells = table.reproduce(length)?;
            if arguments.sensitivity {
                cells.sensitivity = table.sensitivity(length)?;
            }
            Ok(cells)
        })?
    } else {
        let read = tables::read(&arguments.tables)?;
        if arguments.names.is_empty() { read } else { tables::named(read, &selected)? }
    };
    if let Some(text) = &arguments.row {
        reproduced.iter_mut().try_for_each(|table| select_rows(table, text))?;
    }
    let named = |table: &Reproduced| {
        Table::named(&table.name).with_context(|| format!("--tables: no table is called {}", table.name))
    };
    let tables: Vec<&Table> = reproduced.iter().map(named).collect::<Result<_>>()?;
    if let Some(file) = cells_output {
        file.write(cells_as_csv(&tables, &reproduced)?)?;
    }
    let text = match arguments.format {
        Format::Json => serde_json::to_string_pretty(&Reproduction::of(reproduced))? + "\n",
        Format::Table => {
            tables.iter().zip(&reproduced).map(|(table, cells)| render_text(table, cells, width)).collect()
        }
        Format::Markdown => {
            tables.iter().zip(&reproduced).map(|(table, cells)| render_markdown(table, cells)).collect()
        }
    };
    output.write(&text)?;
    Ok(Ending::Done)
}

/// The tables with these names; without names, all tables of Linux's schedulers.
fn select_tables(names: &[String]) -> Result<Vec<&'static Table>> {
    if names.is_empty() {
        return Ok(TABLES.iter().collect());
    }
    let mut tables = Vec::with_capacity(names.len());
    for name in names {
        if name == "research" {
            tables.extend(RESEARCH);
            continue;
        }
        let Some(table) = Table::named(name) else {
            let known: Vec<_> = TABLES.iter().chain(RESEARCH).map(|table| table.name).collect();
            bail!("reproduce {name}: unknown table (expected research, or one of {})", known.join(", "));
        };
        tables.push(table);
    }
    Ok(tables)
}

/// Keeps the rows whose names contain this text.
fn select_rows(table: &mut Reproduced, text: &str) -> Result<()> {
    let mut known: Vec<String> = table.cells.iter().map(|cell| cell.row.clone()).collect();
    known.dedup();
    table.cells.retain(|cell| cell.row.contains(text));
    if table.cells.is_empty() {
        bail!("--row {text}: no row of {} contains it (expected a part of {})", table.name, known.join("; "));
    }
    Ok(())
}

/// The cells as a matrix with a header; `None` if any cell has a published value or a claim.
fn as_matrix(cells: &[Cell]) -> Option<Vec<Vec<String>>> {
    if cells.iter().any(|cell| cell.published.is_some() || cell.claim.is_some()) {
        return None;
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut head = vec![String::new()];
    for cell in cells {
        if rows.last().is_none_or(|row| row[0] != cell.row) {
            rows.push(vec![cell.row.clone()]);
        }
        if rows.len() == 1 {
            head.push(cell.column.clone());
        }
        if let Some(row) = rows.last_mut() {
            row.push(figure(cell.ours));
        }
    }
    rows.insert(0, head);
    Some(rows)
}

/// A Markdown page shows all cells of tables with at most this many.
const CELLS_SHOWN: usize = 6;

/// Of longer tables, a Markdown page shows at most this many missed cells.
const MISSED_SHOWN: usize = 12;

const HEAD: [&str; 6] = ["", "", "here", "published", "error", ""];

/// The texts of a cell, in the order of [`HEAD`].
fn texts(cell: &Cell) -> [String; 6] {
    let verdict = match (&cell.claim, cell.holds) {
        _ if cell.calibration => "calibration".to_owned(),
        (Some(claim), Some(true)) => format!("holds: {claim}"),
        (Some(claim), Some(false)) => format!("MISSED: {claim}"),
        _ => String::new(),
    };
    let error = cell.error.map(|error| format!("{:+.1} %", 100.0 * error)).unwrap_or_default();
    [
        cell.row.clone(),
        cell.column.clone(),
        with_interval(cell),
        cell.published.map(figure).unwrap_or_default(),
        error,
        verdict,
    ]
}

/// The simulated figure, with half its confidence interval if known.
fn with_interval(cell: &Cell) -> String {
    let interval = cell.interval.map(|interval| format!(" ±{:.1} %", 100.0 * interval)).unwrap_or_default();
    figure(cell.ours) + &interval
}

/// Formats a figure with four digits, or with all digits before the decimal point.
fn figure(value: f64) -> String {
    let digits = value.abs().max(1e-3).log10().floor() as i32 + 1;
    format!("{value:.*}", usize::try_from(4 - digits).unwrap_or(0).min(4))
}

fn summary(cells: &Reproduced) -> String {
    let [holding, judged, calibrated] = cells.counts();
    format!("{holding} of {judged} claims hold; {calibrated} cells are calibration.")
}

/// One row per changed unmeasured parameter: the change, and its effect.
fn sensitivity_rows(baseline: &Reproduced) -> impl Iterator<Item = [String; 2]> {
    baseline.sensitivity.iter().map(|changed| {
        let Sensitivity { key, value, cells, .. } = changed;
        let [holding, judged, _] = Reproduced::counts_of(cells);
        let mut text = format!("{holding} of {judged} claims hold");
        if let Some(median) = Sensitivity::median_error(cells) {
            text += &format!(", median error {:.1} %", 100.0 * median);
        }
        if let Some([before, after]) = changed.most_changed_cell(&baseline.cells) {
            let (name, change_percent) =
                (format!("{}, {}", before.row, before.column), 100.0 * (after.ours / before.ours - 1.0));
            text += &format!(
                "; {name} changes most: {} instead of {} ({change_percent:+.1} %)",
                figure(after.ours),
                figure(before.ours)
            );
        }
        [format!("{key} = {value} instead of {}", changed.default_value), text]
    })
}

fn render_text(table: &Table, cells: &Reproduced, width: usize) -> String {
    let rows: Vec<[String; 6]> =
        std::iter::once(HEAD.map(str::to_owned)).chain(cells.cells.iter().map(texts)).collect();
    let widths: [usize; 6] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = wrapped(&format!("{}: {}", table.name, table.title), width, 0);
    text += &wrapped(table.source, width, 0);
    if let Some(matrix) = as_matrix(&cells.cells) {
        let widths: Vec<usize> = (0..matrix[0].len())
            .map(|column| matrix.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        for row in &matrix {
            let mut line = format!("{:1$}", row[0], widths[0]);
            for (text, width) in row[1..].iter().zip(&widths[1..]) {
                line += &format!("  {text:>width$}");
            }
            text += line.trim_end();
            text.push('\n');
        }
        return text + &wrapped(table.story, width, 0) + "\n";
    }
    for row in &rows {
        let mut line = format!("{:1$}  {2:3$}", row[0], widths[0], row[1], widths[1]);
        for (text, width) in row[2..5].iter().zip(&widths[2..5]) {
            line += &format!("  {text:>width$}");
        }
        line += &format!("  {}", row[5]);
        text += line.trim_end();
        text.push('\n');
    }
    text += &wrapped(&summary(cells), width, 0);
    text += &wrapped(table.story, width, 0);
    for line in sensitivity_rows(cells) {
        text += &wrapped(&line.join(": "), width, 2);
    }
    text + "\n"
}

/// All cells, a line each.
fn cells_as_csv(tables: &[&Table], reproduced: &[Reproduced]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["table", "row", "column", "here", "published", "error", "claim", "without"])?;
    for (table, cells) in tables.iter().zip(reproduced) {
        for cell in &cells.cells {
            let without = cell.without.map(figure).unwrap_or_default();
            writer.write_record([table.name.to_owned()].iter().chain(&texts(cell)).chain([&without]))?;
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// The missed cells that are farthest off, in their order in the table.
fn worst_missed(cells: &[Cell]) -> Vec<&Cell> {
    let missed = cells.iter().filter(|cell| cell.holds == Some(false));
    let off_by = |cell: &Cell| cell.error.map_or(0.0, |error| (1.0 + error).ln().abs());
    let mut ranked: Vec<(usize, &Cell)> = missed.enumerate().collect();
    ranked.sort_by(|(_, one), (_, other)| off_by(other).total_cmp(&off_by(one)));
    ranked.truncate(MISSED_SHOWN);
    ranked.sort_by_key(|(place, _)| *place);
    ranked.into_iter().map(|(_, cell)| cell).collect()
}

/// The texts of a cell, with percentages as narrow as in the tables of comparisons.
fn markdown_texts(cell: &Cell) -> [String; 6] {
    let mut texts = texts(cell);
    for column in [2, 4, 5] {
        texts[column] = texts[column].replace(" %", "%");
    }
    texts
}

fn render_markdown(table: &Table, cells: &Reproduced) -> String {
    let mut text = format!("## {}\n\n{}.\n\nSource: {}.\n\n", table.name, table.title, table.source);
    let is_long = cells.cells.len() > CELLS_SHOWN;
    if let Some(matrix) = as_matrix(&cells.cells) {
        if is_long {
            return text
                + &format!("The {} cells are in the file of `--cells`. {}\n\n", cells.cells.len(), table.story);
        }
        for (index, row) in matrix.iter().enumerate() {
            text += &format!("| {} |\n", row.join(" | "));
            if index == 0 {
                text += &format!("| --- |{}\n", " ---: |".repeat(row.len() - 1));
            }
        }
        return text + &format!("\n{}\n\n", table.story);
    }
    let shown = if is_long { worst_missed(&cells.cells) } else { cells.cells.iter().collect() };
    if !shown.is_empty() {
        text += "| row | column | here | published | error | |\n| --- | --- | ---: | ---: | ---: | --- |\n";
        shown.iter().for_each(|cell| text += &format!("| {} |\n", markdown_texts(cell).join(" | ")));
        text.push('\n');
    }
    if is_long {
        let missed = cells.cells.iter().filter(|cell| cell.holds == Some(false)).count();
        text += &match missed {
            0 => format!("None of {} cells is missed. ", cells.cells.len()),
            1..=MISSED_SHOWN => format!("Of {} cells the missed are shown. ", cells.cells.len()),
            _ => format!("Of {} cells the worst {MISSED_SHOWN} of {missed} missed are shown. ", cells.cells.len()),
        };
    }
    text += &format!("{} {}\n\n", summary(cells), table.story);
    if !cells.sensitivity.is_empty() {
        text += "| unmeasured parameter | what changes |\n| --- | --- |\n";
        for line in sensitivity_rows(cells) {
            text += &format!("| {} |\n", line.join(" | "));
        }
        text.push('\n');
    }
    text
}
