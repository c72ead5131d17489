//! Processes that depart while they sleep, woken or not; others come in their place.

use hoistway_blk::bio::Bio;

use super::World;

impl World {
    /// A process departs: what it has plugged goes, and what no request was made of comes back.
    pub(super) fn depart(&mut self, number: usize) {
        let cpu = self.some_cpu();
        let bio = self.with_task(number, cpu, |front, cx, submitter| submitter.cancel(front, cx));
        let bio = bio.expect("it slept with something");
        self.returned(&bio);
        self.flush(number);
        self.departures += 1;
        self.has_departed = true;
    }

    fn returned(&mut self, bio: &Bio) {
        let left = &mut self.outstanding[bio.owner as usize];
        *left = left.checked_sub(bio.sectors.max(1)).expect("what comes back has not ended");
        self.busy[bio.io_context.0 as usize] -= u64::from(bio.sectors.max(1));
    }

    /// A frozen queue may have emptied by a departure.
    pub(super) fn look_after_departure(&mut self) {
        if std::mem::take(&mut self.has_departed) {
            self.poll_change();
            self.carry_out();
        }
    }
}
