"""Records decisions: boots a kernel once for what its probes need to know, and once for each scenario."""

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import tarfile

from . import convert, failure, guest, scenarios
from .btf import Btf
from .failure import Failure
from .probes import Probes

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["configfs", "null_blk", "mq-deadline", "bfq", "kyber-iosched"]
# Older kernels do not start a second CPU where CPUs run in turns.
SEVERAL_CPUS_SINCE = (6, 5)
NULL_BLK = "size=1024 queue_mode=2 irqmode=2 poll_queues=0 max_sectors=2560"
# Sends the kernel's description of its types, and two readings of its tick counter two seconds apart.
ASK = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc p /proc; mount -t sysfs s /sys; mount -t devtmpfs d /dev
stty -F /dev/ttyS1 raw 115200
mkdir /out
[ ! -f /sys/kernel/btf/vmlinux ] || cp /sys/kernel/btf/vmlinux /out/btf
grep -m 1 '^jiffies:' /proc/timer_list >/out/first
sleep 2
grep -m 1 '^jiffies:' /proc/timer_list >/out/second
tar -C /out -cf - . | gzip -1 >/tmp/out.tar.gz
cat /tmp/out.tar.gz >/dev/ttyS1
poweroff -f
"""


def files_of(sent, what):
    """The files that a guest sent."""
    try:
        with tarfile.open(fileobj=io.BytesIO(gzip.decompress(sent))) as archive:
            return {member.name.removeprefix("./"): archive.extractfile(member).read() for member in archive if member.isfile()}
    except (OSError, EOFError, tarfile.TarError):
        raise Failure(f"{what}: the guest sent {len(sent)} bytes that are no archive (expected one, complete)") from None


class Recorder:
    """One kernel. `state` is the folder where what is learnt and built is kept."""

    def __init__(self, kernel, state, limit_s=300):
        guest.require_qemu()
        self.kernel, self.state, self.limit_s = kernel, state, limit_s
        if not kernel.has("null_blk"):
            raise Failure(f"{kernel.release}: has no null_blk (expected a module in {kernel.modules}, or CONFIG_BLK_DEV_NULL_BLK=y)")
        os.makedirs(state, exist_ok=True)
        self.btf, self.hz = self.ask()
        self.load = self.build_load()
        # Probes as (name, kind) that the last guest used, and lines of its trace that were not understood.
        self.ways, self.unknown = {}, {}

    def claim(self, folder):
        """Makes a folder for recordings of this kernel; one with recordings of another build is refused."""
        contents = hashlib.sha256(self.kernel.checksum().encode())
        for _, module in self.kernel.modules_for(MODULES):
            contents.update(module)
        ours, path = f"{self.kernel.release} {contents.hexdigest()}\n", os.path.join(folder, "kernel")
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(path):
            failure.write(path, ours)
        with open(path) as file:
            theirs = file.read()
        if theirs != ours:
            raise Failure(f"{folder}: has recordings of another build, {theirs.split(' ')[0]} (expected a new folder, or -o with one, for {self.kernel.release})")

    def base(self, init):
        files = guest.Initramfs()
        files.busybox(init)
        return files

    def ask(self):
        """The kernel's BTF and its ticks per second."""
        kept = os.path.join(self.state, f"learnt-{self.kernel.checksum()}")
        if not os.path.exists(kept + ".btf"):
            sent, console = guest.boot(self.kernel, self.base(ASK).archive(), limit_s=self.limit_s)
            if not sent:
                raise Failure(f"{self.kernel.release}: the guest sent nothing; its console ended with: {' | '.join(console[-6:])}")
            files = files_of(sent, self.kernel.release)
            if "btf" not in files:
                raise Failure(f"{self.kernel.release}: has no BTF (expected /sys/kernel/btf/vmlinux, CONFIG_DEBUG_INFO_BTF=y)")
            ticks = [int(re.search(rb"\d+", files[name])[0]) for name in ("first", "second")]
            hz = min((100, 250, 300, 1000), key=lambda hz: abs(hz - (ticks[1] - ticks[0]) / 2))
            failure.write(kept + ".btf", b"%d\n" % hz + files["btf"])
        with open(kept + ".btf", "rb") as file:
            hz = int(file.readline())
            return Btf(file.read()), hz

    def build_load(self):
        """The load generator, linked statically; the same source and compiler make the same program."""
        source = os.path.join(HERE, "load.c")
        compiler = os.environ.get("CC") or "gcc"
        if not shutil.which(compiler):
            raise Failure(f"{compiler} is not installed (expected, to build the load generator; CC names another compiler)")
        version = subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, check=True).stdout
        with open(source, "rb") as file:
            name = hashlib.sha256(file.read() + version).hexdigest()[:16]
        program = os.path.join(self.state, f"load-{name}")
        if not os.path.exists(program):
            build = subprocess.run([compiler, "-O2", "-static", "-o", program + ".partial", source], stderr=subprocess.PIPE, text=True)
            if build.returncode:
                raise Failure(f"{source}: {compiler}: {(build.stderr.strip().splitlines() or ['failed'])[-1]} (expected a static program)")
            os.replace(program + ".partial", program)
        return program

    def archive(self, scenario):
        """The guest of a scenario."""
        with open(os.path.join(HERE, "record.init")) as init:
            files = self.base(init.read())
        files.copy(self.load, "bin/load")
        files.kernel_modules(self.kernel, MODULES)
        used = scenarios.schedulers_of(scenario)
        device = f"{NULL_BLK} submit_queues={scenario['hw_queues']} hw_queue_depth={scenario['depth']} completion_nsec={scenario['service_us'] * 1000}"
        attributes = "wbt_lat_usec=0" + (f" nr_requests={scenario['nr_requests']}" if scenario["nr_requests"] else "")
        settings = {
            "scheduler": scenario["scheduler"],
            "null_blk": f"{device} rotational={int(scenario['rotational'])} {scenario['device']}",
            "attributes": f"{attributes} {scenario['attributes']}",
            "tunables": scenario["tunables"],
            "cgroups": scenario["cgroups"],
            "charged": "1" if scenario["charged"] else "",
            "messages": "1" if "bfq" in used or len(used) > 1 else "",
        }
        files.add("scenario/settings", "".join(f"{key}='{value.strip()}'\n" for key, value in settings.items()))
        files.add("scenario/jobs", "".join(job + "\n" for job in scenario["jobs"]))
        probes = Probes(self.btf)
        files.add("scenario/probes", "".join(line + "\n" for line in probes.lines(used, scenario["charged"])))
        if scenario["write_back"]:
            background, period, age = scenario["write_back"].split()
            lines = [f"echo {value} >/proc/sys/vm/{name}\n" for name, value in (("dirty_bytes", 400000000), ("dirty_background_bytes", background))]
            lines += [f"echo {period} >/proc/sys/vm/dirty_writeback_centisecs\n", f"echo {age} >/proc/sys/vm/dirty_expire_centisecs\n"]
            files.add("scenario/before", "".join(lines))
        if scenario["hook"]:
            files.add("scenario/hook", scenario["hook"].replace("; ", "\n") + "\n")
        return files.archive()

    def record(self, scenario, path, raw=None):
        """Records a scenario to a file. `raw` is a folder for what the guest sent."""
        name = scenario["name"]
        if scenario["since"] and scenarios.release_of(self.kernel.release) < scenarios.release_of(scenario["since"]):
            raise Failure(f"{name}: needs Linux {scenario['since']} (this is {self.kernel.release})")
        if scenario["cpus"] > 1 and scenarios.release_of(self.kernel.release) < SEVERAL_CPUS_SINCE:
            raise Failure(f"{name}: needs {scenario['cpus']} CPUs, and kernels before 6.5 wait for ever for the second one in this guest")
        try:
            sent, console = guest.boot(self.kernel, self.archive(scenario), cpus=scenario["cpus"], limit_s=self.limit_s)
        except Failure as problem:
            raise Failure(f"{name}: {problem}") from None
        if not sent:
            raise Failure(f"{name}: the guest sent nothing; its console ended with: {' | '.join(console[-6:])}")
        files = {key: contents.decode(errors="replace") for key, contents in files_of(sent, name).items()}
        if raw:
            os.makedirs(os.path.join(raw, name), exist_ok=True)
            for key, contents in files.items():
                with open(os.path.join(raw, name, key), "w") as file:
                    file.write(contents)
        self.ways = dict(line.split()[1:3] for line in files.get("log", "").splitlines() if line.startswith("PROBE "))
        recording, self.unknown = convert.convert(files, scenario, self.hz, self.btf.enumerator("__RQF_FLUSH_SEQ"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        failure.write(path, convert.packed(recording))
        return recording
