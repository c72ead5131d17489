//! What can be done so that CPUs wait less for the lock of a policy. The policy sees the same calls in some order.

use std::str::FromStr;

/// Which of them are used (CL-1). None is what Linux does, and what a queue does unless told otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Techniques {
    /// One CPU at a time asks the policy for requests; the others leave it to that one (CL-2).
    pub single_dispatcher: bool,
    /// A bio is merged into a queued request only if the lock is free and some request is queued (CL-3).
    pub try_merge: bool,
    /// All that a run can send is drawn under one hold of the lock (CL-4).
    pub batch_dispatch: bool,
    /// Who finds somebody inserting leaves its requests to that one (CL-6).
    pub insertion_buckets: bool,
}

impl Techniques {
    /// Those that have been seen to help: all but the buckets.
    pub const USUAL: Techniques =
        Techniques { single_dispatcher: true, try_merge: true, batch_dispatch: true, insertion_buckets: false };

    /// All of them.
    pub const ALL: Techniques =
        Techniques { single_dispatcher: true, try_merge: true, batch_dispatch: true, insertion_buckets: true };
}

/// `all`, `none`, or the names of some, with commas between them: `single-dispatcher,try-merge,batch-dispatch,insertion-buckets`.
impl FromStr for Techniques {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => return Ok(Techniques::ALL),
            "none" => return Ok(Techniques::default()),
            _ => {}
        }
        let mut techniques = Techniques::default();
        for name in text.split(',') {
            let which = match name {
                "single-dispatcher" => &mut techniques.single_dispatcher,
                "try-merge" => &mut techniques.try_merge,
                "batch-dispatch" => &mut techniques.batch_dispatch,
                "insertion-buckets" => &mut techniques.insertion_buckets,
                _ => {
                    return Err(format!(
                        "\"{name}\" is no technique (expected all, none, or some of single-dispatcher, try-merge, batch-dispatch, insertion-buckets)"
                    ));
                }
            };
            *which = true;
        }
        Ok(techniques)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn techniques_are_all_none_or_some() {
        assert_eq!("all".parse(), Ok(Techniques::ALL));
        assert_eq!("none".parse(), Ok(Techniques::default()));
        assert_eq!("single-dispatcher,try-merge,batch-dispatch,insertion-buckets".parse(), Ok(Techniques::ALL));
        assert_eq!("single-dispatcher,try-merge,batch-dispatch".parse(), Ok(Techniques::USUAL));
        let some = Techniques { try_merge: true, ..Techniques::default() };
        assert_eq!("try-merge".parse(), Ok(some));
        for wrong in ["", "All", "try-merge,", "try_merge"] {
            assert!(wrong.parse::<Techniques>().unwrap_err().contains("expected all, none, or some of"), "{wrong}");
        }
    }
}
