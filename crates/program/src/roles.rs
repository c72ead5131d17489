//! Roles: the processes and threads of a program have one name and may do different things.
//!
//! Used by: `infer`.
//! Tests: below.
//!
//! Used by [`infer`](crate::infer); its tests are at the end.

use std::collections::BTreeMap;

use crate::stream::{Kind, Stream};

/// A stream does mainly one operation if at least this share of its I/Os are of it.
const MAIN_SHARE: f64 = 0.8;
/// I/Os of at least this mean size are large, bytes.
const LARGE_BYTES: f64 = 65_536.0;
/// More I/Os in flight than this are those of a deep queue.
const SHALLOW_DEPTH_MAX: u32 = 8;
/// A stream that makes at least this share of its writes durable commits.
const COMMITS_SHARE: f64 = 0.05;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Operations {
    Reads,
    Writes,
    Discards,
    Mixed,
}

/// What a stream does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Role {
    operations: Operations,
    is_sequential: bool,
    is_large: bool,
    is_deep: bool,
    commits: bool,
}

impl Role {
    fn of(stream: &Stream) -> Role {
        let (reads, writes, discards) = (stream.reads, stream.writes, stream.discards);
        let with_data = (reads.0 + writes.0 + discards.0).max(1) as f64;
        let is_main = |count: u64| count as f64 >= MAIN_SHARE * with_data;
        let operations = match () {
            () if is_main(reads.0) => Operations::Reads,
            () if is_main(writes.0 + stream.flushes) => Operations::Writes,
            () if is_main(discards.0) => Operations::Discards,
            () => Operations::Mixed,
        };
        let durable = (stream.durable_writes + stream.flushes) as f64;
        Role {
            operations,
            is_sequential: 2 * stream.sequential > stream.ios,
            is_large: (reads.1 + writes.1 + discards.1) as f64 >= LARGE_BYTES * with_data,
            is_deep: stream.evidence.depth_max > SHALLOW_DEPTH_MAX,
            commits: durable > 0.0 && durable >= COMMITS_SHARE * writes.0 as f64,
        }
    }

    /// The role in words, as a part of a job's name.
    fn name(self) -> String {
        let words = [
            if self.is_deep { "deep" } else { "" },
            if self.is_large { "large" } else { "" },
            if self.commits { "committed" } else { "" },
            if self.is_sequential { "sequential" } else { "random" },
            match self.operations {
                Operations::Reads => "reads",
                Operations::Writes => "writes",
                Operations::Discards => "discards",
                Operations::Mixed => "reads-and-writes",
            },
        ];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
    }
}

/// Names the streams of tasks that have one name and several roles after what they do, such as `postgres-random-reads`, which is the same in
/// another recording of the program. Tasks that all do the same keep their name, and are one job.
pub(crate) fn name_by_role(streams: &mut [Stream]) {
    let mut by_name: BTreeMap<String, BTreeMap<Role, Vec<usize>>> = BTreeMap::new();
    for (index, stream) in streams.iter().enumerate().filter(|(_, stream)| stream.kind == Kind::Task) {
        by_name.entry(stream.name.clone()).or_default().entry(Role::of(stream)).or_default().push(index);
    }
    for (name, roles) in by_name.into_iter().filter(|(_, roles)| roles.len() > 1) {
        for (role, indexes) in roles {
            let named = format!("{name}-{}", role.name());
            indexes.into_iter().for_each(|index| streams[index].name.clone_from(&named));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stream(pid: u32, reads: u64, writes: u64, sequential: bool) -> Stream {
        let ios = reads + writes;
        Stream {
            pid: Some(pid),
            ios,
            reads: (reads, reads * 8192),
            writes: (writes, writes * 8192),
            sequential: if sequential { ios } else { 0 },
            ..Stream::of_task("db".to_owned())
        }
    }

    fn names(mut streams: Vec<Stream>) -> Vec<String> {
        name_by_role(&mut streams);
        assert!(streams.iter().all(|stream| stream.task_name == "db"));
        streams.into_iter().map(|stream| stream.name).collect()
    }

    #[test]
    fn readers_and_the_writer_of_a_log_are_two_jobs() {
        let mut log = stream(2080, 0, 500, true);
        log.flushes = 500;
        let streams = vec![stream(11, 900, 3, false), stream(12, 800, 0, false), log];
        assert_eq!(names(streams), ["db-random-reads", "db-random-reads", "db-committed-sequential-writes"]);
    }

    proptest! {
        /// Streams share a name if and only if they did before and do the same.
        #[test]
        fn the_same_role_is_the_same_job(which in prop::collection::vec(0..3_usize, 1..12)) {
            let of = |pid: u32, kind: usize| match kind {
                0 => stream(pid, 1000, 10, false),
                1 => stream(pid, 10, 1000, true),
                _ => stream(pid, 500, 500, false),
            };
            let found = names((100..).zip(&which).map(|(pid, kind)| of(pid, *kind)).collect());
            for (a, name_a) in which.iter().zip(&found) {
                for (b, name_b) in which.iter().zip(&found) {
                    prop_assert_eq!(a == b, name_a == name_b, "{:?}", found);
                }
            }
            prop_assert_eq!(which.iter().all(|kind| kind == &which[0]), found.iter().all(|name| name == "db"));
        }
    }
}
