//! kyber's domains by their names in recordings, and the maximum tokens of each.

use hoistway_blk::ground::{HctxId, Local};
use hoistway_blk::request::CpuMap;
use hoistway_blk::schedulers::{Domain, Kyber, KyberConfig};
use hoistway_trace::iosched::{Header, KyberDomain};

use crate::conform::kernel_of;

/// The maximum tokens of each domain.
pub(crate) fn tokens(header: &Header) -> [u32; 4] {
    let config = KyberConfig::new(&kernel_of(header).generation(), 1, 1);
    let fresh: Kyber<Local> = Kyber::new(config, &CpuMap::of_one_type(&[HctxId(0)]), 0);
    Domain::ALL.map(|domain| fresh.depth(domain))
}

pub(crate) fn domain_of(domain: KyberDomain) -> Domain {
    match domain {
        KyberDomain::Read => Domain::Read,
        KyberDomain::Write => Domain::Write,
        KyberDomain::Discard => Domain::Discard,
        KyberDomain::Other => Domain::Other,
    }
}
