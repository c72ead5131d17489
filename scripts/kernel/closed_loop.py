"""Runs real fio in a guest of QEMU in virtual time, over the kernel's null block device, whose commands take an exactly known time."""

import re

from . import guest, recorder
from .failure import Failure

# Name, default, meaning; also the options of scripts/closed-loop.
OPTIONS = {
    "scheduler": ("none", "none, mq-deadline, kyber or bfq"),
    "cpus": ("1", "CPUs of the guest, which run in turns"),
    "drives": ("1", "drives of the same kind: /dev/nullb0, /dev/nullb1, ..."),
    "hw_queues": ("1", "hardware queues of each drive"),
    "depth": ("64", "commands of each hardware queue"),
    "completion_us": ("10", "time of a command, us"),
    "cache_mb": ("0", "size of a volatile write cache; with one, flushes reach the device"),
    "nr_requests": ("", "not with none; empty: the default of the kernel"),
    "groups": ("", "cgroups that the jobs name, with their io.weight, parents before children: name:weight,name/child:weight"),
    "io_cost_qos": ("", "a write to io.cost.qos of the first drive, such as enable=1 min=100 max=100; the log then gets its io.stat, twice a second"),
    "io_cost_model": ("", "a write to io.cost.model of the first drive"),
    "io_latency": ("", "targets of cgroups on the first drive, us: name:target,name:target; the log then gets their io.stat, too"),
    "io_stat_s": ("0.5", "time between two looks at io.stat"),
    "tunables": ("", "tunables of the scheduler: name:value,name:value"),
    # fio spins the end of each pause for as long as its trial sleeps took, and beside the rest of the boot these take milliseconds.
    "wait_s": ("3", "wait before fio starts; gives other runs of the same load"),
    "trace": ("", "events to record, separated by commas: sched/sched_switch,block/block_getrq; blk: the first drive's block trace"),
    "files": ("0", "1: ext4 on the first drive, mounted on /mnt; the files of the jobs are laid out before the run"),
    "trace_clock": ("local", "clock of the trace"),
    "trace_from_s": ("1", "start of the trace, after the start of the run"),
    "trace_for_s": ("1", "length of the trace"),
}
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/tools
. /options
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev; mount -t tracefs t /sys/kernel/tracing
stty -F /dev/ttyS1 raw 115200
mkdir /out
finish() { tar -C /out -cf - . | gzip -1 >/tmp/out.tar.gz; cat /tmp/out.tar.gz >/dev/ttyS1; reboot -f; }
trap finish EXIT
exec >/out/log 2>&1
for module in $(cat /modules/order); do
    [ $module = null_blk ] || { insmod /modules/$module.ko; continue; }
    insmod /modules/null_blk.ko queue_mode=2 irqmode=2 gb=1 bs=512 nr_devices=$drives submit_queues=$hw_queues hw_queue_depth=$depth \\
        completion_nsec=${completion_us}000 $([ $cache_mb$files = 00 ] || echo memory_backed=1) $([ $cache_mb = 0 ] || echo cache_size=$cache_mb)
done
if [ $files = 1 ]; then
    mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 /dev/nullb0 && mount -t ext4 /dev/nullb0 /mnt || echo "BAD no file system"
    fio --create_only=1 --output=/dev/null /job.fio || echo "BAD fio laid out no files"
    sync; echo 3 >/proc/sys/vm/drop_caches
fi
for queue in /sys/block/nullb*/queue; do
    echo $scheduler >$queue/scheduler || echo "BAD no scheduler $scheduler"
    echo 0 >$queue/wbt_lat_usec
    [ -z "$nr_requests" ] || [ $scheduler = none ] || echo $nr_requests >$queue/nr_requests || echo "BAD nr_requests $nr_requests"
    for tunable in $(echo $tunables | tr , ' '); do
        echo ${tunable#*:} >$queue/iosched/${tunable%%:*} || echo "BAD tunable $tunable"
    done
done
queue=/sys/block/nullb0/queue
for file in $queue/scheduler $queue/nr_requests $queue/wbt_lat_usec $queue/max_hw_sectors_kb $queue/iosched/*; do
    [ ! -f $file ] || echo "QUEUE $(case $file in */iosched/*) printf iosched. ;; esac)${file##*/}=$(cat $file)"
done
cgroups=/sys/fs/cgroup
if [ -n "$groups$io_cost_qos$io_cost_model$io_latency" ]; then
    mount -t cgroup2 c $cgroups && echo +io >$cgroups/cgroup.subtree_control || echo "BAD no io controller"
    for group in $(echo $groups | tr , ' '); do
        folder=$cgroups/${group%%:*}
        echo +io >${folder%/*}/cgroup.subtree_control; mkdir $folder && echo ${group#*:} >$folder/io.weight || echo "BAD group $group"
        # bfq reads a file of its own.
        [ $scheduler != bfq ] || echo ${group#*:} >$folder/io.bfq.weight || echo "BAD weight of bfq's group $group"
    done
    disk=$(cat /sys/block/nullb0/dev)
    [ -z "$io_cost_model" ] || echo "$disk $io_cost_model" >$cgroups/io.cost.model || echo "BAD io.cost.model"
    [ -z "$io_cost_qos" ] || echo "$disk $io_cost_qos" >$cgroups/io.cost.qos || echo "BAD io.cost.qos"
    for target in $(echo $io_latency | tr , ' '); do
        echo "$disk target=${target#*:}" >$cgroups/${target%%:*}/io.latency || echo "BAD io.latency $target"
    done
    for file in io.cost.model io.cost.qos; do read line <$cgroups/$file; echo "CGROUP $file $line"; done
fi
tracing=/sys/kernel/tracing
sleep $wait_s
if [ -n "$io_cost_qos$io_latency" ]; then
    echo 1 >/sys/module/blk_cgroup/parameters/blkcg_debug_stats
    while sleep $io_stat_s; do
        read uptime_s _ </proc/uptime; echo "UPTIME $uptime_s"
        for file in $cgroups/io.stat $cgroups/*/io.stat $cgroups/*/*/io.stat; do
            [ ! -f $file ] || while read line; do echo "IOSTAT ${file#$cgroups/} $line"; done <$file
        done
    done &
fi
if [ -n "$trace" ]; then
    echo 0 >$tracing/tracing_on; echo 60000 >$tracing/buffer_size_kb; echo $trace_clock >$tracing/trace_clock
    for event in $(echo $trace | tr , ' '); do
        case $event in
            blk) echo blk >$tracing/current_tracer; echo 1 >/sys/block/nullb0/trace/enable ;;
            *) echo 1 >$tracing/events/$event/enable || echo "BAD event $event" ;;
        esac
    done
    (sleep $trace_from_s; echo 1 >$tracing/tracing_on; sleep $trace_for_s; echo 0 >$tracing/tracing_on) &
fi
cd /tmp
fio --output-format=json --output=/out/document --eta=never /job.fio || echo "BAD fio ended with status $?"
for log in *.log; do [ ! -f $log ] || sed "s/^/$log, /" $log; done >/out/logs
[ -z "$trace" ] || cat $tracing/trace >/out/trace
"""


def run(kernel, job, options, limit_s=600):
    """Runs a job file; returns fio's document, what the guest said, the logs of the jobs and the trace, as text."""
    values = {name: str(options.get(name, default)) for name, (default, _) in OPTIONS.items()}
    for name, value in values.items():
        if not re.fullmatch(r"[\w:,./= -]*", value):
            raise Failure(f"{name}={value}: has characters that no option has (expected letters, digits, spaces, `:`, `,`, `.`, `/`, `=`, `-`)")
    files = guest.Initramfs()
    files.busybox(INIT)
    files.program("fio")
    modules = recorder.MODULES
    if values["files"] == "1":
        files.program("mkfs.ext4")
        modules = [*modules, "ext4"]
    files.kernel_modules(kernel, modules)
    files.add("job.fio", job)
    files.add("options", "".join(f"{name}='{value}'\n" for name, value in values.items()))
    sent, console = guest.boot(kernel, files.archive(), cpus=int(values["cpus"]), memory_mib=1500, limit_s=limit_s)
    if not sent:
        raise Failure(f"the guest sent nothing; its console ended with: {' | '.join(console[-6:])}")
    found = {name: contents.decode(errors="replace") for name, contents in recorder.files_of(sent, "fio's guest").items()}
    bad = [line[4:] for line in found["log"].splitlines() if line.startswith("BAD ")]
    if bad:
        raise Failure(f"{'; '.join(bad)}; the guest said: {' | '.join(found['log'].splitlines()[-4:])}")
    document = found.get("document", "")
    # fio writes its warnings before the document.
    return document[document.find("{") :], found["log"], found.get("logs", ""), found.get("trace", "")
