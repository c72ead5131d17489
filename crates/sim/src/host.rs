//! Host profiles: the CPU time of an I/O, and the reaction times of processes and workers.
//!
//! Used by: `locks`, `cpu`, `simulation`, `scenario`, `page_cache`; crates `hoistway`, `experiment`, `calibrate`, `evidence`.
//! Tests: below, `crates/sim/tests/completions.rs`, `crates/sim/tests/hosts.rs`.
//!
//! A profile is a TOML file, as device presets are; the built-in ones are compiled in, and a user's own file goes through the same code.
//! The cost of a scheduler itself is in `sections_ns`; all other figures apply to every scheduler.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::profile::{Format, ProfileError, ValueKind};

/// Maximum CPUs of a host.
pub const CPUS_MAX: u16 = 1024;

const FORMAT: Format = Format {
    what: "host",
    keys: &[
        ("name", ValueKind::Text, true),
        ("description", ValueKind::Text, true),
        ("cpus", ValueKind::Count(1, CPUS_MAX as u64), false),
        ("cache_cpus", ValueKind::Count(1, CPUS_MAX as u64), false),
        ("memory_bytes", ValueKind::Bytes(*Host::MEMORY_BYTES.start(), *Host::MEMORY_BYTES.end()), false),
        ("dirty_ratio", ValueKind::Count(0, 100), false),
        ("dirty_bytes", ValueKind::Bytes(*Host::DIRTY_BYTES.start(), *Host::DIRTY_BYTES.end()), false),
        ("dirty_background_ratio", ValueKind::Count(0, 100), false),
        ("dirty_background_bytes", ValueKind::Bytes(1, *Host::DIRTY_BYTES.end()), false),
        ("journal", ValueKind::Flag, false),
        ("submitter_dispatches", ValueKind::Flag, false),
        ("keeps_cpus", ValueKind::Flag, false),
        ("release_ns", ValueKind::Time, false),
        ("start_ns", ValueKind::Time, false),
        ("submit_ns", ValueKind::Time, true),
        ("page_ns", ValueKind::Time, false),
        ("resume_ns", ValueKind::Time, false),
        ("complete_ns", ValueKind::Time, true),
        ("waking_ns", ValueKind::Time, false),
        ("dispatch_ns", ValueKind::Time, false),
        ("redirect_ns", ValueKind::Time, false),
        ("wake_ns", ValueKind::Span, true),
        ("switch_ns", ValueKind::Time, false),
        ("sections_ns", ValueKind::Times, false),
        ("beside_ns", ValueKind::Time, false),
        ("handover_ns", ValueKind::Time, false),
        ("far_handover_ns", ValueKind::Time, false),
        ("waiter_ns", ValueKind::Time, false),
        ("list_ns", ValueKind::Time, false),
        ("list_handover_ns", ValueKind::Time, false),
        ("worker_ns", ValueKind::Span, true),
        ("idle_ns", ValueKind::IdleStates(IDLE_STATES_MAX), false),
        ("sources", ValueKind::Sources, false),
    ],
    builtin: &[
        ("desktop", include_str!("../hosts/desktop.toml")),
        ("four-nodes", include_str!("../hosts/four-nodes.toml")),
        ("instant", include_str!("../hosts/instant.toml")),
        ("ryzen", include_str!("../hosts/ryzen.toml")),
        ("server", include_str!("../hosts/server.toml")),
        ("vm", include_str!("../hosts/vm.toml")),
    ],
};

/// Maximum number of entries of `idle_ns`.
pub(crate) const IDLE_STATES_MAX: usize = 4;

/// CPU costs and reaction times of a host. A value `[least, most]` is drawn uniformly for each event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name on the command line.
    pub name: String,
    /// Description for users.
    pub description: String,
    /// Number of CPUs unless an option sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u16>,
    /// This many neighbouring CPUs share a last-level cache; by default all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_cpus: Option<u16>,
    /// Memory in bytes, all available to the page cache.
    #[serde(default = "memory_bytes")]
    pub memory_bytes: u64,
    /// `vm.dirty_ratio`, percent: writers wait while more of the memory is dirty or under write-back. 20 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_ratio: Option<u64>,
    /// `vm.dirty_bytes`: the same limit in bytes, replaces `dirty_ratio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<u64>,
    /// `vm.dirty_background_ratio`, percent: flushers write back while more of the memory is dirty. 10 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_background_ratio: Option<u64>,
    /// `vm.dirty_background_bytes`: the same threshold in bytes, replaces `dirty_background_ratio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_background_bytes: Option<u64>,
    /// Whether file systems have an ordered journal that fsync commits. Applies to buffered I/O.
    #[serde(default, skip_serializing_if = "is_false")]
    pub journal: bool,
    /// Whether submitters run hardware queues that the kernel would leave to workers, as some patched kernels do for measurements.
    #[serde(default, skip_serializing_if = "is_false")]
    pub submitter_dispatches: bool,
    /// Whether processes stay on their first CPU as if bound to it. Otherwise a process that is woken while its CPU is busy migrates to an
    /// idle one.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keeps_cpus: bool,
    /// CPU time until the first I/O of a process without `startdelay`, which fio has prepared before, ns. Such processes of one CPU start
    /// this far apart, in the order of the job file. By default the time of 22 submissions, as on the guest whose closed loops were
    /// recorded (0.27 ms).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_ns: Option<u64>,
    /// The same for a process with `startdelay`, which fio creates after the delay, ns. By default the time of 250 submissions (2 to 4 ms
    /// there).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
    /// CPU time to submit one I/O, ns.
    pub submit_ns: u64,
    /// Additional submission time for each 4 KiB page beyond the first that a direct I/O pins, ns. By default a twentieth of `submit_ns`,
    /// as on the guest whose closed loops were recorded (0.6 of 12.2 us).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_ns: Option<u64>,
    /// CPU time from when a process that slept for a tag runs again until it has taken the tag, ns. By default a sixth of `submit_ns`, as
    /// on the guest whose closed loops were recorded (2 of 12.2 us).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resume_ns: Option<u64>,
    /// CPU time of one completion, ns.
    pub complete_ns: u64,
    /// Additional interrupt time for each process beyond the first that it wakes from sleeping for a tag, ns. By default three quarters of
    /// `complete_ns`, as on the guest whose closed loops were recorded (3 of 4 us).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waking_ns: Option<u64>,
    /// CPU time from the start of a worker until it has issued a command, ns. By default `complete_ns`, assuming that issuing a command
    /// costs as much as completing it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_ns: Option<u64>,
    /// CPU time of the interrupted CPU for a completion that another CPU handles, ns. That CPU pays the full `complete_ns`.
    #[serde(default)]
    pub redirect_ns: u64,
    /// Time from the end of the completion interrupt until the woken process runs on a free CPU, ns.
    pub wake_ns: [u64; 2],
    /// CPU time to switch to a woken process, ns. On a free CPU it is part of `wake_ns`; on a busy one it is added to the process's own
    /// time, and drawn around this mean with the relative spread of `wake_ns`. By default the mean of `wake_ns`: both are similar where
    /// both are known (`server`: 6.1 and 5.7 us).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_ns: Option<u64>,
    /// Duration of a section under a scheduler's lock, by scheduler name, ns. A scheduler that is not listed costs nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sections_ns: BTreeMap<String, u64>,
    /// Cost of a section for the caller outside the lock, while others may hold it, ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub beside_ns: u64,
    /// Additional duration of a section if another CPU held the lock last, ns.
    #[serde(default)]
    pub handover_ns: u64,
    /// The same if that CPU does not share a cache with this one (`cache_cpus`), ns. By default `handover_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub far_handover_ns: Option<u64>,
    /// Additional duration of a section for each CPU that already waits for the lock, ns.
    #[serde(default)]
    pub waiter_ns: u64,
    /// Duration of a section under the lock of a delegation list, where requests are left for the holder of a scheduler's lock, ns. By
    /// default two thirds of the section of mq-deadline, or else of `others`: `calibrate host` measured 23 of 34 ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_ns: Option<u64>,
    /// Additional duration of such a section if another CPU held the list's lock last, ns. By default 100 ns, or `handover_ns` if that is
    /// less: only one cache line is transferred (50 to 100 ns, as the kernel's list says), whereas a scheduler's lock also has waiters and
    /// protects the state of the whole scheduler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_handover_ns: Option<u64>,
    /// Time from scheduling a worker until it runs, ns.
    pub worker_ns: [u64; 2],
    /// Idle states of a CPU, the shallowest first: `[target residency, longest exit latency]`, ns. A wake-up takes a uniformly distributed
    /// part of the exit latency, drawn from the seed.
    #[serde(default)]
    pub idle_ns: Vec<[u64; 2]>,
    /// Sources of the figures, by key.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Default memory of a host: 4 GiB.
fn memory_bytes() -> u64 {
    4 << 30
}

impl Host {
    /// The default profile.
    pub const DEFAULT: &str = "server";
    /// Valid memory sizes, bytes: 16 MiB to 16 TiB.
    pub const MEMORY_BYTES: std::ops::RangeInclusive<u64> = 16 << 20..=16 << 40;

    /// Valid values of `vm.dirty_bytes`: at least two pages, as in Linux.
    pub const DIRTY_BYTES: std::ops::RangeInclusive<u64> = 8192..=16 << 40;

    /// The thresholds for this many pages of memory: dirty pages at which flushers start, and dirty pages or pages under write-back at
    /// which writers wait. The first is at most half of the second: otherwise writers could wait without anything being written back.
    pub(crate) fn dirty_pages(&self, memory_pages: u64, page_bytes: u64) -> (u64, u64) {
        let pages = |bytes: Option<u64>, percent: u64| {
            bytes.map_or(memory_pages * percent / 100, |bytes| (bytes / page_bytes).min(memory_pages))
        };
        let limit = pages(self.dirty_bytes, self.dirty_ratio.unwrap_or(20));
        let background = pages(self.dirty_background_bytes, self.dirty_background_ratio.unwrap_or(10));
        (if background < limit { background } else { limit / 2 }, limit)
    }

    /// Sets a sysctl by its name, with or without `vm.`, as a write to its file does: setting bytes replaces the ratio, and the reverse.
    ///
    /// # Errors
    /// If the name or the text is invalid: what was expected.
    pub fn set_sysctl(&mut self, name: &str, text: &str) -> Result<(), String> {
        let number = |least: u64, most: u64, what: &str| {
            let number = text.trim().parse().ok().filter(|number| (least..=most).contains(number));
            number.map(Some).ok_or_else(|| format!("expected {what} from {least} to {most}"))
        };
        let (least, most) = (*Host::DIRTY_BYTES.start(), *Host::DIRTY_BYTES.end());
        match name.strip_prefix("vm.").unwrap_or(name) {
            "dirty_ratio" => (self.dirty_ratio, self.dirty_bytes) = (number(0, 100, "percent")?, None),
            "dirty_bytes" => (self.dirty_bytes, self.dirty_ratio) = (number(least, most, "bytes")?, None),
            "dirty_background_ratio" => {
                (self.dirty_background_ratio, self.dirty_background_bytes) = (number(0, 100, "percent")?, None);
            }
            "dirty_background_bytes" => {
                (self.dirty_background_bytes, self.dirty_background_ratio) = (number(1, most, "bytes")?, None);
            }
            _ => return Err(format!("no such setting (expected one of {})", Host::SYSCTLS.join(", "))),
        }
        Ok(())
    }

    /// The sysctls that [`set_sysctl`](Self::set_sysctl) accepts.
    pub const SYSCTLS: [&str; 4] =
        ["vm.dirty_ratio", "vm.dirty_bytes", "vm.dirty_background_ratio", "vm.dirty_background_bytes"];

    /// CPU time until the first I/O of a process without `startdelay`, ns.
    #[must_use]
    pub fn release_ns(&self) -> u64 {
        self.release_ns.unwrap_or(22 * self.submit_ns)
    }

    /// CPU time of a process with `startdelay` from the end of the delay until its first I/O, ns.
    #[must_use]
    pub fn start_ns(&self) -> u64 {
        self.start_ns.unwrap_or(250 * self.submit_ns)
    }

    /// Additional submission time for each page beyond the first, ns.
    #[must_use]
    pub fn page_ns(&self) -> u64 {
        self.page_ns.unwrap_or(self.submit_ns / 20)
    }

    /// CPU time from when a process that slept for a tag runs again until it has taken the tag, ns.
    #[must_use]
    pub fn resume_ns(&self) -> u64 {
        self.resume_ns.unwrap_or(self.submit_ns / 6)
    }

    /// Additional interrupt time for each woken process beyond the first, ns.
    #[must_use]
    pub fn waking_ns(&self) -> u64 {
        self.waking_ns.unwrap_or(self.complete_ns * 3 / 4)
    }

    /// CPU time to switch to a woken process, ns.
    #[must_use]
    pub fn switch_ns(&self) -> u64 {
        self.switch_ns.unwrap_or(u64::midpoint(self.wake_ns[0], self.wake_ns[1]))
    }

    /// CPU time from the start of a worker until it has issued a command, ns.
    #[must_use]
    pub fn dispatch_ns(&self) -> u64 {
        self.dispatch_ns.unwrap_or(self.complete_ns)
    }

    /// Additional duration of a section if a CPU with another cache held the lock last, ns.
    #[must_use]
    pub fn far_handover_ns(&self) -> u64 {
        self.far_handover_ns.unwrap_or(self.handover_ns)
    }

    /// Duration of a section under the lock of a delegation list, ns.
    #[must_use]
    pub fn list_ns(&self) -> u64 {
        let sections = &self.sections_ns;
        let section = sections.get("mq-deadline").or_else(|| sections.get("others")).copied().unwrap_or(0);
        self.list_ns.unwrap_or(section * 2 / 3)
    }

    /// Additional duration if another CPU held the list's lock last, ns.
    #[must_use]
    pub fn list_handover_ns(&self) -> u64 {
        self.list_handover_ns.unwrap_or(100).min(self.handover_ns)
    }

    /// Parses a profile. `file_name` is used only in errors.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Host, ProfileError> {
        FORMAT.read(text, file_name)
    }

    /// The built-in profile of this name.
    ///
    /// # Errors
    /// [`ProfileError::NotBuiltIn`] if there is none; the error lists those that exist.
    pub fn builtin(name: &str) -> Result<Host, ProfileError> {
        FORMAT.builtin(name)
    }

    /// The TOML text of the built-in profile of this name, as a template.
    ///
    /// # Errors
    /// If there is none; the error lists those that exist.
    pub fn builtin_toml(name: &str) -> Result<&'static str, ProfileError> {
        FORMAT.builtin_text(name)
    }

    /// The host of a recording. Its events contain what its machine needed, so that only the order of simultaneous events depends on
    /// it: a machine like `server` that is always awake, with all times in proportion if its tasks submitted sooner after a completion
    /// (`reaction_ns`) than that one's can.
    #[must_use]
    pub fn of_recording(reaction_ns: Option<u64>, cpus: Option<u16>) -> Host {
        let server = Host::builtin(Host::DEFAULT).expect("it is built in");
        let slowest_ns = server.complete_ns + server.wake_ns[1] + server.submit_ns;
        let scaled = |ns: u64| reaction_ns.map_or(ns, |reaction_ns| ns * reaction_ns.min(slowest_ns) / slowest_ns);
        Host {
            name: "recorded".to_owned(),
            description:
                "the machine of the recording: times of `server`, at most those that the recording shows; always awake"
                    .to_owned(),
            cpus: cpus.map(|cpus| cpus.clamp(1, CPUS_MAX)),
            submit_ns: scaled(server.submit_ns),
            complete_ns: scaled(server.complete_ns),
            redirect_ns: scaled(server.redirect_ns),
            wake_ns: server.wake_ns.map(scaled),
            switch_ns: server.switch_ns.map(scaled),
            sections_ns: server.sections_ns.iter().map(|(name, ns)| (name.clone(), scaled(*ns))).collect(),
            beside_ns: scaled(server.beside_ns),
            handover_ns: scaled(server.handover_ns),
            waiter_ns: scaled(server.waiter_ns),
            worker_ns: server.worker_ns.map(scaled),
            idle_ns: Vec::new(),
            sources: BTreeMap::new(),
            ..server
        }
    }

    /// The names of the built-in profiles.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        FORMAT.builtin.iter().map(|(name, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Host::from_toml(text, "my.toml").unwrap_err().to_string()
    }

    const RIGHT: &str = "name = \"mine\"\ndescription = \"a host\"\nsubmit_ns = 1\ncomplete_ns = 2\n\
                         wake_ns = [3, 4]\nworker_ns = [5, 5]\n";

    /// What schedulers cost beside the CPU time of an I/O: without it they are all alike on a fast drive.
    const LOCKS_AND_SWITCHES: [&str; 5] = ["switch_ns", "sections_ns", "beside_ns", "handover_ns", "waiter_ns"];

    #[test]
    fn every_profile_but_instant_has_the_costs_of_schedulers_locks_and_switches() {
        for host in Host::builtin_names().filter(|&name| name != "instant").map(|name| Host::builtin(name).unwrap()) {
            let costs = [host.switch_ns(), host.beside_ns, host.handover_ns, host.far_handover_ns(), host.waiter_ns];
            assert!(costs.iter().all(|&cost| cost > 0), "{}: {costs:?}", host.name);
            for scheduler in ["mq-deadline", "kyber", "bfq", "others"] {
                assert!(host.sections_ns[scheduler] > 0, "{}: {scheduler}", host.name);
            }
        }
    }

    #[test]
    fn the_built_in_profiles_can_be_read_and_give_a_source_for_every_number() {
        for name in Host::builtin_names() {
            let host = Host::builtin(name).unwrap();
            assert_eq!(host.name, name);
            for key in LOCKS_AND_SWITCHES {
                assert_eq!(host.sources.contains_key(key), name != "instant", "{name}: {key}");
            }
            for key in ["cache_cpus", "submit_ns", "complete_ns", "redirect_ns", "wake_ns", "worker_ns", "idle_ns"] {
                let is_needed = match key {
                    "idle_ns" => !host.idle_ns.is_empty(),
                    "cache_cpus" => host.cache_cpus.is_some(),
                    _ => true,
                };
                assert_eq!(host.sources.contains_key(key), is_needed, "{name}: {key}");
            }
        }
    }

    #[test]
    fn a_profile_comes_back_as_it_was_written() {
        let host = Host::from_toml(RIGHT, "my.toml").unwrap();
        let text = toml::to_string(&host).unwrap();
        assert_eq!(Host::from_toml(&text, "again").unwrap(), host);
        assert!(!text.contains("false") && !text.contains("beside_ns"), "what it does not have is not said: {text}");
    }

    #[test]
    fn an_error_names_its_line_and_what_was_expected() {
        let cases = [
            (RIGHT.replace("submit_ns = 1", "submit_ns = -1"), "my.toml:3: `submit_ns` is -1; expected a whole number"),
            (RIGHT.replace("[3, 4]", "[4, 3]"), "my.toml:5: `wake_ns` is [4, 3]; expected two whole numbers"),
            (RIGHT.replace("[3, 4]", "3"), "my.toml:5: `wake_ns` is 3; expected two whole numbers"),
            (RIGHT.replace("[5, 5]", "[0, 2000000000]"), "my.toml:6: `worker_ns` is [0, 2000000000]; expected"),
            (RIGHT.replace("complete_ns", "compleat_ns"), "my.toml:4: `compleat_ns` is not a key of a host profile"),
            (RIGHT.replace("wake_ns = [3, 4]\n", ""), "my.toml:1: `wake_ns` is missing; expected two whole numbers"),
            (
                format!("{RIGHT}idle_ns = [[2, 1], [1, 2]]\n"),
                "my.toml:7: `idle_ns` is a list; expected at most 4 pairs",
            ),
            (format!("{RIGHT}cpus = 0\n"), "my.toml:7: `cpus` is 0; expected a whole number from 1 to 1024"),
            (
                format!("{RIGHT}memory_bytes = 4096\n"),
                "my.toml:7: `memory_bytes` is 4096; expected a whole number of bytes",
            ),
            (format!("{RIGHT}[sources]\nwoke_ns = \"?\"\n"), "my.toml:8: `sources.woke_ns` is not the key of a figure"),
            (format!("{RIGHT}["), "my.toml:7:"),
        ];
        for (text, expected) in cases {
            let told = refused(&text);
            assert!(told.starts_with(expected), "{told}\nexpected: {expected}");
            assert_eq!(told.lines().count(), 1, "{told}");
        }
    }

    #[test]
    fn times_that_a_profile_does_not_say_follow_from_those_that_it_does() {
        let of = |more: &str| Host::from_toml(&format!("{RIGHT}{more}"), "my.toml").unwrap();
        let told = |host: &Host| [host.switch_ns(), host.dispatch_ns(), host.list_ns(), host.list_handover_ns()];
        // The mean of `wake_ns`, `complete_ns`, and no sections.
        assert_eq!(told(&of("")), [3, 2, 0, 0]);
        // Two thirds of mq-deadline's section, or of `others`; a list's hand-over takes no longer than a lock's.
        assert_eq!(told(&of("handover_ns = 50\n[sections_ns]\nothers = 300\n")), [3, 2, 200, 50]);
        let both = "handover_ns = 500\n[sections_ns]\nmq-deadline = 600\nothers = 300\n";
        assert_eq!(told(&of(both)), [3, 2, 400, 100]);
        let said = "switch_ns = 7\ndispatch_ns = 8\nlist_ns = 9\nlist_handover_ns = 10\nhandover_ns = 500\n";
        assert_eq!(told(&of(said)), [7, 8, 9, 10]);
    }

    #[test]
    fn bytes_of_dirty_memory_replace_ratios_and_flushers_begin_before_writers_wait() {
        let mut host = Host::from_toml(RIGHT, "my.toml").unwrap();
        assert_eq!(host.dirty_pages(1000, 4096), (100, 200));
        for (name, text, pages) in [
            ("vm.dirty_bytes", "409600", (50, 100)),
            ("dirty_background_bytes", "40960", (10, 100)),
            ("vm.dirty_ratio", "40", (10, 400)),
            ("vm.dirty_background_ratio", "40", (200, 400)),
            ("vm.dirty_bytes", "9999999999", (400, 1000)),
        ] {
            host.set_sysctl(name, text).unwrap();
            assert_eq!(host.dirty_pages(1000, 4096), pages, "{name}={text}");
        }
        for (name, text, expected) in [
            ("vm.dirty_bytes", "4096", "expected bytes from 8192 to"),
            ("vm.dirty_ratio", "101", "expected percent from 0 to 100"),
            ("vm.dirty_ratio", "20%", "expected percent"),
            ("vm.swappiness", "1", "no such setting (expected one of vm.dirty_ratio, vm.dirty_bytes"),
        ] {
            let refused = host.set_sysctl(name, text).unwrap_err();
            assert!(refused.contains(expected), "{name}={text}: {refused}");
        }
        let text = toml::to_string(&host).unwrap();
        assert_eq!(Host::from_toml(&text, "again").unwrap(), host);
    }

    #[test]
    fn a_time_may_be_a_second_and_no_longer() {
        let cases: [fn(u64) -> String; 5] = [
            |ns| RIGHT.replace("submit_ns = 1", &format!("submit_ns = {ns}")),
            |ns| RIGHT.replace("[3, 4]", &format!("[3, {ns}]")),
            |ns| format!("{RIGHT}idle_ns = [[1, 2], [5, {ns}]]\n"),
            |ns| format!("{RIGHT}idle_ns = [[{ns}, 2]]\n"),
            |ns| format!("{RIGHT}[sections_ns]\nbfq = {ns}\nothers = 1\n"),
        ];
        for text in cases {
            assert!(Host::from_toml(&text(1_000_000_000), "my.toml").is_ok());
            let told = refused(&text(1_000_000_001));
            assert!(told.contains("1000000000"), "{told}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let told = Host::builtin("sever").unwrap_err().to_string();
        assert!(told.contains("`sever`") && told.contains("desktop, four-nodes, instant, ryzen, server, vm"), "{told}");
    }
}
