//! A panic while a guest is served; here the log panics.

use hoistway_engine::{Config, Memory as Target};
use hoistway_serve::{ExportSpec, FrontEnd, GuestListener, NewDisk, Placed, Server, ServerLimits, SocketAccess, Stop};

use super::client::*;

#[test]
fn a_panic_ends_the_guest_that_it_happened_for_and_its_disk_can_be_had_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let export = |text: &str| Placed::on_target(ExportSpec::parse(text).unwrap());
    let exports = [export("name=calm,size=8M"), export("name=wild,offset=8M")];
    let log = Box::new(|_, line: &str| assert!(!line.contains("without a status descriptor"), "as it was asked to"));
    let disk = NewDisk { name: "mem".into(), id: None, backend: Box::new(Target::new(16 << 20)) };
    let server = Server::start(&Config::default(), vec![disk], &exports, ServerLimits::default(), log).unwrap();
    let listen = |name: &str| {
        Box::new(GuestListener::new(&path(name), SocketAccess::default(), name).unwrap()) as Box<dyn FrontEnd>
    };
    let (front_ends, stop) = ([listen("calm"), listen("wild")], Stop::new().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| server.accept(&front_ends, &stop));
        let ended = std::panic::catch_unwind(|| {
            let mut calm = Client::start(&path("calm"), Options::default());
            let mut wild = Client::start(&path("wild"), Options::default());
            assert!(calm.works() && wild.works());
            // A request with a header and nothing else.
            let ring = &mut wild.rings[0];
            ring.describe(0, (DATA_AT, 16, 0, 0));
            let before = ring.available_index;
            ring.offer_all(&[0]);
            ring.kick_since(before);
            assert!(hangs_up(&wild));
            assert!(calm.works());
            assert!(Client::start(&path("wild"), Options::default()).works());
            assert!(calm.works());
        });
        stop.stop();
        ended.unwrap();
    });
    assert_eq!(server.drain(std::time::Duration::from_secs(60)), 0);
    server.stop();
}

/// Waits until the server has closed the connection.
fn hangs_up(client: &Client) -> bool {
    use std::io::Read as _;
    let mut raw = &client.raw;
    raw.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    matches!(raw.read(&mut [0; 64]), Ok(0))
}
