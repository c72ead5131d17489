//! Doubly linked lists of small numbers without allocation: the links of all lists lie in one table that is
//! indexed by the number. A number is in at most one list of a table at a time.

/// No number: the end of a list.
const NIL: u32 = u32::MAX;

/// The links of every number.
#[derive(Clone, Debug, Default)]
pub struct Links {
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    previous: u32,
    next: u32,
}

/// One list: its ends. The links are in the [`Links`] that every call takes.
#[derive(Clone, Copy, Debug)]
pub struct IdList {
    first: u32,
    last: u32,
}

impl Default for IdList {
    fn default() -> Self {
        IdList { first: NIL, last: NIL }
    }
}

impl Links {
    /// Links for the numbers below `count`.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Links { links: vec![Link { previous: NIL, next: NIL }; count] }
    }

    /// Makes room for the numbers below `count`.
    pub fn grow(&mut self, count: usize) {
        if count > self.links.len() {
            self.links.resize(count, Link { previous: NIL, next: NIL });
        }
    }
}

impl IdList {
    /// Whether there is nothing in it.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first == NIL
    }

    /// The first number.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        (self.first != NIL).then_some(self.first)
    }

    /// The number after `id`, which is in this list.
    #[inline]
    #[must_use]
    pub fn next(&self, links: &Links, id: u32) -> Option<u32> {
        let next = links.links[id as usize].next;
        (next != NIL).then_some(next)
    }

    /// The number before `id`, which is in this list.
    #[inline]
    #[must_use]
    pub fn previous(&self, links: &Links, id: u32) -> Option<u32> {
        let previous = links.links[id as usize].previous;
        (previous != NIL).then_some(previous)
    }

    /// Appends `id`, which is in no list.
    #[inline]
    pub fn push_back(&mut self, links: &mut Links, id: u32) {
        links.links[id as usize] = Link { previous: self.last, next: NIL };
        match self.last {
            NIL => self.first = id,
            last => links.links[last as usize].next = id,
        }
        self.last = id;
    }

    /// Prepends `id`, which is in no list.
    #[inline]
    pub fn push_front(&mut self, links: &mut Links, id: u32) {
        links.links[id as usize] = Link { previous: NIL, next: self.first };
        match self.first {
            NIL => self.last = id,
            first => links.links[first as usize].previous = id,
        }
        self.first = id;
    }

    /// Takes `id`, which is in this list, out.
    #[inline]
    pub fn remove(&mut self, links: &mut Links, id: u32) {
        let Link { previous, next } = links.links[id as usize];
        match previous {
            NIL => self.first = next,
            previous => links.links[previous as usize].next = next,
        }
        match next {
            NIL => self.last = previous,
            next => links.links[next as usize].previous = previous,
        }
    }

    /// Puts `id`, which is in no list, before `other`, which is in this one.
    pub fn insert_before(&mut self, links: &mut Links, other: u32, id: u32) {
        let previous = links.links[other as usize].previous;
        links.links[id as usize] = Link { previous, next: other };
        links.links[other as usize].previous = id;
        match previous {
            NIL => self.first = id,
            previous => links.links[previous as usize].next = id,
        }
    }

    /// The numbers from first to last.
    pub fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + 'a {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let id = (next != NIL).then_some(next)?;
            next = links.links[id as usize].next;
            Some(id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_order_through_pushes_insertions_and_removals() {
        let mut links = Links::new(8);
        let mut list = IdList::default();
        for id in [3, 1, 4] {
            list.push_back(&mut links, id);
        }
        list.push_front(&mut links, 5);
        assert_eq!(list.iter(&links).collect::<Vec<_>>(), [5, 3, 1, 4]);
        assert_eq!((list.previous(&links, 1), list.previous(&links, 5)), (Some(3), None));
        list.remove(&mut links, 3);
        list.insert_before(&mut links, 1, 2);
        list.insert_before(&mut links, 5, 7);
        assert_eq!(list.iter(&links).collect::<Vec<_>>(), [7, 5, 2, 1, 4]);
        list.remove(&mut links, 4);
        list.remove(&mut links, 7);
        for id in [5, 2, 1] {
            list.remove(&mut links, id);
        }
        assert!(list.is_empty() && list.first().is_none());
    }
}
