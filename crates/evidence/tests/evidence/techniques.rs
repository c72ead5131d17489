//! The patches against contention beside what was published of them.

use hoistway_evidence::reproduction::{Length, Table};

#[test]
fn the_patches_against_contention_show_in_the_published_direction() {
    let table = Table::named("axboe-contention").unwrap().reproduce(Length::Settled).unwrap();
    let ours: Vec<_> = table.cells.iter().map(|cell| (cell.row.as_str(), cell.column.as_str(), cell.ours)).collect();
    eprintln!("{ours:#?}");
    let [_, share_before, _, share_after, ratio, third] = ours[..] else { panic!("{ours:?}") };
    assert!(share_before.2 > 80.0 && share_after.2 < share_before.2 + 0.1, "{ours:?}");
    assert!(ratio.2 > 0.98 && third.2 > 2.0, "{ours:?}");
}
