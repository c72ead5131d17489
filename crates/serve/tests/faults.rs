//! What was acknowledged stays.

use std::process::{Command, Stdio};

use crate::running::{Running, is_installed, succeeded};

#[test]
fn data_written_before_a_completed_fsync_survives_a_kill() {
    if !is_installed("fio") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::File::create(folder.path().join("disk")).unwrap().set_len(64 << 20).unwrap();
    let arguments = ["--target", "file:{}/disk", "--scheduler", "bfq"];
    let mut server = Running::start_in(folder, &arguments);
    let state = server.folder().to_owned();
    let uri = format!("--uri={}", server.uri(""));
    let job = ["--name=kill", "--ioengine=nbd", "--rw=randwrite", "--bs=4k", "--iodepth=16", "--size=64m", "--fsync=8"];
    let verify = ["--verify=crc32c", "--do_verify=0", "--verify_backlog=0", "--randseed=7"];
    let mut fio = Command::new("fio");
    fio.args(job).args(verify).arg(&uri).current_dir(&state).stdout(Stdio::null()).stderr(Stdio::null());
    let mut fio = fio.spawn().unwrap();
    let control = |server: &Running| {
        let shown = server.ctl(&["show", "--format", "json"]).stdout;
        serde_json::from_slice::<serde_json::Value>(&shown).unwrap()["exports"][0]["writes"].as_u64().unwrap()
    };
    server.wait_until("it is busy", |server| control(server) > 500);
    let folder = server.killed();
    fio.wait().unwrap();

    // The first 500 writes were completed, and at least 492 of them before an fsync that was: the same seed names them.
    let server = Running::start_in(folder, &arguments);
    let uri = format!("--uri={}", server.uri(""));
    let read = ["--verify_only", "--verify_state_save=0", "--io_size=1968k"];
    succeeded("fio", &[&job[..], &verify[..1], &["--randseed=7", &uri], &read].concat());
}
