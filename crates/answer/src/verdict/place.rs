//! The variants of one place, with the one that others are compared with.

use super::score::WeightedParty;
use super::waiting::Role;
use crate::analysis::{Analysis, Variant, of_scheduler, usual};

/// What can be chosen among in a place.
pub(super) struct Place<'a> {
    pub(super) analysis: &'a Analysis<'a>,
    /// Its number in the document.
    pub(super) setup: u32,
    /// Those that the kernel has.
    pub(super) variants: Vec<usize>,
    /// Those that no kernel has.
    pub(super) unavailable: Vec<usize>,
    pub(super) reference: usize,
    /// What the kernel gives the devices of this place.
    default: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// None if nothing ran there.
    pub(super) fn of(analysis: &'a Analysis<'a>, setup: u32) -> Option<Self> {
        let document = analysis.document;
        let here = |index: &usize| analysis.variants[*index].first().setup == setup;
        let mut variants: Vec<usize> = (0..analysis.variants.len()).filter(here).collect();
        let is_of_research = |index: &usize| analysis.variants[*index].first().research.is_some();
        let (mut unavailable, of_linux): (Vec<usize>, Vec<usize>) =
            variants.iter().partition(|one| is_of_research(one));
        if of_linux.is_empty() {
            // A setting of one of them is still better than another.
            unavailable.clear();
        } else {
            variants = of_linux;
        }
        let is_of_kernel = |index: &usize| analysis.variants[*index].first().ran_as.is_none();
        if variants.iter().any(is_of_kernel) {
            variants.retain(is_of_kernel);
        }
        let default = document.default_scheduler_of(setup);
        let all = &analysis.variants;
        let like = |wanted: &Variant<'_>| {
            let knobs = wanted.first().variant.knobs();
            let is_same =
                |one: &Variant<'_>| one.scheduler() == wanted.scheduler() && one.first().variant.knobs() == knobs;
            let same = variants.iter().copied().find(|index| is_same(&all[*index]));
            same.or_else(|| of_scheduler(all, &variants, wanted.scheduler()))
        };
        let wanted = document.baseline.as_deref().map(|_| &all[analysis.baseline]);
        let reference = wanted.and_then(like).or_else(|| usual(all, &variants, default))?;
        Some(Self { analysis, setup, variants, unavailable, reference, default })
    }

    /// Those that are compared with the reference.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> + '_ {
        self.variants.iter().copied().filter(|variant| *variant != self.reference)
    }

    pub(super) fn repeats(&self) -> impl Iterator<Item = u32> + '_ {
        self.analysis.variants[self.reference].runs.iter().map(|run| run.repeat)
    }

    /// Whether it is what the kernel gives the devices by itself.
    pub(super) fn is_default(&self, variant: &Variant<'_>) -> bool {
        self.default.is_some_and(|default| variant.is_of(default)) && variant.is_kernel_default()
    }

    /// How much better off the parties are than under the reference, of those that are meant: the mean by their votes.
    pub(super) fn gain_of(
        &self,
        stakes: &[WeightedParty<'_>],
        to: usize,
        repeat: u32,
        is_meant: impl Fn(Role) -> bool,
    ) -> Option<f64> {
        let (mut sum, mut votes) = (0.0, 0.0);
        for stake in stakes.iter().filter(|stake| is_meant(stake.role)) {
            sum += stake.role.votes() * (stake.score(to, repeat)? - stake.score(self.reference, repeat)?);
            votes += stake.role.votes();
        }
        (votes > 0.0).then(|| sum / votes)
    }

    /// The reference and the variant under which the parties are best off; None if there is none to compare.
    pub(super) fn contenders(&self, stakes: &[WeightedParty<'_>]) -> Option<[usize; 2]> {
        let gain = |variant: usize| {
            let gains = self.repeats().filter_map(|repeat| self.gain_of(stakes, variant, repeat, |_| true));
            hoistway_measure::stats::mean(&gains.collect::<Vec<_>>())
        };
        let gains = self.others().filter_map(|variant| Some((variant, gain(variant)?)));
        let label = |variant: usize| &self.analysis.variants[variant].label;
        // Among equals the name decides, as the order of variants must not.
        let best = gains.max_by(|a, b| {
            let by_gain = super::rounded(a.1).cmp(&super::rounded(b.1));
            by_gain.then_with(|| label(b.0).cmp(label(a.0)))
        });
        best.map(|(variant, _)| [self.reference, variant])
    }
}
