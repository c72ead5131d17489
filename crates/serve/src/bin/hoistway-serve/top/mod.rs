//! `hoistway top`: a running server on one screen.

mod history;
mod screen;

use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use hoistway_serve::{Answer, Ask, State, ask};
use hoistway_serve_options::TopOptions;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};

use self::history::History;
use self::screen::View;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Timeout for fetching the state of a server.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often signals and new states are checked for.
const REFRESH_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn run(options: &TopOptions) -> Result<()> {
    // Checked before the terminal changes mode, so that a wrong path gives a one-line error.
    let first = look(&options.control)?;
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!("top needs a terminal (hoistway ctl show prints the figures once)");
    }
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    let mut terminal = ratatui::try_init().context("terminal")?;
    let shown = show(&mut terminal, first, &looks(options), &is_over);
    ratatui::try_restore().context("terminal")?;
    shown
}

fn look(control: &Path) -> Result<State> {
    match ask(control, &Ask::Show, TIMEOUT).with_context(|| control.display().to_string())? {
        Answer::State(state) => Ok(state),
        answer => bail!("{}: unexpected reply {answer:?}", control.display()),
    }
}

/// Fetches states until the server is gone. Runs on a separate thread, so that a server that does not reply cannot block the
/// keyboard.
fn looks(options: &TopOptions) -> Receiver<Result<State>> {
    let (sender, looks) = mpsc::sync_channel(1);
    let (control, every) = (options.control.clone(), Duration::from_secs(options.every));
    thread::spawn(move || {
        loop {
            thread::sleep(every);
            let seen = look(&control);
            let is_last = seen.is_err();
            if sender.send(seen).is_err() || is_last {
                return;
            }
        }
    });
    looks
}

/// Runs until the user quits or the server is gone.
fn show(
    terminal: &mut DefaultTerminal,
    first: State,
    looks: &Receiver<Result<State>>,
    is_over: &AtomicBool,
) -> Result<()> {
    let (mut history, mut view) = (History::new(first), View::default());
    loop {
        terminal.draw(|frame: &mut Frame<'_>| screen::draw(frame, &history, view))?;
        let next = loop {
            if let Ok(seen) = looks.try_recv() {
                break seen?;
            }
            if is_over.load(Relaxed) {
                return Ok(());
            }
            if !event::poll(REFRESH_INTERVAL)? {
                continue;
            }
            match event::read()? {
                Event::Key(key) if ends(key) => return Ok(()),
                Event::Key(KeyEvent { code: KeyCode::Char('s'), .. }) => view.sort = view.sort.next(),
                Event::Key(KeyEvent { code: KeyCode::Char('c'), .. }) => view.has_clients = !view.has_clients,
                Event::Resize(..) => {}
                _ => continue,
            }
            terminal.draw(|frame: &mut Frame<'_>| screen::draw(frame, &history, view))?;
        };
        history.push(next);
    }
}

fn ends(key: KeyEvent) -> bool {
    let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || (has_control && key.code == KeyCode::Char('c'))
}
