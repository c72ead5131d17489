//! What files do to requests: holes, ends, durability, several of them in one engine.

use std::fs::File;
use std::os::unix::fs::FileExt;

use hoistway_engine::{
    Buffer, Completion, Config, Context, Engine, Errno, FileSpec, Files, Operation, Request, Volume, completions,
};
use tempfile::NamedTempFile;

const MIB: u64 = 1 << 20;

fn temporary(bytes: u64) -> NamedTempFile {
    let file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    file.as_file().set_len(bytes).unwrap();
    file
}

fn engine_over(files: &[&NamedTempFile]) -> Engine {
    let specs: Vec<FileSpec> = files.iter().map(|file| FileSpec::new(file.path())).collect();
    Engine::start(&Config::default(), Files::open(&specs).unwrap()).unwrap()
}

/// Submits one request and waits for its completion.
fn submit_and_wait(volume: &Volume<'_>, request: Request) -> Completion {
    let (handler, completions) = completions();
    let client = volume.client(Context::default(), 1, handler);
    client.submit(request).unwrap();
    let mut ended = Vec::new();
    assert!(completions.wait(&mut ended));
    ended.pop().unwrap()
}

fn filled(byte: u8, bytes: u64) -> Buffer {
    Buffer::from(&vec![byte; bytes as usize][..])
}

/// Bytes and whether they are a hole, joined.
fn extents(volume: &Volume<'_>) -> Vec<(u64, bool)> {
    let all = volume.extents(0..volume.bytes(), usize::MAX).unwrap();
    all.iter().map(|extent| (extent.bytes, extent.is_hole)).collect()
}

#[test]
fn extents_report_unwritten_and_discarded_ranges_as_holes() {
    let file = temporary(4 * MIB);
    let engine = engine_over(&[&file]);
    let volume = engine.volume();
    assert_eq!(extents(&volume), [(4 * MIB, true)]);
    assert_eq!(submit_and_wait(&volume, Request::write(MIB, filled(7, 2 * MIB), 0)).result, Ok(()));
    assert_eq!(extents(&volume), [(MIB, true), (2 * MIB, false), (MIB, true)]);
    assert_eq!(submit_and_wait(&volume, Request::discard(2 * MIB, MIB, 0)).result, Ok(()));
    assert_eq!(extents(&volume), [(MIB, true), (MIB, false), (2 * MIB, true)]);
    // Not all of it, if less is asked for.
    for extents_max in 0..=3 {
        let some = volume.extents(0..4 * MIB, extents_max).unwrap();
        assert!((extents_max.clamp(1, 3)..=extents_max + 2).contains(&some.len()), "{extents_max}: {some:?}");
        assert_eq!((some[0].bytes, some[0].is_hole), (MIB, true));
    }
    let read = submit_and_wait(&volume, Request::read(2 * MIB - 4096, Buffer::zeroed(8192), 0));
    assert!(read.buffer[..4096].iter().all(|&byte| byte == 7) && read.buffer[4096..].iter().all(|&byte| byte == 0));
}

#[test]
fn zeroes_keep_their_space_unless_it_may_go() {
    let file = temporary(2 * MIB);
    let engine = engine_over(&[&file]);
    let volume = engine.volume();
    submit_and_wait(&volume, Request::write(0, filled(7, 2 * MIB), 0));
    let zeroes = |may_unmap| Request {
        operation: Operation::WriteZeroes { bytes: MIB, may_unmap, fast_only: false },
        ..Request::flush(0)
    };
    let blocks = || std::os::unix::fs::MetadataExt::blocks(&file.as_file().metadata().unwrap());
    let before = blocks();
    assert_eq!(submit_and_wait(&volume, zeroes(false)).result, Ok(()));
    let read = submit_and_wait(&volume, Request::read(0, filled(9, MIB), 0));
    assert!(read.buffer.iter().all(|&byte| byte == 0));
    assert!(blocks() >= before, "its space is still there");
    assert_eq!(submit_and_wait(&volume, zeroes(true)).result, Ok(()));
    assert!(blocks() < before, "a hole takes none");
}

#[test]
fn invalid_requests_are_refused_before_they_reach_the_file() {
    let file = temporary(MIB);
    let engine = engine_over(&[&file]);
    let volume = engine.volume();
    let result = |request| submit_and_wait(&volume, request).result;
    assert_eq!(result(Request::read(0, Buffer::EMPTY, 0)), Err(Errno::INVAL));
    assert_eq!(result(Request::read(MIB, Buffer::zeroed(4096), 0)), Err(Errno::NOSPC));
    assert_eq!(result(Request::read(MIB - 1, Buffer::zeroed(2), 0)), Err(Errno::NOSPC));
    assert_eq!(result(Request::discard(u64::MAX / 4096 * 4096, 4096, 0)), Err(Errno::NOSPC));
    let read_only = volume.clone().read_only();
    assert_eq!(submit_and_wait(&read_only, Request::write(0, filled(1, 4096), 0)).result, Err(Errno::PERM));
    assert_eq!(submit_and_wait(&read_only, Request::discard(0, 4096, 0)).result, Err(Errno::PERM));
    assert_eq!(submit_and_wait(&read_only, Request::flush(0)).result, Ok(()));
    assert!(volume.part(0..2 * MIB).is_err(), "a part is no longer than the whole");
}

#[test]
fn a_file_that_becomes_shorter_fails_its_reads_and_nothing_else() {
    let file = temporary(2 * MIB);
    let engine = engine_over(&[&file]);
    let volume = engine.volume();
    file.as_file().set_len(MIB + 4096).unwrap();
    assert_eq!(
        submit_and_wait(&volume, Request::read(MIB, Buffer::zeroed(8192), 0)).result,
        Err(Errno::IO),
        "half of it is gone"
    );
    assert_eq!(submit_and_wait(&volume, Request::read(0, Buffer::zeroed(8192), 0)).result, Ok(()));
}

#[test]
fn the_lost_tail_of_a_truncated_file_is_data_not_a_hole() {
    let file = temporary(4 * MIB);
    let engine = engine_over(&[&file]);
    let volume = engine.volume();
    submit_and_wait(&volume, Request::write(0, filled(7, MIB), 0));
    file.as_file().set_len(2 * MIB).unwrap();
    assert_eq!(extents(&volume), [(MIB, false), (MIB, true), (2 * MIB, false)]);
    let behind: Vec<_> =
        volume.extents(3 * MIB..4 * MIB, usize::MAX).unwrap().iter().map(|extent| extent.is_hole).collect();
    assert_eq!(behind, [false]);
}

#[test]
fn several_files_are_volumes_of_one_queue_and_never_meet() {
    let files = [temporary(MIB), temporary(MIB + 512), temporary(MIB)];
    let engine = engine_over(&files.each_ref());
    let volumes = engine.volumes();
    assert_eq!(volumes.len(), 3);
    for (index, volume) in volumes.iter().enumerate() {
        assert_eq!(submit_and_wait(volume, Request::write(0, filled(index as u8 + 1, MIB), 0)).result, Ok(()));
        assert_eq!(submit_and_wait(volume, Request::write(MIB, filled(9, 4096), 0)).result, Err(Errno::NOSPC));
        assert_eq!(submit_and_wait(volume, Request::flush(0)).result, Ok(()));
    }
    for (index, file) in files.iter().enumerate() {
        let mut content = vec![0; MIB as usize];
        File::open(file.path()).unwrap().read_exact_at(&mut content, 0).unwrap();
        assert!(content.iter().all(|&byte| byte == index as u8 + 1));
    }
}

/// What is open while the engine runs follows what is opened and closed, on every worker and with and without io_uring.
#[test]
fn files_come_and_go_while_others_are_used() {
    let others = [temporary(MIB), temporary(MIB + 700), temporary(MIB)];
    for has_io_uring in [true, false] {
        let permanent = temporary(MIB);
        let files = Files::open(&[FileSpec::new(permanent.path())]).unwrap().growing();
        let files = if has_io_uring { files } else { files.without_io_uring() };
        let engine = Engine::start(&Config { workers: 2, ..Config::default() }, files).unwrap();
        let is_free = |file: &NamedTempFile| Files::open(&[FileSpec::new(file.path())]).is_ok();
        for (opened, round) in (1..).zip(1..=150_u8) {
            let other = &others[usize::from(round) % others.len()];
            let held = engine.open_volume(&FileSpec::new(other.path())).unwrap();
            let index = held.index();
            assert_eq!((index, is_free(other)), (opened, false));
            let volumes = engine.volumes();
            let (permanent, other_volume) = (&volumes[0], &volumes[index]);
            let bytes = other_volume.bytes();
            for (volume, byte) in [(permanent, 255 - round), (other_volume, round)] {
                for at in [0, bytes.min(MIB) - 4096, volume.bytes() - 4096] {
                    assert_eq!(submit_and_wait(volume, Request::write(at, filled(byte, 4096), 0)).result, Ok(()));
                }
                assert_eq!(submit_and_wait(volume, Request::flush(0)).result, Ok(()));
            }
            let read = submit_and_wait(other_volume, Request::read(bytes - 4096, Buffer::zeroed(4096), 0));
            assert!(read.result == Ok(()) && read.buffer.iter().all(|&read_byte| read_byte == round));
            assert!(other_volume.extents(0..bytes, usize::MAX).is_ok());
            drop(held);
            assert!(is_free(other));
            assert!(other_volume.extents(0..bytes, usize::MAX).is_err());
            for request in [Request::read(0, Buffer::zeroed(4096), 0), Request::write(0, filled(9, 4096), 0)] {
                assert!(submit_and_wait(other_volume, request).result.is_err());
            }
            assert_eq!(submit_and_wait(permanent, Request::flush(0)).result, Ok(()));
            let mut content = [0; 4096];
            other.as_file().read_exact_at(&mut content, 0).unwrap();
            assert_eq!(content, [round; 4096]);
        }
    }
}

#[test]
fn a_file_that_has_become_longer_grows_to_its_last_byte() {
    for has_io_uring in [true, false] {
        let (file, other) = (temporary(MIB), temporary(MIB));
        let files = Files::open(&[FileSpec::new(file.path()), FileSpec::new(other.path())]).unwrap().growing();
        let files = if has_io_uring { files } else { files.without_io_uring() };
        let engine = Engine::start(&Config::default(), files).unwrap();
        for (n, bytes) in [MIB, MIB + 1, MIB + 700, 2 * MIB, 3 * MIB - 512, 5 * MIB + 513].into_iter().enumerate() {
            file.as_file().set_len(bytes).unwrap();
            engine.grow_volume(0).unwrap();
            let volumes = engine.volumes();
            assert_eq!((volumes[0].bytes(), volumes[1].bytes()), (bytes, MIB));
            let byte = n as u8 + 1;
            for at in [bytes - 5000, bytes - 3] {
                assert_eq!(
                    submit_and_wait(&volumes[0], Request::write(at, filled(byte, bytes - at), 0)).result,
                    Ok(())
                );
            }
            assert_eq!(submit_and_wait(&volumes[1], Request::write(0, filled(9, MIB), 0)).result, Ok(()));
            let read = submit_and_wait(&volumes[0], Request::read(bytes - 5000, Buffer::zeroed(5000), 0));
            assert!(read.result == Ok(()) && read.buffer.iter().all(|&read_byte| read_byte == byte));
            assert_eq!(submit_and_wait(&volumes[0], Request::flush(0)).result, Ok(()));
            let mut content = vec![0; 5000];
            file.as_file().read_exact_at(&mut content, bytes - 5000).unwrap();
            assert!(content.iter().all(|&read_byte| read_byte == byte));
            assert_eq!(file.as_file().metadata().unwrap().len(), bytes);
        }
        // One that has become shorter keeps its range; reads there fail.
        file.as_file().set_len(MIB).unwrap();
        engine.grow_volume(0).unwrap();
        assert_eq!(engine.volumes()[0].bytes(), 5 * MIB + 513);
    }
}

#[test]
fn a_file_that_cannot_be_opened_later_changes_nothing() {
    let (first, held) = (temporary(MIB), temporary(MIB));
    let engine = engine_over(&[&first]);
    let refusal = |engine: &Engine, file: &NamedTempFile| {
        engine.open_volume(&FileSpec::new(file.path())).unwrap_err().to_string()
    };
    assert!(refusal(&engine, &held).ends_with("(expected at most 1)"));
    drop(engine);
    let files = Files::open(&[FileSpec::new(first.path())]).unwrap().growing();
    let engine = Engine::start(&Config::default(), files).unwrap();
    assert!(refusal(&engine, &first).contains("is the same file as"));
    assert!(refusal(&engine, &temporary(0)).ends_with("is empty"));
    let _elsewhere = engine_over(&[&held]);
    assert!(refusal(&engine, &held).contains("is in use by another program"));
    assert_eq!(engine.volumes().len(), 1);
}

/// Buffers of the engine and others, whole and in parts, beyond what the memory that the rings know has room for.
#[test]
fn data_is_the_same_whether_the_ring_knows_a_buffer_or_not() {
    let file = temporary(8 * MIB);
    let files = Files::open(&[FileSpec::new(file.path())]).unwrap().with_fixed_buffers(MIB as usize, 2);
    let config = Config { workers: 2, ..Config::default() };
    let engine = Engine::start(&config, files).unwrap();
    let (volume, buffers) = (engine.volume(), engine.buffers());
    let all: Vec<Buffer> = (0..32).map(|_| buffers.zeroed(64 << 10)).collect();
    let addresses: Vec<usize> = all.iter().map(|buffer| buffer.as_ptr().addr()).collect();
    for (n, mut buffer) in all.into_iter().enumerate() {
        buffer.fill(n as u8 + 1);
        let written = submit_and_wait(&volume, Request::write(n as u64 * (64 << 10), buffer, 0));
        assert_eq!((written.result, written.buffer.as_ptr().addr()), (Ok(()), addresses[n]));
        let mut buffer = written.buffer;
        buffer.fill(0);
        buffer.set_len(4096);
        let durable = Request { operation: Operation::Write { durable: true }, ..Request::write(6 * MIB, buffer, 0) };
        let buffer = submit_and_wait(&volume, durable).buffer;
        let read = submit_and_wait(&volume, Request::read(n as u64 * (64 << 10), buffer, 0));
        assert!(read.result == Ok(()) && read.buffer.iter().all(|&byte| byte == n as u8 + 1));
    }
    assert!(
        submit_and_wait(&volume, Request::read(6 * MIB, buffers.zeroed(4096), 0)).buffer.iter().all(|&byte| byte == 0)
    );
}

/// Where io_uring is forbidden, threads do the same; the other tests of this file do not show which was used.
#[test]
fn io_uring_is_used_where_the_system_has_it() {
    let is_allowed = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").is_ok_and(|text| text.trim() == "0");
    let notes = Files::open(&[FileSpec::new(temporary(MIB).path())]).unwrap().notes().join(" ");
    // A container may forbid it by other means, and says so.
    let is_forbidden = notes.contains("not permitted") || notes.contains("not implemented");
    assert!(!is_allowed || is_forbidden || !notes.contains("io_uring"), "{notes}");
}

#[test]
fn files_that_cannot_be_targets_say_why() {
    let open = |path: &std::path::Path| Files::open(&[FileSpec::new(path)]).err().unwrap().to_string();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    assert!(open(folder).ends_with("is neither a file nor a block device"));
    assert!(open(&folder.join("none")).contains("No such file"));
    assert!(open(temporary(0).path()).ends_with("is empty"));
}

#[test]
fn a_file_has_one_writer_or_many_readers() {
    let (file, folder) = (temporary(MIB), tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let link = folder.path().join("link");
    std::fs::hard_link(file.path(), &link).unwrap();
    let writer = FileSpec::new(file.path());
    let reader = FileSpec { read_only: true, ..writer.clone() };
    let other_name = FileSpec::new(&link);
    let refusal = |specs: &[FileSpec]| Files::open(specs).err().map(|error| error.to_string());

    let held = Files::open(std::slice::from_ref(&writer)).unwrap();
    for spec in [&writer, &reader, &other_name] {
        assert!(refusal(std::slice::from_ref(spec)).unwrap().contains("is in use by another program"));
    }
    drop(held);
    let held = Files::open(std::slice::from_ref(&reader)).unwrap();
    assert_eq!(refusal(std::slice::from_ref(&reader)), None);
    assert!(refusal(std::slice::from_ref(&writer)).unwrap().contains("is in use by another program"));
    drop(held);

    let twice = refusal(&[writer, other_name]).unwrap();
    assert_eq!(twice, format!("{}: is the same file as {}", link.display(), file.path().display()));
    assert_eq!(refusal(&[reader.clone(), reader]), None);
}

#[test]
fn a_file_is_free_again_when_its_engine_has_stopped() {
    let file = temporary(MIB);
    for byte in 1..4 {
        let engine = engine_over(&[&file]);
        assert_eq!(submit_and_wait(&engine.volume(), Request::write(0, filled(byte, 4096), 0)).result, Ok(()));
        engine.stop();
    }
}
