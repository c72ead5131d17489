//! What is compared of what is done against contention for a scheduler's lock: one by one, and together.

use hoistway_blk::{Insertion, Techniques};

const NONE: Techniques = Techniques::NONE;

pub const COMPARED: [(&str, Techniques); 9] = [
    ("nothing", NONE),
    ("single dispatcher", Techniques { single_dispatcher: true, ..NONE }),
    ("merging if free", Techniques { try_merge: true, ..NONE }),
    ("batches", Techniques { batch_dispatch: true, ..NONE }),
    ("buckets", Techniques { insertion: Insertion::Buckets, ..NONE }),
    ("pending lists", Techniques { insertion: Insertion::Pending, ..NONE }),
    ("usual", Techniques::USUAL),
    ("usual, buckets", Techniques::ALL),
    ("usual, pending", Techniques::ALL_PENDING),
];
