//! Altered recordings: replaying one always ends soon, with a score or with one error that names file and line.

mod alteration;
mod judge;

use std::io::Read;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use alteration::{Random, alter};
use flate2::read::GzDecoder;
use judge::{Received, receive};

/// A replay that takes longer counts as endless.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(20);
/// The number of alterations of each recording.
const ALTERATIONS: u64 = 100;
/// The number of lines used of each recording.
const LINES: usize = 500;

/// The first lines of a recording.
fn head(name: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces").join(name).with_extension("jsonl.gz");
    let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut text = String::new();
    GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("the recording is whole");
    text.lines().take(LINES).map(str::to_owned).collect()
}

/// Replays many altered versions of each recording, and collects the results.
#[track_caller]
fn check(names: &[&str]) {
    for name in names {
        let lines = head(name);
        let (mut replayed, mut inconsistent) = (0, 0);
        for seed in 1..=ALTERATIONS {
            let altered = alter(&lines, &mut Random(seed));
            let (sender, receiver) = mpsc::channel();
            thread::spawn(move || sender.send(receive(&altered)));
            match receiver.recv_timeout(REPLAY_TIMEOUT) {
                Ok(Ok(received)) => {
                    replayed += u32::from(received == Received::Replayed);
                    inconsistent += u32::from(received == Received::Inconsistent);
                }
                Ok(Err(error)) => panic!("{name}, altered with seed {seed}: no file and line in: {error}"),
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name}, altered with seed {seed}: does not end"),
                Err(mpsc::RecvTimeoutError::Disconnected) => panic!("{name}, altered with seed {seed}: panics"),
            }
        }
        // Otherwise the reader refused everything, and the replays were not tested.
        assert!(
            replayed > 0 && inconsistent + replayed > ALTERATIONS as u32 / 10,
            "{name}: {replayed}, {inconsistent}"
        );
    }
}

#[test]
fn altered_recordings_of_none_are_replayed_or_refused() {
    check(&["none/none-2hwq", "none/none-flush", "none/none-throttled-mbps"]);
}

#[test]
fn altered_recordings_of_mq_deadline_are_replayed_or_refused() {
    check(&["mq-deadline/dd-merges-shuffle", "mq-deadline/dd-flush", "mq-deadline/dd-throttled-mbps"]);
}

#[test]
fn altered_recordings_of_kyber_are_replayed_or_refused() {
    check(&["kyber/ky-2hwq", "kyber/ky-merges", "kyber/ky-flush"]);
}

#[test]
fn altered_recordings_of_bfq_are_replayed_or_refused() {
    check(&["bfq/bfq-merges", "bfq/bfq-2hwq", "bfq/bfq-nested-cg"]);
}

#[test]
fn altered_recordings_of_cfq_are_replayed_or_refused() {
    check(&["cfq/cg-100-900", "cfq/requeue7", "cfq/coop2"]);
}

#[test]
fn altered_recordings_of_deadline_and_noop_are_replayed_or_refused() {
    check(&["deadline/requeue7", "deadline/merges-hdd", "noop/merges-hdd"]);
}

#[test]
fn altered_recordings_with_a_change_of_scheduler_are_replayed_or_refused() {
    check(&["switch/switch-dd-bfq-kyber-none"]);
}
