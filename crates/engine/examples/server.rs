//! A block store with two clients, one of which must not slow down the other: an editor saves one page after the other, and a
//! backup writes as much at once as it can. Both share a file under bfq, by weight; a tunable changes meanwhile.
use std::{env, fs, thread};

use hoistway_engine::{
    Buffer, Client, Completions, Config, Context, Engine, FileSpec, Files, Operation, Request, completions,
};

/// Pages of each client, and their length.
const PAGES: u64 = 200;
const PAGE: u64 = 4096;

/// Writes all pages, `depth` at a time, and makes each durable.
fn save(client: &Client, completions: &Completions, depth: u64, content: u8) {
    let (mut next, mut saved, mut ended) = (0, 0, Vec::new());
    let mut buffers: Vec<_> = (0..depth).map(|_| Buffer::from(&[content; PAGE as usize][..])).collect();
    while saved < PAGES {
        while next < PAGES
            && let Some(buffer) = buffers.pop()
        {
            let operation = Operation::Write { durable: true };
            client.submit(Request { operation, ..Request::write(next * PAGE, buffer, next) }).expect("there is room");
            next += 1;
        }
        completions.wait(&mut ended);
        for completion in ended.drain(..) {
            completion.result.expect("the page is on the disk");
            saved += 1;
            buffers.push(completion.buffer);
        }
    }
}

/// Both clients save their pages.
pub fn main() {
    let path = env::temp_dir().join(format!("hoistway-server-{}", std::process::id()));
    fs::write(&path, vec![0; (2 * PAGES * PAGE) as usize]).unwrap();
    let files = Files::open(&[FileSpec::new(&path)]).unwrap();
    files.notes().iter().for_each(|note| println!("{note}"));
    let config = Config { scheduler: "bfq".into(), workers: 2, ..Config::default() };
    let engine = Engine::start(&config, files).unwrap();
    thread::scope(|clients| {
        for (index, (weight, depth)) in [(500, 1), (100, 32)].into_iter().enumerate() {
            let half = index as u64 * PAGES * PAGE..(index as u64 + 1) * PAGES * PAGE;
            let context = Context { group: engine.add_group(weight).unwrap(), ..Context::default() };
            let (handler, completions) = completions();
            let client = engine.volume().part(half).unwrap().client(context, depth, handler);
            clients.spawn(move || save(&client, &completions, u64::from(depth), index as u8 + 1));
        }
        engine.set_attribute("iosched/low_latency", "0").unwrap();
    });
    let content = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(content.iter().enumerate().all(|(at, &byte)| u64::from(byte) == 1 + at as u64 / (PAGES * PAGE)));
}
