//! The default reference of a setup: the variant that others are compared with if the user names none.

use super::Variant;
use crate::document::ResultsDocument;

impl ResultsDocument {
    /// The kernel's default scheduler for the devices of a setup; with guests, for the host's device.
    pub(crate) fn default_scheduler_of(&self, setup: u32) -> Option<&str> {
        let of_setup = self.setups.get(setup as usize).map(|setup| &setup.default_scheduler);
        of_setup.unwrap_or(&self.default_scheduler).as_deref()
    }
}

/// The first of these variants that uses this scheduler, preferably with its default settings.
pub(crate) fn find_by_scheduler(variants: &[Variant<'_>], candidates: &[usize], name: &str) -> Option<usize> {
    first_preferring_defaults(variants, candidates, |variant| variant.uses_scheduler(name))
}

/// The kernel's default among these variants, or else the first scheduler; of several settings the default one is preferred.
pub(crate) fn default_reference(
    variants: &[Variant<'_>],
    candidates: &[usize],
    default: Option<&str>,
) -> Option<usize> {
    let first = || {
        let first = variants[*candidates.first()?].scheduler();
        first_preferring_defaults(variants, candidates, |variant| variant.scheduler() == first)
    };
    default.and_then(|name| find_by_scheduler(variants, candidates, name)).or_else(first)
}

fn first_preferring_defaults<'a>(
    variants: &[Variant<'a>],
    candidates: &[usize],
    matches: impl Fn(&Variant<'a>) -> bool,
) -> Option<usize> {
    let matching = || candidates.iter().copied().filter(|index| matches(&variants[*index]));
    matching().find(|index| variants[*index].first().variant.has_default_settings()).or_else(|| matching().next())
}
