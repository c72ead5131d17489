//! Receivers of completions: a closure on the worker's thread, or another thread that waits for [`Completions`].
//!
//! Used by: `worker`, `engine`; crate `serve`.
//! Tests: `crates/engine/tests/model.rs`, `crates/engine/tests/files.rs`.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::request::Completion;

/// Receives the completions of a client's requests, on the thread of its worker. Other clients wait meanwhile, so it must be
/// short and must not sleep. Closures are handlers.
pub trait Handler: Send {
    /// Receives all completions since the last call. Those left in `batch` are dropped.
    fn completed(&mut self, batch: &mut Vec<Completion>);
}

impl<F: FnMut(&mut Vec<Completion>) + Send> Handler for F {
    fn completed(&mut self, batch: &mut Vec<Completion>) {
        self(batch);
    }
}

/// A handler that passes completions to another thread, and the end that this thread reads.
#[must_use]
pub fn completions() -> (CompletionsHandler, Completions) {
    let shared: Arc<Shared> = Arc::default();
    (CompletionsHandler(Arc::clone(&shared)), Completions(shared))
}

/// The engine's end of [`completions`].
pub struct CompletionsHandler(Arc<Shared>);

/// The other thread's end of [`completions`].
pub struct Completions(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    completions: Vec<Completion>,
    is_closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for CompletionsHandler {
    fn completed(&mut self, batch: &mut Vec<Completion>) {
        self.0.lock().completions.append(batch);
        self.0.arrived.notify_one();
    }
}

impl Drop for CompletionsHandler {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.arrived.notify_all();
    }
}

impl Completions {
    /// Appends available completions to `into`.
    pub fn take(&self, into: &mut Vec<Completion>) {
        into.append(&mut self.0.lock().completions);
    }

    /// Waits for completions and appends them. Returns false if none will come, because the client was dropped or the engine
    /// has stopped.
    pub fn wait(&self, into: &mut Vec<Completion>) -> bool {
        let state = self.0.lock();
        let wait = self.0.arrived.wait_while(state, |state| state.completions.is_empty() && !state.is_closed);
        let mut state = wait.unwrap_or_else(PoisonError::into_inner);
        let any = !state.completions.is_empty();
        into.append(&mut state.completions);
        any
    }
}
