//! Transports in the event loop: turns of their workers, and alarms of the devices behind them.

use hoistway_blk::ground::CpuId;
use hoistway_blk::watch::Probe;

use super::Simulation;
use crate::driver::Backing;
use crate::events::{Event, Kind};
use crate::transport::{Call, Turn};

/// Value of an alarm's setting: it is one of the device, not of the workers.
const DEVICE: u32 = 1;

impl<P: Probe> Simulation<'_, P> {
    /// Carries out an alarm of a disk behind a transport.
    #[cold]
    pub(in super::super) fn call_transport(&mut self, disk: u32, alarm: u32, setting: u32) {
        let driver = &mut self.disks[disk as usize].driver;
        let Backing::Transport(workers) = &mut driver.backing else { return };
        if setting == DEVICE {
            self.meter.reset(self.now);
            workers.device.wake(self.now, alarm, &mut driver.schedule);
            return self.announce_device(disk, CpuId(0));
        }
        let call = Call::from_alarm(alarm);
        let cpu = call.cpu();
        let next = Event::new(Kind::Alarm, disk).with_detail(Call::Work(cpu).alarm());
        let mut has_sent = false;
        if let (Call::Work(_), Some(work)) = (call, workers.work(cpu)) {
            has_sent = true;
            if !self.cpus.is_done(cpu, work) {
                return self.events.push(work.until, next);
            }
            self.meter.reset(self.now);
            let sent = workers.send(self.now, cpu, &mut driver.schedule);
            self.announce_device(disk, cpu);
            if let Err(retry) = sent {
                return self.events.push(self.now + retry, next);
            }
        }
        let Backing::Transport(workers) = &mut self.disks[disk as usize].driver.backing else { return };
        if let (Call::Work(_), Some(at)) = (call, self.cpus.turn_before_work(self.now, cpu, has_sent))
            && workers.may_wait(self.now, cpu)
        {
            return self.events.push(at, next);
        }
        match workers.turn(self.now, call) {
            Turn::Nothing => {}
            Turn::Called => self.events.push(self.now, next),
            Turn::Begins(time) => {
                if let Some(work) = workers.work(cpu) {
                    *work = self.cpus.add_work(self.now, cpu, time);
                    self.events.push(work.until, next);
                }
            }
        }
    }

    /// Schedules what the device behind a transport has announced during a call on `cpu`.
    fn announce_device(&mut self, disk: u32, cpu: CpuId) {
        let alarms = &mut self.disks[disk as usize].driver.schedule.alarms;
        for (at, alarm) in alarms.drain(..) {
            self.events.push(at, Event::new(Kind::Alarm, disk).with_detail(alarm).with_setting(DEVICE));
        }
        self.settle(disk, cpu);
    }
}
