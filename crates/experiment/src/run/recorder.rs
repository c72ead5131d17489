//! Records a part of a run, request by request: an [`Excerpt`] that shows the decisions of a scheduler.

use std::collections::{BTreeMap, HashMap};

use hoistway_answer::document::{Excerpt, ExcerptAnswer, ExcerptReason, ExcerptRequest};
use hoistway_blk::bio::{Bio, Op};
use hoistway_blk::ground::{CpuId, IoContextId, Now, Waiter};
use hoistway_blk::request::Request;
use hoistway_blk::watch::{Event, Probe, Reason};

/// Maximum requests of an excerpt.
const REQUESTS_MAX: usize = 2000;
/// Maximum decisions in an excerpt: a scheduler that holds requests back may be asked often.
const ANSWERS_MAX: usize = 4 * REQUESTS_MAX;
/// When the second excerpt begins, ns; the first one begins with the run.
const FIRST_NS: u64 = 1_000_000;

/// A probe that keeps an excerpt from the middle of the run.
///
/// The length of a run is not known in advance, so an excerpt is started at 0 and at 1, 2, 4, 8 ... ms. The last two start in the second
/// half or quarter of the run; the one with more requests is kept.
#[derive(Debug)]
pub(crate) struct Recorder {
    device: u32,
    /// Requests from allocation to completion, by device and slot.
    in_flight: BTreeMap<(u32, u32), InFlightRequest>,
    /// When bios that wait for a request were submitted, by device, owner and first sector.
    queued: HashMap<(u32, IoContextId, u64), u64>,
    /// Reasons that occur in decisions.
    reasons: Vec<Reason>,
    current: Window,
    last: Window,
    /// Start of the next excerpt, ns.
    next_ns: u64,
}

/// A request in flight.
#[derive(Debug)]
struct InFlightRequest {
    record: ExcerptRequest,
    /// Index into the requests of the current window; `None` if the window does not contain it.
    index: Option<usize>,
}

impl InFlightRequest {
    /// Whether the window still waits for its dispatch.
    fn waits(&self) -> bool {
        self.index.is_some() && self.record.chosen_ns.is_none()
    }
}

/// An excerpt in progress.
#[derive(Debug, Default)]
struct Window {
    begin_ns: u64,
    /// `None` while the window still admits requests.
    end_ns: Option<u64>,
    requests: Vec<ExcerptRequest>,
    /// Requests of the window that are not dispatched yet.
    waiting: usize,
    answers: Vec<ExcerptAnswer>,
    /// `None` while the window still records decisions.
    answers_end_ns: Option<u64>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Recorder {
            device: 0,
            in_flight: BTreeMap::new(),
            queued: HashMap::new(),
            reasons: Vec::new(),
            current: Window::default(),
            last: Window::default(),
            next_ns: FIRST_NS,
        }
    }

    /// The recorded excerpt of a run of this length, on these devices and by these processes.
    pub(crate) fn excerpt(self, run_ns: u64, devices: Vec<String>, processes: Vec<String>) -> Excerpt {
        let is_last = self.last.requests.len() > self.current.requests.len();
        let window = if is_last { self.last } else { self.current };
        let reasons =
            self.reasons.iter().map(|reason| ExcerptReason { reason: reason.word(), why: reason.text().to_owned() });
        Excerpt {
            begin_ns: window.begin_ns,
            end_ns: window.end_ns.unwrap_or(run_ns),
            answers_end_ns: window.answers_end_ns.unwrap_or(run_ns),
            devices,
            processes,
            reasons: reasons.collect(),
            requests: window.requests,
            answers: window.answers,
        }
    }

    fn begin_window(&mut self, at_ns: u64) {
        let begun = Window { begin_ns: at_ns, ..Window::default() };
        self.last = std::mem::replace(&mut self.current, begun);
        let mut requests: Vec<&mut InFlightRequest> = self.in_flight.values_mut().collect();
        requests.sort_by_key(|in_flight| in_flight.record.made_ns);
        for in_flight in requests {
            in_flight.index = self.current.add(&in_flight.record, at_ns);
        }
    }

    /// Updates the record of a request in flight.
    fn note(&mut self, rq: &Request, note: impl Fn(&mut ExcerptRequest)) {
        let Some(in_flight) = self.in_flight.get_mut(&(self.device, rq.id().0)) else { return };
        note(&mut in_flight.record);
        if let Some(index) = in_flight.index {
            note(&mut self.current.requests[index]);
        }
    }

    fn record_allocation(&mut self, rq: &Request, at_ns: u64) {
        let record = ExcerptRequest {
            device: self.device,
            process: rq.io_context.0.checked_sub(1),
            // A bio that waits for a flush has no data of its own.
            op: if rq.sectors == 0 { Op::Flush } else { rq.op }.name().to_owned(),
            sector: rq.sector.0,
            sectors: rq.sectors,
            queued_ns: self.queued.remove(&(self.device, rq.io_context, rq.sector.0)),
            made_ns: at_ns,
            ..ExcerptRequest::default()
        };
        let index = self.current.add(&record, at_ns);
        self.in_flight.insert((self.device, rq.id().0), InFlightRequest { record, index });
    }

    /// The request has completed.
    fn record_completion(&mut self, rq: &Request, at_ns: u64) {
        self.note(rq, |request| request.ended_ns = request.ended_ns.or(Some(at_ns)));
        let completed = self.in_flight.remove(&(self.device, rq.id().0));
        if completed.is_some_and(|completed| completed.waits()) {
            self.current.waiting -= 1;
        }
    }

    fn record_dispatch(&mut self, at_ns: u64, rq: Option<&Request>, reason: Reason) {
        let number = self.reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        }) as u32;
        if self.current.answers_end_ns.is_none() {
            self.current.answers.push(ExcerptAnswer {
                at_ns,
                device: self.device,
                request: rq
                    .and_then(|rq| self.in_flight.get(&(self.device, rq.id().0))?.index)
                    .map(|index| index as u32),
                process: rq.and_then(|rq| rq.io_context.0.checked_sub(1)),
                gave: rq.is_some(),
                reason: number,
            });
        }
        if let Some(rq) = rq {
            let in_flight = self.in_flight.get(&(self.device, rq.id().0));
            if in_flight.is_some_and(InFlightRequest::waits) {
                self.current.waiting -= 1;
            }
            // A requeued request keeps the time and reason of its first dispatch.
            self.note(rq, |request| {
                request.reason = request.reason.or(Some(number));
                request.chosen_ns = request.chosen_ns.or(Some(at_ns));
            });
        }
        self.current.close_answers(at_ns);
    }

    fn record_arrival(&mut self, bio: &Bio, sector: u64, at_ns: u64) {
        self.queued.insert((self.device, bio.io_context, sector), at_ns);
    }
}

impl Window {
    /// Adds a request if there is room. Returns its index.
    fn add(&mut self, request: &ExcerptRequest, at_ns: u64) -> Option<usize> {
        if self.end_ns.is_some() {
            return None;
        }
        self.requests.push(request.clone());
        self.waiting += usize::from(request.chosen_ns.is_none());
        if self.requests.len() == REQUESTS_MAX {
            self.end_ns = Some(at_ns);
        }
        Some(self.requests.len() - 1)
    }

    fn close_answers(&mut self, at_ns: u64) {
        let is_done = self.end_ns.is_some() && self.waiting == 0;
        if self.answers_end_ns.is_none() && (is_done || self.answers.len() == ANSWERS_MAX) {
            self.answers_end_ns = Some(at_ns);
        }
    }
}

impl Probe for Recorder {
    fn enter(&mut self, device: u32, _: Option<Waiter>) {
        self.device = device;
    }

    fn event(&mut self, now: Now, _: CpuId, event: Event<'_>) {
        let at_ns = now.at.0;
        if at_ns >= self.next_ns {
            self.begin_window(at_ns);
            while self.next_ns <= at_ns {
                self.next_ns = self.next_ns.saturating_mul(2);
            }
        }
        match event {
            Event::Queue(bio) => self.record_arrival(bio, bio.sector.0, at_ns),
            Event::Split(front) => {
                let device = self.device;
                let since = self.queued.get(&(device, front.io_context, front.sector.0)).copied().unwrap_or(at_ns);
                self.record_arrival(front, front.end().0, since);
            }
            Event::Merge(_, bio) => {
                self.queued.remove(&(self.device, bio.io_context, bio.sector.0));
            }
            Event::GetRq(rq) => self.record_allocation(rq, at_ns),
            Event::Insert(rq) => self.note(rq, |request| request.inserted_ns = request.inserted_ns.or(Some(at_ns))),
            Event::Dispatch { rq, reason, .. } => self.record_dispatch(at_ns, rq, reason),
            Event::Issue(rq) => {
                let sectors = rq.sectors;
                self.note(rq, |request| (request.issued_ns, request.sectors) = (Some(at_ns), sectors));
            }
            Event::Complete(rq, _) => self.note(rq, |request| request.ended_ns = Some(at_ns)),
            Event::Absorbed(rq) => {
                self.note(rq, |request| request.absorbed = true);
                self.record_completion(rq, at_ns);
            }
            Event::End(rq) => self.record_completion(rq, at_ns),
            Event::Requeue(_) | Event::Plug | Event::Unplug { .. } | Event::BioComplete(..) => {}
        }
    }
}
