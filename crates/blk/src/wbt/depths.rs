//! How many throttled I/Os may be in flight at a step of the control (BL-119 to BL-125).

/// The depth of a device at step 0, unless its queue is smaller.
const BASE_DEPTH: u32 = 16;
/// The largest shift, after which nothing is left.
const SHIFT_MAX: u32 = 31;

/// Three limits: for a write that a task waits for, for other writes, and for background write-back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Depths {
    pub(crate) max: u32,
    pub(crate) normal: u32,
    pub(crate) background: u32,
}

impl Depths {
    /// The limits of a device with a number of tags.
    pub(crate) fn at(queue_depth: u32, step: i32) -> Depths {
        let max = depth(queue_depth, step);
        if max <= 2 {
            return Depths { max, normal: max, background: 1 };
        }
        Depths { max, normal: max.div_ceil(2), background: max.div_ceil(4) }
    }
}

/// The depth at a step: less at higher steps, more at negative ones.
pub(super) fn depth(queue_depth: u32, step: i32) -> u32 {
    if queue_depth <= 1 {
        return if step > 0 { 1 } else { 2 };
    }
    let base = BASE_DEPTH.min(queue_depth);
    let shift = step.unsigned_abs().min(SHIFT_MAX);
    match step {
        0 => base,
        1.. => 1 + ((base - 1) >> shift),
        _ => {
            let depth_max = u64::from(queue_depth) * 3 / 4;
            (1 + (u64::from(base - 1) << shift)).min(depth_max) as u32
        }
    }
}
