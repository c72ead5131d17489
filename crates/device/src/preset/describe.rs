//! The description of a preset as text.

use std::fmt::Write;

use super::Preset;
use crate::transport::TransportParameters;

/// Several lines: the device, the calibration, its errors, and the source of each number.
pub(super) fn describe(preset: &Preset) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_description(preset, &mut text);
    text
}

fn write_description(preset: &Preset, out: &mut String) -> std::fmt::Result {
    let (shape, calibration) = (preset.shape(), &preset.calibration);
    writeln!(out, "{}: {}", preset.name, preset.title)?;
    writeln!(out, "  model: {}", preset.parameters.summary())?;
    let middleware = preset.middleware_names();
    if !middleware.is_empty() {
        writeln!(out, "  around it: {}", middleware.join(", "))?;
    }
    let flag = |condition: bool, yes: &'static str, no: &'static str| if condition { yes } else { no };
    writeln!(
        out,
        "  shape: {} GB, blocks of {} B (physical {} B), {} hardware queue{} of {} commands{}, {}, {}, {}{}",
        preset.shape.capacity_gb,
        shape.logical_block_bytes,
        shape.physical_block_bytes,
        shape.hw_queues,
        if shape.hw_queues == 1 { "" } else { "s" },
        shape.queue_depth,
        flag(
            shape.host_wide_tags,
            " in common",
            flag(preset.shape.sata, " (NCQ: flushes and discards are not queued)", "")
        ),
        flag(shape.rotational, "rotating", "not rotating"),
        flag(shape.write_cache, "volatile write cache", "no volatile write cache"),
        flag(shape.fua, "FUA", "no FUA"),
        flag(shape.wants_no_scheduler, ", no scheduler by default", ""),
    )?;
    if let Some(transport) = &preset.transport {
        let TransportParameters { request_ns, kib_ns, batch, doorbell_us } = transport;
        writeln!(
            out,
            "  behind a transport: a worker on each CPU, {request_ns} ns a request and {kib_ns} ns a KiB, batches of \
             {batch} or {doorbell_us} us"
        )?;
    }
    writeln!(out, "  calibrated on: {}", calibration.on)?;
    if let Some(host) = &calibration.host {
        writeln!(out, "  fitted with the host profile: {host}")?;
    }
    if let Some(kernel) = &calibration.kernel {
        writeln!(out, "  fitted for: Linux {kernel}")?;
    }
    writeln!(out, "  valid for: {}", calibration.valid_range)?;
    if let Some(range) = &calibration.range {
        writeln!(out, "  calibrated range: {range}")?;
    }
    if calibration.assumed {
        writeln!(out, "  made without measurements")?;
    }
    for residual in &calibration.residuals {
        let (what, error) = (&residual.what, residual.error_percent());
        writeln!(out, "  {what}: model {}, measured {} ({error:+.1} %)", residual.model, residual.measured)?;
    }
    for (key, source) in &calibration.sources {
        writeln!(out, "  {key}: {source}")?;
    }
    Ok(())
}
