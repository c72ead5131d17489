//! Converts a recording to I/O logs of fio: one for each stream, and a job file that replays them together.

use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use hoistway_blk::bio::Op;
use hoistway_program::{Options, Program, RequestedDevice, Stream};
use hoistway_trace::block::{Flags, IologAction, IologVersion, IologWriter};

use super::super::source::Source;
use crate::numbered_files::NumberedFiles;

pub(super) fn write(source: &Source, output: &Path, version: IologVersion) -> Result<()> {
    let mut recording = source.open()?;
    let options = Options { device: source.major_minor.map(RequestedDevice::Number), ..Options::default() };
    let program = source.infer(&mut recording, &options)?;
    let mut files = NumberedFiles::new(output);
    for number in 0..program.streams.len() {
        write_log(&program, number, &mut files, version)?;
    }
    let mut job_file = files.open(".fio")?;
    writeln!(
        job_file,
        "; A job for each stream of {:?}. With replay_redirect=/dev/sdX their I/O goes to that disk.\n[global]\ndirect=1\n\
         ioengine=libaio",
        source.name()
    )?;
    for (number, stream) in program.streams.iter().enumerate() {
        let log = files.final_path(number).display().to_string().replace('\\', "\\\\").replace(':', "\\:");
        let (name, depth) = (section_name(stream), stream.evidence.depth_max.max(1));
        write!(job_file, "\n[{name}]\nread_iolog={log}\niodepth={depth}\n")?;
    }
    job_file.flush()?;
    files.finish()
}

/// A section name without characters that a job file reserves: names of tasks may contain anything.
fn section_name(stream: &Stream) -> String {
    let is_plain = |letter: &char| !letter.is_control() && !"[]".contains(*letter);
    let name: String = stream.name.chars().filter(is_plain).collect();
    stream.pid.map_or_else(|| name.clone(), |pid| format!("{name}-{pid}"))
}

fn write_log(program: &Program, stream: usize, files: &mut NumberedFiles, version: IologVersion) -> Result<()> {
    let mut log = IologWriter::new(files.next()?, &program.device.to_string(), version)?;
    for step in program.steps(stream) {
        let step = step.context("the temporary file cannot be read")?;
        let io = step.io();
        let action = match io.op {
            Op::Read => IologAction::Read,
            Op::Write => IologAction::Write,
            Op::Flush => IologAction::Sync,
            Op::Discard | Op::WriteZeroes => IologAction::Trim,
        };
        let mut add = |action, offset_bytes, bytes| log.write(step.at.0, action, offset_bytes, bytes);
        // A log has no flags: a flush before or after a write is a separate line.
        if io.op == Op::Write && step.flags.has(Flags::FLUSH) {
            add(IologAction::Sync, 0, 0)?;
        }
        add(action, io.offset_bytes, io.bytes)?;
        if io.op == Op::Write && step.flags.has(Flags::FUA) {
            add(IologAction::Sync, 0, 0)?;
        }
    }
    log.finish()?;
    Ok(())
}
