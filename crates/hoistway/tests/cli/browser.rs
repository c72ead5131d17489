//! Opens pages in a real browser: Chromium without a window.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;

/// What a user of the page saw.
pub(crate) struct Seen {
    /// What the user's script returned.
    pub(crate) answer: Value,
    /// Errors of scripts, messages on the console, and fetched resources.
    pub(crate) complaints: Value,
}

/// The browser's name. Where all tests are required, it must be installed.
fn browser() -> Option<&'static str> {
    let is_there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there);
    assert!(found.is_some() || std::env::var_os("CI").is_none(), "chromium is not installed");
    if found.is_none() {
        eprintln!("skipped: chromium is not installed");
    }
    found
}

/// Opens a page in a frame of this width and runs a user's actions there: the body of an async JavaScript function that
/// returns what it saw. None if there is no browser.
pub(crate) fn visited(page: &str, width: u32, prefers: Theme, visit: &str) -> Option<Seen> {
    let browser = browser()?;
    let folder = tempdir().unwrap();
    let listen = "<head><script>window.complaints = []; addEventListener('error', (e) => complaints.push(String(e.message)));\
                  addEventListener('securitypolicyviolation', (e) => complaints.push(e.blockedURI));\
                  for (const kind of ['error', 'warn']) console[kind] = (...all) => complaints.push(all.join(' '));</script>";
    let look = format!(
        "<script>addEventListener('load', async () => {{ let answer; try {{ answer = await (async () => {{ {visit} }})(); }} \
         catch (error) {{ complaints.push(String(error.stack)); }} \
         for (const one of performance.getEntriesByType('resource')) complaints.push('fetched ' + one.name); \
         parent.postMessage(JSON.stringify({{ answer: answer ?? null, complaints }}), '*'); }});</script></html>"
    );
    assert!(page.contains("<head>") && page.trim_end().ends_with("</html>"), "this is no page");
    let page = page.replacen("<head>", listen, 1);
    fs::write(folder.path().join("page.html"), page.trim_end().strip_suffix("</html>").unwrap().to_owned() + &look)
        .unwrap();
    // A window cannot be as narrow as a phone, but a frame can.
    let frame = format!(
        "<meta name=\"color-scheme\" content=\"light dark\"><iframe src=\"page.html\" width=\"{width}\" height=\"900\" \
         style=\"border: 0\"></iframe><script>addEventListener('message', (message) => {{ \
         document.body.textContent = 'SEEN' + message.data + 'SEEN'; }});</script>"
    );
    let file = folder.path().join("frame.html");
    fs::write(&file, frame).unwrap();
    let dom = run(browser, folder.path(), &file, prefers);
    let seen = dom
        .split("SEEN")
        .nth(1)
        .filter(|seen| seen.starts_with('{'))
        .unwrap_or_else(|| panic!("the visit did not end: {dom}"));
    let seen = seen.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    let mut seen: Value = serde_json::from_str(&seen).unwrap();
    Some(Seen { answer: seen["answer"].take(), complaints: seen["complaints"].take() })
}

/// The colour scheme that the user's system prefers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Theme {
    Dark,
    Light,
}

/// The elements of the page after the visit, as text.
fn run(browser: &str, folder: &Path, file: &Path, prefers: Theme) -> String {
    let scheme = if prefers == Theme::Dark { 0 } else { 1 };
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg("--window-size=1300,1000")
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
