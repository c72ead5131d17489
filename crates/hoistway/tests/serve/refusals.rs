//! What a server does not start with.

use std::os::unix::net::UnixListener;

use crate::running::{Running, hoistway};

#[test]
fn bad_input_is_one_sentence_and_status_2() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let socket = format!("{place}/s");
    std::fs::write(format!("{place}/short"), [0; 100]).unwrap();
    std::fs::File::create(format!("{place}/disk")).unwrap().set_len(1 << 20).unwrap();
    let in_use = format!("{place}/used");
    let _listener = UnixListener::bind(&in_use).unwrap();
    let (short, disk, no_disk) =
        (format!("file:{place}/short"), format!("file:{place}/disk"), format!("blk:{place}/disk"));
    let path = format!("path={place}/disk");
    let file = format!("{place}/disk");
    for (arguments, said) in [
        (&["--target", "mem:1M"][..], "--socket PATH or --tcp HOST:PORT"),
        (&["--socket", &socket], "--target is missing"),
        (&["--target", "mem", "--socket", &socket], "expected file:PATH"),
        (&["--target", "tape:x", "--socket", &socket], "expected file:PATH"),
        (&["--target", "mem:lots", "--socket", &socket], "expected a size"),
        (&["--target", "mem:0", "--socket", &socket], "expected a size"),
        (&["--target", "sim:floppy", "--socket", &socket], "floppy"),
        (&["--target", "file:/nonexistent", "--socket", &socket], "/nonexistent"),
        (&["--target", &short, "--socket", &socket], "short"),
        (&["--target", &no_disk, "--socket", &socket], "no block device"),
        (&["--target", "mem:1M", "--socket", "/nonexistent/s"], "cannot listen on /nonexistent/s"),
        (&["--target", "mem:1M", "--socket", &in_use], "cannot listen on"),
        (&["--target", "mem:1M", "--socket", &file], "cannot listen on"),
        (&["--target", "mem:1M", "--tcp", "nowhere"], "cannot listen on nowhere"),
        (&["--target", "mem:1M", "--control", "/nonexistent/c", "--socket", &socket], "/nonexistent/c"),
        (&["--target", "mem:1M", "--scheduler", "cfq", "--socket", &socket], "cfq"),
        (&["--target", "mem:1M", "--set", "bfq.slice_idle=0", "--socket", &socket], "the scheduler is none"),
        (&["--target", "mem:1M", "--set", "low_latency=0", "--socket", &socket], "SCHEDULER.TUNABLE=VALUE"),
        (&["--target", "mem:1M", "--export", "name=a,size=2M", "--socket", &socket], "the target has 1048576"),
        (&["--target", "mem:1M", "--export", "name=a", "--export", "name=a", "--socket", &socket], "two exports"),
        (&["--target", "mem:1M", "--export", "weight=0", "--socket", &socket], "--export weight=0"),
        (&["--target", &disk, "--export", &path, "--socket", &socket], "exclude each other"),
        (&["--export", "name=a", "--socket", &socket], "or path= of each --export"),
        (&["--target", "mem:1M", "--queue-depth", "9999", "--socket", &socket], "more than the target takes"),
    ] {
        let output = hoistway().arg("serve").args(arguments).output().unwrap();
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains(said) && complaint.lines().count() == 1, "{arguments:?}: {complaint}");
        assert!(!std::path::Path::new(&socket).exists(), "{arguments:?} left its socket behind");
    }
    assert!(std::path::Path::new(&file).exists(), "a file in the way of a socket is not removed");
}

#[test]
fn a_socket_that_was_left_behind_is_replaced() {
    let folder = Running::start(&["--target", "mem:1M"]).killed();
    assert!(folder.path().join("nbd.sock").exists());
    assert!(Running::start_in(folder, &["--target", "mem:1M"]).end().ends_with("Some(0)"));
}
