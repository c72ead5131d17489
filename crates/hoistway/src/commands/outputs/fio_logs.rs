//! `--fio-logs DIR`: fio's log files and json+ for each run, for tools that read fio's output.
//!
//! ```text
//! DIR/mq-deadline/fio.json              the output of fio --output-format=json+
//! DIR/mq-deadline/JOB_bw.1.log          bandwidth; also _iops, _lat, _clat, _slat; one file per process
//! DIR/mq-deadline/repeat-2/...          with --repeat, from the second repeat on
//! ```
//!
//! Everything is written to a temporary folder, which is renamed to DIR after the last run, so DIR is complete.

use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context as _, Result, anyhow, bail};
use hoistway_experiment::Ended;
use hoistway_measure::ProcessResult;
use hoistway_measure::fio::{LogKind, Output, write_histograms};

use super::format::fio_text;
use crate::numbered_files::file_name_from_label;

/// The temporary folder of log files.
pub(super) struct FioLogs {
    name: PathBuf,
    final_path: PathBuf,
    temporary_path: PathBuf,
    failure: Mutex<Option<anyhow::Error>>,
}

impl FioLogs {
    /// Checks that `folder` can be created.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let expected = "expected a folder that does not exist yet, or is empty";
        let final_path = std::path::absolute(folder).with_context(|| format!("--fio-logs {}", folder.display()))?;
        let name = folder.to_owned();
        match fs::read_dir(&final_path).map(|mut entries| entries.next().is_some()) {
            Ok(true) => {
                bail!("--fio-logs {}: is not empty ({expected})", name.display())
            }
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(anyhow!("--fio-logs {}: {error} ({expected})", name.display())),
        }
        let folder_name = final_path.file_name().ok_or_else(|| anyhow!("--fio-logs {}: {expected}", name.display()))?;
        let mut temporary_name = std::ffi::OsString::from(".");
        temporary_name.push(folder_name);
        temporary_name.push(format!(".{}.part", std::process::id()));
        let temporary_path = final_path.with_file_name(temporary_name);
        fs::create_dir(&temporary_path)
            .with_context(|| format!("--fio-logs {}: cannot be created ({expected})", name.display()))?;
        Ok(Self { name, final_path, temporary_path, failure: Mutex::new(None) })
    }

    /// Writes the logs of a run. [`finish`](Self::finish) returns the first error. Returns whether to continue.
    pub(super) fn write(&self, ended: &Ended<'_>, json: &Output) -> bool {
        let mut folder = self.temporary_path.join(file_name_from_label(ended.label));
        if ended.repeat > 0 {
            folder.push(format!("repeat-{}", ended.repeat + 1));
        }
        let written = write_run(&folder, ended.processes, json);
        let Ok(mut failure) = self.failure.lock() else { return false };
        if let Err(error) = written {
            failure.get_or_insert(error);
        }
        failure.is_none()
    }

    /// Renames the folder to its final name.
    pub(super) fn finish(mut self) -> Result<()> {
        let failure = self.failure.get_mut().map(Option::take).unwrap_or(None);
        let name = self.name.display().to_string();
        if let Some(failure) = failure {
            return Err(failure.context(format!("--fio-logs {name}: cannot be written")));
        }
        fs::rename(&self.temporary_path, &self.final_path)
            .with_context(|| format!("--fio-logs {name}: cannot be created"))
    }
}

impl Drop for FioLogs {
    fn drop(&mut self) {
        // After the renaming the folder no longer exists under this name.
        let _ = fs::remove_dir_all(&self.temporary_path);
    }
}

fn write_run(folder: &Path, processes: &[ProcessResult], json: &Output) -> Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("fio.json"), fio_text(Some(json))?)?;
    for (number, process) in (1..).zip(processes) {
        let Some(log) = &process.log else { continue };
        for kind in LogKind::ALL {
            let name = format!("{}_{}.{number}.log", file_name(&process.name), kind.name());
            write_log(&folder.join(name), |out| kind.write(log, out))?;
        }
        if let Some(histograms) = log.histograms() {
            let name = format!("{}_clat_hist.{number}.log", file_name(&process.name));
            write_log(&folder.join(name), |out| write_histograms(histograms, out))?;
        }
    }
    Ok(())
}

fn write_log(file: &Path, write: impl Fn(&mut dyn io::Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(fs::File::create(file)?);
    write(&mut out)?;
    out.flush()
}

/// A job's name with the characters replaced that file names should not contain.
fn file_name(job: &str) -> String {
    const BYTES_MAX: usize = 100;
    let replace_unsafe = |c: char| if c.is_alphanumeric() || "._-+".contains(c) { c } else { '_' };
    let mut name = String::new();
    for c in job.chars().map(replace_unsafe) {
        if name.len() + c.len_utf8() > BYTES_MAX {
            break;
        }
        name.push(c);
    }
    if name.is_empty() || name.starts_with('.') { format!("job{name}") } else { name }
}
