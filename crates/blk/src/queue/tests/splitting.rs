//! BL-15 to BL-20, BL-98, through the queue.

use super::*;

fn bench(limits: Limits) -> Bench {
    Bench::with(&QueueConfig { limits, ..config(Kernel::V6_12) }, "none")
}

/// Start and length of each request that reached the driver.
fn parts(bench: &mut Bench) -> Vec<(u64, u32)> {
    bench.calls().into_iter().map(|call| (call.sector, call.sectors)).collect()
}

#[test]
fn a_300_kib_write_is_issued_as_128_128_and_44_kib_that_never_merge_again() {
    let mut bench = bench(Limits { max_sectors: 256, ..Limits::default() });
    let write = Bio { segments: 75, ..Bio::new(Op::Write, Sector(0), 600) };
    assert_eq!(bench.queue.parts_of(&write), 3, "is known beforehand");
    bench.submit(write);
    assert_eq!(parts(&mut bench), [(0, 256), (256, 256), (512, 88)]);
    let marked: Vec<bool> = bench.driver.in_flight.iter().map(|rq| rq.flags.contains(BioFlags::NOMERGE)).collect();
    assert_eq!(marked, [true, true, false]);
    bench.drain();
}

#[test]
fn the_parts_of_a_split_are_not_glued_together_in_a_plug() {
    let mut bench = bench(Limits { max_sectors: 256, ..Limits::default() });
    bench.plug();
    bench.submit(Bio::new(Op::Write, Sector(0), 300));
    bench.submit(write(300));
    bench.unplug();
    let mut parts = parts(&mut bench);
    parts.sort_unstable();
    assert_eq!(parts, [(0, 256), (256, 52)], "but a later bio may join the last part");
}

#[test]
fn a_write_is_split_at_a_chunk_boundary() {
    let mut bench = bench(Limits { chunk_sectors: 128, ..Limits::default() });
    bench.submit(Bio::new(Op::Write, Sector(100), 128));
    assert_eq!(parts(&mut bench), [(100, 28), (128, 100)]);
}

#[test]
fn the_end_of_a_part_is_aligned_to_the_physical_block() {
    let mut bench = bench(Limits { physical_block: 8, max_sectors: 20, ..Limits::default() });
    bench.submit(Bio::new(Op::Write, Sector(3), 40));
    assert_eq!(parts(&mut bench), [(3, 13), (16, 16), (32, 11)]);
}

#[test]
fn three_segments_are_split_after_two() {
    let mut bench = bench(Limits { max_segments: 2, ..Limits::default() });
    bench.submit(Bio { segments: 3, ..Bio::new(Op::Read, Sector(0), 24) });
    assert_eq!(parts(&mut bench), [(0, 16), (16, 8)]);
}

#[test]
fn a_discard_is_split_at_its_own_limit_regardless_of_max_sectors() {
    let mut bench = bench(Limits { max_discard_sectors: 64, max_sectors: 8, ..Limits::default() });
    bench.submit(Bio::new(Op::Discard, Sector(0), 200));
    assert_eq!(parts(&mut bench), [(0, 64), (64, 64), (128, 64), (192, 8)]);
}

#[test]
fn the_remainder_of_a_split_is_not_announced_again() {
    let mut bench = bench(Limits { max_sectors: 8, ..Limits::default() });
    bench.submit(Bio::new(Op::Write, Sector(0), 24));
    assert_eq!(bench.events(), "Q0 X0 G0 P U1 D0 X8 G8 P U1 D8 G16 P U1 D16");
}

#[test]
fn every_part_reports_how_it_ended() {
    let mut bench = bench(Limits { max_sectors: 8, ..Limits::default() });
    bench.reply([Reply::Take, Reply::End(Status::Medium)]);
    bench.submit(Bio { owner: 9, ..Bio::new(Op::Write, Sector(0), 24) });
    bench.drain();
    assert_eq!(bench.ended, [(8, Status::Medium), (0, Status::Ok), (16, Status::Ok)]);
}

#[test]
fn a_write_zeroes_is_cut_at_exactly_its_limit() {
    let mut bench = bench(Limits { max_write_zeroes_sectors: 100, physical_block: 8, ..Limits::default() });
    bench.submit(Bio::new(Op::WriteZeroes, Sector(4), 250));
    assert_eq!(parts(&mut bench), [(4, 100), (104, 100), (204, 50)]);
}

#[test]
fn a_bio_that_must_not_wait_fails_rather_than_being_split() {
    let mut bench = bench(Limits { max_sectors: 8, ..Limits::default() });
    bench.submit(Bio { flags: BioFlags::NOWAIT, ..Bio::new(Op::Write, Sector(0), 24) });
    bench.work();
    assert_eq!(bench.ended, [(0, Status::Again)]);
    assert!(bench.issued().is_empty());
}

#[test]
fn a_bio_that_must_not_wait_fails_if_no_tag_is_free() {
    let mut bench = Bench::with(&QueueConfig { queue_depth: 4, ..config(Kernel::V6_12) }, "none");
    bench.occupy(4);
    let nowait = Bio { flags: BioFlags::NOWAIT, ..read(8) };
    assert_eq!(bench.submit(nowait), Submitted::Done);
    assert_eq!(bench.asked(), ["end 8"]);
    assert_eq!(bench.ended, [(8, Status::Again)]);
    bench.drain();
}

#[test]
fn a_bio_that_is_not_aligned_to_logical_blocks_is_an_error() {
    let mut bench = bench(Limits { logical_block: 8, physical_block: 8, ..Limits::default() });
    bench.submit_all([Bio::new(Op::Read, Sector(4), 8), Bio::new(Op::Read, Sector(8), 4)]);
    bench.work();
    assert_eq!(bench.ended, [(4, Status::IoError), (8, Status::IoError)]);
}
