//! The screen of `hoistway top`, from two states of a server.

use hoistway_serve::{ExportState, Latencies, State};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Paragraph, Row, Table, Wrap};

const HEADER: [&str; 14] = [
    "export", "clients", "flight", "held", "read/s", "MiB/s", "p50 us", "p99 us", "write/s", "MiB/s", "p50 us",
    "p99 us", "share", "weight",
];
/// Columns that a narrow window does without, those first that are missed least.
const SPARED: [usize; 13] = [1, 6, 10, 13, 2, 3, 5, 9, 12, 7, 11, 8, 4];
/// Width of names from which on columns are left out.
const NAME_WIDTH: usize = 20;

/// Draws rates between two states; with one state, only gauges.
pub(super) fn draw(frame: &mut Frame<'_>, before: Option<&State>, now: &State) {
    let tunables: Vec<_> = now.tunables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let in_flight: u64 = now.exports.iter().map(|export| export.in_flight).sum();
    let held_back: u64 = now.exports.iter().map(|export| export.held_back).sum();
    let waiting = in_flight.saturating_sub(held_back + now.at_target as u64);
    let head = Text::from(vec![
        Line::styled(
            format!(
                "{}  nr_requests={}   {} wait for the scheduler, {} are at the target, {} are held back by limits",
                now.scheduler(),
                now.nr_requests,
                waiting,
                now.at_target,
                held_back
            ),
            Style::new().add_modifier(Modifier::BOLD),
        ),
        Line::raw(tunables.join(" ")),
    ]);
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(4), Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    frame.render_widget(Paragraph::new(head).wrap(Wrap { trim: true }), top);

    let past = |export: &ExportState| {
        let before = before?;
        let past = before.exports.iter().find(|other| other.name == export.name)?;
        Some((past, now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9))
    };
    let rates: Vec<_> =
        now.exports.iter().map(|export| past(export).and_then(|(past, s)| Rates::of(past, export, s))).collect();
    let all: f64 = rates.iter().flatten().map(Rates::bytes).sum();
    let rows: Vec<_> =
        now.exports.iter().zip(&rates).map(|(export, rates)| cells(export, rates.as_ref(), all)).collect();
    let columns = columns(&rows, usize::from(middle.width));
    let shown =
        |cells: Vec<String>| Row::new(columns.iter().map(|&(at, width)| cut(&cells[at], width)).collect::<Vec<_>>());
    let header = shown(HEADER.map(str::to_owned).into()).style(Style::new().add_modifier(Modifier::REVERSED));
    let widths = columns.iter().map(|&(_, width)| Constraint::Length(width as u16));
    // Below the header.
    let rows_beyond = rows.len().saturating_sub(usize::from(middle.height.saturating_sub(1)));
    let columns_beyond = HEADER.len() - columns.len();
    let table = Table::new(rows.into_iter().map(shown), widths).header(header).column_spacing(1);
    frame.render_widget(table, middle);
    let beyond = [(rows_beyond, "export(s)"), (columns_beyond, "column(s)")].into_iter().filter(|(more, _)| *more > 0);
    let beyond: Vec<_> = beyond.map(|(more, what)| format!("{more} {what}")).collect();
    let beyond = if beyond.is_empty() { String::new() } else { beyond.join(" and ") + " more in a larger window; " };
    let hint = format!("{beyond}q: quit; use hoistway ctl to change weights, limits and the scheduler");
    frame.render_widget(Paragraph::new(hint), bottom);
}

/// The columns that such a window has room for, and how wide they are: a figure is all there or not at all.
fn columns(rows: &[Vec<String>], width: usize) -> Vec<(usize, usize)> {
    let needs = |at: usize| rows.iter().map(|cells| &*cells[at]).chain([HEADER[at]]).map(wide).max().unwrap_or(0);
    let mut columns: Vec<_> = (0..HEADER.len()).map(|at| (at, needs(at))).collect();
    let longest = std::mem::replace(&mut columns[0].1, needs(0).min(NAME_WIDTH));
    let taken = |columns: &[(usize, usize)]| columns.iter().map(|(_, width)| width + 1).sum::<usize>() - 1;
    for spared in SPARED {
        if taken(&columns) <= width {
            break;
        }
        columns.retain(|&(at, _)| at != spared);
    }
    // What is left over is for the names.
    let others = taken(&columns) - columns[0].1;
    columns[0].1 = longest.min(width.saturating_sub(others));
    columns
}

fn wide(text: &str) -> usize {
    Line::raw(text).width()
}

/// A text cut to a number of columns, with a mark where it was cut.
fn cut(text: &str, width: usize) -> String {
    if wide(text) <= width {
        return text.to_owned();
    }
    let mut kept = text.to_owned();
    while wide(&kept) >= width.max(1) && kept.pop().is_some() {}
    kept + "\u{2026}"
}

/// What an export did, a second.
struct Rates {
    reads: f64,
    read_bytes: f64,
    read_latency: Latencies,
    writes: f64,
    written_bytes: f64,
    write_latency: Latencies,
}

impl Rates {
    /// None if no time has passed, or the export is a new one of that name.
    fn of(past: &ExportState, now: &ExportState, seconds: f64) -> Option<Rates> {
        let rate = |past: u64, now: u64| now.checked_sub(past).map(|new| new as f64 / seconds);
        if seconds <= 0.0 {
            return None;
        }
        Some(Rates {
            reads: rate(past.reads, now.reads)?,
            read_bytes: rate(past.read_bytes, now.read_bytes)?,
            read_latency: now.read_latency.since(&past.read_latency),
            writes: rate(past.writes, now.writes)?,
            written_bytes: rate(past.written_bytes, now.written_bytes)?,
            write_latency: now.write_latency.since(&past.write_latency),
        })
    }

    fn bytes(&self) -> f64 {
        self.read_bytes + self.written_bytes
    }
}

fn cells(export: &ExportState, rates: Option<&Rates>, all_bytes: f64) -> Vec<String> {
    let name = if export.name.is_empty() { "(all)" } else { &export.name };
    let mut cells = vec![
        crate::text::one_line(name),
        export.connections.to_string(),
        export.in_flight.to_string(),
        export.held_back.to_string(),
    ];
    let direction = |count: f64, bytes: f64, latency: &Latencies| {
        let us = |percent| latency.percentile(percent).map_or_else(|| "-".into(), |ns| short(ns as f64 / 1e3));
        [short(count), short(bytes / f64::from(1 << 20)), us(50.0), us(99.0)]
    };
    match rates {
        Some(rates) => {
            cells.extend(direction(rates.reads, rates.read_bytes, &rates.read_latency));
            cells.extend(direction(rates.writes, rates.written_bytes, &rates.write_latency));
            let share =
                if all_bytes > 0.0 { format!("{:.0} %", 100.0 * rates.bytes() / all_bytes) } else { "-".into() };
            cells.push(share);
        }
        None => cells.extend(std::iter::repeat_n("-".to_owned(), 9)),
    }
    cells.push(export.weight.to_string());
    cells
}

/// At least two figures, at most seven characters below 10 millions.
fn short(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".into(),
        _ if value < 10.0 => format!("{value:.1}"),
        _ if value < 100_000.0 => format!("{value:.0}"),
        _ => format!("{:.0}k", value / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn export(name: &str, weight: u16) -> ExportState {
        ExportState {
            name: name.into(),
            bytes: 1 << 30,
            read_only: false,
            weight,
            ioprio: "be/4".into(),
            limits: String::new(),
            connections: 2,
            reads: 0,
            read_bytes: 0,
            writes: 0,
            written_bytes: 0,
            others: 0,
            errors: 0,
            in_flight: 0,
            held_back: 0,
            read_latency: Latencies::default(),
            write_latency: Latencies::default(),
            other_latency: Latencies::default(),
        }
    }

    fn state(at_ns: u64) -> State {
        State {
            schedulers: "none mq-deadline kyber [bfq]".into(),
            nr_requests: "64".into(),
            tunables: vec![("slice_idle".into(), "8".into())],
            at_target: 0,
            at_ns,
            exports: vec![export("vm1", 400), export("vm2", 100)],
        }
    }

    /// The lines of a screen, without spaces at their ends.
    fn drawn(before: Option<&State>, now: &State, width: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, 12)).unwrap();
        terminal.draw(|frame| draw(frame, before, now)).unwrap();
        let buffer = terminal.backend().buffer();
        let line =
            |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..buffer.area.height).map(line).collect()
    }

    #[test]
    fn rates_are_what_came_between_two_looks() {
        let (before, mut now) = (state(1_000_000_000), state(3_000_000_000));
        let vm1 = &mut now.exports[0];
        (vm1.reads, vm1.read_bytes, vm1.in_flight, vm1.held_back) = (2000, 6 << 20, 40, 8);
        vm1.read_latency = Latencies { bins: vec![(2048, 1980), (1 << 20, 20)], sum_ns: 0 };
        let vm2 = &mut now.exports[1];
        (vm2.writes, vm2.written_bytes) = (8, 2 << 20);
        vm2.write_latency = Latencies { bins: vec![(4096, 8)], sum_ns: 0 };
        now.at_target = 30;
        let lines = drawn(Some(&before), &now, 140);
        assert!(
            lines[0]
                .starts_with("bfq  nr_requests=64   2 wait for the scheduler, 30 are at the target, 8 are held back")
        );
        assert_eq!(lines[1], "slice_idle=8");
        let words = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>();
        let expected = "vm1 2 40 8 1000 3.0 2.0 2.0 0 0 - - 75 % 400";
        assert_eq!(words(5).join(" "), expected);
        assert_eq!(words(6).join(" "), "vm2 2 0 0 0 0 - - 4.0 1.0 4.1 4.1 25 % 100");
    }

    #[test]
    fn a_first_look_and_an_export_that_began_anew_have_no_rates() {
        let mut now = state(2_000_000_000);
        let words = |lines: &[String], at: usize| lines[at].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&drawn(None, &now, 140), 5), "vm1 2 0 0 - - - - - - - - - 400");
        let mut before = state(1_000_000_000);
        before.exports[0].reads = 5;
        before.exports.pop();
        now.exports[0].reads = 1;
        let lines = drawn(Some(&before), &now, 140);
        assert_eq!(words(&lines, 5), "vm1 2 0 0 - - - - - - - - - 400");
        assert_eq!(words(&lines, 6), "vm2 2 0 0 - - - - - - - - - 100");
    }

    #[test]
    fn a_narrow_window_has_fewer_columns_and_each_figure_whole() {
        let (before, mut now) = (state(1_000_000_000), state(3_000_000_000));
        for (at, export) in now.exports.iter_mut().enumerate() {
            (export.reads, export.read_bytes) = (200_000, 800_000_000);
            export.read_latency = Latencies { bins: vec![(1_000_000_000, 200_000)], sum_ns: 0 };
            export.name = format!("vm-production-{at}");
        }
        let before = State {
            exports: now
                .exports
                .iter()
                .map(|it| ExportState { name: it.name.clone(), ..before.exports[0].clone() })
                .collect(),
            ..before
        };
        let whole: Vec<_> = drawn(Some(&before), &now, 140)[5].split_whitespace().map(str::to_owned).collect();
        for width in 30..140 {
            let lines = drawn(Some(&before), &now, width);
            for word in lines[5].split_whitespace() {
                assert!(whole.iter().any(|figure| figure == word), "{word} of {whole:?} at {width}");
            }
            assert!(lines[6].starts_with("vm-production-1 "), "{lines:?}");
        }
        let lines = drawn(Some(&before), &now, 80);
        assert!(lines[4].contains("p99 us") && lines[5].contains("1000k"), "{lines:?}");
        assert!(lines[11].starts_with("4 column(s) more in a larger window; q: quit"), "{lines:?}");
        assert!(drawn(Some(&before), &now, 12)[5].starts_with("vm-producti\u{2026}"));
    }

    #[test]
    fn exports_that_have_no_room_are_counted() {
        let mut now = state(1_000_000_000);
        now.exports = (0..20).map(|at| export(&format!("vm{at}"), 100)).collect();
        let lines = drawn(None, &now, 140);
        // Twelve lines: four above, the header, one below.
        assert!(lines[10].starts_with("vm5 ") && lines[11].starts_with("14 export(s) more in"), "{lines:?}");
    }

    #[test]
    fn any_size_of_a_terminal_will_do() {
        for width in [1, 20, 80, 500] {
            drawn(None, &state(0), width);
        }
    }
}
