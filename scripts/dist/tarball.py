"""A tarball that is equal to the byte whenever it is made of the same files: sorted names, one time, no owner."""

import gzip
import hashlib
import io
import os
import struct
import tarfile

# The targets of static programs, by ELF's numbers of machines.
MACHINES = {62: "x86_64-unknown-linux-musl", 183: "aarch64-unknown-linux-musl"}


class Refusal(Exception):
    """What was wrong, and what was expected."""


def target(program, path):
    """The target that a static ELF program is for. Refuses others: one that names an interpreter needs the libraries of the system."""
    if program[:6] != b"\x7fELF\x02\x01":
        raise Refusal(f"{path}: no 64-bit ELF program (expected a static one)")
    (first,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    interpreter = 3
    if any(struct.unpack_from("<I", program, first + index * size)[0] == interpreter for index in range(count)):
        raise Refusal(f"{path}: is linked dynamically (expected a static program, such as one for x86_64-unknown-linux-musl)")
    (machine,) = struct.unpack_from("<H", program, 18)
    if machine not in MACHINES:
        raise Refusal(f"{path}: is for machine {machine} of ELF (expected {' or '.join(MACHINES.values())})")
    return MACHINES[machine]


def pack(files, folder, seconds):
    """A .tar.gz of files below a folder. `files` has the content and whether it is executable, by name; times are `seconds` since 1970."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, (content, is_executable) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime = len(content), seconds
            entry.mode = 0o755 if is_executable else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), compresslevel=9, mtime=0)


def checksums(files):
    """The lines that `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items())).encode()


def check_new(folder, names):
    """Refuses if any of these files is there."""
    for name in names:
        if os.path.lexists(os.path.join(folder, name)):
            raise Refusal(f"{os.path.join(folder, name)}: exists (expected no file; remove it to make it anew)")


def write_new(folder, files):
    """Writes files, all of them or none: refuses to overwrite any."""
    os.makedirs(folder, exist_ok=True)
    check_new(folder, files)
    for name, content in files.items():
        with open(os.path.join(folder, name), "xb") as file:
            file.write(content)
