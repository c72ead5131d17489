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
use hoistway_serve::{ControlReply, ControlRequest, StateReport, send_request};
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
    let first = fetch_state(&options.control)?;
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        bail!("top needs a terminal (hoistway ctl show prints the figures once)");
    }
    let is_signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_signalled))?;
    }
    let mut terminal = ratatui::try_init().context("terminal")?;
    let shown = show(&mut terminal, first, &spawn_poller(options), &is_signalled);
    ratatui::try_restore().context("terminal")?;
    shown
}

fn fetch_state(control: &Path) -> Result<StateReport> {
    match send_request(control, &ControlRequest::Show, TIMEOUT).with_context(|| control.display().to_string())? {
        ControlReply::State(state) => Ok(state),
        answer => bail!("{}: unexpected reply {answer:?}", control.display()),
    }
}

/// Fetches states until the server is gone. Runs on a separate thread, so that a server that does not reply cannot block the
/// keyboard.
fn spawn_poller(options: &TopOptions) -> Receiver<Result<StateReport>> {
    let (sender, states) = mpsc::sync_channel(1);
    let (control, every) = (options.control.clone(), Duration::from_secs(options.every));
    thread::spawn(move || {
        loop {
            thread::sleep(every);
            let seen = fetch_state(&control);
            let is_last = seen.is_err();
            if sender.send(seen).is_err() || is_last {
                return;
            }
        }
    });
    states
}

/// Runs until the user quits or the server is gone.
fn show(
    terminal: &mut DefaultTerminal,
    first: StateReport,
    states: &Receiver<Result<StateReport>>,
    is_signalled: &AtomicBool,
) -> Result<()> {
    let (mut history, mut view) = (History::new(first), View::default());
    loop {
        terminal.draw(|frame: &mut Frame<'_>| screen::draw(frame, &history, view))?;
        let next = loop {
            if let Ok(seen) = states.try_recv() {
                break seen?;
            }
            if is_signalled.load(Relaxed) {
                return Ok(());
            }
            if !event::poll(REFRESH_INTERVAL)? {
                continue;
            }
            match event::read()? {
                Event::Key(key) if is_quit_key(key) => return Ok(()),
                Event::Key(KeyEvent { code: KeyCode::Char('s'), .. }) => view.sort = view.sort.next(),
                Event::Key(KeyEvent { code: KeyCode::Char('c'), .. }) => view.shows_clients = !view.shows_clients,
                // Redrawn below.
                Event::Resize(..) => {}
                _ => continue,
            }
            terminal.draw(|frame: &mut Frame<'_>| screen::draw(frame, &history, view))?;
        };
        history.push(next);
    }
}

fn is_quit_key(key: KeyEvent) -> bool {
    let has_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || (has_ctrl && key.code == KeyCode::Char('c'))
}
