//! Small hand-made recordings.

use hoistway_trace::iosched::{Event, Problem, ReadError, Trace};

/// A header that promises `events` events and has `more` behind (`,"key":value` pairs).
pub(crate) fn header_with(events: usize, more: &str) -> String {
    let queue = r#""nr_hw_queues":2,"queue_depth":4,"nr_requests":64,"nomerges":0,"rotational":1,
        "max_sectors_kb":1280,"max_segments":128,"rq_affinity":1,"write_cache":"write back","fua":1"#;
    let process = r#"{"pid":7,"comm":"p0","ioprio":[1,3],"cgroup":"/a/b","weight":"default 300","job":"rw=read"}"#;
    format!(
        r#"{{"format":"iosched-trace/1","name":"small","kernel":"Linux 6.18","scheduler":"bfq",
        "tunables":{{"slice_idle":8}},"queue":{{{queue}}},"device":{{"model":"null_blk","shared_tags":1}},
        "cpus":2,"hz":250,"clock":"virtual","processes":[{process}],"cgroups":{{"a":100,"a/b":"default 300"}},
        "later_kernels_may_say_more":[1,2],"events":{events}{more}}}"#
    )
    .replace('\n', " ")
}

/// A recording of these event lines under a fitting header.
pub(crate) fn recording(lines: &[&str]) -> String {
    let mut text = header_with(lines.len(), "");
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
    text.push('\n');
    text
}

/// Reads `text` as the file `small.jsonl`.
pub(crate) fn read(text: impl AsRef<[u8]>) -> Result<Trace, ReadError> {
    Trace::read(text.as_ref(), "small.jsonl")
}

/// The one event of a recording with this line.
pub(crate) fn event(line: &str) -> Event {
    read(recording(&[line])).unwrap_or_else(|error| panic!("{error}")).events.remove(0)
}

/// What is wrong with `text`, and on which line.
pub(crate) fn fault(text: impl AsRef<[u8]>) -> (Option<u64>, Problem) {
    let error = read(text).expect_err("this must not read");
    assert_eq!(error.file, "small.jsonl");
    (error.line, error.problem)
}
