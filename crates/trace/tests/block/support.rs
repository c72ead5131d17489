//! The recordings, and how they are read.

use std::io::{Cursor, Read as _};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use hoistway_trace::block::{Event, Input, Losses, ReadError, Recording};

/// A file of the test data.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/block/data").join(name)
}

/// What a compressed file of the test data holds.
pub fn bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path(name)).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Everything of a recording.
pub fn all(mut recording: Recording) -> Result<(Vec<Event>, Losses), ReadError> {
    let mut events = Vec::new();
    while let Some(event) = recording.next_event()? {
        events.push(event);
    }
    Ok((events, recording.losses().clone()))
}

/// Events of a file of the test data, with its set.
pub fn events(name: &str) -> Vec<Event> {
    all(Recording::open(&path(name)).unwrap()).unwrap().0
}

/// Reads bytes as a recording.
pub fn read(bytes: &[u8]) -> Result<(Vec<Event>, Losses), ReadError> {
    all(Recording::read(Input::new("test", Box::new(Cursor::new(bytes.to_vec())))?)?)
}
