//! Options of files, and of the I/O engine that reads and writes them.

use hoistway_load::{Engine, FileService, Process};

use super::Job;
use super::distribution::popularity;
use super::{OptionSpec, Setter, U32_MAX, row};
use super::{Settings, Subject};
use crate::JobFileError;
use crate::error::quoted;
use crate::values::{self, KbBase, Refusal, whole};

/// Maximum files of one process.
const FILES_OF_A_PROCESS_MAX: i64 = hoistway_load::limits::FILES as i64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// Empty for unnamed files.
    pub(crate) names: Vec<String>,
    /// Number of `filename` lines.
    lines: u32,
    pub(crate) directories: Vec<String>,
    pub(crate) format: Option<String>,
    /// `None` for the default of one.
    nrfiles: Option<u64>,
    pub(crate) kb_base: KbBase,
}

impl Files {
    /// The number of files. As in fio, names take precedence over nrfiles.
    pub(crate) fn count(&self) -> u64 {
        if self.names.is_empty() { self.nrfiles.unwrap_or(1) } else { self.names.len() as u64 }
    }
}

pub(super) const SUBJECT: Subject = Subject {
    rows: ROWS,
    apply,
    fields: &[
        ("plan.pattern.volume.file_bytes", |_| "filesize"),
        ("plan.pattern.service", |_| "file_service_type"),
        ("plan.files", |_| "filename"),
    ],
};

const ROWS: &[OptionSpec] = &[
    row(
        "filename",
        "",
        Setter::Text { form: "files or devices separated by colons; write \\: for a colon in a name", set: filename },
    )
    .doc("The files or devices that all clones of the job share; without it each clone has its own files"),
    row("directory", "", Setter::Text { form: "directories separated by colons", set: directory })
        .doc("Directory of the job's files; with several, each clone puts its own files into the next one"),
    row(
        "filename_format",
        "",
        Setter::Text { form: "a name with $jobname, $jobnum and $filenum", set: filename_format },
    )
    .doc("Names of files if filename is not set; processes whose files have the same name share them"),
    row(
        "nrfiles",
        "1",
        Setter::Int { min: 1, max: FILES_OF_A_PROCESS_MAX, set: |s, v| s.files.nrfiles = Some(v.unsigned_abs()) },
    )
    .doc("Number of files of each clone; with filename, the number of names")
    .alias(&["nr_files"]),
    row("openfiles", "", Setter::Int { min: 0, max: i64::MAX, set: |s, v| s.pattern().open_files = v.unsigned_abs() })
        .doc("Maximum open files: the next one is opened when one is finished; 0 means all"),
    row(
        "file_service_type",
        "roundrobin",
        Setter::Form {
            form: "roundrobin | sequential | random, with :N for N I/Os from one file, or zipf[:THETA] | pareto[:H] | \
                   normal[:DEVIATION] | gauss[:DEVIATION]",
            set: service_type,
        },
    )
    .doc("How the next of several files is chosen"),
    row("filesize", "", Setter::Form { form: "bytes such as 1g, or a range such as 4k-64k", set: filesize })
        .doc("Size of each file; size is then only the amount of I/O"),
    row(
        "ioengine",
        "psync",
        Setter::Form { form: "libaio | io_uring | posixaio | psync | sync | vsync | pvsync | pvsync2", set: engine },
    )
    .doc("How I/O is issued; the synchronous engines have a depth of 1"),
    row("direct", "0", Setter::Bool(|s, on| s.process.caching.direct = on)).doc("Bypass the page cache (O_DIRECT)"),
    row("invalidate", "1", Setter::Bool(|s, on| s.process.caching.invalidate = on))
        .doc("Drop the files' pages from the page cache before the first I/O, unless direct is set"),
    row("buffered", "1", Setter::Bool(|s, on| s.process.caching.direct = !on)).doc("The opposite of direct"),
    row(
        "kb_base",
        "1024",
        Setter::Choice {
            words: &["1024", "1000"],
            set: |s, i| s.files.kb_base = if i == 0 { KbBase::Binary } else { KbBase::Decimal },
        },
    )
    .doc("Size of a k; with 1024, kib is 1000"),
];

fn apply(job: &Job<'_>, process: &mut Process) -> Result<(), JobFileError> {
    let s = &job.settings.files;
    let sizes = process.plan.pattern.volume.file_bytes;
    if !s.names.is_empty() && sizes.is_some_and(|(least, most)| least != most) {
        let error = job.error("filesize", "a range of sizes is only possible for files without names");
        return Err(error.with_hint("give one size, or remove filename"));
    }
    if !process.caching.direct {
        job.add_notice_for_all_jobs(
            "I/O that is not direct (direct=0, fio's default) goes through a simplified page cache: see \
             docs/page-cache.md.",
        );
    }
    let count = s.count();
    if s.lines > 1 {
        job.add_notice_unless_replay(&format!(
            "filename is given more than once: as in fio, the job uses all {count} names."
        ));
    }
    if s.nrfiles > Some(1) && !s.names.is_empty() {
        job.add_notice_unless_replay(&format!(
            "nrfiles has no effect with filename, as in fio: there are {count} files."
        ));
    }
    if count == 1 {
        job.add_notice_of_unused_options(&["file_service_type"], "on a job with one file");
    }
    Ok(())
}

/// Splits at colons; `\:` is a colon in a name.
pub(super) fn names(text: &str, what: &str) -> Result<Vec<String>, Refusal> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next_if_eq(&':').is_some() => push(&mut names, ':'),
            ':' => names.push(String::new()),
            c => push(&mut names, c),
        }
    }
    if names.iter().any(String::is_empty) {
        return Err(Refusal::new(format!("the name of a {what} is empty"))
            .with_hint("names are separated by colons; write \\: for a colon in a name"));
    }
    if names.len() > FILES_OF_A_PROCESS_MAX as usize {
        return Err(Refusal::new(format!("more than {FILES_OF_A_PROCESS_MAX} names")));
    }
    Ok(names)
}

fn push(names: &mut [String], c: char) {
    if let Some(name) = names.last_mut() {
        name.push(c);
    }
}

fn filename(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    // As in fio, a second line adds to the first one, even if that is in a [global] section.
    s.files.names.extend(names(text, "file")?);
    s.files.lines += 1;
    if s.files.names.len() > FILES_OF_A_PROCESS_MAX as usize {
        return Err(Refusal::new(format!("more than {FILES_OF_A_PROCESS_MAX} names")));
    }
    Ok(())
}

fn directory(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.files.directories = names(text, "directory")?;
    Ok(())
}

fn filename_format(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.files.format = Some(text.to_owned());
    Ok(())
}

fn service_type(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.pattern().service = file_service(text)?;
    Ok(())
}

fn filesize(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let (least, most) = if text.contains('-') {
        values::range_bytes(text, s.files.kb_base)?
    } else {
        let bytes = values::bytes(text, s.files.kb_base)?;
        (bytes, bytes)
    };
    s.volume().file_bytes = (most > 0).then_some((least, most));
    Ok(())
}

fn engine(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    match ENGINES.iter().find(|(_, name)| *name == text) {
        Some((engine, _)) => {
            s.process.issue.engine = *engine;
            Ok(())
        }
        None => {
            let names = ENGINES.map(|(_, name)| name).join(", ");
            let reason = WITHOUT_SCHEDULER.iter().find(|(engines, _)| engines.split(' ').any(|engine| engine == text));
            let reason = reason.map_or(String::new(), |(_, reason)| format!(": {reason}"));
            let hint = match text {
                "mmap" | "splice" => "use psync without direct=1, which also goes through the page cache".to_owned(),
                "windowsaio" | "solarisaio" => "use libaio, which keeps as many I/Os in flight".to_owned(),
                _ => format!("use one of {names}"),
            };
            Err(Refusal::new(format!("the engine {} is not supported{reason}", quoted(text))).with_hint(hint))
        }
    }
}

/// Engines of fio whose I/O does not reach an I/O scheduler, and why.
const WITHOUT_SCHEDULER: &[(&str, &str)] = &[
    ("null cpuio", "it does no I/O"),
    ("mmap splice", "it works on the pages of the page cache"),
    ("sg io_uring_cmd libzbc xnvme libblkio", "its commands bypass the I/O scheduler"),
    ("dev-dax libpmem pmemblk mtd", "its memory has no block layer"),
    (
        "net netsplice rdma librpma_apm_client librpma_apm_server librpma_gpspm_client librpma_gpspm_server",
        "it goes over a network",
    ),
    (
        "rbd rados http nbd nfs libhdfs libiscsi gfapi gfapi_async dfs ime_psync ime_psyncv ime_aio",
        "the server does the I/O",
    ),
    (
        "ftruncate falloc filecreate filestat filedelete dircreate dirstat dirdelete e4defrag",
        "it works on a file system",
    ),
    ("windowsaio solarisaio", "it belongs to another operating system"),
    ("exec external cpp_null libcufile", "it runs other software"),
];

fn file_service(text: &str) -> Result<FileService, Refusal> {
    let (word, after) = match text.split_once(':') {
        Some((word, after)) => (word, Some(after)),
        None => (text, None),
    };
    let ios = || after.map_or(Ok(1), |n| whole(n, 1, U32_MAX)).map(|n| n as u32);
    Ok(match word {
        "roundrobin" => FileService::RoundRobin { ios: ios()? },
        "sequential" => {
            // The number is only checked: each file is finished before the next one.
            ios()?;
            FileService::Sequential
        }
        "random" => FileService::Random { ios: ios()? },
        _ => match popularity(word, after)? {
            Some(popularity) => FileService::Skewed(popularity),
            None => {
                return Err(Refusal::new(format!("{} is not one of its values", quoted(word)))
                    .with_hint("expected roundrobin, sequential, random, zipf, pareto, normal or gauss"));
            }
        },
    })
}

/// fio's names for the engines.
const ENGINES: [(Engine, &str); 8] = [
    (Engine::Libaio, "libaio"),
    (Engine::IoUring, "io_uring"),
    (Engine::Posixaio, "posixaio"),
    (Engine::Psync, "psync"),
    (Engine::Sync, "sync"),
    (Engine::Vsync, "vsync"),
    (Engine::Pvsync, "pvsync"),
    (Engine::Pvsync2, "pvsync2"),
];

/// fio's name for an engine.
pub(super) fn engine_name(engine: Engine) -> &'static str {
    ENGINES.iter().find(|(candidate, _)| *candidate == engine).map_or("", |(_, name)| name)
}
