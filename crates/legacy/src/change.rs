//! Writing a file of `queue/` while the queue is in use, as an administrator does: some writes take effect at once,
//! others when the queue is empty. Meanwhile I/O waits or continues as in the kernel (BL-98, BL-99, BL-101, BL-102,
//! BL-109, LQ-32 to LQ-34).
//!
//! Used by: crate `sim`.
//! Tests: `checks/tests/changes.rs`.
//!
//! ```text
//! AnyQueue::begin_change -> done, or a PendingWrite: call AnyQueue::poll_change after each completion, or periodically,
//! until it is done
//! ```

use hoistway_blk::caller::{Cx, Env};
use hoistway_blk::ground::{Nanos, Sharing};
use hoistway_blk::queue::Step;
use hoistway_blk::sysfs::AttributeError;

use crate::any_queue::AnyQueue;
use crate::queue::SWITCH_POLL;

/// A write that waits for the queue to empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingWrite {
    file: String,
    text: String,
    poll_interval: Option<Nanos>,
}

impl PendingWrite {
    /// The file being written.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// How often to poll; `None` to poll after each completion.
    #[must_use]
    pub fn poll_interval(&self) -> Option<Nanos> {
        self.poll_interval
    }
}

impl<Sh: Sharing> AnyQueue<Sh> {
    /// Writes `text` to a file of `queue/`. If the change requires an empty queue it returns a [`PendingWrite`] that must be
    /// polled until it is done. Other threads may submit, complete and write meanwhile.
    ///
    /// # Errors
    /// If the kernel would reject the text; then nothing changes.
    pub fn begin_change<E: Env>(
        &self,
        cx: &mut Cx<'_, E>,
        file: &str,
        text: &str,
    ) -> Result<Option<PendingWrite>, AttributeError> {
        let waits = |poll_interval| PendingWrite { file: file.to_owned(), text: text.to_owned(), poll_interval };
        match self {
            AnyQueue::Mq(queue) if matches!(file, "scheduler" | "nr_requests" | "async_depth") => {
                if !queue.would_change(file, text)? {
                    return Ok(None);
                }
                queue.freeze(cx);
                let change = waits(None);
                Ok((self.poll_change(cx, &change)? == Step::More).then_some(change))
            }
            AnyQueue::Legacy(queue) if file == "scheduler" => {
                if !queue.would_switch(text).ok_or(AttributeError::Invalid)? {
                    return Ok(None);
                }
                let step = queue.begin_switch(cx);
                let change = waits(Some(SWITCH_POLL));
                match step {
                    Step::More => Ok(Some(change)),
                    Step::Done => self.poll_change(cx, &change).map(|_| None),
                }
            }
            queue => queue.set_attribute(cx.now, file, text, cx.effects).map(|()| None),
        }
    }

    /// Completes a change if the queue is empty; returns [`More`](Step::More) if it is not yet.
    ///
    /// # Errors
    /// If the change is impossible. It is over then, too.
    pub fn poll_change<E: Env>(&self, cx: &mut Cx<'_, E>, change: &PendingWrite) -> Result<Step, AttributeError> {
        match self {
            AnyQueue::Mq(queue) => {
                if !queue.is_drained() {
                    return Ok(Step::More);
                }
                let changed = queue.set_attribute(cx.now, &change.file, &change.text, cx.effects);
                queue.unfreeze(cx);
                changed.map(|()| Step::Done)
            }
            AnyQueue::Legacy(queue) => {
                if queue.poll_switch(cx) == Step::More {
                    return Ok(Step::More);
                }
                let next = queue.elevator_for(cx.now, &change.text);
                queue.end_switch(cx, next);
                Ok(Step::Done)
            }
        }
    }
}
