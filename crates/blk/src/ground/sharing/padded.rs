//! Cache-line padding against false sharing.

use std::ops::{Deref, DerefMut};

/// A value on its own cache lines, so that writing it does not invalidate its neighbours' lines on other CPUs.
#[derive(Clone, Copy, Default, Debug)]
#[repr(align(64))]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_a_list_share_no_cache_line() {
        let list: Vec<Padded<u8>> = vec![Padded(1), Padded(2)];
        let line = |index: usize| std::ptr::from_ref(&list[index].0).addr() / 64;
        assert_ne!(line(0), line(1));
    }
}
