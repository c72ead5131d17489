//! Changes a job file before fio and this crate read it, so that fio runs it quickly, without a device and without
//! root. The changes do not affect which I/Os a process issues.

/// Lines that are removed: they determine the time, priority, CPU or accounting of I/Os, which an I/O log does not
/// contain. `thread` is among them because processes are distinguished by their ids.
const TAKEN_OUT: &[&str] = &[
    "cgroup",
    "cgroup_weight",
    "cmdprio",
    "cmdprio_bssplit",
    "cmdprio_class",
    "cmdprio_percentage",
    "cpus_allowed",
    "direct",
    "exit_what",
    "exitall",
    "fixedbufs",
    "group_reporting",
    "hipri",
    "io_submit_mode",
    "ioscheduler",
    "latency_percentile",
    "latency_target",
    "latency_window",
    "log_prio",
    "nice",
    "numa_cpu_nodes",
    "numa_mem_policy",
    "prio",
    "prioclass",
    "ramp_time",
    "rate",
    "rate_iops",
    "rate_process",
    "ratemin",
    "registerfiles",
    "ss",
    "ss_dur",
    "ss_ramp",
    "start_delay",
    "startdelay",
    "sync",
    "thinktime",
    "thinktime_blocks",
    "thinktime_spin",
    "thread",
    "threads",
    "write_bw_log",
    "write_lat_log",
];
/// Options whose values are divided if they are in megabytes or more.
const SIZES: &[&str] = &["filesize", "io_size", "offset", "offset_increment", "size", "zoneskip", "zonesize"];
/// The runtime of everything that has one.
const RUNTIME: &str = "200ms";
const LOOPS_MAX: u64 = 10;

/// The job file with its sizes divided by `shrink`, and with `defaults` at its beginning.
pub fn adapted(text: &str, shrink: u64, defaults: &str) -> String {
    // The variable stands for fio's null engine, which does no I/O but makes all decisions about it. This crate refuses
    // it, and gets another one.
    let mut lines = vec!["[global]".to_owned(), "ioengine=${ENGINE}".to_owned(), defaults.to_owned()];
    lines.extend(adapted_lines(text, shrink));
    lines.join("\n") + "\n"
}

/// The lines of a file that a job file includes.
pub fn adapted_lines(text: &str, shrink: u64) -> Vec<String> {
    text.lines().filter_map(|line| adapted_line(line, shrink)).collect()
}

fn adapted_line(line: &str, shrink: u64) -> Option<String> {
    let line = line.split([';', '#']).next().unwrap_or_default().trim();
    let (name, value) = line.split_once('=').map_or((line, ""), |(name, value)| (name.trim(), value.trim()));
    match name {
        _ if TAKEN_OUT.contains(&name) => None,
        "ioengine" => Some("ioengine=${ENGINE}".to_owned()),
        "runtime" | "timeout" => Some(format!("runtime={RUNTIME}")),
        "loops" => Some(format!("loops={}", value.parse::<u64>().map_or(LOOPS_MAX, |loops| loops.min(LOOPS_MAX)))),
        // The same random numbers each time, so that a difference is not due to chance.
        "randrepeat" | "allrandrepeat" => Some(format!("{name}=1")),
        // All files are in the directory of the test.
        "filename" | "directory" => Some(format!("{name}={}", value.replace('/', "-"))),
        _ if SIZES.contains(&name) => Some(format!("{name}={}", shrunk(value, shrink))),
        _ => Some(line.to_owned()),
    }
}

/// A size in bytes, if it is given in megabytes or gigabytes.
fn shrunk(value: &str, shrink: u64) -> String {
    let unit = if value.ends_with(['g', 'G']) { 1 << 30 } else { 1 << 20 };
    match value.strip_suffix(['g', 'G', 'm', 'M']).and_then(|number| number.parse::<u64>().ok()) {
        Some(number) => (number * unit / shrink).to_string(),
        None => value.to_owned(),
    }
}
