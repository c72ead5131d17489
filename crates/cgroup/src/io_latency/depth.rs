//! How many I/Os a group may have outstanding (IL-7, IL-8).

/// The depth of a group: no limit, or one that falls and rises in steps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Depth {
    /// I/Os that may be outstanding; `None` for no limit.
    pub(super) limit: Option<u32>,
    /// The lowest limit until now.
    pub(super) lowest: Option<u32>,
    /// Outstanding I/Os when the limit began, at which it ends.
    unlimited_from: u32,
}

impl Depth {
    /// Whether one more I/O may pass.
    #[inline]
    pub(super) fn allows(&self, outstanding: u32) -> bool {
        self.limit.is_none_or(|limit| outstanding < limit)
    }

    /// A step down: half, at least 1. The first one halves `peak`, the most I/Os that were outstanding lately; without any, there is
    /// nothing to limit.
    pub(super) fn lower(&mut self, peak: u32) {
        let before = match self.limit {
            Some(limit) => limit,
            None if peak == 0 => return,
            None => {
                self.unlimited_from = peak;
                peak
            }
        };
        let limit = (before / 2).max(1);
        self.limit = Some(limit);
        self.lowest = Some(self.lowest.map_or(limit, |lowest| lowest.min(limit)));
    }

    /// A step up: a quarter, at least 1. Where the limit began, it ends.
    pub(super) fn raise(&mut self) {
        self.limit = self.limit.map(|limit| limit + (limit / 4).max(1)).filter(|&limit| limit < self.unlimited_from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_halves_down_to_one_and_rises_by_quarters_until_it_ends() {
        let mut depth = Depth::default();
        depth.lower(0);
        assert_eq!(depth.limit, None, "a group without I/O");
        let mut steps = |step: fn(&mut Depth)| {
            step(&mut depth);
            depth.limit
        };
        let down: Vec<_> = (0..6).map(|_| steps(|depth| depth.lower(32))).collect();
        assert_eq!(down, [16, 8, 4, 2, 1, 1].map(Some));
        let up: Vec<_> = (0..14).map(|_| steps(Depth::raise)).collect();
        let limits = [2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27].map(Some);
        assert_eq!((&up[..13], up[13]), (&limits[..], None));
        assert_eq!(depth.lowest, Some(1));
    }
}
