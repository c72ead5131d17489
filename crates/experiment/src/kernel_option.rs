//! A kernel as an option names it.

use std::fmt;
use std::str::FromStr;

use hoistway_blk::ground::{Generation, Kernel};
use hoistway_blk::schedulers::BfqVariant;

/// A release, with the words of the option: results are named after them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelOption {
    /// The release.
    pub kernel: Kernel,
    words: String,
}

impl From<Kernel> for KernelOption {
    fn from(kernel: Kernel) -> Self {
        KernelOption { kernel, words: kernel.to_string() }
    }
}

impl FromStr for KernelOption {
    type Err = String;

    fn from_str(words: &str) -> Result<Self, String> {
        Ok(KernelOption { kernel: words.parse()?, words: words.to_owned() })
    }
}

impl fmt::Display for KernelOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl KernelOption {
    /// The release that is simulated, if it is not the one that was named.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        let like = example(self.kernel);
        match like {
            Some(example) if example.to_string() == self.words => None,
            Some(example) => Some(format!(
                "Linux {self} is simulated as {example}: they are the same in everything that is modelled."
            )),
            None if self.kernel.to_string() == self.words => None,
            None => Some(format!("Linux {self} is simulated as {}.", self.kernel)),
        }
    }
}

/// The named release that is the same in all that is modelled, the newest if there are several.
fn example(kernel: Kernel) -> Option<Kernel> {
    let of = |other: Kernel| (Generation { kernel, ..other.generation() }, BfqVariant::of(other));
    Kernel::EXAMPLES.into_iter().rev().find(|&example| of(example) == of(kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_release_is_taken_for_is_said_unless_it_has_a_name() {
        let notice = |words: &str| words.parse::<KernelOption>().unwrap().notice();
        for kernel in Kernel::EXAMPLES {
            assert_eq!(notice(&kernel.to_string()), None, "{kernel}");
        }
        assert!(notice("6.12.107").unwrap().starts_with("Linux 6.12.107 is simulated as 6.12:"));
        assert!(notice("6.1.0-25-amd64").unwrap().starts_with("Linux 6.1.0-25-amd64 is simulated as 6.1:"));
        assert!(notice("9.4").unwrap().starts_with("Linux 9.4 is simulated as 7.2:"));
        assert_eq!(notice("5.17"), None, "it is what it is");
        assert_eq!(notice("5.17.0-1-generic").unwrap(), "Linux 5.17.0-1-generic is simulated as 5.17.");
    }

    #[test]
    fn it_is_named_as_it_was_asked_for() {
        assert_eq!("6.1.0-25-amd64".parse::<KernelOption>().unwrap().to_string(), "6.1.0-25-amd64");
    }
}
