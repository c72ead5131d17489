//! Options that select the recording, its device and its columns.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use hoistway_program::{NAME_DEVICE, Options, Program};
use hoistway_trace::block::{Columns, Device, Input, Recording};

/// Which recording, and which part of it.
#[derive(Args, Debug)]
pub(super) struct Source {
    /// The recording; - for standard input.
    pub(super) recording: PathBuf,
    /// The device, if the recording has several.
    #[arg(long, value_name = "MAJOR,MINOR", value_parser = device)]
    pub(super) major_minor: Option<Device>,
    /// Columns of a table: msr, alibaba, tencent, spc, systor17, fiu, mqsim, or the number of each, from 1, with its unit, such
    /// as time=1:us,op=2:R/W,offset=3:bytes,size=4:bytes,response=5:us,dev=6,pid=7.
    #[arg(long, value_name = "COLUMNS", value_parser = Columns::parse)]
    columns: Option<Columns>,
}

fn device(text: &str) -> Result<Device, String> {
    Device::parse(text).ok_or_else(|| "expected MAJOR,MINOR, such as 8,0".to_owned())
}

impl Source {
    /// The recording's name in messages.
    pub(super) fn name(&self) -> String {
        self.recording.display().to_string()
    }

    /// Infers the program that produced the recording.
    pub(super) fn infer(&self, recording: &mut Recording, options: &Options) -> Result<Program> {
        Ok(Program::infer(recording, &self.name(), options).map_err(|mut error| {
            if error.expected == NAME_DEVICE {
                "--major-minor with one of them".clone_into(&mut error.expected);
            }
            error
        })?)
    }

    pub(super) fn open(&self) -> Result<Recording> {
        Ok(match &self.columns {
            Some(columns) => Recording::table(Input::open(&self.recording)?, columns)?,
            None => Recording::open(&self.recording)?,
        })
    }
}
