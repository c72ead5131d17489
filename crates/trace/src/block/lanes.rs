//! The order of blktrace's records: sequence numbers and times, CPU by CPU.

use super::error::Losses;
use super::header::{Header, NOTIFY};

/// The order of the records of one CPU and device.
#[derive(Debug)]
struct Lane {
    device: u32,
    cpu: u32,
    /// Sequence number of the last event; 0 before the first one.
    sequence: u32,
    /// Time of the last event.
    time_ns: u64,
    /// The lowest sequence number so far, those of messages included.
    sequence_min: u32,
    /// The highest one.
    sequence_max: u32,
}

/// What is wrong with the order of a record.
#[derive(Debug)]
pub(crate) struct Disorder {
    pub(crate) message: String,
    pub(crate) expected: &'static str,
}

/// One lane for each CPU and device in a file.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// Index of the lane of the last record.
    lane: usize,
    /// Whether the file is one of several: then its records have to be in the order of time across all lanes.
    is_one_of_many: bool,
    /// No event may be earlier: the time of the last event of a file that is one of several, else of the last returned event.
    pub(crate) earliest_ns: u64,
}

impl Lanes {
    pub(crate) const fn new(is_one_of_many: bool) -> Lanes {
        Lanes { lanes: Vec::new(), lane: 0, is_one_of_many, earliest_ns: 0 }
    }

    /// Compares a record with the last one of its CPU. Records of ftrace have no sequence numbers and no CPU. Messages count for the
    /// losses and have no order: blkparse merges them before the events around them, and leaves their times as they were.
    #[inline]
    pub(crate) fn check(&mut self, header: &Header, losses: &mut Losses) -> Result<(), Disorder> {
        let is_event = header.category & NOTIFY == 0;
        let is_early = is_event && header.time_ns < self.earliest_ns;
        if self.is_one_of_many && is_event {
            if is_early {
                return Err(time_backwards(header.time_ns, self.earliest_ns));
            }
            self.earliest_ns = header.time_ns;
        }
        let sequence = header.sequence;
        // Nearly always it is the next one of the same CPU.
        if let Some(lane) = self.lanes.get_mut(self.lane)
            && lane.cpu == header.cpu
            && lane.device == header.device
            && lane.sequence.wrapping_add(1) == sequence
            && lane.sequence_max == lane.sequence
            && sequence > 1
            && header.time_ns >= lane.time_ns
            && is_event
        {
            (lane.sequence, lane.sequence_max, lane.time_ns) = (sequence, sequence, header.time_ns);
        } else if sequence != 0 {
            self.check_lane(header, is_event, losses)?;
        }
        if is_early { Err(self.too_early(header.time_ns)) } else { Ok(()) }
    }

    #[inline(never)]
    fn check_lane(&mut self, header: &Header, is_event: bool, losses: &mut Losses) -> Result<(), Disorder> {
        let is_of_header = |lane: &Lane| lane.cpu == header.cpu && lane.device == header.device;
        if !self.lanes.get(self.lane).is_some_and(is_of_header) {
            let Some(index) = self.lanes.iter().position(is_of_header) else {
                return self.new_lane(header, is_event);
            };
            self.lane = index;
        }
        let (lane, sequence) = (&mut self.lanes[self.lane], header.sequence);
        let gap = sequence.wrapping_sub(lane.sequence);
        if is_event && lane.sequence > 0 && (gap == 0 || gap > u32::MAX / 2) {
            let message = format!("the sequence number goes from {} back to {sequence}", lane.sequence);
            return Err(Disorder { message, expected: "one recording in a file" });
        }
        if is_event && header.time_ns < lane.time_ns {
            return Err(time_backwards(header.time_ns, lane.time_ns));
        }
        let (above, below) = (sequence.wrapping_sub(lane.sequence_max), lane.sequence_min.wrapping_sub(sequence));
        if (1..=u32::MAX / 2).contains(&above) {
            losses.lost_events += u64::from(above) - 1;
            lane.sequence_max = sequence;
        } else if (1..=u32::MAX / 2).contains(&below) {
            losses.lost_events += u64::from(below) - 1;
            lane.sequence_min = sequence;
        } else {
            // It was missed when a later one came first.
            losses.lost_events = losses.lost_events.saturating_sub(1);
        }
        if is_event {
            (lane.sequence, lane.time_ns) = (sequence, header.time_ns);
        }
        Ok(())
    }

    #[cold]
    fn too_early(&self, time_ns: u64) -> Disorder {
        let message = format!("the time goes back by {} ns", self.earliest_ns - time_ns);
        Disorder { message, expected: "CPUs that differ by at most 1 s" }
    }

    #[cold]
    fn new_lane(&mut self, header: &Header, is_event: bool) -> Result<(), Disorder> {
        const LANES_MAX: usize = 1 << 16;
        if self.lanes.len() == LANES_MAX {
            let message = format!("more than {LANES_MAX} CPUs");
            return Err(Disorder { message, expected: "a recording of one machine" });
        }
        self.lane = self.lanes.len();
        let (sequence, time_ns) = if is_event { (header.sequence, header.time_ns) } else { (0, 0) };
        let (sequence_min, sequence_max) = (header.sequence, header.sequence);
        self.lanes.push(Lane { device: header.device, cpu: header.cpu, sequence, time_ns, sequence_min, sequence_max });
        Ok(())
    }
}

#[cold]
fn time_backwards(time_ns: u64, last_ns: u64) -> Disorder {
    let message = format!("the time goes back by {} ns", last_ns - time_ns);
    Disorder { message, expected: "records of a CPU in the order of time" }
}
