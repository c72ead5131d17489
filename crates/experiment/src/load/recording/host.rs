//! The host of a recording (RP26), from `NAME.host.json` next to `NAME.blktrace.N` or `NAME`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hoistway_blk::bio::IoPriority;
use hoistway_linux::record::{ENDING, RecordedHost};
use hoistway_program::Program;

use super::options::priority;
use crate::comparison::environment::Options;
use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::{QueueFile, Tunable};

/// The host of the recording with this name; `None` if there is no host file, or if it describes another device.
pub(super) fn find_host(options: &Options<'_>, name: &str, program: &Program) -> Result<Option<RecordedHost>, Error> {
    for path in paths(name) {
        if let Some(host) = read(options, &path)? {
            return Ok(Some(host).filter(|host| host.device.number == program.device.to_string()));
        }
    }
    Ok(None)
}

/// Reads the host from a file; `None` if the file does not exist.
fn read(options: &Options<'_>, path: &Path) -> Result<Option<RecordedHost>, Error> {
    let name = path.display();
    let expected = "what `hoistway record` writes, or no file of this name";
    let refuse = |problem: String| Error::new(Field::Load, format_args!("{name}: {problem} (expected {expected})"));
    let bytes = match options.environment.read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| refuse(format!("cannot be read: {error}")))?,
    };
    let text = String::from_utf8(bytes).map_err(|_| refuse("this is not text".to_owned()))?;
    RecordedHost::parse(&text).map(Some).map_err(refuse)
}

/// Possible host files: for `NAME.blktrace.N` it is `NAME.host.json`; for any other file, such as a merged stream or the text of
/// blkparse, the name is tried with and without its extensions: `NAME`, `NAME.txt`, `NAME.bin.gz`.
fn paths(name: &str) -> Vec<PathBuf> {
    let path = Path::new(name);
    let Some(mut file) = path.file_name().and_then(|file| file.to_str()).filter(|_| name != "-") else {
        return Vec::new();
    };
    if let Some((base, cpu)) = file.rsplit_once(".blktrace.") {
        let cpu = cpu.split('.').next().unwrap_or_default();
        if !cpu.is_empty() && cpu.bytes().all(|digit| digit.is_ascii_digit()) {
            file = base;
        }
    }
    fn shorter<'a>(file: &&'a str) -> Option<&'a str> {
        file.rsplit_once('.').map(|(before, _)| before).filter(|before| !before.is_empty())
    }
    let names = std::iter::successors(Some(file), shorter).take(3);
    names.map(|base| path.with_file_name(format!("{base}{ENDING}"))).collect()
}

/// Priorities of streams by name, where all tasks of that name have the same one.
pub(super) fn priorities(host: &RecordedHost, program: &Program) -> Vec<(String, IoPriority)> {
    let mut priorities: Vec<(String, IoPriority)> = Vec::new();
    for stream in &program.streams {
        let mut task_priorities =
            host.tasks.iter().filter(|task| task.name == stream.task_name).map(|task| task.io_priority.as_deref());
        let Some(first) = task_priorities.next() else { continue };
        let is_known = priorities.iter().any(|(name, _)| *name == stream.name);
        if let Some(priority) =
            first.and_then(priority).filter(|_| !is_known && task_priorities.all(|other| other == first))
        {
            priorities.push((stream.name.clone(), priority));
        }
    }
    priorities
}

/// The files of `queue/` to write: the wanted ones, and the recorded `nr_requests` unless the caller sets one.
pub(crate) fn queue_files(host: &RecordedHost, requested: &[QueueFile]) -> Vec<QueueFile> {
    let is_set = requested.iter().any(|file| file.file == "nr_requests");
    let recorded = host.nr_requests().filter(|_| !is_set);
    let recorded = recorded.map(|text| QueueFile { file: "nr_requests".to_owned(), text: text.to_string() });
    requested.iter().cloned().chain(recorded).collect()
}

/// The recorded tunables of a scheduler that satisfy `is_possible`, except those that the caller sets.
pub(crate) fn tunables(
    host: &RecordedHost,
    scheduler: &str,
    requested: &[Tunable],
    is_possible: impl Fn(&Tunable) -> bool,
) -> Vec<Tunable> {
    let is_set = |name: &str| requested.iter().any(|tunable| tunable.scheduler == scheduler && tunable.name == name);
    let recorded = host.tunables.iter().filter(|(name, _)| !is_set(name));
    let recorded = recorded.map(|(name, text)| Tunable {
        scheduler: scheduler.to_owned(),
        name: name.clone(),
        text: text.clone(),
    });
    recorded.filter(is_possible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_lies_beside_the_files_of_its_recording() {
        for (name, beside) in [
            ("x.blktrace.0", &["x.host.json"][..]),
            ("a/b.c.blktrace.12.gz", &["a/b.c.host.json", "a/b.host.json"]),
            ("x", &["x.host.json"]),
            ("x.txt", &["x.txt.host.json", "x.host.json"]),
            ("a/x.blktrace.bin", &["a/x.blktrace.bin.host.json", "a/x.blktrace.host.json", "a/x.host.json"]),
            ("-", &[]),
        ] {
            assert_eq!(paths(name), beside.iter().map(PathBuf::from).collect::<Vec<_>>(), "{name}");
        }
    }

    #[test]
    fn requested_queue_files_override_the_recorded_ones() {
        let mut host = RecordedHost::default();
        host.queue.insert("nr_requests".to_owned(), "48".to_owned());
        host.tunables.extend([("fifo_batch".to_owned(), "3".to_owned()), ("odd".to_owned(), "1".to_owned())]);
        let of = |files: Vec<QueueFile>| files.into_iter().map(|file| (file.file, file.text)).collect::<Vec<_>>();
        assert_eq!(of(queue_files(&host, &[])), [("nr_requests".to_owned(), "48".to_owned())]);
        let asked = [QueueFile { file: "nr_requests".to_owned(), text: "7".to_owned() }];
        assert_eq!(queue_files(&host, &asked), asked);
        let known = |tunable: &Tunable| tunable.name != "odd";
        let recorded = tunables(&host, "mq-deadline", &[], known);
        assert!(recorded.len() == 1 && recorded[0].to_string() == "mq-deadline.fifo_batch=3", "{recorded:?}");
        assert_eq!(tunables(&host, "mq-deadline", &recorded, known), []);
    }
}
