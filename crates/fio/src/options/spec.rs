//! One row of the table of options.

use super::setter::Setter;

/// One option of fio's job files.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its name, as fio's results spell it.
    pub name: &'static str,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    /// What holds if it is not given, as one would write it; empty for nothing.
    pub default: &'static str,
    /// What it is for, in one line.
    pub doc: &'static str,
    /// What is done with it.
    pub(crate) action: Action,
}

/// What is done with an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Treatment {
    /// It does what it does in fio.
    Honoured,
    /// It cannot change a simulation, or only by what is no part of one: accepted, and named in a notice.
    IgnoredInSimulation,
    /// It would change the results and is not modelled: an error.
    NotSupported,
}

/// What is done with an option, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Honour(Setter),
    Ignore(Topic),
    Refuse {
        /// Values that ask for what is done anyway.
        accepted: &'static [&'static str],
        /// What to do instead.
        hint: &'static str,
    },
}

/// What an ignored option is about; the notice goes by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Topic {
    /// Nothing that needs words of its own.
    Other,
    /// Which I/O scheduler the author of the job meant.
    Scheduler,
    /// It may make a difference on a real host, one that is not simulated: the sentence says which.
    NotSimulated(&'static str),
}

/// An option that is honoured.
pub(crate) const fn row(name: &'static str, default: &'static str, setter: Setter) -> OptionSpec {
    OptionSpec { name, aliases: &[], default, doc: "", action: Action::Honour(setter) }
}

impl OptionSpec {
    /// The same, for this.
    pub(crate) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// An option that cannot change a simulation.
    pub(crate) const fn ignored(name: &'static str, doc: &'static str) -> Self {
        OptionSpec { name, aliases: &[], default: "", doc, action: Action::Ignore(Topic::Other) }
    }

    /// An option whose effect is not simulated, as the sentence says.
    pub(crate) const fn not_simulated(name: &'static str, doc: &'static str, sentence: &'static str) -> Self {
        OptionSpec { name, aliases: &[], default: "", doc, action: Action::Ignore(Topic::NotSimulated(sentence)) }
    }

    /// An option that is an error, but for the `accepted` values.
    pub(crate) const fn refused(
        name: &'static str,
        accepted: &'static [&'static str],
        doc: &'static str,
        hint: &'static str,
    ) -> Self {
        OptionSpec { name, aliases: &[], default: "", doc, action: Action::Refuse { accepted, hint } }
    }

    /// The same with other names.
    pub(crate) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// What is done with it.
    #[must_use]
    pub fn treatment(&self) -> Treatment {
        match self.action {
            Action::Honour(_) => Treatment::Honoured,
            Action::Ignore(_) => Treatment::IgnoredInSimulation,
            Action::Refuse { .. } => Treatment::NotSupported,
        }
    }

    /// The values that it takes, for people: `1 to 10000`, `time (s)`, `read | write | ...`.
    #[must_use]
    pub fn values(&self) -> String {
        match self.action {
            Action::Honour(setter) => setter.values(),
            Action::Ignore(_) => "any".to_owned(),
            Action::Refuse { accepted: [], .. } => "not supported".to_owned(),
            Action::Refuse { accepted, .. } => format!("only {}", accepted.join(", ")),
        }
    }
}
