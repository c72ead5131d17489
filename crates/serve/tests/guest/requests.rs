//! What a guest may ask for, and what it is answered.

use super::client::*;
use super::{serve, socket};

const SECTOR: usize = 512;

fn data(seed: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at as u8).wrapping_mul(31).wrapping_add((at >> 8) as u8) ^ seed).collect()
}

#[test]
fn every_request_type_works_with_and_without_each_feature() {
    does_what_it_says("0");
}

/// Then the server looks into the ring itself, and wants no kicks meanwhile.
#[test]
fn every_request_type_works_while_the_server_busy_polls() {
    does_what_it_says("10000");
}

fn does_what_it_says(spin_us: &str) {
    let server = serve(&["--target", "mem:16M", "--export", "name=a-name-longer-than-twenty", "--spin", spin_us]);
    for without in [0, EVENT_IDX, INDIRECT_DESC, CONFIG_WCE, EVENT_IDX | INDIRECT_DESC | CONFIG_WCE | 1 << 9] {
        let mut guest = Client::start(&socket(&server), Options { without, ..Options::default() });
        assert_eq!(guest.capacity(), 32768);
        let written = data(without as u8, 8192);
        assert_eq!(guest.request(WRITE_OUT, 16, Data::Out(&written)), (OK, 1, vec![]));
        assert_eq!(guest.request(READ, 16, Data::In(8192)), (OK, 8193, written.clone()));
        assert_eq!(guest.request(READ, 17, Data::In(512)), (OK, 513, written[512..1024].to_vec()));
        assert_eq!(guest.request(FLUSH, 0, Data::In(0)), (OK, 1, vec![]));
        assert_eq!(guest.request(GET_ID, 0, Data::In(20)), (OK, 21, b"a-name-longer-than-t".to_vec()));
        let zeroed = range(17, 2, 0);
        assert_eq!(guest.request(WRITE_ZEROES, 0, Data::Out(&zeroed)).0, OK);
        let (status, _, read) = guest.request(READ, 16, Data::In(8192));
        assert_eq!(status, OK);
        assert!(read[..SECTOR] == written[..SECTOR] && read[SECTOR..3 * SECTOR] == [0; 2 * SECTOR]);
        assert!(read[3 * SECTOR..] == written[3 * SECTOR..]);
        // Two ranges at once, one of them empty; what is discarded of memory is zeroes.
        let both = [range(16, 0, 0), range(20, 4, 0)].concat();
        assert_eq!(guest.request(DISCARD, 0, Data::Out(&both)).0, OK);
        assert_eq!(guest.request(READ, 20, Data::In(2048)).2, [0; 2048]);
        assert_eq!(guest.request(WRITE_ZEROES, 0, Data::Out(&range(0, 32768, 1))).0, OK);
        assert_eq!(guest.request(READ, 16, Data::In(512)).2, [0; 512]);
        // The last sector, and none behind it.
        assert_eq!(guest.request(WRITE_OUT, 32767, Data::Out(&written[..SECTOR])).0, OK);
        assert_eq!(guest.request(READ, 32767, Data::In(512)).2, written[..SECTOR]);
        assert_eq!(guest.request(READ, 32767, Data::In(1024)).0, IO_ERROR);
    }
}

#[test]
fn the_configuration_is_read_in_any_piece() {
    let server = serve(&["--target", "mem:1M"]);
    let mut guest = Client::connect(&socket(&server), Options::default());
    let whole = guest.config(0, 256);
    for (offset, bytes) in [(0, 8), (0, 57), (0, 60), (0, 96), (32, 1), (20, 4), (255, 1), (100, 156)] {
        assert_eq!(guest.config(offset, bytes), whole[offset as usize..(offset + bytes) as usize]);
    }
    assert_eq!(u64::from_le_bytes(whole[..8].try_into().unwrap()), 2048);
}
