//! A row of the table of options.

use super::setter::Setter;

/// One option of fio's job files.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its name, spelled as in fio's results.
    pub name: &'static str,
    /// Aliases.
    pub aliases: &'static [&'static str],
    /// The default value in the job file's syntax; empty for none.
    pub default: &'static str,
    /// Its purpose, in one line.
    pub doc: &'static str,
    /// How it is treated.
    pub(crate) action: Action,
}

/// The treatment of an option.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Honour(Setter),
    Ignore(Topic),
    Refuse {
        /// Values that are accepted because they mean the default behaviour.
        accepted: &'static [&'static str],
        /// What to do instead.
        hint: &'static str,
    },
}

/// The subject of an ignored option, which determines the notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Topic {
    /// A subject without a special notice.
    Other,
    /// The choice of an I/O scheduler by the author of the job.
    Scheduler,
    /// It may have an effect on a real host that is not simulated; the sentence says what is simulated instead.
    NotSimulated(&'static str),
}

/// An option that is honoured.
pub(crate) const fn row(name: &'static str, default: &'static str, setter: Setter) -> OptionSpec {
    OptionSpec { name, aliases: &[], default, doc: "", action: Action::Honour(setter) }
}

impl OptionSpec {
    /// Sets the description.
    pub(crate) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// An option that cannot change a simulation.
    pub(crate) const fn ignored(name: &'static str, doc: &'static str) -> Self {
        OptionSpec { name, aliases: &[], default: "", doc, action: Action::Ignore(Topic::Other) }
    }

    /// An option whose effect is not simulated; the sentence says what is simulated instead.
    pub(crate) const fn not_simulated(name: &'static str, doc: &'static str, sentence: &'static str) -> Self {
        OptionSpec { name, aliases: &[], default: "", doc, action: Action::Ignore(Topic::NotSimulated(sentence)) }
    }

    /// An option that is an error, except for the `accepted` values.
    pub(crate) const fn refused(
        name: &'static str,
        accepted: &'static [&'static str],
        doc: &'static str,
        hint: &'static str,
    ) -> Self {
        OptionSpec { name, aliases: &[], default: "", doc, action: Action::Refuse { accepted, hint } }
    }

    /// Sets aliases.
    pub(crate) const fn alias(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// A description of the valid values: `1 to 10000`, `time (s)`, `read | write | ...`.
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
