//! Simulated devices in real time.

use hoistway_device::Preset;
use hoistway_engine::{Buffer, Config, Context, Engine, Request, Simulated, answers};

/// Every preset holds what is written to it, under every scheduler, and takes at least as long as its model does.
#[test]
fn a_simulated_device_keeps_what_is_written_and_takes_its_time() {
    for preset in ["micron-9100-1600gb", "intel-s3520-1600gb", "hgst-he10-8tb", "raid-64-queues"] {
        for scheduler in hoistway_blk::SCHEDULERS {
            let config = Config { workers: 2, scheduler: scheduler.into(), ..Config::default() };
            let engine = Engine::start(&config, Simulated::new(Preset::builtin(preset).unwrap().build(1))).unwrap();
            let volume = engine.volume();
            let (handler, answers) = answers();
            let clients = [volume.client(Context::default(), 64, handler)];
            let start = engine.now();
            for index in 0..16 {
                let at = index * (volume.bytes() / 16) / 4096 * 4096;
                clients[0].submit(Request::write(at, Buffer::from(&[index as u8 + 1; 4096][..]), index)).unwrap();
            }
            let mut ended = Vec::new();
            while ended.len() < 16 {
                assert!(answers.wait(&mut ended));
            }
            assert!(ended.iter().all(|answer| answer.result == Ok(())), "{preset} {scheduler}");
            ended.clear();
            for index in 0..16 {
                let at = index * (volume.bytes() / 16) / 4096 * 4096;
                clients[0].submit(Request::read(at, Buffer::zeroed(4096), index)).unwrap();
            }
            while ended.len() < 16 {
                assert!(answers.wait(&mut ended));
            }
            for answer in &ended {
                assert!(answer.buffer.iter().all(|&byte| u64::from(byte) == answer.token + 1), "{preset} {scheduler}");
            }
            // None of these answers 32 commands in the time of one seek or of one read of flash.
            assert!(engine.now().since(start).0 > 50_000, "{preset} {scheduler}");
        }
    }
}
