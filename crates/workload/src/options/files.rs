//! What is read and written, and through which interface.

use super::setter::Setter;
use super::spec::OptionSpec;
use crate::error::quoted;
use crate::service::FileService;
use crate::settings::Settings;
use crate::values::{self, KbBase, Refusal};
use crate::workload::Engine;

/// More files than this in one process are refused.
const FILES_OF_A_PROCESS_MAX: i64 = 1 << 16;
/// Below it, sums of sizes cannot overflow.
const FILE_BYTES_MAX: u64 = 1 << 60;

pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "filename",
        "",
        Setter::Text { form: "files or devices with colons between them; \\: stands for a colon", set: filename },
        "The files or devices that all clones of the job share; without it each clone has files of its own",
    ),
    OptionSpec::new(
        "directory",
        "",
        Setter::Text { form: "directories with colons between them", set: directory },
        "Directory of the job's files; of several, each clone uses the next for files of its own",
    ),
    OptionSpec::new(
        "filename_format",
        "",
        Setter::Text { form: "a name with $jobname, $jobnum and $filenum", set: filename_format },
        "How files without filename are called: processes whose files have the same name share them",
    ),
    OptionSpec::new(
        "nrfiles",
        "1",
        Setter::Int { min: 1, max: FILES_OF_A_PROCESS_MAX, set: |s, v| s.nrfiles = v },
        "Number of files of each clone; with filename it is the number of names",
    )
    .alias(&["nr_files"]),
    OptionSpec::new(
        "openfiles",
        "",
        Setter::Int { min: 0, max: i64::MAX, set: |s, v| s.openfiles = v },
        "Files open at a time: the next one is opened when one is done; 0 stands for all",
    ),
    OptionSpec::new(
        "file_service_type",
        "roundrobin",
        Setter::Form {
            form: "roundrobin | sequential | random, with :N for N I/Os from one file, or zipf[:THETA] | pareto[:H] | \
                   normal[:DEVIATION] | gauss[:DEVIATION]",
            set: service,
        },
        "Which of several files is next",
    ),
    OptionSpec::new(
        "filesize",
        "",
        Setter::Form { form: "bytes such as 1g, or a range such as 4k-64k", set: filesize },
        "Size of each file; size is then only how much is done",
    ),
    OptionSpec::new(
        "ioengine",
        "psync",
        Setter::Form { form: "libaio | io_uring | posixaio | psync | sync | vsync | pvsync | pvsync2", set: engine },
        "How I/O is issued; the synchronous engines have a depth of 1",
    ),
    OptionSpec::new("direct", "0", Setter::Bool(|s, on| s.direct = on), "Bypass the page cache (O_DIRECT)"),
    OptionSpec::new(
        "invalidate",
        "1",
        Setter::Bool(|s, on| s.invalidate = on),
        "Drop what the page cache has of the files before the first I/O, unless direct is set",
    ),
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

/// Splits at colons; `\:` is one that belongs to a name.
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
            .hinting("names stand between colons; write \\: for a colon in a name"));
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
    // As in fio, a second line adds to the first, even to that of a [global] section.
    s.filenames.extend(names(text, "file")?);
    s.filename_lines += 1;
    if s.filenames.len() > FILES_OF_A_PROCESS_MAX as usize {
        return Err(Refusal::new(format!("more than {FILES_OF_A_PROCESS_MAX} names")));
    }
    Ok(())
}

fn directory(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.directories = names(text, "directory")?;
    Ok(())
}

fn filename_format(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.filename_format = Some(text.to_owned());
    Ok(())
}

fn service(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    s.service = FileService::parse(text)?;
    Ok(())
}

fn filesize(s: &mut Settings, text: &str) -> Result<(), Refusal> {
    let (least, most) = if text.contains('-') {
        values::range_bytes(text, s.kb_base)?
    } else {
        let bytes = values::bytes(text, s.kb_base)?;
        (bytes, bytes)
    };
    if most > FILE_BYTES_MAX {
        return Err(Refusal::new(format!("{most} bytes are larger than any device")));
    }
    s.filesize = (most > 0).then_some((least, most));
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
            let reason = WITHOUT_SCHEDULER.iter().find(|(engines, _)| engines.contains(&text));
            let reason = reason.map_or(String::new(), |(_, reason)| format!(": {reason}"));
            let hint = match text {
                "mmap" | "splice" => "use psync without direct=1, which goes through the page cache, too".to_owned(),
                "windowsaio" | "solarisaio" => "use libaio, which keeps as many I/Os in flight".to_owned(),
                _ => format!("use one of {names}"),
            };
            Err(Refusal::new(format!("the engine {} is not supported{reason}", quoted(text))).hinting(hint))
        }
    }
}

/// Engines of fio whose I/O no I/O scheduler sees in this form, and why.
const WITHOUT_SCHEDULER: &[(&[&str], &str)] = &[
    (&["null", "cpuio"], "it does no I/O"),
    (&["mmap", "splice"], "it works on the pages of the page cache"),
    (&["sg", "io_uring_cmd", "libzbc", "xnvme", "libblkio"], "its commands pass by the I/O scheduler"),
    (&["dev-dax", "libpmem", "pmemblk", "mtd"], "its memory has no block layer"),
    (
        &[
            "net",
            "netsplice",
            "rdma",
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
        ],
        "it goes over a network",
    ),
    (
        &[
            "rbd",
            "rados",
            "http",
            "nbd",
            "nfs",
            "libhdfs",
            "libiscsi",
            "gfapi",
            "gfapi_async",
            "dfs",
            "ime_psync",
            "ime_psyncv",
            "ime_aio",
        ],
        "the server does the I/O",
    ),
    (
        &[
            "ftruncate",
            "falloc",
            "filecreate",
            "filestat",
            "filedelete",
            "dircreate",
            "dirstat",
            "dirdelete",
            "e4defrag",
        ],
        "it works on a file system",
    ),
    (&["windowsaio", "solarisaio"], "it is another operating system's"),
    (&["exec", "external", "cpp_null", "libcufile"], "it runs other software"),
];
