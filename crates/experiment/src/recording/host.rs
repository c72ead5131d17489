//! What lies beside a recording: the host that it was made on (RP26), in `NAME.host.json` beside `NAME.blktrace.N`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hoistway_blk::bio::IoPriority;
use hoistway_linux::record::{ENDING, RecordedHost};
use hoistway_program::Program;

use super::options::priority;
use crate::comparison::{QueueFile, Tunable};
use crate::environment::Options;
use crate::error::Error;
use crate::fields::Field;

/// The host of a recording with this name; none if nothing lies beside it, or that is about another device.
pub(super) fn beside(options: &Options<'_>, name: &str, program: &Program) -> Result<Option<RecordedHost>, Error> {
    let Some(path) = path(name) else { return Ok(None) };
    let shown = path.display();
    let expected = "what `hoistway record` writes, or no file of this name";
    let refuse = |problem: String| Error::new(Field::Load, format_args!("{shown}: {problem} (expected {expected})"));
    let bytes = match options.environment.read(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| refuse(format!("cannot be read: {error}")))?,
    };
    let text = String::from_utf8(bytes).map_err(|_| refuse("this is not text".to_owned()))?;
    let host = RecordedHost::parse(&text).map_err(refuse)?;
    Ok(Some(host).filter(|host| host.device.number == program.device.to_string()))
}

/// `NAME.host.json` of `NAME.blktrace.N`.
fn path(name: &str) -> Option<PathBuf> {
    let file = Path::new(name).file_name()?.to_str()?;
    let (name_of_it, cpu) = file.rsplit_once(".blktrace.")?;
    let is_cpu = cpu.split('.').next().is_some_and(|cpu| !cpu.is_empty() && cpu.bytes().all(|d| d.is_ascii_digit()));
    is_cpu.then(|| Path::new(name).with_file_name(format!("{name_of_it}{ENDING}")))
}

/// Priorities of streams by name, where all tasks of a name have one.
pub(super) fn priorities(host: &RecordedHost, program: &Program) -> Vec<(String, IoPriority)> {
    let mut found: Vec<(String, IoPriority)> = Vec::new();
    for stream in &program.streams {
        let mut its = host.tasks.iter().filter(|task| task.name == stream.name).map(|task| task.io_priority.as_deref());
        let Some(first) = its.next() else { continue };
        let is_known = found.iter().any(|(name, _)| *name == stream.name);
        if let Some(priority) = first.and_then(priority).filter(|_| !is_known && its.all(|other| other == first)) {
            found.push((stream.name.clone(), priority));
        }
    }
    found
}

/// The size of the queue, unless something else is asked for.
pub(crate) fn queue_files(host: &RecordedHost, wanted: &[QueueFile]) -> Vec<QueueFile> {
    let is_asked_for = wanted.iter().any(|file| file.file == "nr_requests");
    let recorded = host.nr_requests().filter(|_| !is_asked_for);
    let recorded = recorded.map(|text| QueueFile { file: "nr_requests".to_owned(), text: text.to_string() });
    wanted.iter().cloned().chain(recorded).collect()
}

/// The tunables of the recorded scheduler that `is_possible`, but for those of which something else is asked for.
pub(crate) fn tunables(
    host: &RecordedHost,
    scheduler: &str,
    wanted: &[Tunable],
    is_possible: impl Fn(&Tunable) -> bool,
) -> Vec<Tunable> {
    let is_asked_for = |name: &str| wanted.iter().any(|tunable| tunable.scheduler == scheduler && tunable.name == name);
    let recorded = host.tunables.iter().filter(|(name, _)| !is_asked_for(name));
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
            ("x.blktrace.0", Some("x.host.json")),
            ("a/b.c.blktrace.12.gz", Some("a/b.c.host.json")),
            ("x.blktrace.", None),
            ("x.blktrace.bin", None),
            ("x.txt", None),
            ("-", None),
        ] {
            assert_eq!(path(name), beside.map(PathBuf::from), "{name}");
        }
    }

    #[test]
    fn what_is_asked_for_counts_more_than_what_was_recorded() {
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
