//! An object of a trait, as CPUs share it: `dyn Trait` where one thread drives the queue, `dyn Trait + Send + Sync` where many do.

/// A choice between the two.
pub trait Objects {
    /// `Alone` or `Shared`, which is the same with markers.
    type Of<Alone: ?Sized + 'static, Shared: ?Sized + 'static>: ?Sized + 'static;

    /// The object without its markers; `weaken` takes them from one that has them.
    fn object<'a, Alone: ?Sized + 'static, Shared: ?Sized + 'static>(
        object: &'a Self::Of<Alone, Shared>,
        weaken: impl FnOnce(&'a Shared) -> &'a Alone,
    ) -> &'a Alone;

    /// The same, to be changed.
    fn object_mut<'a, Alone: ?Sized + 'static, Shared: ?Sized + 'static>(
        object: &'a mut Self::Of<Alone, Shared>,
        weaken: impl FnOnce(&'a mut Shared) -> &'a mut Alone,
    ) -> &'a mut Alone;
}

/// Objects of one thread.
#[derive(Debug)]
pub struct OfOneThread;

/// Objects that threads share.
#[derive(Debug)]
pub struct OfThreads;

impl Objects for OfOneThread {
    type Of<Alone: ?Sized + 'static, Shared: ?Sized + 'static> = Alone;

    #[inline]
    fn object<'a, A: ?Sized + 'static, S: ?Sized + 'static>(object: &'a A, _: impl FnOnce(&'a S) -> &'a A) -> &'a A {
        object
    }

    #[inline]
    fn object_mut<'a, A: ?Sized + 'static, S: ?Sized + 'static>(
        object: &'a mut A,
        _: impl FnOnce(&'a mut S) -> &'a mut A,
    ) -> &'a mut A {
        object
    }
}

impl Objects for OfThreads {
    type Of<Alone: ?Sized + 'static, Shared: ?Sized + 'static> = Shared;

    #[inline]
    fn object<'a, A: ?Sized + 'static, S: ?Sized + 'static>(
        object: &'a S,
        weaken: impl FnOnce(&'a S) -> &'a A,
    ) -> &'a A {
        weaken(object)
    }

    #[inline]
    fn object_mut<'a, A: ?Sized + 'static, S: ?Sized + 'static>(
        object: &'a mut S,
        weaken: impl FnOnce(&'a mut S) -> &'a mut A,
    ) -> &'a mut A {
        weaken(object)
    }
}
