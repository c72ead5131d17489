//! The variants of one setup, and the reference that others are compared with.

use super::ratio::rounded;
use super::roles::{Role, votes};
use super::score::JudgedParty;
use crate::analysis::{Analysis, Variant, default_reference, find_by_scheduler};
use crate::document::DiskGroup;

/// The variants to choose among on one setup.
pub(super) struct SetupVariants<'a> {
    pub(super) analysis: &'a Analysis<'a>,
    /// The number of the setup in the document.
    pub(super) setup: u32,
    /// The variants whose scheduler the kernel has.
    pub(super) variants: Vec<usize>,
    /// The variants whose scheduler no kernel has.
    pub(super) unavailable: Vec<usize>,
    pub(super) reference: usize,
    /// The group of disks that is judged, if not all are.
    pub(super) group: Option<&'a DiskGroup>,
    /// The kernel's default scheduler for the devices of this setup, or for the group.
    default: Option<&'a str>,
}

impl<'a> SetupVariants<'a> {
    /// The variants of a setup; `None` if nothing ran on it.
    pub(super) fn of(analysis: &'a Analysis<'a>, setup: u32, group: Option<&'a DiskGroup>) -> Option<Self> {
        let document = analysis.document;
        let is_of_setup = |index: &usize| analysis.variants[*index].first().setup == setup;
        let mut variants: Vec<usize> = (0..analysis.variants.len()).filter(is_of_setup).collect();
        let is_research = |index: &usize| analysis.variants[*index].first().research.is_some();
        let (mut unavailable, of_linux): (Vec<usize>, Vec<usize>) =
            variants.iter().partition(|index| is_research(index));
        if of_linux.is_empty() {
            // Without any scheduler of Linux, the research schedulers are compared with each other.
            unavailable.clear();
        } else {
            variants = of_linux;
        }
        // Variants that ran on another kernel, because the setup's lacks the scheduler, do not count beside others.
        let is_on_own_kernel = |index: &usize| analysis.variants[*index].first().ran_as.is_none();
        if variants.iter().any(is_on_own_kernel) {
            variants.retain(is_on_own_kernel);
        }
        let default = group.map(|group| group.default_scheduler.as_str()).or(document.default_scheduler_of(setup));
        let all = &analysis.variants;
        let same_variant = |baseline: &Variant<'_>| {
            let tunables = baseline.first().variant.own_settings();
            let is_same = |variant: &Variant<'_>| {
                variant.scheduler() == baseline.scheduler() && variant.first().variant.own_settings() == tunables
            };
            let same = variants.iter().copied().find(|index| is_same(&all[*index]));
            same.or_else(|| find_by_scheduler(all, &variants, baseline.scheduler()))
        };
        let baseline = document.baseline.is_some().then(|| &all[analysis.baseline]);
        let reference = baseline.and_then(same_variant).or_else(|| default_reference(all, &variants, default))?;
        Some(Self { analysis, setup, variants, unavailable, reference, group, default })
    }

    /// The variants that are compared with the reference.
    pub(super) fn others(&self) -> impl Iterator<Item = usize> + '_ {
        self.variants.iter().copied().filter(|variant| *variant != self.reference)
    }

    pub(super) fn repeats(&self) -> impl Iterator<Item = u32> + '_ {
        let mut repeats: Vec<u32> = self.analysis.variants[self.reference].runs.iter().map(|run| run.repeat).collect();
        // Resamplings draw from them by their place, which must not depend on the order of the runs.
        repeats.sort_unstable();
        repeats.into_iter()
    }

    /// Whether a variant is the kernel's default for the devices, with default settings.
    pub(super) fn is_default(&self, variant: &Variant<'_>) -> bool {
        self.default.is_some_and(|default| variant.uses_scheduler(default)) && variant.is_kernel_default()
    }

    /// The improvement of the parties whose role `includes` selects over the reference, as a logarithm: the mean weighted by their votes.
    pub(super) fn gain_of(
        &self,
        judged_parties: &[JudgedParty<'_>],
        to: usize,
        repeat: u32,
        includes: impl Fn(Role) -> bool,
    ) -> Option<f64> {
        let (mut sum, mut all) = (0.0, 0.0);
        for judged in judged_parties.iter().filter(|judged| includes(judged.role)) {
            let of_party = votes(&judged.party, judged.role);
            sum += of_party * (judged.score(to, repeat)? - judged.score(self.reference, repeat)?);
            all += of_party;
        }
        (all > 0.0).then(|| sum / all)
    }

    /// The reference and the variant under which the parties are best off; `None` if no variant can be compared.
    pub(super) fn contenders(&self, judged_parties: &[JudgedParty<'_>]) -> Option<[usize; 2]> {
        let gain = |variant: usize| {
            let gains = self.repeats().filter_map(|repeat| self.gain_of(judged_parties, variant, repeat, |_| true));
            hoistway_measure::stats::mean(&gains.collect::<Vec<_>>())
        };
        let gains = self.others().filter_map(|variant| Some((variant, gain(variant)?)));
        let label = |variant: usize| &self.analysis.variants[variant].label;
        // Ties are broken by name, because the order of variants must not matter.
        let best = gains.max_by(|a, b| {
            let by_gain = rounded(a.1).cmp(&rounded(b.1));
            by_gain.then_with(|| label(b.0).cmp(label(a.0)))
        });
        best.map(|(variant, _)| [self.reference, variant])
    }
}
