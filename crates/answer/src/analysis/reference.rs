//! Which variant of a place others are compared with if none was named.

use super::Variant;
use crate::document::ResultsDocument;

impl ResultsDocument {
    /// The scheduler that the kernel gives the devices of a place by itself; with guests those of the host.
    pub(crate) fn default_scheduler_of(&self, setup: u32) -> Option<&str> {
        let of_place = self.setups.get(setup as usize).map(|place| &place.default_scheduler);
        of_place.unwrap_or(&self.default_scheduler).as_deref()
    }
}

/// The first of these variants that has a scheduler, one with its usual settings before others.
pub(crate) fn of_scheduler(variants: &[Variant<'_>], here: &[usize], name: &str) -> Option<usize> {
    usual_first(variants, here, |one| one.is_of(name))
}

/// The kernel's default among these variants, else the first, each with its usual settings wherever these stand among those compared.
pub(crate) fn usual(variants: &[Variant<'_>], here: &[usize], default: Option<&str>) -> Option<usize> {
    let first = || {
        let first = variants[*here.first()?].scheduler();
        usual_first(variants, here, |one| one.scheduler() == first)
    };
    default.and_then(|name| of_scheduler(variants, here, name)).or_else(first)
}

fn usual_first<'a>(variants: &[Variant<'a>], here: &[usize], is_meant: impl Fn(&Variant<'a>) -> bool) -> Option<usize> {
    let meant = || here.iter().copied().filter(|one| is_meant(&variants[*one]));
    meant().find(|one| variants[*one].first().variant.is_usual()).or_else(|| meant().next())
}
