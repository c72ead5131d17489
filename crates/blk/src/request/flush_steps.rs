//! Steps of a flush sequence: preflush, data, postflush (BL-110).

use crate::bio::BioFlags;

/// The remaining steps of a request, in this order: a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlushSteps(u8);

impl FlushSteps {
    /// No steps.
    pub const NONE: FlushSteps = FlushSteps(0);
    /// Flush the cache before the data.
    pub const PRE: FlushSteps = FlushSteps(1);
    /// Write the data.
    pub const DATA: FlushSteps = FlushSteps(2);
    /// Flush the cache after the data.
    pub const POST: FlushSteps = FlushSteps(4);

    /// The steps of a write with these flags, depending on the queue's write cache and the device's FUA support.
    #[must_use]
    pub fn of(flags: BioFlags, sectors: u32, write_cache: bool, fua: bool) -> FlushSteps {
        let pre = write_cache && flags.contains(BioFlags::PREFLUSH);
        let post = write_cache && flags.contains(BioFlags::FUA) && !fua;
        let step = |is_needed: bool, step: FlushSteps| if is_needed { step.0 } else { 0 };
        FlushSteps(step(pre, Self::PRE) | step(sectors > 0, Self::DATA) | step(post, Self::POST))
    }

    /// Whether no step is left.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether only the data is left.
    #[must_use]
    pub fn is_data_only(self) -> bool {
        self == Self::DATA
    }

    /// Whether the data comes first, followed by another step.
    #[must_use]
    pub fn begins_with_data(self) -> bool {
        self.0 & Self::PRE.0 == 0 && self.0 & Self::DATA.0 != 0
    }

    /// Removes the first step.
    pub fn done(&mut self) {
        self.0 &= self.0.wrapping_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRE: BioFlags = BioFlags::PREFLUSH;
    const FUA: BioFlags = BioFlags::FUA;

    fn steps(flags: BioFlags, sectors: u32, write_cache: bool, fua: bool) -> Vec<FlushSteps> {
        let mut left = FlushSteps::of(flags, sectors, write_cache, fua);
        let mut out = Vec::new();
        while !left.is_empty() {
            out.push(FlushSteps(left.0 & left.0.wrapping_neg()));
            left.done();
        }
        out
    }

    #[test]
    fn the_steps_follow_from_cache_fua_support_and_flags() {
        use FlushSteps as S;
        let both = PRE.with(FUA);
        for (flags, write_cache, fua, expected) in [
            (PRE, false, false, vec![S::DATA]),
            (FUA, false, false, vec![S::DATA]),
            (both, false, true, vec![S::DATA]),
            (PRE, true, false, vec![S::PRE, S::DATA]),
            (PRE, true, true, vec![S::PRE, S::DATA]),
            (FUA, true, false, vec![S::DATA, S::POST]),
            (FUA, true, true, vec![S::DATA]),
            (both, true, false, vec![S::PRE, S::DATA, S::POST]),
            (both, true, true, vec![S::PRE, S::DATA]),
        ] {
            assert_eq!(steps(flags, 8, write_cache, fua), expected, "{flags:?} {write_cache} {fua}");
        }
        assert_eq!(steps(PRE, 0, true, false), [S::PRE]);
        assert_eq!(steps(PRE, 0, false, false), []);
    }
}
