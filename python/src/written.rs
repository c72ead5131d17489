//! A scheduler whose decisions are made by a Python object.
//!
//! **Promises**: no request is lost or dispatched twice, even by a faulty object. If the object breaks its contract, the
//! comparison ends with an exception; until the runs have ended, requests are dispatched in the order of arrival.
//! **Costs**: for each step of a request, taking Python's global lock and a call into Python.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use hoistway_blk::bio::Bio;
use hoistway_blk::ground::{HctxId, RqId};
use hoistway_blk::policy::{Choice, Place, PolicyCx, Scheduler};
use hoistway_blk::request::Edge;
use hoistway_blk::schedulers::{Policy, Registry, Row};
use hoistway_blk::watch::Reason;
use pyo3::prelude::*;

use crate::errors;
use crate::request::Request;
use crate::stop::Stop;

/// A scheduler class, as passed by Python.
#[derive(FromPyObject, Debug)]
pub(crate) struct Class {
    #[pyo3(item)]
    name: String,
    /// Creates an object of it, without arguments.
    #[pyo3(item)]
    make: Py<PyAny>,
    /// Which of the optional methods it has.
    #[pyo3(item)]
    has_finish: bool,
    #[pyo3(item)]
    has_has_work: bool,
    #[pyo3(item)]
    has_absorbed: bool,
}

impl Class {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Adds schedulers written in Python to the registry.
pub(crate) fn added(registry: Registry, classes: Vec<Class>, stop: &Arc<Stop>) -> Registry {
    classes.into_iter().fold(registry, |registry, class| {
        let (class, stop) = (Arc::new(class), Arc::clone(stop));
        // This function is never called: the registry creates the scheduler with the maker below.
        let row = Row::new(name(&class.name), |_| Policy::None);
        registry.with_row_and_maker(
            row,
            Arc::new(move |_| Policy::boxed(Written::new(Arc::clone(&class), Arc::clone(&stop)))),
        )
    })
}

/// A static copy of a name, as rows need one. Each different name is leaked once.
fn name(name: &str) -> &'static str {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.get(name).copied().unwrap_or_else(|| {
        let kept: &'static str = String::from(name).leak();
        names.insert(kept);
        kept
    })
}

/// A scheduler written in Python, attached to a queue.
struct Written {
    class: Arc<Class>,
    stop: Arc<Stop>,
    /// The Python object; None if it could not be created.
    object: Option<Py<PyAny>>,
    /// Requests that wait in the object, by their numbers, which increase.
    waiting: BTreeMap<u64, (RqId, Py<Request>)>,
    /// The numbers of the waiting requests.
    numbers: HashMap<RqId, u64>,
    /// Requests that the object has dispatched and that have not completed.
    given: HashMap<RqId, Py<Request>>,
    /// Requests that go before all others, such as those that the driver returned. The object does not decide about them.
    first: VecDeque<RqId>,
    requests_seen: u64,
}

impl Written {
    fn new(class: Arc<Class>, stop: Arc<Stop>) -> Self {
        let made = Python::attach(|py| stop.called_from_here(py).and_then(|()| class.make.call0(py)));
        let object = made.map_err(|error| stop.because(error)).ok();
        Written {
            class,
            stop,
            object,
            waiting: BTreeMap::new(),
            numbers: HashMap::new(),
            given: HashMap::new(),
            first: VecDeque::new(),
            requests_seen: 0,
        }
    }

    /// Calls the object, unless the comparison is ending.
    fn ask<R>(&self, ask: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> Option<R> {
        let object = self.object.as_ref().filter(|_| !self.stop.is_asked())?;
        Python::attach(|py| ask(object.bind(py))).map_err(|error| self.stop.because(error)).ok()
    }

    fn blame(&self, problem: &str) {
        let message = format!("{}: {problem}", self.class.name);
        Python::attach(|py| self.stop.because(errors::scheduler(py, &message)));
    }

    /// Whether requests wait while none is at the device, so that there will be no completion to run the queue again.
    fn is_stuck(&self) -> bool {
        !self.waiting.is_empty() && self.given.is_empty()
    }

    fn blame_for_losses(&self, what: &str) {
        let (waiting, oldest) = (self.waiting.len(), self.waiting.keys().next().copied().unwrap_or_default());
        self.blame(&format!(
            "{what} although none of its requests is at the device and some wait ({waiting}; the oldest is request {oldest}): \
             they would wait forever (check that the scheduler has not lost one)"
        ));
    }

    /// The number of the request that the object returned.
    fn answered(&self, answer: &Bound<'_, PyAny>) -> Result<u64, String> {
        let shown = || answer.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
        let Ok(request) = answer.cast::<Request>() else {
            return Err(format!("dispatch returned {} (expected a waiting request, or None)", shown()));
        };
        let number = request.borrow().id;
        if self.waiting.get(&number).is_some_and(|(_, waiting)| waiting.is(request)) {
            return Ok(number);
        }
        let why = if self.given.values().any(|given| given.is(request)) {
            "was dispatched before"
        } else {
            "is not waiting in this scheduler: it has completed, was absorbed by another request, or belongs to another scheduler"
        };
        Err(format!("dispatch returned {}, which {why}", shown()))
    }

    fn take(&mut self, number: u64) -> Option<(RqId, Py<Request>)> {
        let (id, request) = self.waiting.remove(&number)?;
        self.numbers.remove(&id);
        Some((id, request))
    }

    /// Takes the next waiting request: the one that the object chooses, or the oldest while the comparison is ending.
    fn next(&mut self, cx: &PolicyCx<'_>) -> Option<(RqId, Py<Request>)> {
        let now_ns = cx.now.at.0;
        let answer = self.ask(|object| {
            let answer = object.call_method1("dispatch", (now_ns,))?;
            Ok(if answer.is_none() { None } else { Some(self.answered(&answer)) })
        });
        match answer {
            Some(Some(Ok(number))) => return self.take(number),
            Some(Some(Err(problem))) => self.blame(&problem),
            Some(None) if self.is_stuck() => self.blame_for_losses("dispatch returned None"),
            Some(None) => return None,
            None => {}
        }
        let (&oldest, _) = self.waiting.first_key_value()?;
        self.take(oldest)
    }
}

impl Scheduler for Written {
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        if place == Place::Head {
            self.first.push_front(id);
            return;
        }
        self.requests_seen += 1;
        let (number, request) = (self.requests_seen, Request::new(self.requests_seen, cx.rq(id), cx.now));
        let kept = Python::attach(|py| Py::new(py, request));
        let Ok(request) = kept.map_err(|error| self.stop.because(error)) else {
            self.first.push_back(id);
            return;
        };
        self.ask(|object| object.call_method1("insert", (&request,)).map(drop));
        self.waiting.insert(number, (id, request));
        self.numbers.insert(id, number);
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _: HctxId) -> Choice {
        if let Some(id) = self.first.pop_front() {
            return Choice { rq: Some(id), reason: Reason::HeadList };
        }
        if self.waiting.is_empty() {
            return Choice { rq: None, reason: Reason::Empty };
        }
        match self.next(cx) {
            Some((id, request)) => {
                self.given.insert(id, request);
                Choice { rq: Some(id), reason: Reason::Own }
            }
            None => Choice { rq: None, reason: Reason::HeldBack },
        }
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        if let Some(request) = self.given.remove(&id)
            && self.class.has_finish
        {
            let now_ns = cx.now.at.0;
            self.ask(|object| object.call_method1("finish", (request, now_ns)).map(drop));
        }
        // After the last request at the device has completed, nothing else would run the queue again.
        cx.requested.run_queues |= self.is_stuck();
    }

    fn has_work(&self) -> bool {
        if !self.first.is_empty() || self.waiting.is_empty() || !self.class.has_has_work {
            return !self.first.is_empty() || !self.waiting.is_empty();
        }
        match self.ask(|object| object.call_method0("has_work")?.is_truthy()) {
            Some(false) if self.is_stuck() => {
                self.blame_for_losses("has_work returned a false value");
                true
            }
            Some(has_work) => has_work,
            None => true,
        }
    }

    fn allow_merge(&mut self, _: &mut PolicyCx<'_>, _: RqId, _: &Bio) -> bool {
        self.class.has_absorbed
    }

    /// The object is told only about requests that it has received.
    fn allow_join(&self, first: RqId, _: RqId) -> bool {
        self.class.has_absorbed && self.numbers.contains_key(&first)
    }

    fn on_grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, _: Edge) {
        if let Some((_, request)) = self.numbers.get(&id).and_then(|number| self.waiting.get(number)) {
            Python::attach(|py| request.borrow_mut(py).grow(cx.rq(id)));
        }
    }

    fn on_absorbed(&mut self, _: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        self.first.retain(|&id| id != absorbed);
        let Some((_, request)) = self.numbers.get(&absorbed).copied().and_then(|number| self.take(number)) else {
            return;
        };
        let survivor = self.numbers.get(&survivor).and_then(|number| self.waiting.get(number));
        if let Some((_, survivor)) = survivor {
            self.ask(|object| object.call_method1("absorbed", (survivor, request)).map(drop));
        }
    }
}
