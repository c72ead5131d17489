//! Virtual disks in the event loop: runs of their I/O threads, and completions on the host.

use hoistway_blk::bio::{Bio, Status};
use hoistway_blk::ground::CpuId;
use hoistway_blk::watch::Probe;

use super::{BioEndContext, Simulation, opens_plug};
use crate::driver::{Backing, Machine};
use crate::events::{Event, Kind};

impl<P: Probe> Simulation<'_, P> {
    /// Runs the I/O thread of a virtual disk.
    #[cold]
    pub(super) fn run_io_thread(&mut self, disk: u32) {
        let (guests, host) = self.disks.split_at_mut(disk as usize + 1);
        let driver = &mut guests[disk as usize].driver;
        let Backing::Thread(thread) = &mut driver.backing else { return };
        let (lower, cpu) = (thread.lower, thread.cpu);
        // The host's device comes after all virtual disks.
        let host_disk = &mut host[(lower - disk - 1) as usize];
        self.probe.enter(lower, None);
        self.meter.begin(self.now, cpu, host_disk.section);
        let now = self.clock.now;
        let mut cx = self.caller.cx::<Machine<P>>(now, cpu, &mut host_disk.driver, &mut self.probe, &self.meter);
        let plugs = |count| opens_plug(host_disk.plug_use, count);
        thread.run(&mut cx, &host_disk.queue, &mut driver.schedule, plugs);
        self.settle(lower, cpu);
        self.announce(disk, CpuId(0));
    }

    /// Wakes the I/O thread of a virtual disk that slept for a request of the host.
    pub(super) fn unpark_io_thread(&mut self, disk: u32) {
        let driver = &mut self.disks[disk as usize].driver;
        if let Backing::Thread(thread) = &mut driver.backing {
            thread.unpark(self.now, &mut driver.schedule);
            self.announce(disk, CpuId(0));
        }
    }
}

impl BioEndContext<'_> {
    /// A part of a bio of a virtual disk's I/O thread has completed.
    pub(super) fn bio_of_virtual_disk_ended(&mut self, disk: u32, bio: &Bio, status: Status) {
        let driver = &mut self.disks[disk as usize].driver;
        let Backing::Thread(thread) = &mut driver.backing else { return };
        if let Some((at, tag, status)) = thread.bio_ended(self.now, bio, status) {
            if status != Status::Ok {
                driver.failed.push((tag, status));
            }
            self.events.push(at, Event::new(Kind::Complete, disk).with_detail(tag));
        }
    }
}
