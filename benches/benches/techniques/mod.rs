//! The contention options that are compared: one by one, and together.

use hoistway_blk::policy::{ContentionOptions, Insertion};

const NONE: ContentionOptions = ContentionOptions::NONE;

pub const COMPARED: [(&str, ContentionOptions); 9] = [
    ("nothing", NONE),
    ("single dispatcher", ContentionOptions { single_dispatcher: true, ..NONE }),
    ("merging if free", ContentionOptions { try_merge: true, ..NONE }),
    ("batches", ContentionOptions { batch_dispatch: true, ..NONE }),
    ("buckets", ContentionOptions { insertion: Insertion::Buckets, ..NONE }),
    ("pending lists", ContentionOptions { insertion: Insertion::Pending, ..NONE }),
    ("recommended", ContentionOptions::RECOMMENDED),
    ("recommended, buckets", ContentionOptions::ALL),
    ("recommended, pending", ContentionOptions::ALL_PENDING),
];
