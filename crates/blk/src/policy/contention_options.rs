//! Options that reduce contention for a policy's lock. The policy gets the same calls, possibly in another order.

use std::str::FromStr;

/// The options in use (CL-1). Linux uses none, which is the default of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContentionOptions {
    /// One CPU at a time dispatches from the policy; others leave the work to it (CL-2).
    pub single_dispatcher: bool,
    /// A bio is merged into a queued request only if the lock is free and some request is queued (CL-3).
    pub try_merge: bool,
    /// All that a run can send is dispatched under one hold of the lock (CL-4).
    pub batch_dispatch: bool,
    /// How requests get to the policy.
    pub insertion: Insertion,
}

/// How requests get to the policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Insertion {
    /// Under its lock.
    #[default]
    Direct,
    /// The same, but a CPU that finds another one inserting leaves its requests to that one (CL-6).
    Buckets,
    /// Into lists with their own lock, which the next dispatching CPU inserts first (CL-7).
    Pending,
}

impl ContentionOptions {
    /// No options, as in Linux.
    pub const NONE: ContentionOptions = ContentionOptions {
        single_dispatcher: false,
        try_merge: false,
        batch_dispatch: false,
        insertion: Insertion::Direct,
    };

    /// The options that were measured to help: all except those for insertion.
    pub const RECOMMENDED: ContentionOptions = ContentionOptions {
        single_dispatcher: true,
        try_merge: true,
        batch_dispatch: true,
        insertion: Insertion::Direct,
    };

    /// All options, with buckets.
    pub const ALL: ContentionOptions =
        ContentionOptions { insertion: Insertion::Buckets, ..ContentionOptions::RECOMMENDED };

    /// All options, with pending lists.
    pub const ALL_PENDING: ContentionOptions =
        ContentionOptions { insertion: Insertion::Pending, ..ContentionOptions::RECOMMENDED };
}

/// `all`, `none`, or the names of some, with commas between them: `single-dispatcher,try-merge,batch-dispatch`, and one of
/// `insertion-buckets` and `pending-lists`.
impl FromStr for ContentionOptions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(ContentionOptions::ALL),
            "none" => return Ok(ContentionOptions::default()),
            _ => {}
        }
        let mut options = ContentionOptions::default();
        for name in text.split(',') {
            let insertion = match name {
                "insertion-buckets" => Insertion::Buckets,
                "pending-lists" => Insertion::Pending,
                _ => {
                    *options.flag_mut(name)? = true;
                    continue;
                }
            };
            if !matches!(options.insertion, Insertion::Direct) && options.insertion != insertion {
                return Err("insertion-buckets and pending-lists exclude each other: expected one of them".to_owned());
            }
            options.insertion = insertion;
        }
        Ok(options)
    }
}

impl ContentionOptions {
    fn flag_mut(&mut self, name: &str) -> Result<&mut bool, String> {
        match name {
            "single-dispatcher" => Ok(&mut self.single_dispatcher),
            "try-merge" => Ok(&mut self.try_merge),
            "batch-dispatch" => Ok(&mut self.batch_dispatch),
            _ => Err(format!(
                "\"{name}\" is no technique (expected all, none, or some of single-dispatcher, try-merge, batch-dispatch, \
                 insertion-buckets, pending-lists)"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contention_options_are_all_none_or_a_list() {
        assert_eq!("all".parse(), Ok(ContentionOptions::ALL));
        assert_eq!("none".parse(), Ok(ContentionOptions::default()));
        assert_eq!("single-dispatcher,try-merge,batch-dispatch,insertion-buckets".parse(), Ok(ContentionOptions::ALL));
        assert_eq!("single-dispatcher,try-merge,batch-dispatch".parse(), Ok(ContentionOptions::RECOMMENDED));
        assert_eq!(
            "single-dispatcher,pending-lists,try-merge,batch-dispatch".parse(),
            Ok(ContentionOptions::ALL_PENDING)
        );
        let some = ContentionOptions { try_merge: true, ..ContentionOptions::default() };
        assert_eq!("try-merge".parse(), Ok(some));
        let both = "pending-lists,insertion-buckets".parse::<ContentionOptions>().unwrap_err();
        assert!(both.contains("exclude each other"), "{both}");
        for wrong in ["", "All", "try-merge,", "try_merge"] {
            assert!(
                wrong.parse::<ContentionOptions>().unwrap_err().contains("expected all, none, or some of"),
                "{wrong}"
            );
        }
    }
}
