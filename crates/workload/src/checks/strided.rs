//! Whether the options of zones fit together.

use super::{JobContext, REGION_MAX, whole_sectors};
use crate::JobFileError;
use crate::generator::{Distribution, Strided};
use crate::settings::ZoneMode;

/// The zones of the job, if it has any and they have an effect.
pub(super) fn strided(context: &JobContext<'_>, align: &[u64; 3]) -> Result<Option<Strided>, JobFileError> {
    let s = context.settings;
    match (s.zone_mode, s.zone_bytes) {
        (Some(ZoneMode::Strided), 0) => {
            let error = context.error("zonemode", "strided needs zonesize");
            return Err(error.hinting("say how many bytes to move in a zone: zonesize=256m"));
        }
        (Some(ZoneMode::None), 1..) => {
            let error = context.error("zonesize", "zonemode=none and zonesize exclude each other, as in fio");
            return Err(error.hinting("use zonemode=strided, or leave zonesize out"));
        }
        (_, 0) => return Ok(None),
        _ => {}
    }
    let range_bytes = if s.zone_range == 0 { s.zone_bytes } else { s.zone_range };
    let option = if s.zone_range == 0 { "zonesize" } else { "zonerange" };
    whole_sectors(context, option, range_bytes)?;
    whole_sectors(context, "zoneskip", s.zone_skip)?;
    for (option, bytes) in [("zonesize", s.zone_bytes), ("zonerange", range_bytes), ("zoneskip", s.zone_skip)] {
        if bytes > REGION_MAX {
            return Err(context.error(option, "larger than any device"));
        }
    }
    if s.filenames.len() > 1 || s.nrfiles > 1 && s.filenames.is_empty() {
        // fio counts zonesize over all files, and then moves only the file whose turn it is.
        let error = context.error("zonesize", "zones in a job with several files are not supported");
        return Err(error.hinting("use a job for each file"));
    }
    if s.loops > 1 {
        let error = context.error("loops", "loops of a job with zones are not supported");
        return Err(error.hinting("use io_size, which goes on in the zones"));
    }
    if !s.random {
        return Ok(Some(Strided { zone_bytes: s.zone_bytes, range_bytes, skip_bytes: s.zone_skip }));
    }
    if s.distribution != Distribution::Uniform {
        // Tried with fio 3.33; the notices tell of it.
        return Ok(None);
    }
    for &lane in s.direction.lanes() {
        if !range_bytes.is_multiple_of(align[lane]) {
            // fio ends the job as soon as it draws a block that the zone cuts.
            let message = format!("zones of {range_bytes} bytes are not whole blocks of {}", align[lane]);
            return Err(context.error(option, &message).hinting("a random job needs a multiple of bs"));
        }
    }
    Ok(Some(Strided { zone_bytes: s.zone_bytes, range_bytes, skip_bytes: s.zone_skip }))
}
