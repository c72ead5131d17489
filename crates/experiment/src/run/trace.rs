//! Runs that write a trace of all events.

use std::io::{self, Write};
use std::sync::atomic::Ordering;

use hoistway_answer::ResultsDocument;
use hoistway_answer::document::value_text;
use hoistway_observed::Observer;
use hoistway_sim::Control;
use hoistway_trace::events::{BlktraceProbe, FORMAT, Header, RunHeader, Writer};
use serde_json::{Map, Value};

use crate::comparison::error::Error;
use crate::comparison::fields::Field;
use crate::comparison::observer::{Controls, RunObserver};
use crate::outcome::RunOutcome;
use crate::outcome::document;
use crate::plan::{Plan, PlanRun};

/// Why traced runs failed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The runs cannot begin.
    #[error(transparent)]
    Runs(#[from] Error),
    /// The events cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

impl Plan<'_> {
    /// Like [`run`](Self::run), but sequentially, and writes all events to `sink`, which it returns.
    ///
    /// # Errors
    /// The first run that cannot begin, and errors of the sink. One trace cannot hold events of several kernels, devices
    /// or hosts.
    pub fn traced<W: Write>(
        &self,
        sink: W,
        controls: &Controls,
        observer: &dyn RunObserver,
    ) -> Result<(ResultsDocument, W), TraceError> {
        if self.setups.len() > 1 {
            let problem = "a trace covers one kernel, one host and one set of devices (expected one of each)";
            return Err(self.options.refuse(Field::Kernels, self.setups.len(), problem).into());
        }
        let begin = observer.seconds();
        let mut writer = Writer::new(sink, &self.header())?;
        let outcomes = self.run_sequentially(controls, |number, planned, control| {
            writer.begin_run(number, &control.cancelled);
            let outcome = self.run_with_recorder(planned, control, observer, Some(&mut writer))?;
            let reached_ns = control.reached_ns.load(Ordering::Relaxed);
            writer.end_run(reached_ns, outcome.run.simulated_ios, outcome.is_partial)?;
            Ok(outcome)
        })?;
        let is_partial = outcomes.iter().any(|outcome| outcome.as_ref().is_none_or(|outcome| outcome.is_partial));
        let sink = writer.finish(is_partial)?;
        let document = document::for_plan(self, outcomes, observer.seconds() - begin)?;
        Ok((self.complete(document, controls)?, sink))
    }

    /// Like [`traced`](Self::traced), but writes files in blktrace's format. `open` creates the files of a run from its label, its
    /// repeat and its number of CPUs; each CPU has one file.
    ///
    /// # Errors
    /// The first run that cannot begin, and errors of the files.
    pub fn traced_by_blktrace<W: Write>(
        &self,
        mut open: impl FnMut(&str, u32, u16) -> io::Result<Vec<W>>,
        controls: &Controls,
        observer: &dyn RunObserver,
    ) -> Result<ResultsDocument, TraceError> {
        let begin = observer.seconds();
        let outcomes = self.run_sequentially(controls, |_, planned, control| {
            let files = open(&planned.variant.label, planned.repeat, self.setups[planned.setup].queue.cpus)?;
            let processes = self.processes(planned.setup);
            let jobs = processes.iter().map(|process| process.job.as_str());
            let mut probe = BlktraceProbe::new(files, jobs, &control.cancelled);
            let outcome = self.run_with_recorder(planned, control, observer, Some(&mut probe as &mut dyn Observer))?;
            probe.finish()?;
            Ok(outcome)
        })?;
        let document = document::for_plan(self, outcomes, observer.seconds() - begin)?;
        Ok(self.complete(document, controls)?)
    }

    /// Carries out the runs sequentially. Runs that were cancelled before they began have no outcome.
    fn run_sequentially<'c>(
        &self,
        controls: &'c Controls,
        mut run_one: impl FnMut(u32, &PlanRun, &'c Control) -> Result<RunOutcome, TraceError>,
    ) -> Result<Vec<Option<RunOutcome>>, TraceError> {
        let runs = (0..).zip(self.runs.iter().zip(controls.iter()));
        let outcome = |(number, (planned, control)): (u32, (&PlanRun, &'c Control))| {
            if control.cancelled.load(Ordering::Relaxed) {
                Ok(None)
            } else {
                run_one(number, planned, control).map(Some)
            }
        };
        runs.map(outcome).collect()
    }

    /// The header line of the trace.
    fn header(&self) -> Header {
        let setup = &self.setups[0];
        let runs = self.runs.iter().zip(0..).map(|(planned, run)| RunHeader {
            run,
            scheduler: planned.spec.label(),
            tunables: planned
                .spec
                .setting
                .tunables()
                .map(|(name, text)| (name.to_owned(), Value::from(text)))
                // Add the varied files of the queue.
                .chain(
                    planned
                        .variant
                        .own_settings()
                        .into_iter()
                        .map(|(name, value)| (name, Value::from(value_text(&value)))),
                )
                .collect::<Map<_, _>>(),
        });
        Header {
            format: FORMAT.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            job_file: self.load.name.clone(),
            devices: self.devices(0),
            kernel: setup.queue.kernel.to_string(),
            cpus: u32::from(setup.queue.cpus),
            seed: self.options.comparison.seed,
            runs: runs.collect(),
            processes: self.processes(0),
        }
    }
}
