"""Debian packages of the programs: a folder of files, and the package that dpkg-deb makes of it, equal to the byte each time."""

import datetime
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import textwrap

from dist import build, tarball
from dist.build import ROOT, output, read
from dist.tarball import Refusal

AUTHORS = "The Hoistway developers <hoistway@users.noreply.github.com>"
HOME = "https://github.com/hoistway/hoistway"
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/hoistway",
    "zsh": "usr/share/zsh/vendor-completions/_hoistway",
    "fish": "usr/share/fish/vendor_completions.d/hoistway.fish",
}
# Commands of `hoistway` that other programs carry out: their pages are in other packages, or in none.
ELSEWHERE = {"serve", "ctl", "top", "conform", "reproduce", "replay-pairs"}


def hoistway(tree, program):
    """The command line."""
    for shell, path in COMPLETIONS.items():
        tree.add(path, output([program, "completions", shell]))
    tree.add_pages(program, lambda page: page.removeprefix("hoistway-").removesuffix(".1") not in ELSEWHERE)
    for page in sorted(os.listdir(os.path.join(ROOT, "docs"))):
        if page.endswith(".md") and not page.startswith("serve"):
            tree.add_file(f"usr/share/doc/hoistway/docs/{page}", f"docs/{page}")
    tree.add_file("usr/share/doc/hoistway/README.md", "README.md")


def hoistway_serve(tree, program):
    """The block server: its unit, a configuration, and two of its commands as programs."""
    packaging = "packaging/hoistway-serve"
    for unit in ["service", "socket"]:
        tree.add_file(f"lib/systemd/system/hoistway-serve.{unit}", f"{packaging}/hoistway-serve.{unit}")
    tree.add_pages(program, lambda _: True)
    for command in ["ctl", "top"]:
        tree.add_file(f"usr/bin/hoistway-{command}", f"{packaging}/hoistway-{command}", is_executable=True)
        os.symlink(f"hoistway-serve-{command}.1.gz", tree.path(f"usr/share/man/man1/hoistway-{command}.1.gz"))
    tree.add_file("usr/lib/sysusers.d/hoistway.conf", f"{packaging}/sysusers.conf")
    tree.add_file("etc/hoistway/serve.toml", f"{packaging}/serve.toml")
    for page in ["serve.md", "serve-operation.md", "grafana.json"]:
        tree.add_file(f"usr/share/doc/hoistway-serve/{page}", f"docs/{page}")
    tree.add("DEBIAN/conffiles", b"/etc/hoistway/serve.toml\n")


# What each package is: the profile of its program, its files, and its fields of the control file.
PACKAGES = {
    "hoistway": (
        "release",
        hoistway,
        {
            "Section": "admin",
            "Suggests": "fio, hoistway-serve",
            "Description": "which I/O scheduler, with which settings, for a device and a load\n"
            " Simulates a fio job file or a recording of block I/O on a model of a device\n"
            " under each I/O scheduler of Linux, compares the results, and says which\n"
            " scheduler to use. It records and replays loads of this machine, and applies\n"
            " and undoes settings.",
        },
    ),
    "hoistway-serve": (
        "server",
        hoistway_serve,
        {
            "Section": "net",
            "Recommends": "systemd (>= 252)",
            "Description": "block server with the I/O schedulers of Linux\n"
            " Serves files, disks and memory to NBD clients and virtual machines\n"
            " (vhost-user), under none, mq-deadline, kyber or bfq, with weights and limits\n"
            " for each export.",
        },
    ),
}


class Tree:
    """The folder that a package is made of."""

    def __init__(self, folder):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)

    def path(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def add(self, name, content, is_executable=False):
        with open(self.path(name), "wb") as file:
            file.write(content)
        os.chmod(self.path(name), 0o755 if is_executable else 0o644)

    def add_file(self, name, source, is_executable=False):
        self.add(name, read(os.path.join(ROOT, source)), is_executable)

    def add_packed(self, name, content):
        self.add(f"{name}.gz", gzip.compress(content, compresslevel=9, mtime=0))

    def add_pages(self, program, is_wanted):
        """The program's manual pages."""
        folder = self.path("pages/")
        output([program, "man", folder])
        for page in filter(is_wanted, os.listdir(folder)):
            self.add_packed(f"usr/share/man/man1/{page}", read(os.path.join(folder, page)))
        shutil.rmtree(folder)

    def files(self):
        """The names of regular files that are installed, sorted."""
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(self.folder) for name in names]
        names = [os.path.relpath(path, self.folder) for path in paths if not os.path.islink(path)]
        return sorted(name for name in names if not name.startswith("DEBIAN/"))


def libraries(program):
    """The packages that a program needs, from the newest version of the C library that its symbols name."""
    symbols = output(["objdump", "-T", program]).decode()
    versions = re.findall(r"GLIBC_([0-9.]+)", symbols)
    if not versions:
        raise Refusal(f"{program}: names no version of the C library (expected a program for {build.host_target()})")
    newest = max(versions, key=lambda version: [int(part) for part in version.split(".")])
    needed = output(["objdump", "-p", program]).decode()
    unwinder = ", libgcc-s1 (>= 4.2)" if "libgcc_s.so.1" in needed else ""
    return f"libc6 (>= {newest}){unwinder}"


def changelog(name, seconds):
    """The changelog in Debian's form."""
    date = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S +0000")
    change = "  * CHANGELOG.md.gz in this folder lists the features of this version."
    return f"{name} ({build.version()}) unstable; urgency=medium\n\n{change}\n\n -- {AUTHORS}  {date}\n".encode()


def copyright(name):
    """The copyright file, in Debian's form."""
    mit = read(os.path.join(ROOT, "LICENSE-MIT")).decode()
    holder = re.search(r"^Copyright \(c\) (.*)$", mit, re.MULTILINE).group(1)
    text = mit[mit.index("Permission") :].strip()
    indented = textwrap.indent(re.sub(r"\n\n", "\n.\n", text), " ")
    return f"""Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: hoistway
Source: {HOME}
Comment: notices-of-crates.gz in this folder has the licences of the crates that the
 program contains.

Files: *
Copyright: {holder}
License: MIT or Apache-2.0

License: MIT
{indented}

License: Apache-2.0
 Debian systems have the text of this licence in
 /usr/share/common-licenses/Apache-2.0.
""".encode()


def control(name, program, tree, architecture):
    kilobytes = sum(-(-os.path.getsize(tree.path(file)) // 1024) for file in tree.files())
    fields = {
        "Package": name,
        "Version": build.version(),
        "Architecture": architecture,
        "Maintainer": AUTHORS,
        "Installed-Size": kilobytes,
        "Depends": libraries(program),
        "Priority": "optional",
        "Homepage": HOME,
    } | PACKAGES[name][2]
    return "".join(f"{field}: {text}\n" for field, text in fields.items()).encode()


def file_name(name, architecture):
    return f"{name}_{build.version()}_{architecture}.deb"


def make(name, program, notices, components, architecture, seconds):
    """Makes a package in the folder of all that is made, and returns its path."""
    tree = Tree(os.path.join(build.target_folder(), "debian", name))
    tree.add_file(f"usr/bin/{name}", program, is_executable=True)
    PACKAGES[name][1](tree, program)
    documents = f"usr/share/doc/{name}"
    tree.add_packed(f"{documents}/changelog", changelog(name, seconds))
    tree.add_packed(f"{documents}/CHANGELOG.md", read(os.path.join(ROOT, "CHANGELOG.md")))
    tree.add_packed(f"{documents}/notices-of-crates", notices)
    tree.add_packed(f"{documents}/{name}.spdx.json", components)
    tree.add(f"{documents}/copyright", copyright(name))
    for script in ["postinst", "prerm", "postrm"]:
        if os.path.exists(os.path.join(ROOT, "packaging", name, script)):
            tree.add_file(f"DEBIAN/{script}", f"packaging/{name}/{script}", is_executable=True)
    sums = [f"{hashlib.md5(read(tree.path(file)), usedforsecurity=False).hexdigest()}  {file}\n" for file in tree.files()]
    tree.add("DEBIAN/md5sums", "".join(sums).encode())
    tree.add("DEBIAN/control", control(name, program, tree, architecture))
    for folder, _, _ in os.walk(tree.folder):
        os.chmod(folder, 0o755)
    # Only this form and number of threads give the same bytes on every machine.
    command = ["dpkg-deb", "--build", "--root-owner-group", "-Zxz", "--threads-max=1", tree.folder]
    package = os.path.join(build.FOLDER, file_name(name, architecture))
    os.makedirs(build.FOLDER, exist_ok=True)
    tarball.check_new(build.FOLDER, [os.path.basename(package)])
    with open(os.devnull, "wb") as nothing:
        done = subprocess.run([*command, package], stdout=nothing, env=os.environ | {"SOURCE_DATE_EPOCH": str(seconds)})
    if done.returncode:
        raise Refusal(f"dpkg-deb failed on {tree.folder} (the lines above have the reason)")
    return package
