//! The patches against contention beside what was published of them.

use hoistway_evidence::reproduction::{Length, Table};

#[test]
fn the_patches_against_contention_show_in_the_published_direction() {
    let table = Table::named("axboe-contention").unwrap().reproduce(Length::Settled).unwrap();
    let ours: Vec<_> = table.cells.iter().map(|cell| (cell.row.as_str(), cell.column.as_str(), cell.ours)).collect();
    eprintln!("{ours:#?}");
    let [_, share_before, _, share_after, alone, gain, third] = ours[..] else { panic!("{ours:?}") };
    assert!(share_before.2 > 80.0 && share_after.2 < share_before.2, "{ours:?}");
    // Published: 82 and 106 %, and 3.26 times.
    assert!((49.0..115.0).contains(&alone.2) && (64.0..149.0).contains(&gain.2) && third.2 > 2.0, "{ours:?}");
}
