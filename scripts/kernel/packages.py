"""Finds a kernel: the package of a distribution by name or file, an unpacked package, or a kernel that was built here."""

import glob
import hashlib
import lzma
import os
import re
import shutil
import subprocess

from .failure import Failure


class Kernel:
    """An image that QEMU boots, with its modules."""

    def __init__(self, image, modules, origin):
        self.image = image
        # The folder `lib/modules/RELEASE`.
        self.modules = modules
        # Where it comes from, for people: a package with its checksum, or a path.
        self.origin = origin
        self.release = os.path.basename(modules.rstrip("/"))

    def checksum(self):
        """Identifies image and release; what was learnt about one kernel is kept under this name."""
        with open(self.image, "rb") as image:
            return f"{self.release}-{hashlib.sha256(image.read()).hexdigest()[:12]}"

    def module(self, name):
        """The contents of a module, or None if the kernel has it built in."""
        for variant in {name, name.replace("-", "_"), name.replace("_", "-")}:
            for path in sorted(glob.glob(f"{glob.escape(self.modules)}/**/{variant}.ko*", recursive=True)):
                return unpacked(path)
        return None

    def has(self, name):
        """Whether the kernel has a module, or has it built in; without a list of what is built in it may have it."""
        built_in = os.path.join(self.modules, "modules.builtin")
        if self.module(name) is not None or not os.path.exists(built_in):
            return True
        with open(built_in) as file:
            return any(line.strip().endswith(f"/{name}.ko") for line in file)

    def modules_for(self, names):
        """The named modules and those that they need, in the order of loading, as (name, contents)."""
        order, seen = [], set()

        def add(name):
            if name in seen:
                return
            seen.add(name)
            contents = self.module(name)
            if contents is None:
                return
            # `.modinfo` is a list of strings that end with 0.
            needed = re.search(rb"\0depends=([^\0]*)\0", contents)
            for other in needed.group(1).decode().split(",") if needed else []:
                if other:
                    add(other)
            order.append((name, contents))

        for name in names:
            add(name)
        return order


def unpacked(path):
    with open(path, "rb") as file:
        contents = file.read()
    if path.endswith(".xz"):
        return lzma.decompress(contents)
    if path.endswith((".zst", ".gz")):
        program = "zstd" if path.endswith(".zst") else "gzip"
        if not shutil.which(program):
            raise Failure(f"{path}: {program} is not installed (expected, to unpack this module)")
        return subprocess.run([program, "-dc"], input=contents, stdout=subprocess.PIPE, check=True).stdout
    return contents


def find(kernel, modules, folder, sources=None):
    """The kernel that the command line names; packages are downloaded and unpacked below `folder`, once.

    `kernel` is the name of a Debian package, a .deb, a folder with an unpacked kernel, or an image; an image needs `modules`, the folder
    of its modules. `sources` are lines for apt that are used beside, or instead of, those of this machine.
    """
    if os.path.isdir(kernel):
        return in_folder(kernel, os.path.abspath(kernel))
    if os.path.isfile(kernel) and kernel.endswith(".deb"):
        return from_files([kernel], folder)
    if os.path.isfile(kernel):
        if not modules:
            raise Failure(f"{kernel}: an image needs --modules (expected the folder lib/modules/RELEASE of `make modules_install`)")
        folders = [name for name in glob.glob(f"{modules}/lib/modules/*/") + [modules + "/"] if os.path.isdir(name + "kernel")]
        if len(folders) != 1:
            raise Failure(f"--modules {modules}: has {len(folders)} sets of modules (expected one folder `kernel` in it)")
        return Kernel(os.path.abspath(kernel), folders[0].rstrip("/"), os.path.abspath(kernel))
    if "/" in kernel or not re.fullmatch(r"[a-z0-9][a-z0-9+.~-]*(=\S+)?", kernel):
        raise Failure(f"{kernel}: no such file or folder (expected a package, a .deb, an unpacked kernel or an image)")
    return from_apt(kernel, folder, sources)


def in_folder(folder, origin):
    """The one kernel below a folder with the contents of a package."""
    modules = [name for name in glob.glob(f"{glob.escape(folder)}/lib/modules/*") + glob.glob(f"{glob.escape(folder)}/usr/lib/modules/*") if os.path.isdir(name + "/kernel")]
    if len({os.path.realpath(name) for name in modules}) != 1:
        raise Failure(f"{folder}: has {len(modules)} sets of modules (expected one lib/modules/RELEASE)")
    release = os.path.basename(modules[0])
    for image in (f"{folder}/boot/vmlinuz-{release}", f"{modules[0]}/vmlinuz"):
        if os.path.isfile(image):
            return Kernel(image, modules[0], origin)
    raise Failure(f"{folder}: has no image (expected boot/vmlinuz-{release} or lib/modules/{release}/vmlinuz)")


def field(package, name):
    run = subprocess.run(["dpkg-deb", "--field", package, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        raise Failure(f"{package}: {run.stderr.strip().splitlines()[-1]} (expected a Debian package)")
    return run.stdout.strip()


def parts_of(depends):
    """The packages that hold image and modules, of a kernel that comes in parts (Debian's 7.0 and newer), and what a meta package means."""
    return re.findall(r"\b(linux-(?:binary|modules|image)-[0-9][^ ,(|]*)", depends)


def from_files(packages, folder):
    """Unpacks .deb files; parts of a kernel that one of them needs are taken from beside it."""
    packages, at = list(packages), 0
    while at < len(packages):
        package = packages[at]
        at += 1
        for part in parts_of(field(package, "Depends")):
            if any(os.path.basename(other).startswith(part + "_") for other in packages):
                continue
            beside = sorted(glob.glob(f"{glob.escape(os.path.dirname(os.path.abspath(package)))}/{part}_*.deb"))
            if not beside:
                raise Failure(f"{package}: needs {part} (expected {part}_*.deb beside it)")
            packages.append(beside[-1])
    checksums = []
    for package in packages:
        with open(package, "rb") as file:
            checksums.append(hashlib.file_digest(file, "sha256").hexdigest())
    unpacked_at = os.path.join(folder, "unpacked-" + hashlib.sha256(" ".join(sorted(checksums)).encode()).hexdigest()[:16])
    if not os.path.isdir(unpacked_at):
        partial = unpacked_at + ".partial"
        shutil.rmtree(partial, ignore_errors=True)
        os.makedirs(partial)
        for package in packages:
            run = subprocess.run(["dpkg-deb", "-x", package, partial], stderr=subprocess.PIPE, text=True)
            if run.returncode:
                shutil.rmtree(partial, ignore_errors=True)
                line = (run.stderr.strip().splitlines() or ["failed"])[0]
                raise Failure(f"{package}: dpkg-deb: {line} (expected a whole package and room below {folder})")
        os.rename(partial, unpacked_at)
    origin = ", ".join(f"{field(package, 'Package')} {field(package, 'Version')} (sha256 {checksum})" for package, checksum in zip(packages, checksums))
    return in_folder(unpacked_at, origin)


def from_apt(name, folder, sources):
    """Downloads a package and its parts with apt-get, which checks the signatures."""
    for program in ("apt-get", "apt-cache", "dpkg-deb"):
        if not shutil.which(program):
            raise Failure(f"{name}: {program} is not installed (expected a folder or an image instead of a package's name)")
    options = []
    if sources:
        # Lists and sources of our own: nothing of the machine's package system is changed.
        apt = os.path.abspath(os.path.join(folder, "apt"))
        for sub in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(apt, sub), exist_ok=True)
        text = "".join(line + "\n" for line in sources)
        listed = os.path.join(apt, "sources.list")
        for setting in (f"Dir::Etc::sourcelist={listed}", "Dir::Etc::sourceparts=-", f"Dir::State::lists={apt}/lists", f"Dir::Cache={apt}/cache"):
            options += ["-o", setting]
        if not os.path.exists(listed) or open(listed).read() != text:
            with open(listed, "w") as file:
                file.write(text)
            update = subprocess.run(["apt-get", *options, "update", "-q"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if update.returncode:
                os.remove(listed)
                raise Failure(f"--source: apt-get update failed: {update.stdout.strip().splitlines()[-1]} (expected lines as in sources.list)")
    store = os.path.join(folder, "packages")
    os.makedirs(store, exist_ok=True)
    files, wanted = [], [name]
    while wanted:
        package = wanted.pop()
        plain, _, version = package.partition("=")
        pattern = f"{glob.escape(store)}/{plain}_{glob.escape(version.replace(':', '%3a')) or '*'}_*.deb"
        found = sorted(glob.glob(pattern))
        # What is not the name of one build (linux-image-amd64) may mean another one by now.
        if not re.search(r"-\d+\.\d+\.\d", plain):
            for old in found:
                os.remove(old)
            found = []
        if not found:
            run = subprocess.run(["apt-get", *options, "download", "-q", package], cwd=store, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            found = sorted(glob.glob(pattern))
            if run.returncode or not found:
                line = (run.stdout.strip().splitlines() or ["nothing"])[-1]
                raise Failure(f"{package}: apt-get download: {line} (expected a package that apt knows; --source adds a line to its sources)")
        files.append(found[-1])
        for part in parts_of(field(found[-1], "Depends")):
            if not any(os.path.basename(file).startswith(part + "_") for file in files):
                wanted.append(part)
    return from_files(files, folder)
