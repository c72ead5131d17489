//! The screen of `hoistway top`, from the last states of a server.

use hoistway_serve::{ClientState, DiskState, ExportState, Latencies};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Row, Table, Wrap};

use super::history::{History, at_target, waiting};

const HEADER: [&str; 15] = [
    "export",
    "clients",
    "flight",
    "held",
    "read/s",
    "MiB/s",
    "p50 us",
    "p99 us",
    "write/s",
    "MiB/s",
    "p50 us",
    "p99 us",
    "share",
    "weight",
    "last minute",
];
/// Columns that a narrow window omits, least important first.
const DROP_ORDER: [usize; 14] = [14, 1, 6, 10, 13, 2, 3, 5, 9, 12, 7, 11, 8, 4];
/// Names are not shortened below this width; columns are omitted instead.
const NAME_WIDTH: usize = 20;
/// Maximum number of bars for the last minute.
const BARS: usize = 20;

/// The order of the exports.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Sort {
    /// As configured.
    #[default]
    Configured,
    /// By bytes a second, the most first.
    Bytes,
    /// By requests a second.
    Requests,
    /// By the longer p99 of reads and writes.
    Latency,
}

impl Sort {
    /// The next one.
    pub(super) fn next(self) -> Sort {
        match self {
            Sort::Configured => Sort::Bytes,
            Sort::Bytes => Sort::Requests,
            Sort::Requests => Sort::Latency,
            Sort::Latency => Sort::Configured,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Sort::Configured => "the server\'s order",
            Sort::Bytes => "MiB/s",
            Sort::Requests => "requests",
            Sort::Latency => "p99",
        }
    }
}

/// The view that the user has chosen.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct View {
    /// The order of the exports.
    pub(super) sort: Sort,
    /// Whether clients are shown below their export.
    pub(super) shows_clients: bool,
}

/// Draws rates between the last two states; with one state, only gauges.
pub(super) fn draw(frame: &mut Frame<'_>, history: &History, view: View) {
    let now = history.now();
    let note = note(history);
    let has_several = now.disks.len() > 1;
    let tunables_of = |disk: &DiskState| {
        let name = has_several.then(|| format!("{}:", disk.name));
        name.into_iter().chain(disk.tunables.iter().map(|(name, value)| format!("{name}={value}"))).collect::<Vec<_>>()
    };
    let tunables: Vec<_> = now.disks.iter().flat_map(tunables_of).collect();
    let mut requests: Vec<_> = now.disks.iter().map(|disk| disk.nr_requests.as_str()).collect();
    requests.dedup();
    let parts = [
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(2),
        Constraint::Length(u16::from(note.is_some())),
        Constraint::Length(1),
    ];
    let [top, middle, below, note_area, bottom] = Layout::vertical(parts).areas(frame.area());
    let held_back: u64 = now.exports.iter().map(|export| export.held_back).sum();
    let head = format!(
        "{}  nr_requests={}   {} wait for the scheduler, {} are at the target, {} are held back by limits",
        now.scheduler(),
        requests.join("/"),
        waiting(now),
        at_target(now),
        held_back
    );
    frame.render_widget(Paragraph::new(Line::styled(head, Style::new().add_modifier(Modifier::BOLD))), top);
    frame.render_widget(Paragraph::new(tunables.join(" ")).wrap(Wrap { trim: true }), below);
    if let Some(note) = note {
        frame.render_widget(Paragraph::new(note), note_area);
    }

    let rows = rows(history, view);
    let columns = columns(&rows, usize::from(middle.width));
    let visible_row = |cells: Vec<String>| {
        Row::new(columns.iter().map(|&(column, width)| cut(&cells[column], width)).collect::<Vec<_>>())
    };
    let header = visible_row(HEADER.map(str::to_owned).into()).style(Style::new().add_modifier(Modifier::REVERSED));
    let widths = columns.iter().map(|&(_, width)| Constraint::Length(width as u16));
    // Below the header.
    let rows_beyond = rows.len().saturating_sub(usize::from(middle.height.saturating_sub(1)));
    let columns_beyond = HEADER.len() - columns.len();
    let table = Table::new(rows.into_iter().map(visible_row), widths).header(header).column_spacing(1);
    frame.render_widget(table, middle);
    let beyond = [(rows_beyond, "row(s)"), (columns_beyond, "column(s)")].into_iter().filter(|(more, _)| *more > 0);
    let beyond: Vec<_> = beyond.map(|(more, what)| format!("{more} {what}")).collect();
    let beyond = if beyond.is_empty() { String::new() } else { beyond.join(" and ") + " more in a larger window; " };
    let hint = format!("{beyond}q: quit; s: sort (by {}); c: clients; change it with hoistway ctl", view.sort.name());
    frame.render_widget(Paragraph::new(hint), bottom);
}

/// One row per export, optionally followed by its clients.
fn rows(history: &History, view: View) -> Vec<Vec<String>> {
    let (before, now) = (history.before(), history.now());
    let seconds = before.map_or(0.0, |before| now.at_ns.saturating_sub(before.at_ns) as f64 / 1e9);
    let past = |export: &ExportState| before?.exports.iter().find(|other| other.name == export.name);
    let rates = |export: &ExportState| past(export).and_then(|past| Rates::of(past, export, seconds));
    let mut exports: Vec<_> = now.exports.iter().map(|export| (export, rates(export))).collect();
    let all_bytes: f64 = exports.iter().filter_map(|(_, rates)| rates.as_ref()).map(Rates::bytes).sum();
    let key = |rates: &Option<Rates>| rates.as_ref().map_or(0.0, |rates| rates.key(view.sort));
    exports.sort_by(|(_, one), (_, other)| key(other).total_cmp(&key(one)));
    let mut rows = Vec::new();
    for (export, rates) in &exports {
        rows.push(cells(export, rates.as_ref(), all_bytes, history.bars(&export.name, BARS)));
        let clients =
            now.clients.iter().filter(|client| view.shows_clients && client.export.as_ref() == Some(&export.name));
        rows.extend(clients.map(|client| {
            let past = before.and_then(|before| before.clients.iter().find(|other| other.number == client.number));
            client_cells(client, past, seconds)
        }));
    }
    rows
}

/// A note if weights differ but have no effect, because no requests wait.
fn note(history: &History) -> Option<String> {
    let now = history.now();
    let has_weights = |disk: &&DiskState| {
        let mut weights = now.exports.iter().filter(|export| export.disk == disk.name).map(|export| export.weight);
        let first = weights.next();
        !disk.shares && weights.any(|weight| Some(weight) != first)
    };
    let mut weighted = now.disks.iter().filter(has_weights).peekable();
    weighted.peek()?;
    if let Some(disk) = weighted.find(|disk| disk.scheduler() != "bfq") {
        let scheduler = disk.scheduler();
        return Some(format!("weights have no effect under {scheduler}: hoistway ctl set scheduler=bfq"));
    }
    let why = "no request waits for the scheduler (a smaller --queue-depth keeps more of them there)";
    history.is_never_queued().then(|| format!("weights have nothing to act on: {why}"))
}

/// The columns that fit into a window of this width, and their widths: a figure is shown completely or not at all.
fn columns(rows: &[Vec<String>], width: usize) -> Vec<(usize, usize)> {
    let needed_width = |column: usize| {
        rows.iter().map(|cells| &*cells[column]).chain([HEADER[column]]).map(display_width).max().unwrap_or(0)
    };
    let mut columns: Vec<_> = (0..HEADER.len()).map(|column| (column, needed_width(column))).collect();
    let longest = std::mem::replace(&mut columns[0].1, needed_width(0).min(NAME_WIDTH));
    let total_width = |columns: &[(usize, usize)]| columns.iter().map(|(_, width)| width + 1).sum::<usize>() - 1;
    for dropped in DROP_ORDER {
        if total_width(&columns) <= width {
            break;
        }
        columns.retain(|&(column, _)| column != dropped);
    }
    // The remaining width is for names.
    let others = total_width(&columns) - columns[0].1;
    columns[0].1 = longest.min(width.saturating_sub(others));
    columns
}

fn display_width(text: &str) -> usize {
    Line::raw(text).width()
}

/// A text cut to a number of columns, with a mark where it was cut.
fn cut(text: &str, width: usize) -> String {
    if display_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = text.to_owned();
    while display_width(&kept) >= width.max(1) && kept.pop().is_some() {}
    kept + "\u{2026}"
}

/// The rates of an export, per second.
struct Rates {
    reads: f64,
    read_bytes: f64,
    read_latency: Latencies,
    writes: f64,
    written_bytes: f64,
    write_latency: Latencies,
}

impl Rates {
    /// `None` if no time has passed, or if the export was replaced by a new one of the same name.
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

    /// The sort key of an export; the largest comes first.
    fn key(&self, sort: Sort) -> f64 {
        let p99 = |latency: &Latencies| latency.percentile(99.0).unwrap_or(0) as f64;
        match sort {
            Sort::Configured => 0.0,
            Sort::Bytes => self.bytes(),
            Sort::Requests => self.reads + self.writes,
            Sort::Latency => p99(&self.read_latency).max(p99(&self.write_latency)),
        }
    }
}

fn cells(export: &ExportState, rates: Option<&Rates>, all_bytes: f64, bars: String) -> Vec<String> {
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
    cells.push(bars);
    cells
}

/// The row of a client below its export: its rates, but no latencies, which are counted per export.
fn client_cells(client: &ClientState, past: Option<&ClientState>, seconds: f64) -> Vec<String> {
    let rate = |figure: fn(&ClientState) -> u64, unit: f64| match past {
        Some(past) if seconds > 0.0 => short(figure(client).saturating_sub(figure(past)) as f64 / seconds / unit),
        _ => "-".to_owned(),
    };
    let mib = f64::from(1 << 20);
    let nothing = String::new;
    vec![
        crate::text::one_line(&format!(" {} {}", client.number, client.peer)),
        nothing(),
        client.in_flight.to_string(),
        nothing(),
        rate(|client| client.reads, 1.0),
        rate(|client| client.read_bytes, mib),
        nothing(),
        nothing(),
        rate(|client| client.writes, 1.0),
        rate(|client| client.written_bytes, mib),
        nothing(),
        nothing(),
        nothing(),
        nothing(),
        nothing(),
    ]
}

/// Formats a number with at least two digits, and at most seven characters below 10 millions.
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
    use hoistway_serve::StateReport;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn export(name: &str, weight: u16) -> ExportState {
        ExportState {
            name: name.into(),
            disk: "sda".into(),
            bytes: 1 << 30,
            read_only: false,
            weight,
            ioprio: "be/4".into(),
            limits: String::new(),
            clients: "all".into(),
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

    fn state(at_ns: u64) -> StateReport {
        StateReport {
            disks: vec![DiskState {
                name: "sda".into(),
                schedulers: "none mq-deadline kyber [bfq]".into(),
                nr_requests: "64".into(),
                tunables: vec![("slice_idle".into(), "8".into())],
                at_target: 0,
                shares: false,
            }],
            at_ns,
            exports: vec![export("vm1", 400), export("vm2", 100)],
            clients: Vec::new(),
        }
    }

    /// The lines of a screen, without trailing spaces.
    fn drawn(before: Option<&StateReport>, now: &StateReport, width: u16) -> Vec<String> {
        let mut history = History::new(before.unwrap_or(now).clone());
        if before.is_some() {
            history.push(now.clone());
        }
        drawn_as(&history, View::default(), width)
    }

    fn drawn_as(history: &History, view: View, width: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, 12)).unwrap();
        terminal.draw(|frame| draw(frame, history, view)).unwrap();
        let buffer = terminal.backend().buffer();
        let line =
            |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..buffer.area.height).map(line).collect()
    }

    #[test]
    fn rates_are_differences_between_two_snapshots() {
        let (before, mut now) = (state(1_000_000_000), state(3_000_000_000));
        let vm1 = &mut now.exports[0];
        (vm1.reads, vm1.read_bytes, vm1.in_flight, vm1.held_back) = (2000, 6 << 20, 40, 8);
        vm1.read_latency = Latencies { bins: vec![(2048, 1980), (1 << 20, 20)], sum_ns: 0 };
        let vm2 = &mut now.exports[1];
        (vm2.writes, vm2.written_bytes) = (8, 2 << 20);
        vm2.write_latency = Latencies { bins: vec![(4096, 8)], sum_ns: 0 };
        now.disks[0].at_target = 30;
        let lines = drawn(Some(&before), &now, 140);
        assert!(
            lines[0]
                .starts_with("bfq  nr_requests=64   2 wait for the scheduler, 30 are at the target, 8 are held back")
        );
        // Figures first, tunables behind them.
        assert_eq!(lines[9], "slice_idle=8");
        let words = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>();
        let expected = "vm1 2 40 8 1000 3.0 2.0 2.0 0 0 - - 75 % 400 \u{2588}";
        assert_eq!(words(2).join(" "), expected);
        assert_eq!(words(3).join(" "), "vm2 2 0 0 0 0 - - 4.0 1.0 4.1 4.1 25 % 100 \u{2588}");
    }

    #[test]
    fn a_first_snapshot_and_a_recreated_export_have_no_rates() {
        let mut now = state(2_000_000_000);
        let words = |lines: &[String], at: usize| lines[at].split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&drawn(None, &now, 140), 2), "vm1 2 0 0 - - - - - - - - - 400");
        let mut before = state(1_000_000_000);
        before.exports[0].reads = 5;
        before.exports.pop();
        now.exports[0].reads = 1;
        let lines = drawn(Some(&before), &now, 140);
        assert_eq!(words(&lines, 2), "vm1 2 0 0 - - - - - - - - - 400 \u{2581}");
        assert_eq!(words(&lines, 3), "vm2 2 0 0 - - - - - - - - - 100 \u{2581}");
    }

    #[test]
    fn a_narrow_window_has_fewer_columns_and_each_figure_whole() {
        let (before, mut now) = (state(1_000_000_000), state(3_000_000_000));
        for (at, export) in now.exports.iter_mut().enumerate() {
            (export.reads, export.read_bytes) = (200_000, 800_000_000);
            export.read_latency = Latencies { bins: vec![(1_000_000_000, 200_000)], sum_ns: 0 };
            export.name = format!("vm-production-{at}");
        }
        let before = StateReport {
            exports: now
                .exports
                .iter()
                .map(|it| ExportState { name: it.name.clone(), ..before.exports[0].clone() })
                .collect(),
            ..before
        };
        let whole: Vec<_> = drawn(Some(&before), &now, 140)[2].split_whitespace().map(str::to_owned).collect();
        for width in 30..140 {
            let lines = drawn(Some(&before), &now, width);
            for word in lines[2].split_whitespace() {
                assert!(whole.iter().any(|figure| figure == word), "{word} of {whole:?} at {width}");
            }
            assert!(lines[3].starts_with("vm-production-1 "), "{lines:?}");
        }
        let lines = drawn(Some(&before), &now, 80);
        assert!(lines[1].contains("p99 us") && lines[2].contains("1000k"), "{lines:?}");
        assert!(lines[11].starts_with("5 column(s) more in a larger window; q: quit"), "{lines:?}");
        assert!(drawn(Some(&before), &now, 12)[2].starts_with("vm-producti\u{2026}"));
    }

    #[test]
    fn exports_that_have_no_room_are_counted() {
        let mut now = state(1_000_000_000);
        now.exports = (0..20).map(|at| export(&format!("vm{at}"), 100)).collect();
        let lines = drawn(None, &now, 140);
        // Twelve lines: one above, the header, three below.
        assert!(lines[8].starts_with("vm6 ") && lines[11].starts_with("13 row(s) more in"), "{lines:?}");
    }

    #[test]
    fn any_size_of_a_terminal_will_do() {
        for width in [1, 20, 80, 500] {
            drawn(None, &state(0), width);
        }
    }

    #[test]
    fn exports_are_sorted_and_have_their_clients_and_their_minute_beside_them() {
        let mut history = History::new(state(0));
        for second in 1..=100_u64 {
            let mut now = state(second * 1_000_000_000);
            // The second export is the faster one, and finally stops.
            now.exports[0].read_bytes = second << 20;
            now.exports[1].read_bytes = second.min(99) << 22;
            let client = ClientState {
                number: 17,
                peer: "unix, user 0".into(),
                certificate: Vec::new(),
                export: Some("vm2".into()),
                connected_s: second,
                reads: second * 5,
                read_bytes: second << 20,
                writes: 0,
                written_bytes: 0,
                others: 0,
                in_flight: 3,
            };
            now.clients = vec![client];
            history.push(now);
        }
        let lines = drawn_as(&history, View { sort: Sort::Bytes, shows_clients: true }, 160);
        assert!(lines[2].starts_with("vm1 ") && lines[3].starts_with("vm2 "), "{lines:?}");
        assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>().join(" "), "17 unix, user 0 3 5.0 1.0 0 0");
        assert!(lines[2].ends_with(&"\u{2588}".repeat(BARS)), "{lines:?}");
        assert!(lines[11].contains("s: sort (by MiB/s)"), "{lines:?}");
        history.push(StateReport { at_ns: 101_000_000_000, ..history.now().clone() });
        assert_eq!(history.bars("vm1", 1000).chars().count(), 60);
        assert!(history.bars("vm1", 1000).ends_with("\u{2588}\u{2581}"));
        history.push(state(5));
        assert_eq!(history.bars("vm1", 10), "", "another server");
    }

    #[test]
    fn it_says_when_weights_have_nothing_to_act_on() {
        let mut history = History::new(state(0));
        let noted = |history: &History| {
            drawn_as(history, View::default(), 140).iter().any(|line| line.starts_with("weights have"))
        };
        for second in 1..9_u64 {
            assert_eq!(noted(&history), second >= 5, "{second}");
            let mut now = state(second * 1_000_000_000);
            now.exports.iter_mut().for_each(|export| (export.reads, export.in_flight) = (second, 1));
            now.disks[0].at_target = 2;
            history.push(now);
        }
        let mut now = state(9_000_000_000);
        now.exports[0].in_flight = 9;
        history.push(now);
        assert!(!noted(&history), "some wait");
        let mut kyber = state(0);
        kyber.disks[0].schedulers = "none [kyber] bfq".into();
        assert!(noted(&History::new(kyber.clone())));
        kyber.exports[0].weight = 100;
        assert!(!noted(&History::new(kyber)));
    }
}
