//! Names that contain control sequences for a terminal.

use std::fs;

use tempfile::tempdir;

use crate::support::{hoistway, succeeded};

#[test]
fn error_messages_escape_terminal_control_characters() {
    let folder = tempdir().unwrap();
    let output = hoistway().current_dir(folder.path()).args(["compare", "evil\x1b]0;title\x07.fio"]).output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.contains("evil␛]0;title␇.fio"), "{complaint:?}");
}

#[test]
fn tables_and_counts_escape_terminal_control_characters() {
    let folder = tempdir().unwrap();
    let job = "[evil\x1b[31m\x07]\nfilename=/dev/sda\nrw=randread\ndirect=1\nnumber_ios=20\n";
    fs::write(folder.path().join("job.fio"), job).unwrap();
    for format in ["table", "csv", "markdown"] {
        let mut command = hoistway();
        command.current_dir(folder.path()).args([
            "compare",
            "job.fio",
            "--schedulers",
            "mq-deadline",
            "--format",
            format,
        ]);
        let text = succeeded(command.args(["--trace", "trace.jsonl"]));
        assert!(text.contains("evil␛") && !text.contains(['\x1b', '\x07']), "{format}: {text:?}");
    }
    let counts = succeeded(hoistway().current_dir(folder.path()).args(["why", "trace.jsonl"]));
    assert!(counts.contains("evil␛") && !counts.contains(['\x1b', '\x07']), "{counts:?}");
}
