//! Parses a recording's short texts about a bio: operation, `rwbs`, `hint`, priority.

use hoistway_blk::bio::{BioFlags, IoPriority, Op, PriorityClass};

/// The operation of an `op` key.
pub(super) fn op(text: &str) -> Option<Op> {
    match text {
        "R" => Some(Op::Read),
        "W" => Some(Op::Write),
        "F" => Some(Op::Flush),
        "D" => Some(Op::Discard),
        _ => None,
    }
}

/// Parses an `rwbs` text: F for a preflush, the operation's letter, then F for FUA and any of A, S, M.
pub(super) fn rwbs(op: Op, text: &str) -> Option<BioFlags> {
    let letter = match op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Flush => 'F',
        Op::Discard | Op::WriteZeroes => 'D',
    };
    // A lone F is the letter of a flush command; only an F *before* the letter is a preflush.
    let (mut flags, rest) = match text.strip_prefix('F').and_then(|rest| rest.strip_prefix(letter)) {
        Some(rest) => (BioFlags::PREFLUSH, rest),
        None => (BioFlags::NONE, text.strip_prefix(letter)?),
    };
    for letter in rest.chars() {
        flags = flags.with(match letter {
            'F' => BioFlags::FUA,
            'A' => BioFlags::RAHEAD,
            'S' => BioFlags::SYNC,
            'M' => BioFlags::META,
            _ => return None,
        });
    }
    Some(flags)
}

/// The additional flags of a `hint` text.
pub(super) fn hint(text: &str) -> Option<BioFlags> {
    text.chars().try_fold(BioFlags::NONE, |flags, letter| {
        Some(flags.with(match letter {
            'I' => BioFlags::IDLE,
            'B' => BioFlags::BACKGROUND,
            'P' => BioFlags::PRIO,
            'X' => BioFlags::NOMERGE,
            'N' => BioFlags::NOWAIT,
            'A' => BioFlags::RAHEAD,
            'M' => BioFlags::META,
            _ => return None,
        }))
    })
}

/// The priority of a `[class, level]` pair; `[0, 0]` is *unset*.
pub(super) fn prio(class: u8, level: u8) -> Option<IoPriority> {
    let class = match class {
        0 => PriorityClass::None,
        1 => PriorityClass::RealTime,
        2 => PriorityClass::BestEffort,
        3 => PriorityClass::Idle,
        _ => return None,
    };
    (level < 8).then(|| IoPriority::new(class, level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_f_before_the_operation_is_a_preflush_and_after_it_fua() {
        let (pre, fua, sync) = (BioFlags::PREFLUSH, BioFlags::FUA, BioFlags::SYNC);
        assert_eq!(rwbs(Op::Write, "FWS"), Some(pre.with(sync)));
        assert_eq!(rwbs(Op::Write, "WFS"), Some(fua.with(sync)));
        assert_eq!(rwbs(Op::Write, "FWFS"), Some(pre.with(fua).with(sync)));
        assert_eq!(rwbs(Op::Flush, "F"), Some(BioFlags::NONE));
        assert_eq!(rwbs(Op::Flush, "FF"), Some(pre));
        assert_eq!(rwbs(Op::Discard, "DS"), Some(sync));
        assert_eq!(rwbs(Op::Read, "RAM"), Some(BioFlags::RAHEAD.with(BioFlags::META)));
    }

    #[test]
    fn a_text_that_contradicts_its_operation_or_has_a_strange_letter_is_refused() {
        assert_eq!(rwbs(Op::Read, "W"), None);
        assert_eq!(rwbs(Op::Write, ""), None);
        assert_eq!(rwbs(Op::Write, "F"), None);
        assert_eq!(rwbs(Op::Write, "WQ"), None);
        assert_eq!(hint("I?"), None);
        assert_eq!(prio(4, 0), None);
        assert_eq!(prio(2, 8), None);
    }

    #[test]
    fn hints_and_priorities_become_the_block_layers_own() {
        assert_eq!(hint("XI"), Some(BioFlags::NOMERGE.with(BioFlags::IDLE)));
        assert_eq!(hint("MP"), Some(BioFlags::META.with(BioFlags::PRIO)));
        assert_eq!(hint("BN"), Some(BioFlags::BACKGROUND.with(BioFlags::NOWAIT)));
        assert_eq!(prio(0, 0), Some(IoPriority::UNSET));
        assert_eq!(prio(2, 4), Some(IoPriority::DEFAULT));
        assert_eq!(prio(3, 7).map(|prio| prio.level()), Some(7));
    }
}
