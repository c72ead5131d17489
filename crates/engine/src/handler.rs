//! Who is told of completions: a closure on the worker's thread, or another thread that waits for [`Answers`].

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::request::Completion;

/// Takes the answers to a client's requests, on the thread of its worker, where other clients wait meanwhile: it must be
/// short and must not sleep. Closures are handlers.
pub trait Handler: Send {
    /// Takes them, all that have come since the last call. What is left in `batch` is dropped.
    fn completed(&mut self, batch: &mut Vec<Completion>);
}

impl<F: FnMut(&mut Vec<Completion>) + Send> Handler for F {
    fn completed(&mut self, batch: &mut Vec<Completion>) {
        self(batch);
    }
}

/// A handler that leaves answers for another thread, and where that one finds them.
#[must_use]
pub fn answers() -> (AnswersHandler, Answers) {
    let shelf: Arc<Shelf> = Arc::default();
    (AnswersHandler(Arc::clone(&shelf)), Answers(shelf))
}

/// The end of [`answers`] that the engine has.
pub struct AnswersHandler(Arc<Shelf>);

/// The end of [`answers`] that waits.
pub struct Answers(Arc<Shelf>);

#[derive(Default)]
struct Shelf {
    inside: Mutex<Inside>,
    bell: Condvar,
}

#[derive(Default)]
struct Inside {
    answers: Vec<Completion>,
    is_closed: bool,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for AnswersHandler {
    fn completed(&mut self, batch: &mut Vec<Completion>) {
        self.0.lock().answers.append(batch);
        self.0.bell.notify_one();
    }
}

impl Drop for AnswersHandler {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.bell.notify_all();
    }
}

impl Answers {
    /// Takes what there is, into the end of `into`.
    pub fn take(&self, into: &mut Vec<Completion>) {
        into.append(&mut self.0.lock().answers);
    }

    /// Waits until there is something, and takes it. Answers whether there was: else none will come, because the client was
    /// dropped or the engine stopped.
    pub fn wait(&self, into: &mut Vec<Completion>) -> bool {
        let inside = self.0.lock();
        let wait = self.0.bell.wait_while(inside, |inside| inside.answers.is_empty() && !inside.is_closed);
        let mut inside = wait.unwrap_or_else(PoisonError::into_inner);
        let any = !inside.answers.is_empty();
        into.append(&mut inside.answers);
        any
    }
}
