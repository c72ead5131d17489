//! What is read and written, and through which interface.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::error::quoted;
use crate::settings::Settings;
use crate::values::{KbBase, Refusal};
use crate::workload::Engine;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "filename",
        "",
        Setter::Text { form: "a file or device; \\: stands for a colon", set: filename },
        "The file or device that all clones of the job share; without it each has a file of its own",
    ),
    OptionSpec::new(
        "directory",
        "",
        Setter::Text { form: "a directory", set: directory },
        "Directory of the job's files",
    ),
    OptionSpec::new(
        "ioengine",
        "psync",
        Setter::Form { form: "libaio | io_uring | posixaio | psync | sync | vsync | pvsync | pvsync2", set: engine },
        "How I/O is issued; the synchronous engines have a depth of 1",
    ),
    OptionSpec::new("direct", "0", Setter::Bool(|s, on| s.direct = on), "Bypass the page cache (O_DIRECT)"),
    OptionSpec::new("buffered", "1", Setter::Bool(|s, on| s.direct = !on), "The opposite of direct"),
    OptionSpec::new(
        "kb_base",
        "1024",
        Setter::Choice {
            of: &["1024", "1000"],
            set: |s, i| s.kb_base = if i == 0 { KbBase::Binary } else { KbBase::Decimal },
        },
        "What a k is; with 1024, kib is 1000",
    ),
];

fn filename(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let mut name = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next_if_eq(&':').is_some() => name.push(':'),
            ':' => {
                return Err(Refusal::new("several files in one job are not supported")
                    .hinting("write one job for each file, or \\: for a colon in a name"));
            }
            c => name.push(c),
        }
    }
    s.filename = Some(name);
    Ok(())
}

fn directory(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    if text.replace("\\:", "").contains(':') {
        return Err(Refusal::new("several directories are not supported").hinting("give one directory"));
    }
    s.directory = Some(text.replace("\\:", ":"));
    Ok(())
}

fn engine(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    match Engine::ALL.into_iter().find(|engine| engine.name() == text) {
        Some(engine) => {
            s.engine = engine;
            Ok(())
        }
        None => {
            let names = Engine::ALL.map(Engine::name).join(", ");
            Err(Refusal::new(format!("the engine {} is not supported", quoted(text)))
                .hinting(format!("use one of {names}")))
        }
    }
}
