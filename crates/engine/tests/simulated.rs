//! Simulated devices in real time.

use hoistway_device::Preset;
use hoistway_engine::{Buffer, Config, Context, Engine, Operation, Request, Simulated, completions};

/// Every preset holds what is written to it, under every scheduler, and takes at least as long as its model does.
#[test]
fn a_simulated_device_keeps_its_data_and_is_no_faster_than_its_model() {
    for preset in ["micron-9100-1600gb", "intel-s3520-1600gb", "hgst-he10-8tb", "raid-64-queues"] {
        for scheduler in hoistway_blk::queue::SCHEDULERS {
            let config = Config { workers: 2, scheduler: scheduler.into(), ..Config::default() };
            let engine = Engine::start(&config, Simulated::new(Preset::builtin(preset).unwrap().build(1))).unwrap();
            let volume = engine.volume();
            let (handler, completions) = completions();
            let clients = [volume.client(Context::default(), 64, handler)];
            let start = engine.now();
            for index in 0..16 {
                let at = index * (volume.bytes() / 16) / 4096 * 4096;
                clients[0].submit(Request::write(at, Buffer::from(&[index as u8 + 1; 4096][..]), index)).unwrap();
            }
            let mut ended = Vec::new();
            while ended.len() < 16 {
                assert!(completions.wait(&mut ended));
            }
            assert!(ended.iter().all(|completion| completion.result == Ok(())), "{preset} {scheduler}");
            ended.clear();
            for index in 0..16 {
                let at = index * (volume.bytes() / 16) / 4096 * 4096;
                clients[0].submit(Request::read(at, Buffer::zeroed(4096), index)).unwrap();
            }
            while ended.len() < 16 {
                assert!(completions.wait(&mut ended));
            }
            for completion in &ended {
                assert!(
                    completion.buffer.iter().all(|&byte| u64::from(byte) == completion.token + 1),
                    "{preset} {scheduler}"
                );
            }
            // None of these ends 32 commands in the time of one seek or of one read of flash.
            assert!(engine.now().since(start).0 > 50_000, "{preset} {scheduler}");
        }
    }
}

/// Carries requests out one after the other; what reads returned.
fn carry_out(engine: &Engine, requests: Vec<Request>) -> Vec<Buffer> {
    let (handler, completions) = completions();
    let client = engine.volume().client(Context::default(), 1, handler);
    let mut ended = Vec::new();
    for request in requests {
        client.submit(request).unwrap();
        assert!(completions.wait(&mut ended));
    }
    assert!(ended.iter().all(|completion| completion.result == Ok(())), "{ended:?}");
    ended.into_iter().map(|completion| completion.buffer).collect()
}

#[test]
fn a_file_holds_the_content_of_a_device_for_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    let device = || Simulated::new(Preset::builtin("intel-s3520-1600gb").unwrap().build(1));
    let start = || Engine::start(&Config::default(), device().in_file(&path).unwrap()).unwrap();
    let engine = start();
    let bytes = engine.volume().bytes();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes);
    let write_zeroes = Operation::WriteZeroes { bytes: 4096, may_unmap: false, fast_only: false };
    let write_zeroes = Request { operation: write_zeroes, ..Request::write_zeroes((1 << 30) + 4096, 4096, 4) };
    let requests = vec![
        Request::write(1 << 30, Buffer::from(&[7; 32 << 10][..]), 1),
        Request::write(bytes - 4096, Buffer::from(&[9; 4096][..]), 2),
        Request::discard(1 << 30, 4096, 3),
        write_zeroes,
        Request::flush(5),
    ];
    carry_out(&engine, requests);
    let extents = engine.volume().extents(0..bytes, usize::MAX).unwrap();
    assert!(extents.first().unwrap().is_hole && !extents.last().unwrap().is_hole, "{extents:?}");
    assert!(device().in_file(&path).is_err_and(|error| error.to_string().contains("in use")));
    drop(engine);

    let engine = start();
    let read = |at, len| Request::read(at, Buffer::zeroed(len), at);
    let read = carry_out(&engine, vec![read(1 << 30, 16 << 10), read(bytes - 4096, 4096), read(0, 4096)]);
    assert_eq!((&read[0][..8192], &read[0][8192..]), (&[0; 8192][..], &[7; 8192][..]));
    assert_eq!((&read[1][..], &read[2][..]), (&[9; 4096][..], &[0; 4096][..]));
    drop(engine);

    let other = Simulated::new(Preset::builtin("hgst-he10-8tb").unwrap().build(1)).in_file(&path);
    assert!(other.is_err_and(|error| error.to_string().contains(&format!("has {bytes} bytes"))));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes, "it was left as it is");
}
