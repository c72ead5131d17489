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
pub(crate) fn with_python_schedulers(registry: Registry, classes: Vec<Class>, stop: &Arc<Stop>) -> Registry {
    classes.into_iter().fold(registry, |registry, class| {
        let (class, stop) = (Arc::new(class), Arc::clone(stop));
        // This function is never called: the registry creates the scheduler with the maker below.
        let row = Row::new(leaked_name(&class.name), |_| Policy::None);
        registry.with_row_and_maker(
            row,
            Arc::new(move |_| Policy::boxed(PythonScheduler::new(Arc::clone(&class), Arc::clone(&stop)))),
        )
    })
}

/// A static copy of a name, as rows need one. Each different name is leaked once.
fn leaked_name(name: &str) -> &'static str {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.get(name).copied().unwrap_or_else(|| {
        let leaked: &'static str = String::from(name).leak();
        names.insert(leaked);
        leaked
    })
}

/// A scheduler written in Python, attached to a queue.
struct PythonScheduler {
    class: Arc<Class>,
    stop: Arc<Stop>,
    /// The Python object; None if it could not be created.
    object: Option<Py<PyAny>>,
    /// Requests that wait in the object, by their numbers, which increase.
    waiting: BTreeMap<u64, (RqId, Py<Request>)>,
    /// The numbers of the waiting requests.
    numbers: HashMap<RqId, u64>,
    /// Requests that the object has dispatched and that have not completed.
    dispatched: HashMap<RqId, Py<Request>>,
    /// Requests that go before all others, such as those that the driver returned. The object does not decide about them.
    head_list: VecDeque<RqId>,
    requests_seen: u64,
}

impl PythonScheduler {
    fn new(class: Arc<Class>, stop: Arc<Stop>) -> Self {
        let made = Python::attach(|py| stop.register_caller(py).and_then(|()| class.make.call0(py)));
        let object = made.map_err(|error| stop.end_runs(error)).ok();
        PythonScheduler {
            class,
            stop,
            object,
            waiting: BTreeMap::new(),
            numbers: HashMap::new(),
            dispatched: HashMap::new(),
            head_list: VecDeque::new(),
            requests_seen: 0,
        }
    }

    /// Calls the object, unless the comparison is ending.
    fn call<R>(&self, call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>) -> Option<R> {
        let object = self.object.as_ref().filter(|_| !self.stop.is_requested())?;
        Python::attach(|py| call(object.bind(py))).map_err(|error| self.stop.end_runs(error)).ok()
    }

    fn report_violation(&self, problem: &str) {
        let message = format!("{}: {problem}", self.class.name);
        Python::attach(|py| self.stop.end_runs(errors::scheduler(py, &message)));
    }

    /// Whether requests wait while none is at the device, so that there will be no completion to run the queue again.
    fn is_stuck(&self) -> bool {
        !self.waiting.is_empty() && self.dispatched.is_empty()
    }

    fn report_lost_requests(&self, event: &str) {
        let (waiting, oldest) = (self.waiting.len(), self.waiting.keys().next().copied().unwrap_or_default());
        self.report_violation(&format!(
            "{event} although none of its requests is at the device and some wait ({waiting}; the oldest is request {oldest}): \
             they would wait forever (check that the scheduler has not lost one)"
        ));
    }

    /// The number of the request that the object returned.
    fn check_dispatched(&self, returned: &Bound<'_, PyAny>) -> Result<u64, String> {
        let printed = || returned.repr().map_or_else(|_| "something".to_owned(), |text| text.to_string());
        let Ok(request) = returned.cast::<Request>() else {
            return Err(format!("dispatch returned {} (expected a waiting request, or None)", printed()));
        };
        let number = request.borrow().id;
        if self.waiting.get(&number).is_some_and(|(_, waiting)| waiting.is(request)) {
            return Ok(number);
        }
        let problem = if self.dispatched.values().any(|dispatched| dispatched.is(request)) {
            "was dispatched before"
        } else {
            "is not waiting in this scheduler: it has completed, was absorbed by another request, or belongs to another scheduler"
        };
        Err(format!("dispatch returned {}, which {problem}", printed()))
    }

    fn take_waiting(&mut self, number: u64) -> Option<(RqId, Py<Request>)> {
        let (id, request) = self.waiting.remove(&number)?;
        self.numbers.remove(&id);
        Some((id, request))
    }

    /// Takes the next waiting request: the one that the object chooses, or the oldest while the comparison is ending.
    fn next(&mut self, cx: &PolicyCx<'_>) -> Option<(RqId, Py<Request>)> {
        let now_ns = cx.now.at.0;
        let returned = self.call(|object| {
            let returned = object.call_method1("dispatch", (now_ns,))?;
            Ok(if returned.is_none() { None } else { Some(self.check_dispatched(&returned)) })
        });
        match returned {
            Some(Some(Ok(number))) => return self.take_waiting(number),
            Some(Some(Err(problem))) => self.report_violation(&problem),
            Some(None) if self.is_stuck() => self.report_lost_requests("dispatch returned None"),
            Some(None) => return None,
            None => {}
        }
        let (&oldest, _) = self.waiting.first_key_value()?;
        self.take_waiting(oldest)
    }
}

impl Scheduler for PythonScheduler {
    fn insert(&mut self, cx: &mut PolicyCx<'_>, id: RqId, place: Place) {
        if place == Place::Head {
            self.head_list.push_front(id);
            return;
        }
        self.requests_seen += 1;
        let (number, request) = (self.requests_seen, Request::new(self.requests_seen, cx.rq(id), cx.now));
        let created = Python::attach(|py| Py::new(py, request));
        let Ok(request) = created.map_err(|error| self.stop.end_runs(error)) else {
            self.head_list.push_back(id);
            return;
        };
        self.call(|object| object.call_method1("insert", (&request,)).map(drop));
        self.waiting.insert(number, (id, request));
        self.numbers.insert(id, number);
    }

    fn dispatch(&mut self, cx: &mut PolicyCx<'_>, _: HctxId) -> Choice {
        if let Some(id) = self.head_list.pop_front() {
            return Choice { rq: Some(id), reason: Reason::HeadList };
        }
        if self.waiting.is_empty() {
            return Choice { rq: None, reason: Reason::Empty };
        }
        match self.next(cx) {
            Some((id, request)) => {
                self.dispatched.insert(id, request);
                Choice { rq: Some(id), reason: Reason::Own }
            }
            None => Choice { rq: None, reason: Reason::HeldBack },
        }
    }

    fn finish(&mut self, cx: &mut PolicyCx<'_>, id: RqId) {
        if let Some(request) = self.dispatched.remove(&id)
            && self.class.has_finish
        {
            let now_ns = cx.now.at.0;
            self.call(|object| object.call_method1("finish", (request, now_ns)).map(drop));
        }
        // After the last request at the device has completed, nothing else would run the queue again.
        cx.requested.run_queues |= self.is_stuck();
    }

    fn has_work(&self) -> bool {
        if !self.head_list.is_empty() || self.waiting.is_empty() || !self.class.has_has_work {
            return !self.head_list.is_empty() || !self.waiting.is_empty();
        }
        match self.call(|object| object.call_method0("has_work")?.is_truthy()) {
            Some(false) if self.is_stuck() => {
                self.report_lost_requests("has_work returned a false value");
                true
            }
            Some(has_work) => has_work,
            None => true,
        }
    }

    fn allow_merge(&mut self, _: &mut PolicyCx<'_>, _: RqId, _: &Bio) -> bool {
        self.class.has_absorbed
    }

    /// Allowed only for requests that were inserted into the Python object; it does not know others.
    fn allow_request_merge(&self, first: RqId, _: RqId) -> bool {
        self.class.has_absorbed && self.numbers.contains_key(&first)
    }

    fn on_grown(&mut self, cx: &mut PolicyCx<'_>, id: RqId, _: Edge) {
        if let Some((_, request)) = self.numbers.get(&id).and_then(|number| self.waiting.get(number)) {
            Python::attach(|py| request.borrow_mut(py).grow(cx.rq(id)));
        }
    }

    fn on_absorbed(&mut self, _: &mut PolicyCx<'_>, survivor: RqId, absorbed: RqId) {
        self.head_list.retain(|&id| id != absorbed);
        let Some((_, request)) = self.numbers.get(&absorbed).copied().and_then(|number| self.take_waiting(number))
        else {
            return;
        };
        let survivor = self.numbers.get(&survivor).and_then(|number| self.waiting.get(number));
        if let Some((_, survivor)) = survivor {
            self.call(|object| object.call_method1("absorbed", (survivor, request)).map(drop));
        }
    }
}
