//! Adds job options that other programs expect in fio's output.

use hoistway_fio::options;
use hoistway_measure::fio::Output;

/// Options without which fio-plot draws nothing. fio itself lists only the options given in the job file.
const FIO_PLOT_OPTIONS: [&str; 4] = ["rw", "bs", "iodepth", "numjobs"];

/// Adds the default values of missing options.
pub(crate) fn complete(output: &mut Output) {
    let Output { global_options, jobs, .. } = output;
    for job in jobs {
        let has = |name: &str| job.job_options.get(name).or_else(|| global_options.as_ref()?.get(name)).is_some();
        // A replay takes its I/Os from the log, not from these options.
        if has("read_iolog") {
            continue;
        }
        let missing = options().filter(|option| FIO_PLOT_OPTIONS.contains(&option.name) && !has(option.name));
        let missing: Vec<_> = missing.map(|option| (option.name.to_owned(), option.default.to_owned())).collect();
        job.job_options.extend(missing);
    }
}
