//! What is compared of what is done against contention for a scheduler's lock: one by one, and together.

use hoistway_blk::Techniques;

const NONE: Techniques =
    Techniques { single_dispatcher: false, try_merge: false, batch_dispatch: false, insertion_buckets: false };

pub const COMPARED: [(&str, Techniques); 7] = [
    ("nothing", NONE),
    ("single dispatcher", Techniques { single_dispatcher: true, ..NONE }),
    ("merging if free", Techniques { try_merge: true, ..NONE }),
    ("batches", Techniques { batch_dispatch: true, ..NONE }),
    ("buckets", Techniques { insertion_buckets: true, ..NONE }),
    ("all but buckets", Techniques::USUAL),
    ("all", Techniques::ALL),
];
