//! A kernel as given in an option: a release, or the output of `uname -r`.

use std::fmt;
use std::str::FromStr;

use hoistway_blk::ground::{Generation, Kernel};
use hoistway_blk::schedulers::BfqVariant;

/// A release with its text in the option; results are labelled with the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelOption {
    /// The release.
    pub kernel: Kernel,
    text: String,
}

impl From<Kernel> for KernelOption {
    fn from(kernel: Kernel) -> Self {
        KernelOption { kernel, text: kernel.to_string() }
    }
}

impl FromStr for KernelOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Tags of the kernel's repository begin with a v.
        let text = text.trim();
        let text = text.strip_prefix('v').unwrap_or(text);
        let kernel: Kernel = text.parse()?;
        let kernel = Vendor::of(text).and_then(|vendor| vendor.simulated_as).unwrap_or(kernel);
        Ok(KernelOption { kernel, text: text.to_owned() })
    }
}

/// The vendor of a kernel, if its release name shows one: such a kernel has patches of its own and backports.
struct Vendor {
    name: &'static str,
    /// The release whose block layer is closest, if that is not the release in the name.
    simulated_as: Option<Kernel>,
    /// The known differences, as a clause after the vendor's name.
    differences: &'static str,
}

/// Marks in the output of `uname -r` and the vendors that put them there. The first match counts.
const VENDORS: [(&str, &str); 14] = [
    (".el8uek", "Oracle's UEK"),
    (".el9uek", "Oracle's UEK"),
    ("uek.", "Oracle's UEK"),
    (".el8", "RHEL 8"),
    (".el9", "RHEL 9"),
    (".el10", "RHEL 10"),
    (".amzn", "Amazon Linux"),
    ("-generic", "Ubuntu"),
    ("-lowlatency", "Ubuntu"),
    ("-aws", "Ubuntu for AWS"),
    ("-azure", "Ubuntu for Azure"),
    ("-gcp", "Ubuntu for Google Cloud"),
    ("-default", "SUSE"),
    ("-oem", "Ubuntu"),
];

impl Vendor {
    fn of(text: &str) -> Option<Vendor> {
        let (_, name) = VENDORS.into_iter().find(|(mark, _)| text.contains(mark))?;
        // Red Hat removed the single-queue block layer from its 4.18, as Linux 5.0 did.
        let is_rhel_8 = name == "RHEL 8" && text.starts_with("4.18.");
        let simulated_as = is_rhel_8.then(|| Kernel::series(5, 0));
        let differences =
            if is_rhel_8 { ", which, like Linux 5.0, no longer has the legacy queue and cfq" } else { "" };
        Some(Vendor { name, simulated_as, differences })
    }
}

impl fmt::Display for KernelOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl KernelOption {
    /// A notice that names the simulated release and what it leaves out; `None` if the named release itself is simulated.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let equivalent = example(self.kernel);
        if let Some(Vendor { name, differences, .. }) = Vendor::of(&self.text) {
            return Some(format!(
                "Linux {self} is a kernel of {name}{differences}: it is simulated as {}, without the vendor's changes and backports.",
                self.kernel
            ));
        }
        let newest = Kernel::EXAMPLES[Kernel::EXAMPLES.len() - 1];
        if self.kernel.is_from(NEWEST_SERIES.0, NEWEST_SERIES.1 + 1) {
            return Some(format!(
                "Linux {self} is newer than every release that is known here (up to {}.{}): it is simulated as {newest}, and may differ.",
                NEWEST_SERIES.0, NEWEST_SERIES.1
            ));
        }
        match equivalent {
            Some(example) if example.to_string() == self.text => None,
            Some(example) => Some(format!(
                "Linux {self} is simulated as {example}: they are the same in everything that is modelled."
            )),
            None if self.kernel.to_string() == self.text => None,
            None => Some(format!("Linux {self} is simulated as {}.", self.kernel)),
        }
    }
}

/// The newest series whose block layer was compared with recordings.
const NEWEST_SERIES: (u16, u16) = (7, 3);

/// The newest named release that is modelled exactly like this one.
fn example(kernel: Kernel) -> Option<Kernel> {
    let model_of = |other: Kernel| (Generation { kernel, ..other.generation() }, BfqVariant::of(other));
    Kernel::EXAMPLES.into_iter().rev().find(|&example| model_of(example) == model_of(kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_simulated_as_another_is_reported_unless_it_has_a_name() {
        let notice = |text: &str| text.parse::<KernelOption>().unwrap().notice();
        for kernel in Kernel::EXAMPLES {
            assert_eq!(notice(&kernel.to_string()), None, "{kernel}");
        }
        assert!(notice("6.12.107").unwrap().starts_with("Linux 6.12.107 is simulated as 6.12:"));
        assert!(notice("6.1.0-25-amd64").unwrap().starts_with("Linux 6.1.0-25-amd64 is simulated as 6.1:"));
        assert!(notice("7.3").unwrap().starts_with("Linux 7.3 is simulated as 7.2:"));
        for text in ["7.4", "8.5", "9.4"] {
            let notice = notice(text).unwrap();
            assert!(
                notice
                    .starts_with(&format!("Linux {text} is newer than every release that is known here (up to 7.3):"))
            );
        }
        assert_eq!(notice("5.17"), None, "it is what it is");
        assert_eq!(notice("5.17.0-1-amd64").unwrap(), "Linux 5.17.0-1-amd64 is simulated as 5.17.");
    }

    #[test]
    fn a_vendors_kernel_is_never_called_the_same() {
        for (text, vendor, like) in [
            ("4.18.0-553.el8_10.x86_64", "RHEL 8", "5.0"),
            ("5.14.0-503.11.1.el9_5.x86_64", "RHEL 9", "5.14"),
            ("5.15.0-1052-aws", "Ubuntu for AWS", "5.15"),
            ("5.15.0-91-generic", "Ubuntu", "5.15"),
            ("6.1.112-122.189.amzn2023.x86_64", "Amazon Linux", "6.1.112"),
            ("5.14.21-150500.55.52-default", "SUSE", "5.14.21"),
            ("5.15.0-205.149.5.1.el8uek.x86_64", "Oracle's UEK", "5.15"),
        ] {
            let option: KernelOption = text.parse().unwrap();
            let notice = option.notice().unwrap();
            assert!(notice.starts_with(&format!("Linux {text} is a kernel of {vendor}")), "{notice}");
            assert!(notice.contains(&format!("simulated as {like},")) && !notice.contains("same"), "{notice}");
        }
        let rhel_8: KernelOption = "4.18.0-553.el8_10.x86_64".parse().unwrap();
        assert!(rhel_8.kernel.is_from(5, 0), "the legacy queue is gone");
        assert!(!"4.18.0-25-amd64".parse::<KernelOption>().unwrap().kernel.is_from(5, 0));
    }

    #[test]
    fn a_kernel_option_prints_the_name_it_was_given() {
        assert_eq!("6.1.0-25-amd64".parse::<KernelOption>().unwrap().to_string(), "6.1.0-25-amd64");
    }
}
