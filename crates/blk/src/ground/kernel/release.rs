//! Linux release numbers: parsing, order, and which changes a release contains.

use std::fmt;
use std::str::FromStr;

/// A Linux release to simulate: `6.18.3`, or a series. A long-term series such as `6.18` stands for its latest stable release, any other
/// series such as `6.10` for its mainline release. Ordered by version; a series is after all of its releases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Kernel {
    major: u16,
    minor: u16,
    /// [`LATEST`] for a series.
    patch: u16,
}

/// Later than every stable release of a series.
const LATEST: u16 = u16::MAX;

/// The long-term series. The others ended within months.
const LONG_TERM: [(u16, u16); 11] =
    [(4, 4), (4, 9), (4, 14), (4, 19), (5, 4), (5, 10), (5, 15), (6, 1), (6, 6), (6, 12), (6, 18)];

/// The last series of each completed major version.
const LAST_SERIES: [(u16, u16); 3] = [(4, 20), (5, 19), (6, 19)];

impl Kernel {
    /// The oldest supported kernel: openSUSE Leap 42.2.
    pub const V4_4: Kernel = Kernel::series(4, 4);
    /// The first kernel with multi-queue schedulers.
    pub const V4_12: Kernel = Kernel::series(4, 12);
    /// The last long-term kernel with the legacy single queue.
    pub const V4_19: Kernel = Kernel::series(4, 19);
    /// Debian 11; before the single-dispatch rule.
    pub const V5_10: Kernel = Kernel::series(5, 10);
    /// Ubuntu 22.04.
    pub const V5_15: Kernel = Kernel::series(5, 15);
    /// Debian 12.
    pub const V6_1: Kernel = Kernel::series(6, 1);
    /// The kernel of the published NVMe heatmaps.
    pub const V6_3: Kernel = Kernel::series(6, 3);
    /// A long-term kernel.
    pub const V6_6: Kernel = Kernel::series(6, 6);
    /// Debian 13.
    pub const V6_12: Kernel = Kernel::series(6, 12);
    /// A long-term kernel.
    pub const V6_18: Kernel = Kernel::series(6, 18);
    /// The first kernel with `queue/async_depth`.
    pub const V7_0: Kernel = Kernel::series(7, 0);
    /// The first kernel without implicit plugs.
    pub const V7_2: Kernel = Kernel::series(7, 2);

    /// Well-known releases, oldest first: together they have every variant of every component.
    pub const EXAMPLES: [Kernel; 12] = [
        Kernel::V4_4,
        Kernel::V4_12,
        Kernel::V4_19,
        Kernel::V5_10,
        Kernel::V5_15,
        Kernel::V6_1,
        Kernel::V6_3,
        Kernel::V6_6,
        Kernel::V6_12,
        Kernel::V6_18,
        Kernel::V7_0,
        Kernel::V7_2,
    ];

    /// The default: the newest release.
    pub const DEFAULT: Kernel = Kernel::V7_2;

    /// A single release. Patch 0 is the mainline release.
    #[must_use]
    pub const fn release(major: u16, minor: u16, patch: u16) -> Kernel {
        Kernel { major, minor, patch }
    }

    /// A series in its latest stable release.
    #[must_use]
    pub const fn series(major: u16, minor: u16) -> Kernel {
        Kernel { major, minor, patch: LATEST }
    }

    /// The mainline release that begins its series.
    #[must_use]
    pub const fn first_of_series(self) -> Kernel {
        Kernel { patch: 0, ..self }
    }

    /// Whether it is this mainline release or later.
    #[must_use]
    pub const fn is_from(self, major: u16, minor: u16) -> bool {
        self.major > major || (self.major == major && self.minor >= minor)
    }

    /// Whether it contains a change that came with the first of these releases, and with the others in their stable series.
    pub(crate) fn has(self, since: &[Kernel]) -> bool {
        let in_series = |kernel: &&Kernel| (kernel.major, kernel.minor) == (self.major, self.minor);
        let reaches = |&at: &Kernel| self.stable_release() >= at;
        since.first().is_some_and(|&main| self >= main) || since.iter().find(in_series).is_some_and(reaches)
    }

    /// The release that this stands for: the mainline release for a series that is not long-term.
    fn stable_release(self) -> Kernel {
        let is_long_term = LONG_TERM.contains(&(self.major, self.minor));
        if self.patch == LATEST && !is_long_term { self.first_of_series() } else { self }
    }

    /// The value of a table column: the initial one, or the last change that this release contains.
    pub(crate) fn column<T: Copy>(self, first: T, changes: &[(T, &[Kernel])]) -> T {
        changes.iter().rev().find(|(_, since)| self.has(since)).map_or(first, |&(variant, _)| variant)
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        if self.patch == LATEST { Ok(()) } else { write!(f, ".{}", self.patch) }
    }
}

/// Parses the number at the start of a text; also returns the rest.
fn number(text: &str) -> Option<(u16, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    // The largest 16-bit number is reserved for a series.
    Some((number.parse().ok().filter(|&number| number != LATEST)?, rest))
}

/// Parses output of `uname -r`, or part of it: two or three numbers, and a distribution's suffix.
fn parse(text: &str) -> Option<Kernel> {
    let (major, rest) = number(text)?;
    let (minor, rest) = number(rest.strip_prefix('.')?)?;
    let Some((patch, suffix)) = rest.strip_prefix('.').and_then(number) else {
        return rest
            .is_empty()
            .then(|| Kernel::series(major, minor))
            .or_else(|| with_suffix(rest, Kernel::series(major, minor)));
    };
    // Debian, Ubuntu and others keep patch 0 and append their own build number, which does not identify the stable release.
    let has_build_number = suffix.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let kernel = if patch == 0 && has_build_number {
        Kernel::series(major, minor)
    } else {
        Kernel::release(major, minor, patch)
    };
    with_suffix(suffix, kernel)
}

/// The release, if the text after its numbers is a valid distribution suffix.
fn with_suffix(text: &str, kernel: Kernel) -> Option<Kernel> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-+~._".contains(c);
    let begins = text.is_empty() || text.starts_with(['-', '+', '~', '_']);
    (begins && text.chars().all(is_part)).then_some(kernel)
}

impl FromStr for Kernel {
    type Err = String;

    fn from_str(text: &str) -> Result<Kernel, String> {
        let shown = text.chars().take(80).collect::<String>();
        let expected = "expected one of the releases from 4.4 on, such as 6.18 or 6.12.107, or what `uname -r` prints";
        let kernel = parse(text).ok_or_else(|| format!("unknown kernel \"{}\" ({expected})", shown.escape_debug()))?;
        if !kernel.is_from(4, 4) {
            return Err(format!("unknown kernel \"{shown}\": it is too old ({expected})"));
        }
        match LAST_SERIES.into_iter().find(|&(major, _)| major == kernel.major) {
            Some((major, last)) if kernel.minor > last => Err(format!(
                "unknown kernel \"{shown}\": {major}.{last} was the last before {}.0 ({expected})",
                major + 1
            )),
            _ => Ok(kernel),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_or_uname_string_is_parsed() {
        for (text, kernel) in [
            ("5.15", Kernel::V5_15),
            ("6.18.3", Kernel::release(6, 18, 3)),
            ("6.12.0", Kernel::release(6, 12, 0)),
            ("7.3.4-1~bpo13+1", Kernel::release(7, 3, 4)),
            ("6.12.41+deb13-amd64", Kernel::release(6, 12, 41)),
            ("6.6.8-arch1-1", Kernel::release(6, 6, 8)),
            ("6.19.0-rc3", Kernel::release(6, 19, 0)),
            ("6.1.0-25-amd64", Kernel::V6_1),
            ("5.15.0-91-generic", Kernel::V5_15),
            ("5.14.0-503.11.1.el9_5.x86_64", Kernel::series(5, 14)),
        ] {
            assert_eq!(text.parse(), Ok(kernel), "{text}");
        }
        for kernel in Kernel::EXAMPLES {
            assert_eq!(kernel.to_string().parse(), Ok(kernel));
        }
    }

    #[test]
    fn an_unknown_release_is_refused_with_what_is_expected() {
        for text in
            ["", "6", "6.", "newest", "6.x", "v6.1", "6.18 ", "6.18.", "6.18.3x", "3.10.0-1160.el7", "6.20", "5.99"]
        {
            let error = text.parse::<Kernel>().unwrap_err();
            assert!(error.contains("expected one of the releases from 4.4 on, such as 6.18"), "{text}: {error}");
        }
        assert!("6.65535.1".parse::<Kernel>().is_err() && "70000.1".parse::<Kernel>().is_err());
    }

    #[test]
    fn a_stable_backport_holds_in_its_series_and_not_between() {
        let since = [Kernel::release(6, 11, 0), Kernel::release(6, 6, 44)];
        let has = |text: &str| text.parse::<Kernel>().unwrap().has(&since);
        assert_eq!(["6.6.43", "6.6.44", "6.6", "6.7", "6.10.14"].map(has), [false, true, true, false, false]);
        assert_eq!(["6.11.0", "6.11", "7.0"].map(has), [true; 3]);
        // Of a short series only three numbers say that it is a later release than that of the main line.
        let since = [Kernel::release(6, 11, 0), Kernel::release(6, 10, 3)];
        let has = |text: &str| text.parse::<Kernel>().unwrap().has(&since);
        assert_eq!(["6.10", "6.10.2", "6.10.3", "6.10.14-200.fc40.x86_64"].map(has), [false, false, true, true]);
    }

    #[test]
    fn a_series_is_its_latest_release() {
        assert!(Kernel::V6_12 > Kernel::release(6, 12, 107) && Kernel::V6_12 < Kernel::release(6, 13, 0));
        assert!(Kernel::V6_12.is_from(6, 12) && !Kernel::V6_12.is_from(6, 13));
    }
}
