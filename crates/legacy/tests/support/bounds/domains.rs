//! kyber (KY-7, KY-8, KY-10 to KY-12): first in, first out in each domain of a software queue, and domains take turns
//! of a limited number of requests. So a domain that waits in a hardware queue while it has tokens is passed over for
//! no longer than the batches of all others.

use std::collections::BTreeMap;

use hoistway_blk::bio::{Op, is_sync};
use hoistway_blk::ground::{Generation, HctxId, KyberGeneration, RqId};
use hoistway_blk::request::Request;

use super::Waiting;

const DOMAINS: usize = 4;

pub struct Domains {
    batches: [u64; DOMAINS],
    /// How many requests of each domain may be at the device.
    pub depths: [u32; DOMAINS],
    /// For each hardware queue and domain: requests that went while it waited and had tokens.
    passed: BTreeMap<HctxId, [u64; DOMAINS]>,
}

impl Domains {
    pub fn new(generation: &Generation) -> Self {
        let batches = if generation.kyber == KyberGeneration::Percentiles { [16, 8, 1, 1] } else { [16, 8, 0, 8] };
        Domains { batches, depths: [0; DOMAINS], passed: BTreeMap::new() }
    }

    /// `out` is what has left kyber and may hold a token, by domain.
    pub fn given_out(&mut self, hctx: HctxId, given: usize, waiting: &[Waiting], out: &BTreeMap<RqId, usize>) {
        let passed = self.passed.entry(hctx).or_default();
        for domain in 0..DOMAINS {
            let waits = waiting.iter().any(|waiting| waiting.lane.0 == hctx && waiting.domain == domain);
            let out = out.values().filter(|&&of| of == domain).count() as u32;
            if domain == given || !waits || out >= self.depths[domain] {
                passed[domain] = 0;
                continue;
            }
            passed[domain] += 1;
            let most = self.batches.iter().sum::<u64>() - self.batches[domain];
            assert!(passed[domain] <= most, "domain {domain} has tokens and waits for {passed:?} requests");
        }
    }
}

/// The domain of a request: reads, writes, discards, others; before 4.20 reads, sync writes, others.
pub fn domain_of(generation: &Generation, rq: &Request) -> usize {
    let is_old = generation.kyber != KyberGeneration::Percentiles;
    match rq.op {
        Op::Read => 0,
        Op::Write if !is_old || is_sync(rq.op, rq.flags) => 1,
        Op::Discard if !is_old => 2,
        _ => 3,
    }
}
