//! `hoistway compare`: one load under every scheduler.

mod arguments;
mod asked;
mod fio_logs;
mod format;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant as WallClock, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use hoistway_lab::{Controls, Ended, Plan, Watch};
use hoistway_results::{ResultsDocument, fio};

use self::fio_logs::FioLogs;
use crate::Ending;
use crate::input::CommandLine;
use crate::output::Output;
use crate::progress::Progress;
use crate::trace_file::TraceFile;

pub(crate) use self::arguments::{Arguments, parse_ramp, parse_time};
pub(crate) use self::format::Format;

pub(crate) fn run(arguments: &Arguments) -> Result<Ending> {
    let comparison = asked::comparison(arguments)?;
    let plan = Plan::of(&comparison, &CommandLine)?;
    arguments.format.check(plan.run_count())?;
    let output = Output::open(arguments.output.as_deref())?;
    let trace = arguments.trace.as_deref().map(|file| TraceFile::open(file, &output)).transpose()?;
    let logs = arguments.fio_logs.as_deref().map(FioLogs::open).transpose()?;
    let controls = Arc::new(plan.controls());
    let interrupted = Arc::clone(&controls);
    ctrlc::set_handler(move || interrupted.cancel()).context("cannot watch for Ctrl-C")?;
    let watching = Watching {
        begin: WallClock::now(),
        controls: &controls,
        logs: logs.as_ref(),
        wants_json_plus: arguments.format == Format::FioJsonPlus,
        json_plus: Mutex::new(None),
    };
    let mut document = {
        let _progress = Progress::show(&controls, plan.expected_ns());
        match trace {
            None => plan.run(&controls, &watching)?,
            Some(trace) => trace.run(&plan, &controls, &watching)?,
        }
    };
    document.command = std::env::args().collect::<Vec<_>>().join(" ");
    document.runs.iter_mut().for_each(|run| run.fio.set_timestamp_ms(now_ms()));
    document.conclusion = hoistway_report::conclusion(&document);
    let json_plus = watching.json_plus.into_inner().unwrap_or_else(PoisonError::into_inner);
    let text = arguments.format.rendered(&document, json_plus.as_ref(), &output)?;
    logs.map(FioLogs::finish).transpose()?;
    output.write(&text)?;
    if document.partial {
        return Ok(Ending::Interrupted);
    }
    Ok(if has_failed(&document) { Ending::JobFailed } else { Ending::Done })
}

/// Whether an error ended a process in any run.
fn has_failed(document: &ResultsDocument) -> bool {
    document.runs.iter().flat_map(|run| &run.jobs).any(|job| !job.failed.is_empty())
}

/// Writes the logs of runs as they end.
struct Watching<'a> {
    begin: WallClock,
    controls: &'a Controls,
    logs: Option<&'a FioLogs>,
    wants_json_plus: bool,
    /// fio's json+ of the last run.
    json_plus: Mutex<Option<fio::Output>>,
}

impl Watch for Watching<'_> {
    fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn ended(&self, ended: &Ended<'_>) {
        if self.logs.is_none() && !self.wants_json_plus {
            return;
        }
        let mut json = ended.fio_json_plus();
        json.set_timestamp_ms(now_ms());
        if let Some(logs) = self.logs
            && !logs.write(ended, &json)
        {
            self.controls.cancel();
        }
        *self.json_plus.lock().unwrap_or_else(PoisonError::into_inner) = Some(json);
    }
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
