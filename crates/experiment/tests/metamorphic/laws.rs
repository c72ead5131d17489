//! Laws that hold in every single run.

use super::case::{Case, directions, ios, ios_of_each};
use super::cases;

#[test]
fn figures_of_a_run_agree_with_each_other() {
    cases(8, |case| {
        let run = &case.run(1, 1)[0];
        for job in &run.fio.jobs {
            let section = case.sections.iter().find(|section| section.name == job.jobname).expect("its section");
            let mut in_flight = 0.0;
            for stats in directions(job) {
                let block = u64::from(section.block_kib) * 1024;
                if stats.io_bytes != stats.total_ios * block {
                    return Err(format!("{} I/Os of {block} bytes are {} bytes", stats.total_ios, stats.io_bytes));
                }
                if stats.total_ios == 0 {
                    continue;
                }
                let by_time = stats.total_ios as f64 * 1000.0 / stats.runtime as f64;
                if (stats.iops / by_time - 1.0).abs() > 0.01 + 1.0 / (stats.runtime - 1) as f64 {
                    return Err(format!(
                        "{} I/Os in {} ms are {} a second",
                        stats.total_ios, stats.runtime, stats.iops
                    ));
                }
                let [lat, clat, slat] = [&stats.lat_ns, &stats.clat_ns, &stats.slat_ns].map(|of| of.mean);
                if (lat - clat - slat).abs() > 1.0 + 0.001 * lat {
                    return Err(format!("latencies: {slat} and {clat} are not {lat}"));
                }
                in_flight += stats.iops * lat / 1e9;
            }
            // Little's law. A run is a little longer than the time in which I/Os are submitted.
            if in_flight > f64::from(section.depth) * 1.01 + 0.01 {
                return Err(format!("{}: {in_flight} in flight at depth {}", job.jobname, section.depth));
            }
        }
        let summed: u64 = run.fio.jobs.iter().flat_map(directions).map(|stats| stats.total_ios).sum();
        let of_sections: u64 = case.sections.iter().map(|section| ios(run, &section.name)).sum();
        let summaries: u64 = run.run.jobs.iter().flat_map(|job| job.transfers()).map(|transfers| transfers.ios).sum();
        if summed != of_sections || summed != summaries || summed > run.run.simulated_ios {
            return Err(format!("{summed}, {of_sections}, {summaries} and {} I/Os", run.run.simulated_ios));
        }
        Ok(())
    });
}

#[test]
fn a_run_is_the_sum_of_its_parts() {
    cases(8, |case| {
        let whole = Case { runtime_ms: 2 * case.runtime_ms, ..case.clone() };
        let second = Case { ramp_ms: case.runtime_ms, ..case.clone() };
        let [first, second, whole] = [case, &second, &whole].map(|case| ios_of_each(&case.run(1, 1)[0]));
        let processes: Vec<_> =
            case.sections.iter().flat_map(|section| vec![section; section.numjobs as usize]).collect();
        // Processes begin and end up to 0.2 ms apart, so the last ones of the first part have the CPUs of those that have ended.
        let processes_per_cpu = processes.len().div_ceil(usize::from(case.cpus)) as u64;
        for (index, section) in processes.into_iter().enumerate() {
            let (parts, whole) = (first[index] + second[index], whole[index]);
            // I/Os in flight at the boundary count in both parts or in neither.
            if parts.abs_diff(whole) > u64::from(section.depth) + 1 + whole * processes_per_cpu / 100 {
                return Err(format!("process {index}: {} and {} are not {whole}", first[index], second[index]));
            }
        }
        Ok(())
    });
}
