//! Compares our own job files with fio itself, especially features that are easily misread: inheritance, includes,
//! variables, clones, phases, several files. `fio_trace/adapt.rs` changes them for both sides.

use crate::fio_run;
use crate::fio_trace;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use fio_trace::adapt::{adapted, adapted_lines};
use fio_trace::{Io, Kind, compare, trace};
use hoistway_fio::{Environment, JobFile};

/// A job file: its name, its text, and the size of its devices in MiB. With 0 it contains all sizes itself; the others
/// run on real files, because fio's null engine does not know the size of a device.
type OurFile = (&'static str, &'static str, u64);

macro_rules! files {
    ($($path:literal, $device_mib:literal;)*) => {
        &[$(($path, include_str!($path), $device_mib)),*]
    };
}

const OURS: &[OurFile] = files! {
    "data/axboe-contention.fio", 16;
    "data/groups.fio", 0;
    "data/habr-hdd.fio", 16;
    "data/habr-ssd.fio", 16;
    "data/icpe24-interference-11a.fio", 16;
    "data/icpe24-lapp-inter-1core.fio", 16;
    "data/icpe24-precondition.fio", 4;
    "data/options.fio", 256;
    "data/suse-cfq-dd.fio", 0;
    "../../experiment/scenarios/backup-beside-oltp.fio", 64;
    "../../experiment/scenarios/bonnie.fio", 64;
    "../../experiment/scenarios/boot.fio", 256;
    "../../experiment/scenarios/bursts.fio", 64;
    "../../experiment/scenarios/checkpoint-restore.fio", 512;
    "../../experiment/scenarios/collection-deadline.fio", 64;
    "../../experiment/scenarios/column-store.fio", 65536;
    "../../experiment/scenarios/compaction.fio", 256;
    "../../experiment/scenarios/container-storm.fio", 256;
    "../../experiment/scenarios/database.fio", 64;
    "../../experiment/scenarios/deep-neighbour.fio", 64;
    "../../experiment/scenarios/desktop-freeze.fio", 4096;
    "../../experiment/scenarios/etcd-beside-pods.fio", 4096;
    "../../experiment/scenarios/fua-writer.fio", 64;
    "../../experiment/scenarios/guests.fio", 64;
    "../../experiment/scenarios/kv-cache.fio", 256;
    "../../experiment/scenarios/l-and-t-apps.fio", 64;
    "../../experiment/scenarios/priority-shares.fio", 64;
    "../../experiment/scenarios/real-time-read.fio", 64;
    "../../experiment/scenarios/surveillance.fio", 1024;
    "../../experiment/scenarios/training-checkpoint.fio", 256;
    "../../experiment/scenarios/training-epochs.fio", 256;
    "../../experiment/scenarios/vector-search.fio", 256;
    "../../experiment/scenarios/video-playback.fio", 64;
    "../../experiment/scenarios/vm-host.fio", 64;
};

/// Job files whose text determines the jobs in ways that are easily misread.
const GRAMMAR: &[OurFile] = &[
    (
        "a section takes what the [global]s before it say, and no other",
        "[global]\nfilename=x\nsize=64k\nbs=8k\n[a]\nrw=read\n[global]\nbs=16k\nrw=write\n[b]\n[c]\nbs=4k\n\
         [global]\nsize=32k\n[d]\nrw=trim\n[a]\nnumber_ios=3\n",
        0,
    ),
    (
        "a name in [global] names no job",
        "[global]\nname=all\nfilename=x\nsize=64k\n[a]\nnumjobs=2\n[b]\nname=own\nnumjobs=3\n",
        0,
    ),
    (
        "includes insert options, before and after the section's own",
        "[global]\ninclude common.inc\n[a]\nrw=write\n[b]\nrw=read\ninclude more.inc\nbs=16k\n[c]\nbs=4k\ninclude more.inc\n",
        0,
    ),
    (
        "variables and words stand for values, also in sums",
        "[global]\nfilename=${FILE}.${FILE}\nrw=${RW}\nbs=$pagesize\n[a]\nsize=64*$pagesize\nnumjobs=$ncpus\n\
         [b]\nsize=${N}${N}k\nbs=1k\n[c]\nsize=$mb_memory*1024\nnumber_ios=$ncpus+7\n",
        0,
    ),
    (
        "phases and groups",
        "[global]\nfilename=x\nsize=64k\n[a]\nnumjobs=3\n[b]\nstonewall\nrw=write\n[c]\nrw=randread\n[d]\nnew_group\n\
         [e]\nstonewall\nnumjobs=2\nrw=randwrite\n[f]\nwait_for=e\n[g]\nwait_for_previous\nnew_group\n",
        0,
    ),
    (
        "stonewall in [global] is for each job",
        "[global]\nfilename=x\nsize=64k\nstonewall\n[a]\nnumjobs=2\n[b]\n[c]\nrw=write\n",
        0,
    ),
    (
        "clones count down from the last",
        "[global]\nfilename=x\nsize=64k\nnumjobs=5\nio_size=32k\n[a]\noffset_increment=64k\n\
         [b]\noffset=16k\noffset_increment=96k\nrw=randwrite\n",
        0,
    ),
    (
        "places in percent are rounded up to whole blocks",
        "[global]\nfilename=x\nnumjobs=5\nio_size=32k\n[a]\nsize=10%\noffset_increment=7%\n[b]\noffset=3%\nbs=16k,2k\nsize=32k\n\
         [c]\noffset=4608\noffset_increment=7%\nrw=write\n[d]\noffset=70%\nrw=randread\nbsrange=1k-4k\n",
        1,
    ),
    (
        "clones have files of their own, in their directories",
        "[global]\nsize=64k\nnrfiles=2\ndirectory=d1:d2\n[a]\nnumjobs=3\n[b]\nrw=randwrite\nnumjobs=2\nsize=128k\n",
        0,
    ),
    (
        "several files take turns",
        "[global]\nfilename=x:y:z\nsize=192k\n[rr]\nrw=read\n[rr3]\nrw=write\nfile_service_type=roundrobin:3\nfsync=4\n\
         [seq]\nrw=read\nfile_service_type=sequential\n[random]\nrw=read\nfile_service_type=random:2\nsize=3m\n\
         [map]\nrw=randread\n[open]\nrw=randwrite\nopenfiles=2\n[skew]\nrw=randread\nfile_service_type=normal\nnorandommap\n\
         size=6m\nio_size=24m\n",
        0,
    ),
    (
        "mixes and sizes",
        "[global]\nfilename=x\nsize=16m\n[a]\nrw=randrw\nrwmixread=70\n[b]\nrw=rw\nrwmixwrite=20\nbs=4k,16k\n\
         [c]\nrw=randrw\nnorandommap\nbssplit=4k/50:16k/50,8k/90:64k/\nfsync=5\n[d]\nrw=write\nbsrange=4k-16k\nfdatasync=3\n\
         [e]\nrw=randtrimwrite\n[f]\nrw=randread:4\nnorandommap\n[g]\nrw=randread\npercentage_random=40\nnorandommap\n\
         [h]\nrw=randread\nnorandommap\nblockalign=16k\n[i]\nrw=randread\nrandom_distribution=zoned:60/10:30/20:10/70\n",
        0,
    ),
    (
        "loops, zones and repeated sizes",
        "[global]\nfilename=x\nsize=256k\n[a]\nrw=randread\nloops=3\n[b]\nrw=write\nio_size=600k\n\
         [c]\nrw=read\nzonemode=strided\nzonesize=16k\nzoneskip=16k\nio_size=300k\n[d]\nrw=read:8k\nloops=2\n[e]\nrw=write:-8k\n\
         [f]\nrw=randwrite\nrandom_generator=lfsr\nloops=2\n[g]\nrw=write\nnumber_ios=5\nloops=2\n[h]\nrw=write\nfill_device=1\n",
        0,
    ),
];

/// A number of the host, as fio determines it.
fn of_host(name: &str) -> u64 {
    let output = Command::new("getconf").arg(name).output().expect("getconf");
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or_else(|_| panic!("{name} from getconf"))
}

fn compared(name: &str, text: &str, device_mib: u64) -> Result<(), String> {
    let variables = [
        ("DEV", "device"),
        ("DIR", "d1"),
        ("FILE", "f"),
        ("N", "3"),
        ("NBG", "3"),
        ("NPROC", "2"),
        ("RW", "write"),
        ("SCHED", "none"),
    ];
    let includes = [
        ("common.inc", "filename=x\nsize=1m\nbs=8k\n"),
        ("more.inc", "bs=32k\nrw=randread\ninclude last.inc\n"),
        ("last.inc", "size=1m\n"),
    ];
    let includes = includes.map(|(name, text)| (name, adapted_lines(text, 1).join("\n") + "\n"));
    let directory = fio_run::directory(name);
    for own in ["d1", "d2"] {
        fs::create_dir_all(directory.join(own)).expect("a directory");
    }
    for (name, text) in &includes {
        fs::write(directory.join(name), text).expect("a file to include");
    }
    if device_mib > 0 {
        let names = text.lines().filter_map(|line| line.strip_prefix("filename="));
        for name in names.map(|name| name.replace("${DEV}", "device")) {
            File::create(directory.join(name)).and_then(|file| file.set_len(device_mib << 20)).expect("a file");
        }
    }
    let engine = ("ENGINE", if device_mib > 0 { "psync" } else { "null" });
    let fio = trace(&directory, text, &[&variables[..], &[engine]].concat());
    fs::remove_dir_all(&directory).expect("the directory is there");
    let variable = |name: &str| {
        let known = variables.iter().chain(&[("ENGINE", "libaio")]).find(|variable| variable.0 == name);
        known.map(|variable| variable.1.to_owned())
    };
    let include = |path: &Path| {
        let known = includes.iter().find(|(name, _)| Path::new(name) == path);
        known.map(|(_, text)| text.clone()).ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))
    };
    let environment = Environment {
        variable: &variable,
        include: &include,
        cpus: of_host("_NPROCESSORS_ONLN") as u32,
        page_bytes: of_host("PAGESIZE"),
        memory_mib: (of_host("_PHYS_PAGES") * of_host("PAGESIZE")) >> 20,
        ..Environment::empty()
    };
    let job_file = JobFile::parse(text, "job.fio", &environment).map_err(|error| error.to_string())?;
    compare(&job_file, if device_mib > 0 { device_mib << 20 } else { 1 << 40 }, &fio)
}

/// Fails with the first difference of every file that has one.
fn assert_same_ios_as_fio(set: &str, files: &[OurFile]) {
    if !fio_run::is_installed() {
        return;
    }
    let mut differences = Vec::new();
    for (number, (name, text, device_mib)) in files.iter().enumerate() {
        // On a busy machine, one of fio's many processes occasionally issues a different I/O, so a difference must be
        // repeatable.
        let compare = |_| compared(&format!("{set}-{number}"), &adapted(text, 1, ""), *device_mib);
        let results: Vec<_> = (0..3).map_while(|attempt| compare(attempt).err()).collect();
        if let [.., difference] = &results[..]
            && results.len() == 3
        {
            differences.push(format!("{name}: {difference}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn processes_of_our_job_files_issue_the_same_ios_as_in_fio() {
    assert_same_ios_as_fio("ours", OURS);
}

#[test]
fn sections_includes_variables_clones_phases_and_files_work_as_in_fio() {
    assert_same_ios_as_fio("grammar", GRAMMAR);
}

#[test]
fn the_trace_of_fio_matches_its_log() {
    if !fio_run::is_installed() {
        return;
    }
    for (i, options) in [
        "rw=randrw\nfilename=x:y\nfsync=3",
        "rw=write\nbsrange=1k-8k\nfilename=x\nfdatasync=2",
        "rw=randtrimwrite\nfilename=x",
        "rw=randread\nfilename=x\nloops=2",
    ]
    .into_iter()
    .enumerate()
    {
        let directory = fio_run::directory(&format!("trace-{i}"));
        let text = format!("[a]\nioengine=${{ENGINE}}\nsize=256k\nwrite_iolog=log\n{options}\n");
        let traced = trace(&directory, &text, &[("ENGINE", "null")]).remove(0).ios;
        let log = fs::read_to_string(directory.join("log")).expect("an I/O log");
        fs::remove_dir_all(&directory).expect("the directory is there");
        let logged: Vec<Io> = log.lines().filter_map(logged).collect();
        assert!(logged.len() > 20, "{log}");
        assert_eq!(traced, logged, "{options}");
    }
}

/// The I/O of a line `TIME FILE ACTION OFFSET LENGTH`.
fn logged(line: &str) -> Option<Io> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, file, action, offset, length] = fields[..] else { return None };
    let file = file.to_owned();
    let kind = match action {
        "read" => Kind::Read,
        "write" => Kind::Write,
        "trim" => Kind::Trim,
        "sync" | "datasync" => return Some(Io { kind: Kind::Sync, file, offset_bytes: 0, bytes: 0 }),
        _ => return None,
    };
    Some(Io { kind, file, offset_bytes: offset.parse().ok()?, bytes: length.parse().ok()? })
}
