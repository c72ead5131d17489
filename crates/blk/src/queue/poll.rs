//! Polling: a submitter looks for completions instead of being interrupted (`block-layer.md` 27.3).

use super::Queue;
use crate::driver::Driver;
use crate::env::{Cx, Env};
use crate::ids::HctxId;
use crate::plug::Plug;
use crate::sharing::Sharing;

impl<Sh: Sharing> Queue<Sh> {
    /// Looks once for completions on a hardware queue and carries them out here. What the submitter has plugged is sent
    /// first: it might be what is waited for. Answers how many requests have ended. A frozen queue can be polled, too.
    pub fn poll<E: Env>(&self, cx: &mut Cx<'_, E>, hctx: HctxId, plug: Option<&mut Plug>) -> u32 {
        if let Some(plug) = plug
            && !plug.is_empty()
        {
            self.flush_plug(cx, plug);
        }
        let mut ended = 0;
        while let Some((rq, status)) = cx.driver.poll(cx.now, hctx) {
            self.complete(cx, rq, status);
            ended += 1;
        }
        ended
    }
}
