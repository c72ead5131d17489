//! What both ways of sharing have in common, and what a meter sees of a lock.

use std::cell::RefCell;

use super::*;
use crate::ground::meter::{Held, Meter, Site};

/// Writes down what takes and leaves locks, and finds them free or not.
struct Noted {
    is_free: bool,
    calls: RefCell<Vec<String>>,
}

impl Meter for Noted {
    fn enter(&self, _: &Held, site: Site) {
        self.calls.borrow_mut().push(format!("enter {site:?}"));
    }

    fn try_enter(&self, _: &Held, site: Site) -> bool {
        self.calls.borrow_mut().push(format!("try {site:?}"));
        self.is_free
    }

    fn join(&self, _: &Held) {
        self.calls.borrow_mut().push("join".to_owned());
    }

    fn leave(&self, _: &Held, site: Site) {
        self.calls.borrow_mut().push(format!("leave {site:?}"));
    }
}

#[test]
fn a_meter_sees_lock_and_unlock_and_decides_whether_a_lock_is_free() {
    let lock = MeteredCell::new(7);
    let noted = |is_free| Noted { is_free, calls: RefCell::default() };
    let meter = noted(true);
    assert_eq!(lock.with(&meter, Site::Insert, |value| std::mem::replace(value, 8)), 7);
    assert_eq!(meter.calls.take(), ["enter Insert", "leave Insert"]);
    assert_eq!(lock.try_with(&meter, Site::Merge, |value| *value), Some(8));
    assert_eq!(meter.calls.take(), ["try Merge", "leave Merge"]);
    let meter = noted(false);
    assert_eq!(lock.try_with(&meter, Site::Merge, |value| *value), None);
    assert_eq!(meter.calls.take(), ["try Merge"]);
    // One that joins the CPU that has it is let in, free or not.
    lock.join(&meter, |value| *value += 1);
    assert_eq!(meter.calls.take(), ["join", "leave Insert"]);
    assert_eq!(lock.with(&meter, Site::Insert, |value| *value), 9);
    meter.calls.take();
    // One is in: not even the meter is asked.
    let inside = lock.with(&meter, Site::Dispatch, |_| lock.try_with(&meter, Site::Merge, |value| *value));
    assert_eq!((inside, meter.calls.take()), (None, vec!["enter Dispatch".to_owned(), "leave Dispatch".to_owned()]));
}

#[test]
fn single_and_multi_threaded_words_behave_the_same() {
    fn history<W: Word>() -> Vec<u64> {
        use std::sync::atomic::Ordering::SeqCst;
        let word = W::new(0b1100);
        let mut told = vec![word.load(SeqCst), word.fetch_or(0b0110, SeqCst), word.fetch_and(0b0111, SeqCst)];
        told.extend([word.fetch_add(5, SeqCst), word.fetch_sub(2, SeqCst), word.swap(40, SeqCst), word.load(SeqCst)]);
        told.extend([word.compare_exchange(39, 1, SeqCst), word.compare_exchange(40, 2, SeqCst)].map(u64::from));
        told.push(word.swap(u64::MAX, SeqCst));
        told.extend([word.fetch_add(1, SeqCst), word.fetch_sub(1, SeqCst), word.load(SeqCst)]);
        word.store(7, SeqCst);
        told.push(word.load(SeqCst));
        told
    }
    let expected = [12, 12, 14, 6, 11, 9, 40, 0, 1, 2, u64::MAX, 0, u64::MAX, 7];
    assert_eq!((history::<std::cell::Cell<u64>>(), history::<AtomicU64>()), (expected.to_vec(), expected.to_vec()));
}
