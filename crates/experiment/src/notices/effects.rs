//! Notices about job options that have no effect under some of the compared schedulers.
//!
//! One table says which scheduler honours which options. It agrees with the [texts](crate::texts), and a test of the
//! simulation checks each entry (shares by ionice and weights). Limits take effect before any scheduler.

use hoistway_blk::ground::Kernel;
use hoistway_blk::schedulers::{MQ_DEADLINE, Priorities, Row};
use hoistway_load::{Load, Process};
use hoistway_sim::QueueSettings;

use crate::comparison::Comparison;
#[cfg(test)]
use crate::comparison::QueueFile;
use crate::comparison::environment::Options;
use crate::comparison::fields::Field;
use crate::notices::io_cost;

/// A group of job options that only a scheduler can honour.
struct OptionGroup {
    /// The options, as named in messages.
    options: &'static str,
    /// Whether a process uses them.
    is_used: fn(&Process) -> bool,
    /// Their effect under a scheduler of a kernel.
    effect: fn(&Row, Kernel) -> Effect,
}

/// The effect of an option under a scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Effect {
    /// Honoured.
    Full,
    /// Honoured in part: which part, as a clause.
    Part(String),
    /// Without effect: why, as a clause.
    No(String),
    /// Without effect, but a field of the comparison has the wanted effect.
    Only(Field, &'static str),
}

const OPTION_GROUPS: [OptionGroup; 4] = [
    OptionGroup {
        options: "prioclass, nice, prio or cmdprio",
        is_used: |process| {
            process.standing.io_priority.is_some() || process.standing.nice != 0 || process.plan.has_priorities()
        },
        effect: |row, kernel| match (row.priorities)(&kernel.generation()) {
            Priorities::ClassAndLevel => Effect::Full,
            Priorities::Class => Effect::Part(format!("{} honours the class and ignores the level", row.name)),
            Priorities::No if row.name == MQ_DEADLINE.name => {
                Effect::No(format!("{} has priorities since Linux 5.14", row.name))
            }
            Priorities::No => Effect::No(String::new()),
        },
    },
    OptionGroup {
        options: "cgroup_weight",
        is_used: |process| process.standing.cgroup_weight.is_some(),
        effect: |row, _| if row.weights { Effect::Full } else { Effect::No(String::new()) },
    },
    OptionGroup {
        // Without weights all groups have the same share, if the scheduler has shares at all.
        options: "cgroup",
        is_used: |process| process.standing.cgroup.is_some() && process.standing.cgroup_weight.is_none(),
        effect: |row, _| {
            if row.weights { Effect::Full } else { Effect::Only(Field::IoMax, "acts on groups there") }
        },
    },
    OptionGroup {
        // The process throttles itself before any scheduler sees its I/O.
        options: "rate or rate_iops",
        is_used: |process| process.pace.rate.is_some(),
        effect: |_, _| Effect::Full,
    },
];

/// A notice for each option that a compared scheduler ignores, wholly or in part.
pub(crate) fn notices(
    options: &Options<'_>,
    workload: &Load,
    schedulers: &[String],
    queue: &QueueSettings,
) -> Vec<String> {
    // With io.cost groups have shares under every scheduler.
    let has_shares = io_cost::is_on(options, queue);
    let has_targets = !queue.io_latency.is_empty();
    let is_honoured = |group: &OptionGroup| match group.options {
        "cgroup_weight" => has_shares,
        "cgroup" => has_shares || has_targets,
        _ => false,
    };
    let groups = OPTION_GROUPS.iter().filter(|group| !is_honoured(group));
    let ignored = groups.filter_map(|group| group_notice(options, group, workload, schedulers, queue));
    ignored.chain(page_cache_notice(options, workload)).collect()
}

/// A notice if options of the page cache are set and no job uses the page cache.
fn page_cache_notice(options: &Options<'_>, workload: &Load) -> Option<String> {
    let Comparison { memory_bytes, sysctls, journal, queue_files, .. } = options.comparison;
    let fields = [
        (Field::MemoryBytes, memory_bytes.is_some()),
        (Field::Sysctls, !sysctls.is_empty()),
        (Field::Journal, *journal),
    ];
    let mut given: Vec<_> =
        fields.iter().filter(|(_, is_given)| *is_given).map(|(field, _)| options.name(*field).to_string()).collect();
    let page_cache_files = queue_files.iter().filter(|setting| setting.file == "read_ahead_kb");
    given.extend(page_cache_files.map(|setting| {
        options.given(Field::QueueFiles, format_args!("{}={}", setting.file, setting.text)).to_string()
    }));
    let is_used = workload.processes.iter().any(|process| !process.caching.direct);
    (!given.is_empty() && !is_used)
        .then(|| format!("{}: no effect without the page cache, and all I/O of this load is direct.", given.join(", ")))
}

fn group_notice(
    options: &Options<'_>,
    group: &OptionGroup,
    workload: &Load,
    schedulers: &[String],
    queue: &QueueSettings,
) -> Option<String> {
    let mut jobs: Vec<&str> = Vec::new();
    for process in workload.processes.iter().filter(|process| (group.is_used)(process)) {
        if !jobs.contains(&process.name.as_str()) {
            jobs.push(&process.name);
        }
    }
    if jobs.is_empty() {
        return None;
    }
    let mut ignoring: Vec<&str> = Vec::new();
    let mut parts: Vec<String> = Vec::new();
    for row in schedulers.iter().filter_map(|name| queue.schedulers.find(name)) {
        let effect = (group.effect)(row, row.kernel(queue.kernel));
        if matches!(effect, Effect::No(_) | Effect::Only(..)) {
            ignoring.push(row.name);
        }
        let why = match effect {
            Effect::Full => continue,
            Effect::Part(why) | Effect::No(why) => why,
            Effect::Only(field, why) => format!("only {} {why}", options.name(field)),
        };
        if !why.is_empty() && !parts.contains(&why) {
            parts.push(why);
        }
    }
    let mut sentences = Vec::new();
    if !ignoring.is_empty() {
        sentences.push(format!("no effect with {}", ignoring.join(", ")));
    }
    sentences.extend(parts);
    let jobs = if jobs.len() > 3 { format!("{} jobs", jobs.len()) } else { jobs.join(", ") };
    (!sentences.is_empty()).then(|| format!("{} ({jobs}): {}.", group.options, sentences.join("; ")))
}

#[cfg(test)]
mod tests {
    use hoistway_fio::{Environment, JobFile};
    use hoistway_legacy::{ALL_SCHEDULERS, all_schedulers};

    use super::*;
    use crate::comparison::environment::Alone;
    use crate::texts::Texts;

    fn notices_of(options: &str, kernel: Kernel) -> Vec<String> {
        let text = format!("[a]\nfilename=/dev/sda\ndirect=1\n{options}\n[b]\nfilename=/dev/sda\ndirect=1\n");
        let workload = JobFile::parse(&text, "a.fio", &Environment::empty()).unwrap().load;
        let options = Options { comparison: &Comparison::default(), environment: &Alone };
        notices(&options, &workload, &ALL_SCHEDULERS.map(str::to_owned), &QueueSettings::new(kernel, 1))
    }

    #[test]
    fn options_without_effect_are_reported_with_the_schedulers_that_ignore_them() {
        assert!(notices_of("iodepth=1", Kernel::DEFAULT).is_empty());
        assert!(notices_of("rate=1m", Kernel::DEFAULT).is_empty());
        assert_eq!(
            notices_of("prioclass=3", Kernel::DEFAULT),
            [
                "prioclass, nice, prio or cmdprio (a): no effect with none, kyber, noop, deadline; mq-deadline honours the class \
                 and ignores the level."
            ]
        );
        let old = notices_of("prioclass=3", Kernel::V5_10);
        assert_eq!(
            old,
            [
                "prioclass, nice, prio or cmdprio (a): no effect with none, mq-deadline, kyber, noop, deadline; mq-deadline has \
                 priorities since Linux 5.14."
            ]
        );
        assert_eq!(
            notices_of("cgroup=g\ncgroup_weight=200", Kernel::DEFAULT),
            ["cgroup_weight (a): no effect with none, mq-deadline, kyber, noop, deadline."]
        );
        assert!(notices_of("cgroup=g", Kernel::DEFAULT)[0].contains("only `io_max` acts on groups there"));
    }

    #[test]
    fn memory_and_journal_options_of_an_unused_page_cache_are_reported() {
        let notice_of = |comparison: Comparison, direct: bool| {
            let text = format!("[a]\nfilename=/dev/sda\nioengine=psync\ndirect={}\n", u8::from(direct));
            let workload = JobFile::parse(&text, "a.fio", &Environment::empty()).unwrap().load;
            let options = Options { comparison: &comparison, environment: &Alone };
            page_cache_notice(&options, &workload)
        };
        let both = Comparison { memory_bytes: Some(1 << 30), journal: true, ..Comparison::default() };
        let text = "`memory_bytes`, `journal`: no effect without the page cache, and all I/O of this load is direct.";
        assert_eq!(notice_of(both.clone(), true).as_deref(), Some(text));
        assert!(
            notice_of(Comparison { memory_bytes: None, ..both.clone() }, true).unwrap().starts_with("`journal`: no")
        );
        let files = vec![QueueFile { file: "read_ahead_kb".to_owned(), text: "1024".to_owned() }];
        let ahead = notice_of(Comparison { queue_files: files, ..Comparison::default() }, true).unwrap();
        assert!(ahead.contains("read_ahead_kb=1024") && ahead.contains("no effect without the page cache"), "{ahead}");
        assert_eq!((notice_of(both, false), notice_of(Comparison::default(), true)), (None, None));
    }

    #[test]
    fn the_table_says_the_same_as_the_list_of_schedulers() {
        for text in &Texts::read().schedulers {
            let (schedulers, name) = (all_schedulers(), text.name.as_str());
            let row = schedulers.find(name).expect("texts are of schedulers");
            let newest = text.newest_kernel();
            let [priorities, weights, ..] = &OPTION_GROUPS;
            assert_eq!((priorities.effect)(row, newest) == Effect::Full, text.ioprio == "class and level", "{name}");
            let ignores = matches!((priorities.effect)(row, newest), Effect::No(_));
            assert_eq!(ignores, text.ioprio == "no", "{name}");
            assert_eq!((weights.effect)(row, newest) == Effect::Full, text.weights != "no", "{name}");
        }
    }
}
