//! Whatever lies in a guest's memory, a chain is walked to its end or refused, and what is made of it lies on the disk.

use std::cell::RefCell;

use hoistway_vhost::{Chain, Disk, GuestAddressSpace, Limits, Request, RequestRejection, parse};
use proptest::prelude::*;

const BYTES: usize = 4096;
const LIMITS: Limits = Limits { data_bytes_max: 1 << 20 };

/// Memory from address 0 on.
struct Bytes(RefCell<Vec<u8>>);

impl GuestAddressSpace for Bytes {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let bytes = self.0.borrow();
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        let from = start.checked_add(into.len()).and_then(|end| bytes.get(start..end));
        from.map(|from| into.copy_from_slice(from)).is_some()
    }

    fn write(&self, address: u64, from: &[u8]) -> bool {
        let mut bytes = self.0.borrow_mut();
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        let into = start.checked_add(from.len()).and_then(|end| bytes.get_mut(start..end));
        into.map(|into| into.copy_from_slice(from)).is_some()
    }
}

fn disk(read_only: bool) -> Disk {
    Disk { sectors: 1000, block_bytes: 512, preferred_block_bytes: 4096, read_only, queues: 1, id: Disk::id("x") }
}

/// Descriptors that mostly point to where something is, so that more than refusals is met.
fn descriptor() -> impl Strategy<Value = [u8; 16]> {
    let address = prop_oneof![8 => 0..BYTES as u64, 1 => any::<u64>()];
    let len = prop_oneof![4 => Just(16_u32), 4 => 0..64_u32, 4 => Just(512), 1 => any::<u32>()];
    let flags = prop_oneof![8 => 0..4_u16, 2 => 4..8_u16, 1 => any::<u16>()];
    let next = prop_oneof![8 => 0..8_u16, 1 => any::<u16>()];
    (address, len, flags, next).prop_map(|(address, len, flags, next)| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        bytes[8..12].copy_from_slice(&len.to_le_bytes());
        bytes[12..14].copy_from_slice(&flags.to_le_bytes());
        bytes[14..].copy_from_slice(&next.to_le_bytes());
        bytes
    })
}

/// Headers that mostly ask for something that there is.
fn header() -> impl Strategy<Value = [u8; 16]> {
    let kind = prop_oneof![9 => prop::sample::select(vec![0_u32, 1, 4, 8, 11, 13]), 1 => any::<u32>()];
    let sector = prop_oneof![6 => 0..1001_u64, 1 => any::<u64>()];
    (kind, sector).prop_map(|(kind, sector)| {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&kind.to_le_bytes());
        bytes[8..].copy_from_slice(&sector.to_le_bytes());
        bytes
    })
}

fn lies_on_the_disk(request: &Request) -> bool {
    let spans =
        |offset: u64, bytes: u32| bytes > 0 && bytes.is_multiple_of(512) && offset + u64::from(bytes) <= 1000 * 512;
    match request {
        Request::Read { offset, bytes } | Request::Write { offset, bytes } => {
            spans(*offset, *bytes) && *bytes <= LIMITS.data_bytes_max
        }
        Request::Discard(ranges) | Request::WriteZeroes(ranges) => {
            !ranges.is_empty() && ranges.iter().all(|range| range.sector + u64::from(range.sectors) <= 1000)
        }
        Request::Flush | Request::Id => true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn any_chain_is_a_request_on_the_disk_or_is_refused(
        descriptors in prop::collection::vec(descriptor(), 8),
        headers in prop::collection::vec(header(), 64),
        head in 0..10_u16,
        may_be_indirect: bool,
        read_only: bool,
    ) {
        let mut memory: Vec<u8> = descriptors.concat();
        headers.iter().cycle().take((BYTES - memory.len()) / 16).for_each(|header| memory.extend(header));
        let space = Bytes(RefCell::new(memory));
        let (mut chain, disk) = (Chain::default(), disk(read_only));
        if chain.walk(&space, 0, 8, head, may_be_indirect).is_ok() {
            match parse(&chain, &space, &disk, LIMITS) {
                Ok(request) => {
                    prop_assert!(lies_on_the_disk(&request), "{request:?}");
                    let writes = matches!(request, Request::Write { .. } | Request::Discard(_) | Request::WriteZeroes(_));
                    prop_assert!(!(writes && read_only));
                }
                Err(RequestRejection::NoStatus) => {
                    let status = chain.status_address();
                    prop_assert!(status.is_none_or(|at| !space.write(at, &[0])));
                }
                Err(RequestRejection::Complete(_)) => prop_assert!(chain.writable_bytes() > 0),
            }
        }
    }
}
