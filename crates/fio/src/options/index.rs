//! Finds options by name or alias.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::{OptionSpec, options};

/// The table of options by name and alias.
pub(crate) struct OptionIndex {
    /// Position in the table, and the option.
    by_name: HashMap<&'static str, (usize, &'static OptionSpec)>,
}

impl OptionIndex {
    /// The index of all options, built once: building it takes longer than parsing most job files.
    pub(crate) fn all() -> &'static OptionIndex {
        static ALL: LazyLock<OptionIndex> = LazyLock::new(|| {
            let names = |spec: &'static OptionSpec| spec.aliases.iter().chain([&spec.name]);
            let entries = |(id, spec)| names(spec).map(move |name| (*name, (id, spec)));
            OptionIndex { by_name: options().enumerate().flat_map(entries).collect() }
        });
        &ALL
    }

    /// The option called `name`, and its position in the table.
    pub(crate) fn find(&self, name: &str) -> Option<(usize, &'static OptionSpec)> {
        self.by_name.get(name).copied()
    }

    /// All names and aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.keys().copied()
    }

    /// The known name that is most similar to `name`, if any is similar enough.
    pub(crate) fn nearest(&self, name: &str) -> Option<&'static str> {
        if name.is_empty() || name.len() > 64 {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        let characters = lower.chars().count();
        let edits_max = (characters / 3).max(1);
        // A larger difference in length implies a larger distance.
        let known = self.by_name.keys().filter(|known| known.len().abs_diff(characters) <= edits_max);
        // Ties are broken by name, so that the result does not depend on the order of a hash map.
        let (edits, known) = known.map(|known| (strsim::osa_distance(&lower, known), *known)).min()?;
        (edits <= edits_max).then_some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_or_alias_is_used_twice_and_every_option_is_explained() {
        let names: Vec<_> = options().flat_map(|spec| spec.aliases.iter().chain([&spec.name])).collect();
        assert_eq!(OptionIndex::all().by_name.len(), names.len());
        assert!(options().all(|spec| !spec.doc.is_empty() && !spec.values().is_empty()));
    }

    #[test]
    fn a_slip_of_the_pen_finds_the_option_that_was_meant() {
        let index = OptionIndex::all();
        for (slip, meant) in [
            ("iodpeth", Some("iodepth")),
            ("SIZE", Some("size")),
            ("blocksze", Some("blocksize")),
            ("run_time", Some("runtime")),
            ("rww", Some("rw")),
            ("rwwww", None),
            ("blocksizes_rang", Some("blocksize_range")),
            ("completelydifferent", None),
            ("", None),
        ] {
            assert_eq!(index.nearest(slip), meant, "{slip}");
        }
    }
}
