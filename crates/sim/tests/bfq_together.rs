//! bfq lets readers continue beside a deep sequential writer, also if it takes both for one application: since Linux 5.13
//! queues that are created within 180 ms of each other in a cgroup become one permanently (BFQ-109).

use crate::support::{run_job, spec};
use hoistway_blk::ground::{Kernel, Nanos};
use hoistway_device::Preset;
use hoistway_sim::QueueSettings;

const KERNELS_WITH_BFQ: [Kernel; 6] =
    [Kernel::V4_12, Kernel::V4_19, Kernel::V5_10, Kernel::V6_3, Kernel::V6_12, Kernel::V6_18];

const APART: [&str; 2] = ["", "startdelay=1"];
const TOGETHER: [&str; 2] = ["", "start=100ms"];
const IN_GROUPS: [&str; 2] = ["cgroup=a", "cgroup=b"];

/// A small random reader from the first instant, and a writer of large blocks in sequence, 32 at once: the longest wait
/// of a read, ms.
fn longest_read_ms(kernel: Kernel, [reader, writer]: [&str; 2], tunables: &[(&str, &str)]) -> f64 {
    let text = format!(
        "[global]\nfilename=/dev/sda\ndirect=1\nioengine=libaio\ntime_based\nruntime=5\n\
         [reader]\nrw=randread\nbs=4k\n{reader}\n\
         [writer]\nrw=write\nbs=1m\niodepth=32\noffset=20%\nsize=20%\n{writer}\n"
    );
    let preset = Preset::builtin("intel-s3520-1600gb").unwrap();
    let (queue, runtime) = (QueueSettings::new(kernel, 8), Some(Nanos::from_secs(5)));
    let processes = run_job(&text, &preset, queue, runtime, &spec("bfq", tunables, 1)).processes;
    let reads = processes[0].directions.iter().filter_map(|direction| direction.lat.max());
    reads.max().unwrap_or_default() as f64 / 1e6
}

#[test]
fn a_sequential_writer_does_not_stop_readers_under_bfq_on_any_kernel() {
    for kernel in KERNELS_WITH_BFQ {
        for (how, options) in [("apart", APART), ("in groups of their own", IN_GROUPS)] {
            let longest = longest_read_ms(kernel, options, &[]);
            assert!(longest < 1000.0, "{kernel:?}, {how}: {longest} ms");
        }
    }
}

#[test]
fn since_5_13_a_writer_merged_with_readers_at_start_does_not_stop_them() {
    for kernel in KERNELS_WITH_BFQ {
        let longest = longest_read_ms(kernel, TOGETHER, &[]);
        assert!(longest < 1000.0, "{kernel:?}: {longest} ms");
    }
}
