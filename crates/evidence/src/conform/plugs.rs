//! Facts that a recording only implies: which bios were submitted under a plug, and the hardware queue of each CPU.

use std::collections::{HashMap, HashSet};

use hoistway_blk::ground::HctxId;
use hoistway_trace::iosched::{BioNumber, EventKind, Insert, Io, Issue, Trace};

use crate::conform::kernel_of;

/// Bios submitted without a plug. None of 6.10 to 7.1, where such a bio has its own.
///
/// A request is plugged if a plug of its task is open when the request is allocated, or is opened for it before the
/// task's next allocation (BL-33).
pub(crate) fn unplugged(trace: &Trace) -> HashSet<BioNumber> {
    #[derive(Default)]
    struct TaskPlug {
        plug_is_open: bool,
        allocated: Option<BioNumber>,
    }
    let generation = kernel_of(&trace.header).generation();
    let (mut tasks, mut unplugged): (HashMap<Option<u32>, TaskPlug>, HashSet<BioNumber>) = Default::default();
    if generation.unplugged_runs_inline {
        return unplugged;
    }
    for event in &trace.events {
        let task = tasks.entry(event.pid).or_default();
        match &event.kind {
            EventKind::Getrq { bio, .. } => {
                unplugged.extend(task.allocated.take());
                task.allocated = (!task.plug_is_open).then_some(bio.bio);
            }
            EventKind::Plug => (task.plug_is_open, task.allocated) = (true, None),
            EventKind::Unplug { .. } => task.plug_is_open = false,
            _ => {}
        }
    }
    unplugged.extend(tasks.into_values().filter_map(|task| task.allocated));
    unplugged
}

/// The hardware queue of each CPU, derived from inserts and issues: since 7.0 the kernel maps CPUs to hardware queues
/// in its own order (BL-52).
pub(crate) fn hctx_of_cpu(trace: &Trace) -> Vec<HctxId> {
    let (cpus, queues) = (u32::from(trace.header.cpus.max(1)), u32::from(trace.header.queue.nr_hw_queues));
    let mut map: Vec<HctxId> = (0..cpus).map(|cpu| HctxId((cpu * queues / cpus) as u16)).collect();
    for event in &trace.events {
        let (EventKind::Insert(Insert { io, .. }) | EventKind::Issue(Issue { io, .. })) = &event.kind else { continue };
        if let Io { context: Some(context), flushseq: false, .. } = io
            && let Some(hctx) = map.get_mut(context.ctx.index())
        {
            *hctx = context.hctx;
        }
    }
    // An additional CPU for the last hardware queue, which may run even if none of its CPUs occurs.
    map.push(HctxId(trace.header.queue.nr_hw_queues - 1));
    map
}
