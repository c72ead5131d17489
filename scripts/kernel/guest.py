"""A Linux guest: its initramfs, written here byte for byte, and QEMU.

As a program it does for shell scripts what record-kernel does with the functions below:

    python3 scripts/kernel/guest.py kernel [--state FOLDER] [--modules FOLDER] [--source LINE]... KERNEL
        finds a kernel (a Debian package by name or file, an unpacked one, or an image), and prints its image, its modules and its origin
    python3 scripts/kernel/guest.py initrd [--modules FOLDER] --kernel KERNEL --init FILE -o INITRD [OPTION...]
        writes an initramfs with busybox and /init; --module NAME... go to /modules with those that they need, in the order of /modules/order;
        --program NAME... or NAME=PATH... with their libraries to /tools
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    from kernel import failure, packages
    from kernel.failure import Failure
else:
    from . import failure, packages
    from .failure import Failure

QEMU = "qemu-system-x86_64"


class Initramfs:
    """Files of a guest, which become an archive of cpio's format `newc`. The same files make the same bytes."""

    def __init__(self):
        self.entries = {}

    def folder(self, path):
        parts = path.strip("/").split("/")
        for count in range(1, len(parts) + 1):
            if parts[0]:
                self.entries.setdefault("/".join(parts[:count]), (0o40755, b""))

    def add(self, path, contents, mode=0o644):
        path = path.strip("/")
        if "/" in path:
            self.folder(path.rsplit("/", 1)[0])
        self.entries[path] = (0o100000 | mode, contents if isinstance(contents, bytes) else contents.encode())

    def copy(self, source, path):
        with open(source, "rb") as file:
            self.add(path, file.read(), 0o755 if os.access(source, os.X_OK) else 0o644)

    def busybox(self, init):
        """busybox, the script that is the first process, and the folders that it mounts on."""
        found = shutil.which("busybox")
        if not found:
            raise Failure("busybox is not installed (expected, for the guest; Debian: busybox-static)")
        # A dynamic one has the path of an interpreter.
        with open(found, "rb") as file:
            if b"/ld-linux" in file.read(4096):
                raise Failure(f"{found}: is linked dynamically (expected a static one; Debian: busybox-static)")
        self.copy(found, "bin/busybox")
        for folder in ("dev", "proc", "sys", "tmp", "mnt", "tools", "modules", "sbin", "usr/bin", "usr/sbin"):
            self.folder(folder)
        self.add("init", init, 0o755)

    def program(self, name, path=None):
        """A program of this machine, with the libraries that it is linked with."""
        found = shutil.which(path or name)
        if not found:
            raise Failure(f"{path or name} is not installed (expected, for the guest)")
        self.copy(found, f"tools/{name}")
        listed = subprocess.run(["ldd", found], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for library in re.findall(r"(/\S+)", listed):
            self.copy(library, library)

    def kernel_modules(self, kernel, names):
        """Modules and those that they need, in /modules, and their order of loading."""
        order = kernel.modules_for(names)
        for name, contents in order:
            self.add(f"modules/{name}.ko", contents)
        self.add("modules/order", "".join(name + "\n" for name, _ in order))

    def archive(self):
        out = bytearray()

        def entry(number, path, mode, contents):
            name = path.encode() + b"\0"
            # Neither times nor owners of the files here.
            header = "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X" % (
                (number, mode, 0, 0, 2 if mode & 0o40000 else 1, 0, len(contents), 0, 0, 0, 0, len(name), 0)
            )
            out.extend(header.encode() + name)
            out.extend(b"\0" * (-len(out) % 4))
            out.extend(contents)
            out.extend(b"\0" * (-len(out) % 4))

        # A folder sorts before what is in it.
        for number, (path, (mode, contents)) in enumerate(sorted(self.entries.items()), 1):
            entry(number, path, mode, contents)
        entry(0, "TRAILER!!!", 0, b"")
        return bytes(out)


def require_qemu():
    if not shutil.which(QEMU):
        raise Failure(f"{QEMU} is not installed (expected, for the guest; Debian: qemu-system-x86)")


def boot(kernel, initramfs, cpus=1, memory_mib=640, limit_s=300):
    """Boots a guest in virtual time until it powers off: an instruction takes 1 ns, idle time is skipped, and nothing random comes from
    this machine. Returns what the guest wrote to its second serial port, and the lines of its console."""
    require_qemu()
    with tempfile.TemporaryDirectory(prefix="hoistway-guest-") as work:
        console, said, initrd = (os.path.join(work, name) for name in ("console", "said", "initrd"))
        failure.write(initrd, initramfs)
        command = [QEMU, "-machine", "q35", "-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max,-rdrand,-rdseed", "-seed", "1"]
        command += ["-rtc", "base=2026-01-01T00:00:00,clock=vm", "-m", str(memory_mib), "-smp", str(cpus), "-nodefaults", "-display", "none", "-no-reboot"]
        command += ["-serial", f"file:{console}", "-serial", f"file:{said}", "-kernel", kernel.image, "-initrd", initrd]
        command += ["-append", "console=ttyS0 quiet panic=-1 nokaslr tsc=reliable mitigations=off rdinit=/init"]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, complaint = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise Failure(f"{kernel.release}: the guest did not power off within {limit_s} s; its console ended with: {last_lines(console)}") from None
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        if process.returncode:
            line = (complaint.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise Failure(f"{kernel.release}: {QEMU} ended with status {process.returncode}: {line}")
        with open(said, "rb") as file:
            return file.read(), lines_of(console)


def lines_of(console):
    try:
        with open(console, "rb") as file:
            return file.read().decode(errors="replace").replace("\r", "").splitlines()
    except FileNotFoundError:
        return []


def last_lines(console, count=8):
    lines = [line.strip() for line in lines_of(console) if line.strip()]
    return " | ".join(lines[-count:]) or "nothing"


def state_folder():
    """Where unpacked kernels and what was learnt about them are kept."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "hoistway", "kernels")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    found = commands.add_parser("kernel")
    found.add_argument("kernel")
    initrd = commands.add_parser("initrd")
    initrd.add_argument("--kernel", required=True)
    initrd.add_argument("--init", required=True)
    initrd.add_argument("-o", "--output", required=True)
    for name in ("--module", "--program"):
        initrd.add_argument(name, action="append", default=[])
    for command in (found, initrd):
        command.add_argument("--modules")
        command.add_argument("--state", default=state_folder())
        command.add_argument("--source", action="append", default=[])
    asked = parser.parse_args()
    kernel = packages.find(asked.kernel, asked.modules, asked.state, asked.source)
    if asked.command == "kernel":
        print(kernel.image, kernel.modules, kernel.origin, sep="\n")
        return 0
    files = Initramfs()
    with open(asked.init) as init:
        files.busybox(init.read())
    for program in asked.program:
        name, _, path = program.partition("=")
        files.program(name, path)
    files.kernel_modules(kernel, asked.module)
    failure.write(asked.output, files.archive())
    return 0


if __name__ == "__main__":
    failure.run(main)
