//! The I/O contexts and devices of a setup, numbered as in trace events.

use hoistway_sim::{StackKind, StackedDevice};
use hoistway_trace::events::ProcessHeader;

use crate::plan::Plan;

impl Plan<'_> {
    /// All I/O contexts of a setup: first those of the processes, then those of the flushers, then those of the guests' I/O
    /// threads or of stacked devices' threads.
    pub(crate) fn processes(&self, setup: usize) -> Vec<ProcessHeader> {
        let (setup, workload) = (&self.setups[setup], &self.setups[setup].workload);
        let processes = workload.processes.iter().zip(0..).map(|(process, number)| ProcessHeader {
            process: number,
            job: process.name.clone(),
            clone: process.schedule.clone,
            dev: process.files.first().map_or(0, |&file| setup.first_disk_of(file)),
        });
        let disks = if setup.guests.is_some() { workload.files.len() } else { setup.devices.len() };
        let (count, files) = (workload.processes.len() as u32, disks as u32);
        let is_buffered = workload.processes.iter().any(|process| !process.caching.direct);
        let flushers = (0..files).filter(|_| is_buffered).map(|dev| ProcessHeader {
            process: count + dev,
            job: "(write-back)".to_owned(),
            clone: 0,
            dev,
        });
        let guests = workload.files.iter().zip(0..).filter(|_| setup.guests.is_some());
        let threads = guests.map(|(file, number)| ProcessHeader {
            process: count + files + number,
            job: format!("(guest of {file})"),
            clone: 0,
            dev: files,
        });
        let stack_threads = setup.queue.stacks.iter().zip(0..).filter_map(move |(stack, number)| {
            let thread = match stack.kind {
                StackKind::Raid5 { .. } | StackKind::Raid6 { .. } => "parity",
                StackKind::Crypt(_) => "encrypted writes",
                StackKind::Raid1 { bitmap: true } => "bitmap",
                StackKind::Linear | StackKind::Raid0 { .. } | StackKind::Raid1 { .. } => return None,
            };
            Some(ProcessHeader {
                process: count + 2 * files + number,
                job: format!("({thread} of {})", stack.name),
                clone: 0,
                dev: StackedDevice::bottom_disks(&setup.queue.stacks, number as usize)[0],
            })
        });
        processes.chain(flushers).chain(threads).chain(stack_threads).collect()
    }

    /// All devices of a setup, those of the guests first.
    pub(crate) fn devices(&self, setup: usize) -> Vec<String> {
        let (setup, workload) = (&self.setups[setup], &self.setups[setup].workload);
        let virtual_disks = workload.files.iter().filter(|_| setup.guests.is_some()).cloned();
        virtual_disks.chain(setup.devices.iter().map(|preset| preset.name.clone())).collect()
    }
}
